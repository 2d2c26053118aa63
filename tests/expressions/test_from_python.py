"""Paths as Python expressions are SQL text that both engines take."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

import variantlake as vl
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.errors import InvalidValue
from variantlake.sql.select import QueryText

SCHEMA = QueryText(parse_table_ddl("event VARIANT, `odd col` VARIANT"))


def test_conditions_read_as_they_are_written() -> None:
    kind, number = vl.path("event", "$.kind").string(), vl.path("event", "$.n['x y'][0]").double()
    condition = ((kind == "it") | ~(number >= 2.5)) & kind.isin("a", None) & number.is_not_null()
    assert str(SCHEMA.condition(str(condition))) == (
        "(event:kind::string = 'it' OR NOT (event:n['x y'][0]::double >= 2.5)) AND "
        "event:kind::string IN ('a', NULL) AND event:n['x y'][0]::double IS NOT NULL"
    )


def test_items_have_the_last_key_as_their_name() -> None:
    odd = vl.path("odd col").as_type("decimal(9,2)", strict=False)
    items = SCHEMA.items((vl.path("event", "$.a.b").bigint(), odd.alias("m")))
    assert [(item.name, str(item.ref)) for item in items] == [
        ("b", "event:a.b::bigint"),
        ("m", "try_variant_get(`odd col`, '$', 'decimal(9,2)')"),
    ]


def test_constants_of_each_kind() -> None:
    at = dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    day, moment = vl.path("event", "$.d").date(), vl.path("event", "$.t").timestamp()
    amount, flag = vl.path("event", "$.m").decimal(9, 2), vl.path("event", "$.f").boolean()
    condition = (
        (day > dt.date(2024, 1, 31))
        & moment.between(at, at)
        & (amount <= Decimal("1.50"))
        & (flag == True)  # noqa: E712 - a comparison in SQL
        & (vl.path("event", "$.i").int() != -5)
    )
    assert str(SCHEMA.condition(str(condition))).startswith("event:d::date > DATE'2024-01-31' AND")


def test_mistakes_are_said() -> None:
    path = vl.path("event", "$.a").double()
    with pytest.raises(InvalidValue, match="rows"):
        bool(path > 1)
    with pytest.raises(InvalidValue, match="constant"):
        path.isin(float("inf"))
    with pytest.raises(InvalidValue, match="constant"):  # in UTC of a year that Python has not
        path.isin(dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=14))))
    untyped: Any = vl.path("event", "$.a")
    uses: tuple[Callable[[], object], ...] = (
        lambda: untyped == 1,
        lambda: untyped > 1,
        lambda: 2 * untyped,
    )
    for use in uses:
        with pytest.raises(InvalidValue, match=r"\$\.a of event is used as a value, but has no"):
            use()
    with pytest.raises(vl.VariantLakeError):
        vl.path("event", "no path")
