"""What scans read from typed columns is what they cast from whole Variants."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import variantlake as vl
from tests.strategies import MORE

TEXTS = st.sampled_from(["", "a", "ä", "user 1", "user 12", "x" * 70])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "n": st.integers(-5, 5) | st.sampled_from([2**40, -(2**63)]),
    "s": TEXTS,
    "m": st.decimals(-1000, 1000, places=2) | st.decimals("1e-9", "1e9", places=17),
    "b": st.booleans(),
    "o": st.fixed_dictionaries({}, optional={"s": TEXTS, "n": st.integers(0, 3)}),
}
ODD = st.sampled_from([None, "text", 7, [1], {"s": 1}])
DOCUMENTS = st.lists(
    st.fixed_dictionaries({}, optional=VALUES)
    | st.dictionaries(st.sampled_from([*VALUES]), ODD, max_size=2),
    min_size=1,
    max_size=12,
)
PATHS = {
    "n": "bigint",
    "s": "string",
    "m": "double",
    "b": "boolean",
    "o.s": "string",
    "o.n": "int",
}
SELECT = [
    f"try_variant_get(event, '$.{path}', '{kind}') AS `{path}`" for path, kind in PATHS.items()
]
CONDITIONS = [
    None,
    "try_variant_get(event, '$.s', 'string') >= 'user 1'",
    "try_variant_get(event, '$.n', 'bigint') > 0",
    "try_variant_get(event, '$.m', 'double') < 10 OR try_variant_get(event, '$.b', 'boolean')",
    "try_variant_get(event, '$.o.s', 'string') IS NULL",
]


def texts(documents: list[Any]) -> pa.Table:
    rows = [json.dumps(each, default=lambda value: f"@{value}@") for each in documents]
    rows = [row.replace('"@', "").replace('@"', "") for row in rows]  # decimals as they are
    return pa.table({"event": rows * 3})


@settings(
    max_examples=12 * MORE,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(DOCUMENTS, st.sampled_from(CONDITIONS), st.integers(1, 40))
def test_typed_columns_have_what_the_documents_have(
    tmp_path_factory: pytest.TempPathFactory, documents: list[Any], where: str | None, most: int
) -> None:
    folder, rows = tmp_path_factory.mktemp("typed"), texts(documents)
    found = []
    for name, shredding in [
        ("typed", "n BIGINT, s STRING, m DECIMAL(38,17), b BOOLEAN, o STRUCT<s: STRING, n: INT>"),
        ("whole", "nowhere INT"),
    ]:
        table = vl.Table.create(folder / name, "event VARIANT", shredding={"event": shredding})
        table.append(rows, json_columns=["event"], max_rows_per_file=20)
        scan = table.refresh().scan(SELECT, where)
        assert scan.to_arrow().schema.equals(scan.schema)
        found.append(scan.to_pylist())
        limited = table.scan(SELECT, where, limit=most)
        assert limited.to_pylist() == found[-1][:most]
        assert limited.to_pylist() == found[-1][:most]  # by the layouts that are kept
    assert found[0] == found[1]


def test_decimals_beyond_64_bits_are_the_nearest_doubles(tmp_path: Path) -> None:
    numbers = [Decimal(n) / 7 for n in (1, 400_003, 10**12 + 1)] + [Decimal("0.1"), Decimal(-3)]
    shredding = {"event": "x DECIMAL(38,17)"}
    table = vl.Table.create(tmp_path / "t", "event VARIANT", shredding=shredding)
    rows = pa.table({"event": [f'{{"x":{number:.17f}}}' for number in numbers]})
    table.append(rows, json_columns=["event"])
    found = table.scan("event:x::double AS x").to_arrow()["x"].to_pylist()
    assert found == [float(f"{number:.17f}") for number in numbers]
