"""Queries without Spark against the plain twin: groups, order, what the log alone answers."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import random
from collections.abc import Callable
from decimal import Decimal
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake as vl
from tests.engine import twin
from tests.engine.twin import Row, Term
from tests.parallel.pools import worker_processes
from tests.strategies import MORE
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.engine import codes, grouped, reading, run
from variantlake.engine.reading import Reading
from variantlake.engine.text import read_query
from variantlake.errors import (
    InvalidQuery,
    InvalidValue,
    OutOfMemory,
    UnsupportedFeature,
    VariantLakeError,
)
from variantlake.expressions.arrays import valid
from variantlake.scan.files.file_rows import Rows
from variantlake.types import ShreddedType

DOUBLES = (1.5, -0.0, 0.0, float("nan"), -3.0, 1e300, float("inf"))
TEXTS = ("", "a", "ab", "\uffff", "\U00010000", "z" * 40)
EDGES = (0, 1, -7, 2**31, 2**53 + 1, -(2**40))
SHREDDED = (
    "s STRING, n BIGINT, d DECIMAL(9,2), o STRUCT<x: BIGINT>",
    "s STRING, n DECIMAL(38,0), d DECIMAL(18,4)",
    "s BIGINT, o STRUCT<x: STRING>",
)


def path(text: str, type_: str) -> str:
    return f"try_variant_get(event, '$.{text}', '{type_}')"


def whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def money(value: Any) -> Decimal | None:
    return None if value is None else Decimal(str(value)).quantize(Decimal("0.01"))


TEXT = Term(path("s", "string"), lambda row: (row["event"] or {}).get("s"))
NUMBER = Term(path("n", "bigint"), lambda row: whole((row["event"] or {}).get("n")))
PRICE = Term(path("d", "decimal(9,2)"), lambda row: money((row["event"] or {}).get("d")))
INNER = Term(path("o.x", "bigint"), lambda row: ((row["event"] or {}).get("o") or {}).get("x"))
DAY = Term("day", lambda row: row["day"])
COLUMN = Term("k", lambda row: row["k"])
DOUBLE = Term("f", lambda row: row["f"])
SMALL = Term(f"{path('n', 'bigint')} % 10 + k", lambda row: _plus(NUMBER.value(row), row["k"]))
KEYS = (TEXT, NUMBER, PRICE, INNER, DAY, COLUMN, DOUBLE, SMALL)
SUMMED = (NUMBER, PRICE, INNER, COLUMN, SMALL)
WHERE = (
    Term("true", lambda row: row is not None),
    Term("k < 40", lambda row: row["k"] is not None and row["k"] < 40),
    Term("day = DATE'2026-01-02'", lambda row: row["day"] == dt.date(2026, 1, 2)),
    Term(f"{TEXT.text} IN ('a', 'ab')", lambda row: TEXT.value(row) in ("a", "ab")),
    Term(f"{NUMBER.text} >= 0", lambda row: _least(NUMBER.value(row), 0)),
    Term(f"startswith({TEXT.text}, 'a')", lambda row: (TEXT.value(row) or "").startswith("a")),
    Term(f"{TEXT.text} IS NULL", lambda row: TEXT.value(row) is None),
)


def _plus(number: int | None, k: int | None) -> int | None:
    """The remainder by 10, which has the sign of what is divided, and `k`."""
    if number is None or k is None:
        return None
    return (abs(number) % 10) * (1 if number >= 0 else -1) + k


def _least(number: int | None, least: int) -> bool:
    return number is not None and number >= least


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> tuple[vl.Table, list[Row]]:
    """Files of several layouts and partitions, one with deleted rows, one of them wholly so."""
    chance = random.Random(21)
    place = tmp_path_factory.mktemp("engine") / "a table"
    made = vl.Table.create(
        place,
        "k INT, f DOUBLE, day DATE, event VARIANT",
        partition_by="day",
        properties={"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"},
    )
    rows: list[Row] = []
    for number in range(8):
        own = [_row(chance, number * 10 + at, number) for at in range(10)]
        rows += own
        made.set_properties({"variantlake.shredding.event": SHREDDED[number % 3]})
        made.append(_arrow(own), json_columns=["event"])
    made.delete("k IN (3, 14, 15, 99) OR (k >= 70 AND k < 80)")
    gone = {3, 14, 15, *range(70, 80)}
    return vl.Table.open(place), [row for row in rows if row["k"] not in gone]


def _row(chance: random.Random, k: int, number: int) -> Row:
    event: dict[str, Any] = {}
    if number != 2:
        event["s"] = chance.choice(TEXTS if number != 5 else ("a", None))
    if chance.random() < 0.9:
        event["n"] = k if number in (1, 4) else chance.choice((*EDGES, None))
    if number % 2:
        event["d"] = chance.choice((1.5, 2, 12.25))
    if number in (1, 3, 6):
        event["o"] = {"x": 7} if number == 6 else {"x": k}
    day = [dt.date(2026, 1, 2), dt.date(2026, 1, 3), None][number % 3]
    f = chance.choice(DOUBLES) if number % 2 else chance.choice((1.5, None))
    return {"k": k, "f": f, "day": day, "event": event if chance.random() < 0.95 else None}


def _arrow(rows: list[Row]) -> pa.Table:
    return pa.table(
        {
            "k": pa.array([row["k"] for row in rows], pa.int32()),
            "f": pa.array([row["f"] for row in rows], pa.float64()),
            "day": pa.array([row["day"] for row in rows], pa.date32()),
            "event": [None if row["event"] is None else json.dumps(row["event"]) for row in rows],
        }
    )


def found(table: vl.Table, text: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.sql(text).to_arrow().to_pylist()]


def shown(rows: list[tuple[Any, ...]]) -> list[tuple[str, ...]]:
    return [tuple(map(twin.shown, row)) for row in rows]


@pytest.mark.rule(8, 36)
def test_random_groups_are_those_of_the_twin(
    table: tuple[vl.Table, list[Row]], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, rows = table
    chance = random.Random(5)
    answered = 0
    for turn in range(80 * MORE):
        # By one thread, and by several.
        monkeypatch.setattr(reading, "SMALL_VALUES", (0, 1 << 22)[turn % 2])
        keys = chance.sample(KEYS, chance.choice((0, 1, 1, 2, 3)))
        names = chance.choices(list(twin.AGGREGATES), k=chance.randrange(4))
        wanted = [
            (name, chance.choice(SUMMED if name[:3] in ("sum", "avg") else KEYS)) for name in names
        ]
        where = chance.choice(WHERE)
        items = [f"{term.text} AS k{at}" for at, term in enumerate(keys)] + ["count(*) AS n"]
        items += [f"{name.format(term.text)} AS a{at}" for at, (name, term) in enumerate(wanted)]
        text = f"SELECT {', '.join(items)} FROM t WHERE {where.text}"
        text += f" GROUP BY {', '.join(term.text for term in keys)}" if keys else ""
        wanted_rows = twin.grouped([row for row in rows if where.value(row)], keys, wanted)
        with contextlib.suppress(UnsupportedFeature):  # an average that no double holds
            ours = found(opened, text)
            answered += 1
            right = _averaged(shown(wanted_rows), wanted, len(keys))
            assert sorted(shown(ours)) == sorted(right), text
    assert answered > 50


@pytest.mark.rule(8, 36)
def test_worker_processes_give_the_same_groups(
    table: tuple[vl.Table, list[Row]], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, _ = table
    monkeypatch.setattr(reading, "SMALL_VALUES", 0)
    texts = [
        f"SELECT {key.text} AS k, count(*) AS n, count(DISTINCT {other.text}) AS d, "
        f"min({other.text}) AS a, max({other.text}) AS b, sum({number.text}) AS s "
        f"FROM t WHERE {where.text} GROUP BY 1"
        for key, other, number, where in product(KEYS[::3], KEYS[1::3], (PRICE, COLUMN), WHERE[:3])
    ]
    right = [shown(found(opened, text)) for text in texts]
    with worker_processes(run.__name__) as answered:
        assert [shown(found(opened, text)) for text in texts] == right
        assert answered.count(True) > len(texts)
        assert all(answered)
        # What raises is done again here, and says the same.
        text = "SELECT event:s::bigint AS n, count(*) FROM t GROUP BY 1"
        with pytest.raises(VariantLakeError) as error:
            found(opened, text)
        assert not all(answered)
    with pytest.raises(VariantLakeError) as alone:
        found(opened, text)
    assert str(error.value) == str(alone.value)


def test_little_that_is_columns_is_read_by_one_thread(
    table: tuple[vl.Table, list[Row]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_small(opened: vl.Table, text: str) -> bool:
        query = opened.sql(f"SELECT {text} AS a, count(*) AS n FROM t GROUP BY 1")
        return Reading(query.snapshot, query.query).is_small

    made = vl.Table.create(tmp_path / "of columns", "event VARIANT")
    made.append(pa.table({"event": ['{"s": "a"}', '{"s": "b"}'] * 50}), json_columns=["event"])
    opened = made.refresh()
    assert is_small(opened, TEXT.text)
    monkeypatch.setattr(reading, "SMALL_VALUES", 99)
    assert not is_small(opened, TEXT.text)
    monkeypatch.setattr(reading, "SMALL_VALUES", 1 << 22)
    of_variants = table[0]
    assert not is_small(of_variants, "k")
    assert not is_small(of_variants, NUMBER.text)


def _averaged(rows: list[tuple[str, ...]], wanted: Any, keys: int) -> list[tuple[str, ...]]:
    """With averages of decimals at Spark's scale."""
    for at, (name, term) in enumerate(wanted, keys + 1):
        if name == "avg({})" and term is PRICE:
            rows = [
                (*row[:at], _at_scale(row[at]), *row[at + 1 :]) if row[at] != "None" else row
                for row in rows
            ]
    return rows


def _at_scale(text: str) -> str:
    number = Decimal(text.removeprefix("Decimal "))
    return f"Decimal {number.quantize(Decimal('0.000001'), 'ROUND_HALF_UP')}"


@pytest.mark.parametrize("limit", [None, 3, 20])
def test_random_orders_are_those_of_the_twin(
    table: tuple[vl.Table, list[Row]], limit: int | None
) -> None:
    opened, rows = table
    chance = random.Random(limit)
    for _ in range(15 * MORE):
        terms = [
            (term, chance.random() < 0.5, chance.random() < 0.5)
            for term in [*chance.sample(KEYS, chance.choice((1, 2))), COLUMN]
        ]
        order = ", ".join(
            f"{term.text} {'DESC' if descending else 'ASC'} NULLS {'FIRST' if first else 'LAST'}"
            for term, descending, first in terms
        )
        where = chance.choice(WHERE)
        text = f"SELECT k, f, {TEXT.text} AS s FROM t WHERE {where.text} ORDER BY {order}"
        text += "" if limit is None else f" LIMIT {limit}"
        right = twin.in_order([row for row in rows if where.value(row)], terms)[:limit]
        wanted = [(row["k"], row["f"], TEXT.value(row)) for row in right]
        assert shown(found(opened, text)) == shown(wanted), text


def test_the_log_alone_answers_what_it_knows(table: tuple[vl.Table, list[Row]]) -> None:
    opened, rows = table
    query = opened.sql("SELECT count(*) AS n, min(k) AS a, max(k) AS b, count(day) AS d FROM t")
    right = twin.grouped(rows, [], [("min({})", COLUMN), ("max({})", COLUMN), ("count({})", DAY)])
    assert shown([tuple(row.values()) for row in query.to_arrow().to_pylist()]) == shown(right)
    explained = query.explain()
    # Two files have lost some of their rows, one all.
    assert (explained.answered, explained.read_files) == (5, 2)
    assert "answered from the log alone: 5 files" in str(explained)
    assert explained.to_dict()["files"]["answered_from_log"] == 5
    every = opened.sql("SELECT count(*) FROM t WHERE day IS NOT NULL").explain()
    assert (every.read_files, every.read_bytes) == (0, 0)
    by_day = opened.sql("SELECT day, count(*) AS n FROM t GROUP BY day")
    assert by_day.explain().read_files == 0
    assert sorted(shown([tuple(row.values()) for row in by_day.to_arrow().to_pylist()])) == sorted(
        shown(twin.grouped(rows, [DAY], []))
    )


def test_parts_are_merged_as_they_come(
    table: tuple[vl.Table, list[Row]], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, rows = table
    monkeypatch.setattr(grouped, "MERGED", 3)
    text = f"SELECT {TEXT.text} AS s, count(*) AS n, count(DISTINCT k) AS d FROM t GROUP BY 1"
    right = twin.grouped(rows, [TEXT], [("count(DISTINCT {})", COLUMN)])
    assert sorted(shown(found(opened, text))) == sorted(shown(right))


@pytest.mark.parametrize(
    ("function", "text"),
    [
        ("all_merged", "SELECT count(*) AS n FROM t GROUP BY event:n::bigint"),
        ("sorted_rows", "SELECT event:n::bigint AS n FROM t ORDER BY 1"),
    ],
)
def test_what_does_not_fit_into_memory_says_what_to_do(
    table: tuple[vl.Table, list[Row]], monkeypatch: pytest.MonkeyPatch, function: str, text: str
) -> None:
    def full(_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(run, function, full)
    with pytest.raises(OutOfMemory, match=r"do not fit into memory(.|\n)*duckdb\.attach") as error:
        table[0].sql(text).to_arrow()
    assert isinstance(error.value, MemoryError)


def test_an_empty_table_has_one_group_without_keys(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "k INT, d DECIMAL(5,2), event VARIANT")
    text = "SELECT count(*) AS n, count(k) AS c, count(DISTINCT k) AS d, max(k) AS m, sum(d) AS s, "
    text += "min(event:s::string) AS l, avg(k) AS a FROM t"
    answer = table.sql(text).to_arrow()
    assert answer.to_pylist() == [
        {"n": 0, "c": 0, "d": 0, "m": None, "s": None, "l": None, "a": None}
    ]
    assert str(answer.schema.field("s").type) == "decimal128(15, 2)"
    assert table.sql("SELECT k, count(*) AS n FROM t GROUP BY k").to_arrow().num_rows == 0
    assert table.sql("SELECT k FROM t ORDER BY k LIMIT 2").to_arrow().num_rows == 0
    assert table.sql("SELECT count(*) AS n FROM t HAVING n > 0").to_arrow().num_rows == 0


def numbers(tmp_path: Path, *values: int) -> vl.Table:
    place = tmp_path / "numbers"
    table = vl.Table.create(place, "n BIGINT, d DECIMAL(38,0), f DOUBLE")
    table.append(
        pa.table(
            {
                "n": pa.array(values, pa.int64()),
                "d": pa.array([Decimal(v) * 10**19 for v in values], pa.decimal128(38, 0)),
                "f": pa.array([float(v) for v in values]),
            }
        )
    )
    return table.refresh()


def test_groups_of_integers_at_the_ends_of_their_type(tmp_path: Path) -> None:
    for end in (2**63 - 1, -(2**63)):
        near = end - 2 if end > 0 else end + 2
        opened = numbers(tmp_path / str(end), end, near, end)
        answer = opened.sql("SELECT n, count(*) AS c FROM t GROUP BY n").to_arrow()
        assert sorted(map(tuple, (each.values() for each in answer.to_pylist()))) == sorted(
            [(end, 2), (near, 1)]
        )


def test_a_sum_beyond_its_type_is_an_error_and_one_that_may_be_is_sparks(tmp_path: Path) -> None:
    most = 2**63 - 1
    table = numbers(tmp_path, most, 1)
    for item in ("sum(n)", "max(n) + 1", "sum(n + 1)"):
        with pytest.raises(InvalidValue):
            table.sql(f"SELECT {item} AS s FROM t").to_arrow()
    with pytest.raises(InvalidValue, match=r"beyond DECIMAL\(38,0\)"):
        numbers(tmp_path / "wide", most, most).sql("SELECT sum(d) AS s FROM t").to_arrow()
    table = numbers(tmp_path / "both", most, 1, -5)
    with pytest.raises(UnsupportedFeature, match="some orders of its rows"):
        table.sql("SELECT sum(n) AS s FROM t").to_arrow()
    with pytest.raises(UnsupportedFeature, match="average"):
        table.sql("SELECT avg(n) AS a FROM t").to_arrow()
    fine = table.sql("SELECT n, sum(n) AS s FROM t GROUP BY n ORDER BY n").to_arrow()
    assert fine["s"].to_pylist() == [-5, 1, most]


@pytest.mark.rule(1)
def test_an_error_counts_only_where_its_row_is_used(tmp_path: Path) -> None:
    table = numbers(tmp_path, 0, 4)
    guarded = "SELECT sum(CASE WHEN n <> 0 THEN 8 div n END) AS s FROM t"
    assert found(table, guarded) == [(2,)]
    assert found(table, "SELECT count(*) AS n FROM t WHERE n <> 0") == [(1,)]
    with pytest.raises(InvalidValue):
        found(table, "SELECT sum(8 div n) AS s FROM t")
    assert found(table, "SELECT coalesce(n, 1 div 0) AS s FROM t ORDER BY n LIMIT 1") == [(0,)]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> vl.Table:
    """A value in the last of three rows that is not an integer."""
    made = vl.Table.create(tmp_path_factory.mktemp("mixed") / "t", "s STRING, k BIGINT, v VARIANT")
    values = ['{"n":1}', '{"n":2}', '{"n":"x"}']
    rows = {"s": ["10", "9", "a"], "k": [1, 2, 3], "v": values}
    made.append(pa.table(rows), json_columns=["v"])
    return made.refresh()


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT count(*) FILTER (WHERE k + 1 > 2) AS c FROM t", [(2,)]),
        ("SELECT max(k) FILTER (WHERE k < length(s)) AS c FROM t", [(1,)]),
        ("SELECT k > 1 AS g, count(*) AS c FROM t GROUP BY k > 1 HAVING k > 1", [(True, 2)]),
        ("SELECT k = 2 AS e FROM t WHERE k + 1 > 2 ORDER BY k * -1", [(False,), (True,)]),
        ("SELECT sum(k) AS n FROM t HAVING sum(k) > 5.5", [(6,)]),
        ("SELECT NOT (k > 1) AS n FROM t WHERE k = length(s) - 1", [(True,)]),
    ],
)
def test_conditions_and_expressions_are_one_language(
    mixed: vl.Table, query: str, rows: list[tuple[Any, ...]]
) -> None:
    assert found(mixed, query) == rows


@pytest.mark.rule(1)
def test_a_null_keeps_the_error_of_another_operand_out(mixed: vl.Table) -> None:
    for where in ("nullif(k, 3) > 0 AND v:n::int > 0", "v:n::int > 0 AND nullif(k, 3) > 0"):
        assert mixed.scan("k", where).to_pylist() == [{"k": 1}, {"k": 2}]
    sums = "SELECT nullif(k, 3) + v:n::int AS n, nullif(k, 3) < v:n::int AS l FROM t ORDER BY k"
    assert found(mixed, sums) == [(2, False), (4, False), (None, None)]
    for having in ("g - 10 div (m - 3) > 0", "10 div (3 - m) + g > 0"):
        groups = "SELECT nullif(k, 3) AS g, max(k) AS m FROM t GROUP BY nullif(k, 3)"
        assert found(mixed, f"{groups} HAVING {having}") == [(1, 1), (2, 2)]
    with pytest.raises(InvalidValue):
        found(mixed, "SELECT v:n::int + nullif(k, 3) AS n FROM t")


@pytest.mark.rule(1)
@pytest.mark.parametrize("negation", ["", "NOT "])
def test_a_case_whose_condition_fails_fails_inside_of_and(mixed: vl.Table, negation: str) -> None:
    case = "CASE WHEN v:n::int > 0 THEN true ELSE false END"
    with pytest.raises(InvalidValue, match="v:n::int"):
        mixed.scan("k", f"{negation}({case} AND k > 0)").to_arrow()
    assert mixed.scan("k", f"{case} AND k < 3").count() == 2


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT v:n::int AS n FROM t LIMIT 2", [(1,), (2,)]),
        ("SELECT v:n::int + 1 AS n FROM t LIMIT 2", [(2,), (3,)]),
        ("SELECT v:n::int AS n FROM t WHERE v:n::int > 0 LIMIT 2", [(1,), (2,)]),
        ("SELECT s FROM t WHERE v:n::int > 1 LIMIT 1", [("9",)]),
        ("SELECT v:n::int AS n FROM t LIMIT 0", []),
        ("SELECT max(v:n::int) AS n FROM t LIMIT 0", []),
        ("SELECT s, max(v:n::int) AS n FROM t GROUP BY s LIMIT 0", []),
        ("SELECT s, max(v:n::int) AS n FROM t GROUP BY s HAVING s < '9'", [("10", 1)]),
        (
            "SELECT s AS g, max(v:n::int) AS n FROM t GROUP BY s HAVING count(*) > 0 AND g < '9'",
            [("10", 1)],
        ),
    ],
)
def test_rows_that_are_left_out_raise_no_error(
    mixed: vl.Table, query: str, rows: list[tuple[Any, ...]]
) -> None:
    assert found(mixed, query) == rows


@pytest.mark.parametrize(
    "query",
    [
        "SELECT v:n::int AS n FROM t LIMIT 3",
        "SELECT s FROM t WHERE v:n::int > 0 LIMIT 3",
        "SELECT s, max(v:n::int) AS n FROM t GROUP BY s LIMIT 1",
        "SELECT s, max(v:n::int) AS n FROM t GROUP BY s HAVING s < '9' OR count(*) > 1",
    ],
)
def test_rows_that_spark_asks_raise_their_error(mixed: vl.Table, query: str) -> None:
    with pytest.raises(InvalidValue, match="cast"):
        found(mixed, query)


def test_a_limit_of_a_scan_leaves_rows_out_before_their_casts(mixed: vl.Table) -> None:
    assert mixed.scan("v:n::int AS n", limit=2).to_arrow()["n"].to_pylist() == [1, 2]
    assert mixed.scan("v:n::int", limit=0).to_arrow().num_rows == 0
    assert mixed.scan("k", "v:n::int > 0", limit=2).count() == 2


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT s AS k, count(*) AS c FROM t GROUP BY s, k HAVING k > 2", [("a", 1)]),
        ("SELECT k + 1 AS k, count(*) AS c FROM t GROUP BY k HAVING k > 2", [(4, 1)]),
        ("SELECT s, sum(k) AS k FROM t GROUP BY s HAVING k > 2", [("a", 3)]),
    ],
)
def test_a_name_in_having_is_that_of_a_key_before_one_of_the_result(
    mixed: vl.Table, query: str, rows: list[tuple[Any, ...]]
) -> None:
    assert found(mixed, query) == rows


def test_a_name_in_having_that_spark_types_as_a_column_is_refused(mixed: vl.Table) -> None:
    """Spark compares 's' with `'5'` as BIGINT here, the type of the table's column `k`."""
    with pytest.raises(UnsupportedFeature, match="the name 'k'"):
        found(mixed, "SELECT s AS k, count(*) AS c FROM t GROUP BY s HAVING k > '5'")


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("SELECT sum(f) AS s FROM t", "sum of DOUBLE"),
        ("SELECT approx_count_distinct(n) AS s FROM t", "APPROX_COUNT_DISTINCT"),
        ("SELECT n, rank() OVER (ORDER BY n) AS r FROM t", r"RANK\(\) OVER"),
        ("SELECT count(*) FROM t GROUP BY CUBE (n)", "GROUP BY"),
        ("SELECT count(DISTINCT n, f) FROM t", "DISTINCT of several"),
        ("SELECT first(n) AS s FROM t", "FIRST"),
        ("SELECT max(n) + 1e0 FROM t", "without a name"),
        ("SELECT exp(f) AS s FROM t", "EXP"),
        ("SELECT sum(DISTINCT n) AS s FROM t", "distinct"),
        ("SELECT d / 2 AS s FROM t", "division"),
        ("SELECT n AS s, s + 1 AS r FROM t", "a name of the same SELECT"),
        ("SELECT t.* FROM t", "columns of a table"),
    ],
)
def test_what_is_not_provably_sparks_is_refused_by_name(
    tmp_path: Path, query: str, named: str
) -> None:
    with pytest.raises(UnsupportedFeature, match=named):
        numbers(tmp_path, 1).sql(query)


@pytest.mark.parametrize(
    ("query", "named", "hint"),
    [
        ("SELECT event:a FROM t GROUP BY event:a", "a group", "event:a::string"),
        ("SELECT event:a, count(*) FROM t GROUP BY 1", "a group", "event:a::string"),
        ("SELECT event:a FROM t ORDER BY event:a", "an order", "event:a::string"),
        ("SELECT event:a AS x FROM t ORDER BY x", "an order", "event:a::string"),
        ("SELECT DISTINCT event:a FROM t", "DISTINCT", "event:a::string"),
        ("SELECT DISTINCT event FROM t", "DISTINCT", "event:a.b::string"),
        ("SELECT max(event:a) FROM t", "max", "event:a::string"),
        ("SELECT sum(event:a) FROM t", "sum", "event:a::double"),
        ("SELECT event:a + 1 AS x FROM t", "add", "event:a::double"),
        ("SELECT year(event:a) AS x FROM t", "year", "event:a::timestamp"),
        ("SELECT date_add(event:a, 1) AS x FROM t", "date_add", "event:a::date"),
        ("SELECT k FROM t WHERE event:a = 'x'", "a comparison", "event:a::string"),
        ("SELECT k FROM t WHERE event:a IN (1, 2)", "a comparison", "event:a::int"),
        ("SELECT k FROM t WHERE event:a BETWEEN 1.5 AND 2", "a comparison", "event:a::double"),
        ("SELECT k FROM t WHERE event:a = event:b", "a comparison", "event:a::string"),
        ("SELECT k FROM t WHERE event:a <=> NULL", "a comparison", "event:a::string"),
    ],
)
def test_a_path_without_a_type_is_named_where_it_needs_one(
    query: str, named: str, hint: str
) -> None:
    """Spark refuses all of these, too, so nothing is left to it."""
    with pytest.raises(InvalidQuery, match="is a Variant") as caught:
        read_query(query, {"t": parse_table_ddl("event VARIANT, k INT")})
    assert named in caught.value.message
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k FROM t JOIN t u USING (k)",
        "SELECT k FROM other",
        "SELECT k FROM (SELECT k FROM t ORDER BY k)",
        "WITH c AS (SELECT 1) SELECT k FROM t",
        "SELECT k FROM t UNION ALL SELECT k FROM t",
        "SELECT k FROM t TABLESAMPLE (5 ROWS)",
        "SELECT k FROM t VERSION AS OF 1",
        "SELECT k FROM t HAVING k > 1",
        "DELETE FROM t",
        "SHOW TABLES",
        "FROM t |> LIMIT 3 |> WHERE k < 3",
        "SELECT k FROM t AS u(event, k) WHERE k < 3",
        "SELECT k FROM t@v0",
        "SELECT * RENAME (k AS n) FROM t",
        "SELECT * ILIKE 'k%' FROM t",
        "SELECT * EXCEPT (k) FROM t",
        "SELECT k IN () AS a FROM t",
        "SELECT k FROM t WHERE k IN ()",
        "SELECT FROM t",
    ],
)
def test_a_select_that_means_more_than_it_seems_is_refused(
    query: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises((UnsupportedFeature, InvalidQuery)):
        read_query(query, {"t": parse_table_ddl("event VARIANT, k INT")})
    assert capfd.readouterr() == ("", "")  # the parser would write what it does not know


def test_an_alias_of_the_table_names_its_columns() -> None:
    text = "SELECT x.event:a::int AS a, k FROM T x WHERE x.k > 1 LIMIT 5"
    _, found = read_query(text, {"t": parse_table_ddl("event VARIANT, k INT")})
    assert [item.name for item in found.outputs] == ["a", "k"]
    assert found.limit == 5


def test_a_column_outside_of_the_groups_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidQuery, match="GROUP BY"):
        numbers(tmp_path, 1).sql("SELECT n, max(f) AS m FROM t")


def test_names_are_those_of_spark(tmp_path: Path) -> None:
    table = numbers(tmp_path, 1)
    text = "SELECT count(*), count(1), sum(n), COUNT(DISTINCT f), max(N) FROM t"
    names = ["count(1)", "count(1)", "sum(n)", "count(DISTINCT f)", "max(N)"]
    assert table.sql(text).schema.names == names


def test_the_result_is_an_arrow_stream(tmp_path: Path) -> None:
    table = numbers(tmp_path, 1, 2)
    query = table.sql("SELECT n, n * 2 AS twice FROM t WHERE n > 1 LIMIT 5")
    assert pa.table(query).to_pylist() == query.to_pylist() == [{"n": 2, "twice": 4}]
    assert [batch.num_rows for batch in query.to_batches()] == [1]
    assert query.to_reader().schema == query.schema


def test_a_limit_reads_no_more_files_than_it_needs(
    table: tuple[vl.Table, list[Row]], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, _ = table
    read: list[str] = []
    usual = Reading.reader

    def counting(self: Any, file: Any, columns: Any) -> Any:
        read.append(file.path)
        return usual(self, file, columns)

    monkeypatch.setattr(Reading, "reader", counting)
    opened.sql("SELECT k + 1 AS k FROM t LIMIT 5").to_arrow()
    assert len(read) == 1
    read.clear()
    ids = opened.sql("SELECT k FROM t ORDER BY k DESC LIMIT 4").to_arrow()["k"].to_pylist()
    assert (ids, len(set(read))) == ([69, 68, 67, 66], 1)


def test_codes_of_decimals_keep_all_digits() -> None:
    wide = [Decimal("-12345678901234567890.12"), None, Decimal("99.99"), Decimal("-0.01")]
    array = pa.array(wide, pa.decimal128(38, 2))
    unscaled = codes.unscaled(array)
    assert unscaled.tolist() == [-1234567890123456789012, 0, 9999, -1]
    type_ = ShreddedType.parse("decimal(38,2)")
    assert codes.decimals(unscaled, type_, valid(array)).equals(array)


@pytest.fixture(scope="module")
def sorted_table(tmp_path_factory: pytest.TempPathFactory) -> tuple[vl.Table, list[Row]]:
    """Long runs of texts and NULLs, with deleted rows: some, and all of a stretch."""
    place = tmp_path_factory.mktemp("stretches") / "t"
    made = vl.Table.create(
        place, "k INT, event VARIANT", properties={"delta.enableDeletionVectors": "true"}
    )
    texts, others = ("a", "\u00e9", "a", None), ("x", None, "12")
    rows: list[Row] = [
        {"k": k, "s": texts[k // 10_000], "o": others[k // 7_000 % 3]} for k in range(40_000)
    ]
    for row in rows:
        row["w"] = "none" if 14_000 <= row["k"] < 20_000 else "7"
        row["event"] = {
            "w": row["w"],
            "s": row["s"],
            "n": row["k"],
            **({"o": row["o"]} if row["o"] else {}),
        }
    columns = {"k": pa.array([row["k"] for row in rows], pa.int32())}
    texts_ = [json.dumps(row["event"]) for row in rows]
    made.append(pa.table({**columns, "event": texts_}), json_columns=["event"])
    made.delete("k IN (0, 9999, 10000) OR (k >= 14000 AND k < 20000)")
    gone = {0, 9999, 10000, *range(14_000, 20_000)}
    return vl.Table.open(place), [row for row in rows if row["k"] not in gone]


OF_S, OF_O = "event:s::string", "event:o::string"


@pytest.mark.rule(38)
@pytest.mark.parametrize(
    ("where", "holds"),
    [
        ("true", lambda _: True),
        (f"{OF_S} = 'a'", lambda row: row["s"] == "a"),
        (
            f"{OF_S} = '\u00e9' AND {OF_O} = '12'",
            lambda row: row["s"] == "\u00e9" and row["o"] == "12",
        ),
        (f"{OF_S} IS NULL OR {OF_O} = 'x'", lambda row: row["s"] is None or row["o"] == "x"),
        (f"{OF_S} <> 'a'", lambda row: row["s"] not in ("a", None)),
    ],
)
def test_rule_38_stretches_count_as_their_rows_do(
    sorted_table: tuple[vl.Table, list[Row]],
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    holds: Callable[[Row], bool],
) -> None:
    opened, rows = sorted_table
    kept = [row for row in rows if holds(row)]
    of_s, of_o = (Term(text, itemgetter(key)) for text, key in ((OF_S, "s"), (OF_O, "o")))
    names = ["count({})", "count(DISTINCT {})", "min({})", "max({})"]
    sums = "sum(event:n::bigint)"
    condition = "" if where == "true" else f"WHERE {where}"
    for keys in ([], [of_o], [of_s, of_o]):
        wanted = [(name, of_s) for name in names]
        items = [key.text for key in keys] + ["count(*)"]
        items += [name.format(OF_S) for name in names]
        text = f"SELECT {', '.join(f'{each} AS c{at}' for at, each in enumerate(items))} FROM t "
        text += condition
        text += f" GROUP BY {', '.join(key.text for key in keys)}" if keys else ""
        right = sorted(shown(twin.grouped(kept, keys, wanted)))
        with monkeypatch.context() as patched:
            patched.delattr(Rows, "values")  # no row is read by itself
            assert sorted(shown(found(opened, text))) == right, text
    total = found(opened, f"SELECT {sums} AS n FROM t {condition}")
    assert total == [(sum(row["k"] for row in kept) if kept else None,)]
    of_sums = opened.sql("SELECT sum(event:n::bigint) AS n FROM t").query.aggregates
    assert not grouped.are_of_stretches(of_sums)
    of_runs = found(opened, f"SELECT sum(event:w::bigint) AS n FROM t {condition}")
    assert of_runs == [(7 * len(kept) if kept else None,)]


@pytest.mark.rule(38)
def test_rule_38_an_error_counts_only_in_rows_that_are_left(
    sorted_table: tuple[vl.Table, list[Row]],
) -> None:
    opened, rows = sorted_table
    # What is not a number stands in deleted rows.
    assert found(opened, "SELECT count(*) AS n FROM t WHERE event:w::int = 7") == [(len(rows),)]
    with pytest.raises(InvalidValue, match="cannot be cast"):
        found(opened, "SELECT count(*) AS n FROM t WHERE event:o::int = 12")


@pytest.mark.rule(38)
def test_rule_38_rows_are_not_asked_where_all_of_a_file_fulfil_the_condition(
    tmp_path: Path,
) -> None:
    made = vl.Table.create(tmp_path / "t", "k INT, event VARIANT")
    files: list[list[Row]] = [
        [{"s": "a", "n": 1}, {"s": "a"}, {"s": "a", "n": 1}],
        [{"s": "a", "n": 2}, {"n": 2}, {"s": "a"}],
        [{"s": "a"}, {"s": "b"}, {"s": "b"}],
        [{"s": "b"}] * 3,
    ]
    for number, events in enumerate(files):
        columns = {"k": [number] * 3, "event": [json.dumps(event) for event in events]}
        made.append(pa.table(columns), json_columns=["event"])
    opened = vl.Table.open(tmp_path / "t")
    where = f"WHERE {OF_S} = 'a'"
    text = f"SELECT event:n::bigint AS n, count(*) AS c FROM t {where} GROUP BY 1"
    tasks = list(Reading(opened.snapshot, opened.sql(text).query).tasks())
    assert sorted(each.where is not None for some in tasks for each in some) == [False, True, True]
    assert sorted(map(str, found(opened, text))) == ["(1, 2)", "(2, 1)", "(None, 3)"]
    only = f"SELECT count(*) AS c, sum(event:n::bigint) AS n FROM t {where}"
    assert found(opened, only) == [(6, 4)]
