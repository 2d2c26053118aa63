"""`Table.sql(engine="duckdb")`: what the scans read, and the same answers as the local engine."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import variantlake as vl
from tests.strategies import MORE
from variantlake.errors import InvalidQuery, InvalidValue, UnsupportedFeature

ROWS = [
    {"k": "a", "n": 1, "d": 1.5},
    {"k": "b", "n": 2, "d": 2.5},
    {"k": "a", "n": 3},
    {"k": None, "n": None},
    {"n": "x"},
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> vl.Table:
    place = tmp_path_factory.mktemp("lake") / "Events"
    vl.Table.create(place, "id BIGINT, event VARIANT")
    events = vl.parquet.variant_array(ROWS)
    vl.Table.open(place).append(pa.table({"id": list(range(len(ROWS))), "event": events}))
    return vl.Table.open(place)


def rows(table: vl.Table, text: str, **tables: vl.Table) -> list[dict[str, Any]]:
    return table.sql(text, engine="duckdb", tables=tables).to_pylist()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t",
        "SELECT id, event FROM events WHERE event:k::string = 'a' ORDER BY id DESC",
        "SELECT event:k::string, count(*) AS n FROM t GROUP BY event:k::string ORDER BY n, k",
        "SELECT x.event:k::string AS k FROM t x WHERE try_cast(x.event:n AS int) > 1 ORDER BY 1",
        "SELECT event:k::string AS event, id FROM t ORDER BY event, id LIMIT 3",
        (
            "SELECT DISTINCT event:k::string AS k FROM t WHERE id IN (1, 2) OR event:d::double < 2 "
            "ORDER BY k"
        ),
        "SELECT count(*) AS n, min(event:k::string) AS k FROM t",
    ],
)
def test_both_engines_agree(table: vl.Table, text: str) -> None:
    assert rows(table, text) == table.sql(text).to_pylist()


def test_the_error_of_a_scan_is_its_own(table: vl.Table) -> None:
    with pytest.raises(InvalidValue, match=r"value cannot be cast: event:n::int") as caught:
        rows(table, "SELECT sum(event:n::int) FROM t")
    assert "try_cast" in (caught.value.hint or "")


small = st.integers(-2, 5)
NUMBER = ["id", "try_cast(event:n AS int)", "try_cast(event:d AS double)", "id + 1", "id * 2 - 3"]
TEXT = ["event:k::string"]
CONDITIONS = st.one_of(
    st.builds(
        "{} {} {}".format,
        st.sampled_from(NUMBER),
        st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
        small,
    ),
    st.builds("{} BETWEEN {} AND {}".format, st.sampled_from(NUMBER), small, small),
    st.builds("{} IN ({}, {})".format, st.sampled_from(NUMBER), small, small),
    st.builds(
        "{} {}".format,
        st.sampled_from([*NUMBER, *TEXT]),
        st.sampled_from(["IS NULL", "IS NOT NULL"]),
    ),
    st.sampled_from(["event:k::string = 'a'", "event:k::string LIKE 'b%'"]),
)
WHERE = st.recursive(
    CONDITIONS,
    lambda part: st.one_of(
        st.builds("({} AND {})".format, part, part),
        st.builds("({} OR {})".format, part, part),
        st.builds("NOT ({})".format, part),
    ),
    max_leaves=4,
)
TOTALS = st.lists(
    st.one_of(
        st.just("count(*)"),
        st.builds("count({})".format, st.sampled_from([*NUMBER, *TEXT])),
        st.builds(
            "{}({})".format, st.sampled_from(["min", "max"]), st.sampled_from([*NUMBER, *TEXT])
        ),
        st.builds("sum({})".format, st.sampled_from(["id", "try_cast(event:n AS int)"])),
    ),
    min_size=1,
    max_size=3,
)


@st.composite
def queries(draw: st.DrawFn) -> str:
    """A SELECT of rows or of groups, without an order."""
    where = draw(WHERE)
    if draw(st.booleans()):
        chosen = draw(st.lists(st.sampled_from([*NUMBER, *TEXT]), min_size=1, max_size=3))
        return f"SELECT {_named(chosen)} FROM t WHERE {where}"
    keys = draw(st.lists(st.sampled_from([*TEXT, "id % 2"]), max_size=2, unique=True))
    text = f"SELECT {_named([*keys, *draw(TOTALS)])} FROM t WHERE {where}"
    return text + (f" GROUP BY {', '.join(keys)}" if keys else "")


def _named(items: list[str]) -> str:
    return ", ".join(f"{item} AS c{at}" for at, item in enumerate(items))


@settings(max_examples=25 * MORE, deadline=None)
@given(text=queries())
def test_random_queries_have_the_same_rows_in_both_engines(table: vl.Table, text: str) -> None:
    here = table.sql(text).to_pylist()
    assert _values(here) == _values(rows(table, text))


def _values(found: list[dict[str, Any]]) -> list[str]:
    """The rows in an order of their own. DuckDB sums integers to a wider type, of equal value."""
    return sorted(
        repr([int(v) if isinstance(v, Decimal) else v for v in row.values()]) for row in found
    )


def test_windows_joins_and_sums_of_doubles_run(table: vl.Table) -> None:
    window = (
        "SELECT id, rank() OVER (ORDER BY event:k::string) AS r, event FROM t "
        "WHERE id < 3 ORDER BY id"
    )
    assert [(row["id"], row["r"]) for row in rows(table, window)] == [(0, 1), (1, 3), (2, 1)]
    joined = (
        "SELECT a.id, b.id AS other FROM t a JOIN more b "
        "ON a.event:k::string = b.event:k::string AND a.id < b.id"
    )
    assert rows(table, joined, more=table) == [{"id": 0, "other": 2}]
    total = "SELECT event:k::string AS k, sum(event:d::double) AS s FROM t WHERE id < 2 GROUP BY 1"
    assert {row["k"]: row["s"] for row in rows(table, total)} == {"a": 1.5, "b": 2.5}
    correlated = (
        "SELECT id FROM t o WHERE o.id < 3 AND EXISTS "
        "(SELECT 1 FROM t i WHERE i.id > o.id AND i.event:k::string = o.event:k::string)"
    )
    assert rows(table, correlated) == [{"id": 0}]


def test_scans_read_what_the_text_names_and_take_conditions(table: vl.Table) -> None:
    found = table.sql(
        "SELECT a.event:k::string AS k FROM t a JOIN t b ON a.id = b.id "
        "WHERE a.event:n::int > 1 AND b.id < 3 AND a.id + b.id > 2",
        engine="duckdb",
    )
    (first, second) = found.scans.values()
    assert {item.name for item in first.items} == {"event:k::string", "id"}
    assert (str(first.condition), str(second.condition)) == ("event:n::int > 1", "id < 3")
    assert len(found.explain()) == 2
    outer = table.sql(
        "SELECT b.id FROM t a LEFT JOIN t b ON a.id = b.id WHERE b.id IS NULL", engine="duckdb"
    )
    assert [scan.condition for scan in outer.scans.values()] == [None, None]


def test_what_is_refused(table: vl.Table) -> None:
    for text, words in {
        "SELECT * FROM read_csv('/etc/passwd')": "there is no table",
        "SELECT * FROM other": "there is no table other",
        "SELECT nope FROM t": "nope",
        "SELECT FROM": "does not parse",
    }.items():
        with pytest.raises(InvalidQuery, match=words):
            rows(table, text)
    with pytest.raises(UnsupportedFeature, match="a path of no table"):
        rows(table, "SELECT c.v:k::string FROM (SELECT event AS v FROM t) c")
    with pytest.raises(UnsupportedFeature, match="queries only"):
        rows(table, "DELETE FROM t")
    with pytest.raises(UnsupportedFeature) as caught:
        table.sql("SELECT rank() OVER (ORDER BY id) FROM t")
    assert 'engine="duckdb"' in caught.value.hint


def test_a_table_goes_by_its_own_name(table: vl.Table) -> None:
    for name in ("t", "events", "EVENTS"):
        assert table.sql(f"SELECT count(*) AS n FROM {name}").to_arrow().to_pylist() == [{"n": 5}]
    with pytest.raises(InvalidQuery, match="there is no table 'other'"):
        table.sql("SELECT count(*) FROM other")


def test_variants_are_those_of_duckdb(table: vl.Table) -> None:
    counts = rows(table, "SELECT event:k AS k, count(*) AS n FROM t GROUP BY 1 ORDER BY n DESC, 2")
    assert sorted((str(row["k"]), row["n"]) for row in counts) == [("None", 1)] * 2 + [
        ("a", 2),
        ("b", 1),
    ]
    assert rows(table, "SELECT count(DISTINCT event:k) AS n FROM t") == [{"n": 3}]
    assert rows(table, "SELECT list(event:n ORDER BY id) AS n FROM t") == [
        {"n": [1, 2, 3, None, "x"]}
    ]
    assert rows(table, "SELECT upper(event:k) AS k FROM t WHERE id = 0") == [{"k": "A"}]
    assert rows(table, "SELECT event:none AS n, event:k IS NULL AS k FROM t WHERE id > 2") == [
        {"n": None, "k": False},
        {"n": None, "k": True},
    ]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT event:n FROM t ORDER BY event:n",
        "SELECT event:n AS x FROM t ORDER BY x DESC",
        "SELECT event:n FROM t ORDER BY 1",
        "SELECT max(event:n) FROM t",
        "SELECT sum((event:n)) FROM t",
        "SELECT event:n + 1 FROM t",
        "SELECT id FROM t WHERE event:n = 1",
        "SELECT id FROM t WHERE event:n IN (1, 2) OR id + id > 3",
        "SELECT a.id FROM t a JOIN t b ON a.event:n = b.event:n",
        "SELECT id FROM t WHERE event > 3",
    ],
)
def test_what_needs_a_type_is_refused(table: vl.Table, text: str) -> None:
    """DuckDB has integers before doubles, and both before strings, whatever their values."""
    with pytest.raises(InvalidQuery, match="is a Variant") as caught:
        rows(table, text)
    assert "type: event:" in (caught.value.hint or "")


def test_an_arrow_is_refused(table: vl.Table) -> None:
    with pytest.raises(UnsupportedFeature, match="by an arrow"):
        rows(table, "SELECT event->>'k' FROM t")
