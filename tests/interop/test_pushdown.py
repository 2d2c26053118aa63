"""Polars and DuckDB over a table: they give what they give over its rows, and read less."""

from __future__ import annotations

import datetime as dt
import io
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import variantlake as vl
from tests.strategies import MORE
from variantlake.errors import InvalidQuery, InvalidValue, UnsupportedFeature
from variantlake.storage.opening import open_file

SELECT = [
    "id",
    "f",
    "m",
    "day",
    "at",
    "event:n::bigint AS n",
    "event:user::string AS user",
    "event:x::double AS x",
    "event:ok::boolean AS ok",
    "event",
]
DDL = "id BIGINT, f DOUBLE, m DECIMAL(9,2), day DATE, at TIMESTAMP, event VARIANT"
START = dt.date(2026, 1, 1)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> vl.Table:
    """Four files of rows in the order of `id`, with NULL and NaN everywhere, some deleted."""
    made = vl.Table.create(
        tmp_path_factory.mktemp("interop") / "t",
        DDL,
        properties={"delta.enableDeletionVectors": "true"},
    )
    some = random.Random(5)

    def maybe(value: Any) -> Any:
        return None if some.random() < 0.15 else value

    def event(row: int) -> str:
        user = maybe(f'"u{row // 10}"')
        number = row if some.random() < 0.8 else f"{row}.0"
        ok = "true" if row % 3 else "false"
        return f'{{"n":{number},"user":{user or "null"},"x":{row / 4},"ok":{ok}}}'

    count = 80
    made.append(
        pa.table(
            {
                "id": pa.array(range(count), pa.int64()),
                "f": [
                    maybe(some.choice([float("nan"), -0.0, 0.0, 1.5, row / 2]))
                    for row in range(count)
                ],
                "m": pa.array(
                    [maybe(Decimal(row) / 4) for row in range(count)], pa.decimal128(9, 2)
                ),
                "day": [maybe(START + dt.timedelta(row // 4)) for row in range(count)],
                "at": pa.array(
                    [
                        maybe(dt.datetime(2026, 1, 1, row % 24, tzinfo=dt.UTC))
                        for row in range(count)
                    ],
                    pa.timestamp("us", "UTC"),
                ),
                "event": [maybe(event(row)) for row in range(count)],
            }
        ),
        json_columns=["event"],
        max_rows_per_file=20,
    )
    made.delete("id % 7 = 3")
    return made.refresh()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are opened to read rows."""
    found: list[str] = []

    def counted(path: str) -> Any:
        found.append(path)
        return open_file(path)

    monkeypatch.setattr("variantlake.scan.files.file_rows.open_file", counted)
    return found


@pytest.fixture(scope="module")
def connection(table: vl.Table) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connected:
        connected.execute("SET TimeZone = 'UTC'")
        vl.duckdb.attach(connected, "pushed", table, SELECT)
        connected.register("plain", table.scan(SELECT).to_arrow())
        yield connected


# --- The same rows --------------------------------------------------------------------------------

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "id": st.integers(-1, 81) | st.sampled_from([2**63 - 1, 2.5]),
    "n": st.integers(-1, 81),
    "f": st.sampled_from([0.0, -0.0, 1.5, 20.0, float("inf"), float("nan")]),
    "x": st.sampled_from([0.0, 2.25, 7.0]),
    "m": st.decimals(0, 21, places=2),
    "user": st.sampled_from(["u0", "u3", "", "u39", "ü"]),
    "day": st.dates(START, START + dt.timedelta(21)),
    "at": st.integers(0, 24).map(lambda hour: dt.datetime(2026, 1, 1, hour % 24, tzinfo=dt.UTC)),
    "ok": st.booleans(),
}
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
Pair = tuple[str, pl.Expr]


def literal(value: Any) -> str:
    if isinstance(value, float):
        return f"'{value}'::DOUBLE"
    if isinstance(value, dt.datetime):
        return f"TIMESTAMPTZ '{value.isoformat()}'"
    if isinstance(value, dt.date):
        return f"DATE '{value}'"
    return f"'{value}'" if isinstance(value, str) else str(value)


@st.composite
def comparisons(draw: st.DrawFn) -> Pair:
    """A condition on a column for DuckDB, and the same for Polars."""
    name = draw(st.sampled_from(sorted(VALUES)))
    column = pl.col(name)
    kind = draw(st.sampled_from([*OPERATORS, "IN", "BETWEEN", "IS NULL", "IS NOT NULL"]))
    if kind == "IS NULL":
        return f'"{name}" IS NULL', column.is_null()
    if kind == "IS NOT NULL":
        return f'"{name}" IS NOT NULL', column.is_not_null()
    if kind == "IN":
        values = draw(st.lists(VALUES[name], min_size=1, max_size=3))
        # Polars refuses a list of another type than the column's.
        if len({type(each) for each in values}) == 1 and values != [2.5] * len(values):
            return f'"{name}" IN ({", ".join(map(literal, values))})', column.is_in(values)
        kind = "="
    low, high = draw(VALUES[name]), draw(VALUES[name])
    if kind == "BETWEEN":
        return f'"{name}" BETWEEN {literal(low)} AND {literal(high)}', column.is_between(
            pl.lit(low), pl.lit(high)
        )
    return f'"{name}" {kind} {literal(low)}', OPERATORS[kind](column, pl.lit(low))


CONDITIONS = st.recursive(
    comparisons(),
    lambda inner: (
        st.builds(lambda a, b: (f"({a[0]} AND {b[0]})", a[1] & b[1]), inner, inner)
        | st.builds(lambda a, b: (f"({a[0]} OR {b[0]})", a[1] | b[1]), inner, inner)
        | st.builds(lambda a: (f"NOT ({a[0]})", ~a[1]), inner)
    ),
    max_leaves=4,
)


@settings(
    max_examples=60 * MORE,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(CONDITIONS)
def test_conditions_choose_the_rows_that_they_choose_without_pushdown(
    table: vl.Table, connection: duckdb.DuckDBPyConnection, condition: Pair
) -> None:
    text, expression = condition
    found, right = (
        connection.execute(f"SELECT id, n FROM {name} WHERE {text} ORDER BY id").fetchall()
        for name in ("pushed", "plain")
    )
    assert found == right, text
    whole = pl.DataFrame(table.scan(SELECT))
    lazy = vl.scan_polars(table, SELECT).filter(expression).select("id", "n")
    assert lazy.collect().rows() == whole.filter(expression).select("id", "n").rows(), text


# --- What is read ---------------------------------------------------------------------------------


def test_duckdb_reads_what_a_scan_reads(
    connection: duckdb.DuckDBPyConnection, opened: list[str]
) -> None:
    query = "SELECT user, count(*) FROM pushed WHERE {} GROUP BY 1 ORDER BY 1"
    for text, files in [
        ("n BETWEEN 41 AND 45", 1),
        ("user = 'u2' OR user IN ('u0')", 2),
        ("id < 10 AND x < 100", 1),
        ("day = DATE '2026-01-02'", 1),
        ("lower(user) = 'u2'", 4),  # DuckDB's own to apply
    ]:
        opened.clear()
        found = connection.execute(query.format(text)).fetchall()
        assert len(set(opened)) == files, text
        assert found == connection.execute(query.format(text).replace("pushed", "plain")).fetchall()


def test_polars_reads_what_a_scan_reads(table: vl.Table, opened: list[str]) -> None:
    lazy, col = vl.scan_polars(table, SELECT), pl.col
    for query, files, height in [
        (lazy.filter(col("n") == 41), 1, None),
        (lazy.filter(col("user").str.starts_with("u2"), col("id") != 21), 1, None),
        (lazy.filter(col("day").is_in([START, START + dt.timedelta(1)])), 1, None),
        (lazy.filter(col("user").str.to_uppercase() == "U2"), 4, None),
        (lazy.filter(col("n").map_batches(lambda n: n == 41, pl.Boolean)), 4, None),
        (lazy.head(3), 1, 3),
        (lazy.head(30).filter(col("id") > 25), 2, None),
        (lazy.filter(col("id") > 25).head(2), None, 2),
        (lazy.sort("id", descending=True).head(2), None, 2),
        (lazy.select(pl.len()), 4, 1),
        (lazy.select("event").filter(col("event").is_not_null()), 4, None),
    ]:
        for engine in ("in-memory", "streaming"):
            opened.clear()
            found = query.collect(engine=engine)
            assert files is None or len(set(opened)) == files, query.explain()
            assert height is None or found.height == height
    assert lazy.select(pl.len()).collect().item() == table.scan().count()
    ids: list[Any] = table.scan("id", limit=30).to_arrow()["id"].to_pylist()
    found = lazy.head(30).filter(col("id") > 25).collect()
    assert found["id"].to_list() == [each for each in ids if each > 25]


def test_only_the_columns_of_a_query_are_rebuilt(
    connection: duckdb.DuckDBPyConnection, table: vl.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object) -> Any:
        raise AssertionError("a Variant is rebuilt")

    monkeypatch.setattr("variantlake.parquet.variant.variant_columns.unshred", none)
    assert connection.execute("SELECT max(x) FROM pushed WHERE ok AND user > 'u3'").fetchone()
    assert vl.scan_polars(table, SELECT).select(pl.col("x").max()).collect().height == 1


def test_a_lazy_frame_that_was_used_goes_to_other_processes(table: vl.Table) -> None:
    frame = vl.scan_polars(table, "id").filter(pl.col("id") < 7)
    rows = frame.collect()
    again = pl.LazyFrame.deserialize(io.BytesIO(frame.serialize()))
    assert again.collect().equals(rows)
    assert rows.height > 0


def test_variants_are_variants_in_duckdb(connection: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT DISTINCT typeof(event), event.user::VARCHAR FROM pushed WHERE id = 20"
    assert connection.execute(query).fetchall() == [("VARIANT", "u2")]


def test_what_is_refused(table: vl.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidQuery, match="one name"):
        vl.scan_polars(table, "id, event:n::int AS id")
    with duckdb.connect() as own, pytest.raises(InvalidQuery, match="one name"):
        vl.duckdb.attach(own, "events", table, "id, event:n::int AS id")
    for name in ("", 7):
        with duckdb.connect() as own, pytest.raises(InvalidValue, match="no table is called"):
            vl.duckdb.attach(own, name, table)  # type: ignore[arg-type]
    monkeypatch.setitem(__import__("sys").modules, "polars.io.plugins", None)
    monkeypatch.setitem(__import__("sys").modules, "variantlake.interop.duckdb_source", None)
    with pytest.raises(UnsupportedFeature, match="Polars is not installed"):
        vl.scan_polars(table)
    with duckdb.connect() as own, pytest.raises(UnsupportedFeature, match="DuckDB 2 is not"):
        vl.duckdb.attach(own, "events", table)


def test_polars_refuses_a_condition_where_all_files_are_skipped(table: vl.Table) -> None:
    noon = dt.datetime(2026, 1, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    refused = (pl.col("at") == noon) & (pl.col("id") < -5)
    for frame in (pl.DataFrame(table.scan(SELECT)).lazy(), vl.scan_polars(table, SELECT)):
        with pytest.raises(pl.exceptions.SchemaError):
            frame.filter(refused).collect()


def test_a_table_may_be_told_by_where_it_is(table: vl.Table) -> None:
    assert vl.scan_polars(table.uri, "id").collect().height == table.scan().count()
    with duckdb.connect() as connection:
        vl.duckdb.attach(connection, "t", table.uri, "id")
        (count,) = connection.sql("SELECT count(*) FROM t").fetchall()[0]
    assert count == table.scan().count()


def test_polars_has_variants_in_structs_and_lists(tmp_path: Path) -> None:
    columns = "id INT, st STRUCT<e: VARIANT, n: INT>, items ARRAY<VARIANT>"
    table = vl.Table.create(tmp_path / "t", columns)
    table.append([{"id": 1, "st": {"e": {"a": 1}, "n": 2}, "items": [[7]]}, {"id": 2, "st": None}])
    frame = vl.scan_polars(table).filter(pl.col("id") > 0).collect()
    assert frame["st"].struct.field("n").to_list() == [2, None]
    assert frame.schema == pl.DataFrame(table.scan()).schema
