"""DataFusion over a table: it gives what it gives over the table's rows, and reads less."""

from __future__ import annotations

import datetime as dt
import math
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import variantlake as vl
from tests.strategies import MORE
from variantlake.errors import InvalidQuery, InvalidValue
from variantlake.storage.opening import open_file

datafusion = pytest.importorskip("datafusion")

NEGATIVE_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8 << 48))[0]
DOUBLES = [math.nan, NEGATIVE_NAN, -0.0, 0.0, 1.5, -1.5, math.inf, -math.inf, 1e308, 7.0]
START = dt.date(2026, 1, 1)
SELECT = [
    "id",
    "f",
    "m",
    "day",
    "at",
    "event:n::bigint AS n",
    "event:user::string AS user",
    "event:ok::boolean AS ok",
    "event",
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> vl.Table:
    """Four files of 20 rows in the order of `id`, with NULL in each column, some deleted."""
    table = vl.Table.create(
        tmp_path_factory.mktemp("datafusion") / "t",
        "id BIGINT, f DOUBLE, m DECIMAL(9,2), day DATE, at TIMESTAMP, event VARIANT",
        properties={"delta.enableDeletionVectors": "true"},
    )
    count = range(80)
    at = [dt.datetime(2026, 1, 1, row % 24, tzinfo=dt.UTC) if row % 9 else None for row in count]
    event = [
        f'{{"n": {row}, "user": "u{row // 10}", "ok": {str(row % 3 == 0).lower()}}}'
        if row % 8
        else None
        for row in count
    ]
    rows = {
        "id": pa.array(count, pa.int64()),
        "f": pa.array([DOUBLES[row % 10] if row % 11 else None for row in count]),
        "m": pa.array(
            [Decimal(row) / 4 if row % 6 else None for row in count], pa.decimal128(9, 2)
        ),
        "day": [START + dt.timedelta(row // 4) if row % 5 else None for row in count],
        "at": pa.array(at, pa.timestamp("us", "UTC")),
        "event": event,
    }
    table.append(pa.table(rows), json_columns=["event"], max_rows_per_file=20)
    table.delete("id % 7 = 3")
    return table.refresh()


@pytest.fixture(scope="module")
def context(table: vl.Table) -> Any:
    """A context in which `pushed` is the table, and `plain` its rows."""
    context = datafusion.SessionContext()
    vl.datafusion.attach(context, "pushed", table, SELECT)
    plain = table.scan(SELECT).to_arrow()
    context.register_record_batches("plain", [plain.to_batches()])
    return context


def rows(context: Any, query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = context.sql(query).to_pylist()
    return found


VALUES: dict[str, st.SearchStrategy[str]] = {
    "id": st.sampled_from(["3", "41", "-1", "80", "9223372036854775807", "2.5"]),
    "n": st.integers(-1, 81).map(str),
    "f": st.sampled_from(["0.0", "-0.0", "1.5", "7", "'NaN'::double", "'inf'::double", "1e308"]),
    "m": st.sampled_from(["2.25", "0", "19.75", "2.255", "1e3"]),
    "user": st.sampled_from(["'u0'", "'u3'", "''", "'ü'"]),
    "day": st.integers(0, 21).map(lambda day: f"DATE '{START + dt.timedelta(day)}'"),
    "at": st.integers(0, 23).map(lambda hour: f"'2026-01-01T{hour:02}:00:00+00:00'::timestamptz"),
    "ok": st.sampled_from(["true", "false"]),
}


@st.composite
def comparisons(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(sorted(VALUES)))
    kind = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "IN", "BETWEEN", "NULL"]))
    if kind == "NULL":
        return f"{name} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
    if kind == "IN":
        values = draw(st.lists(VALUES[name], min_size=1, max_size=6))
        return f"{name} {draw(st.sampled_from(['', 'NOT ']))}IN ({', '.join(values)})"
    low, high = draw(VALUES[name]), draw(VALUES[name])
    if kind == "BETWEEN":
        return f"{name} BETWEEN {low} AND {high}"
    return draw(st.sampled_from([f"{name} {kind} {low}", f"{low} {kind} {name}"]))


CONDITIONS = st.recursive(
    comparisons() | st.sampled_from(["ok", "event IS NULL", "user LIKE 'u1%'", "id > n"]),
    lambda inner: (
        st.builds("({} AND {})".format, inner, inner)
        | st.builds("({} OR {})".format, inner, inner)
        | st.builds("NOT ({})".format, inner)
    ),
    max_leaves=4,
)


@settings(max_examples=60 * MORE, deadline=None)
@given(CONDITIONS)
def test_conditions_choose_the_rows_that_they_choose_without_pushdown(
    context: Any, condition: str
) -> None:
    found, right = (
        rows(context, f"SELECT id, n FROM {name} WHERE {condition} ORDER BY id")
        for name in ("pushed", "plain")
    )
    assert found == right


@pytest.mark.parametrize(
    ("condition", "files"),
    [
        ("n BETWEEN 41 AND 45", 1),
        ("user = 'u2' OR user IN ('u0')", 2),
        ("id < 10 AND m < 100", 1),
        ("day = DATE '2026-01-02'", 1),
        ("lower(user) = 'u2'", 4),  # DataFusion's own to apply
    ],
)
def test_it_reads_what_a_scan_reads(
    context: Any, monkeypatch: pytest.MonkeyPatch, condition: str, files: int
) -> None:
    opened = set()

    def noted(path: str) -> Any:
        opened.add(path)
        return open_file(path)

    monkeypatch.setattr("variantlake.scan.files.file_rows.open_file", noted)
    query = "SELECT user, count(*) AS n FROM {} WHERE {} GROUP BY 1 ORDER BY 1"
    found = rows(context, query.format("pushed", condition))
    assert len(opened) == files
    assert found == rows(context, query.format("plain", condition))


def test_columns_rows_and_variants(context: Any, table: vl.Table, tmp_path: Path) -> None:
    assert rows(context, "SELECT count(*) AS n FROM pushed") == [{"n": table.scan().count()}]
    assert len(rows(context, "SELECT event FROM pushed LIMIT 3")) == 3
    copy = vl.Table.create(tmp_path / "copy", "event VARIANT")
    copy.append(context.sql("SELECT event FROM pushed WHERE id = 20"))
    (row,) = copy.refresh().scan("event:user::string AS user").to_pylist()
    assert row == {"user": "u2"}
    joined = "SELECT a.id FROM pushed a JOIN pushed b ON a.id = b.n WHERE b.id = 41"
    assert rows(context, joined) == [{"id": 41}]


def test_what_is_refused(table: vl.Table) -> None:
    context = datafusion.SessionContext()
    no_context: Any = "ctx"
    with pytest.raises(InvalidQuery, match="one name"):
        vl.datafusion.attach(context, "t", table, "id, event:n::int AS id")
    with pytest.raises(InvalidValue, match="not a context"):
        vl.datafusion.attach(no_context, "t", table)
    vl.datafusion.attach(context, "t", table, "id")
    vl.datafusion.attach(context, "t", table.uri, "event:n::int AS k")
    assert rows(context, "SELECT k FROM t WHERE k = 41") == [{"k": 41}]
