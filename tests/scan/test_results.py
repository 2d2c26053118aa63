"""What scans, queries and change feeds give: rows of Python, pandas, Polars, a notebook's page."""

from __future__ import annotations

import datetime as dt
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake as vl

EVENTS: list[Any] = [
    {"a": "<b>", "at": dt.datetime(2026, 1, 31, tzinfo=dt.UTC)},
    [1, Decimal("2.50"), None],
    None,
]


@pytest.fixture
def table(tmp_path: Path) -> vl.Table:
    made = vl.Table.create(
        tmp_path / "t",
        "id BIGINT, event VARIANT, inside ARRAY<STRUCT<v: VARIANT>>, m MAP<STRING, VARIANT>",
        properties={"delta.enableChangeDataFeed": "true"},
    )
    one = vl.parquet.variant_array([1])
    inside = pa.StructArray.from_arrays([one], names=["v"])
    made.append(
        pa.table(
            {
                "id": [1, 2, 3],
                "event": vl.parquet.variant_array(EVENTS),
                "inside": pa.concat_arrays(
                    [pa.ListArray.from_arrays([0, 1], inside), pa.nulls(2, pa.list_(inside.type))]
                ),
            }
        ),
        max_rows_per_file=2,
    )
    return made


def streams(table: vl.Table) -> list[Any]:
    return [
        table.scan("id, event"),
        table.sql("SELECT id, event FROM t"),
        table.changes(1, select="id, event"),
    ]


def test_rows_are_dicts_with_variants_as_values_of_python(table: vl.Table) -> None:
    expected = [{"id": id_, "event": event} for id_, event in enumerate(EVENTS, start=1)]
    for stream in streams(table):
        assert stream.to_pylist() == list(stream) == expected
        assert stream.count() == 3
    inside = table.scan("inside", where="id = 1").to_pylist()
    assert inside == [{"inside": [{"v": 1}]}]


def test_head_reads_no_more_files_than_it_needs(table: vl.Table) -> None:
    for stream in streams(table):
        assert stream.head(2).num_rows == 2
        assert stream.head(2).schema == stream.schema
        assert stream.head().num_rows == 3
        assert stream.head(0).num_rows == 0
    scan = table.scan("id")
    for file in table.files()["path"].to_pylist()[1:]:
        (Path(table.uri) / str(file)).unlink()
    first = scan.head(1).to_arrow()["id"].to_pylist()
    assert first in ([1], [3])


def test_a_prompt_shows_the_first_rows_with_their_values(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "id INT, event VARIANT, s STRUCT<v: VARIANT>, t STRING")
    table.append([{"id": 1, "event": {"a": [1, "x"]}, "s": {"v": 1.5}, "t": "a\nb"}, {"id": 20}])
    rows = table.head()
    assert repr(rows) == str(rows)
    assert repr(rows).splitlines() == [
        "id  event            s           t",
        "1   {'a': [1, 'x']}  {'v': 1.5}  'a\\nb'",
        "20  NULL             NULL        NULL",
    ]
    assert len(rows) == rows.num_rows == rows.count() == 2
    assert rows.to_arrow() == table.to_arrow()
    assert rows.to_pylist() == table.to_pylist() == [rows[0], rows[-1]]
    with pytest.raises(IndexError):
        rows[2]
    assert rows.to_pandas()["event"][0] == {"a": [1, "x"]}
    assert repr(table.scan("id", "id > 99").head()) == "id"
    table.append([{"id": n, "t": "x" * 500} for n in range(80)])
    lines = repr(table.head(100)).splitlines()
    assert (len(lines), lines[-1]) == (62, "and 22 more rows")
    assert max(map(len, lines)) < 130
    assert "<td>{&#x27;a&#x27;" in rows._repr_html_()


def test_pandas_and_polars(table: vl.Table) -> None:
    pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    for stream in streams(table):
        frame = stream.to_pandas()
        assert frame["event"].tolist() == EVENTS
        assert frame["id"].tolist() == [1, 2, 3]
        made = stream.to_polars()
        assert made.schema["event"] == polars.String
        assert made["event"].to_list()[2] is None


def test_pandas_keeps_integers_that_no_double_holds(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    table = vl.Table.create(tmp_path / "t", "big BIGINT, small BIGINT")
    table.append([{"big": 2**53 + 1, "small": 1}, {"big": None, "small": None}])
    frame = table.to_pandas()
    assert frame["big"].tolist()[0] == 2**53 + 1
    assert [str(kind) for kind in frame.dtypes] == ["Int64", "float64"]


def test_two_columns_of_one_name_are_no_dict(table: vl.Table, tmp_path: Path) -> None:
    for rows in (table.scan("id, event AS id"), table.sql("SELECT id, id + 1 AS id FROM t")):
        assert rows.to_arrow().num_columns == 2
        for read in (rows.to_pylist, lambda rows=rows: next(iter(rows)), rows.head(1).to_pylist):
            with pytest.raises(vl.InvalidQuery, match=r"one name: \['id', 'id'\]"):
                read()
        with pytest.raises(vl.InvalidQuery, match="one name"):
            rows.export(tmp_path / "rows.jsonl")


def test_what_is_not_installed_is_named(table: vl.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(vl.MissingDependency, match=name):
            getattr(table.scan("id"), f"to_{name}")()


def test_a_notebook_shows_the_first_rows_and_no_markup_of_theirs(table: vl.Table) -> None:
    for stream in streams(table):
        page = stream._repr_html_()
        assert "<th>event</th>" in page
        assert "&lt;b&gt;" in page
        assert "<b>" not in page
        assert "version 1>" in repr(stream)
    names = table.scan("id AS `<i>`")._repr_html_()
    assert "<i>" not in names
    for file in table.files()["path"].to_pylist():
        (Path(table.uri) / str(file)).unlink()
    assert "no such file" in table.scan("event")._repr_html_()


def test_completion_shows_what_users_call(tmp_path: Path) -> None:
    scan = vl.Table.create(tmp_path / "t", "id INT").scan()
    shown = set(dir(scan))
    assert {"to_arrow", "to_pylist", "count", "head", "explain", "schema", "read_bytes"} <= shown
    assert not shown & {"places", "stored", "batches_of", "predicate", "choice"}


def test_completion_of_a_query_is_that_of_a_scan(table: vl.Table) -> None:
    scan, query = table.scan("id"), table.sql("SELECT id FROM t")
    assert dir(scan) == dir(query)
    assert {"to_pylist", "head", "explain", "read_bytes"} <= set(dir(query))
    assert not {"snapshot", "query", "decoded", "items"} & set(dir(query))
