"""Exports: each form reads back, the file appears whole or not at all."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variantlake as vl
from tests.cli.command import run
from variantlake.errors import InvalidValue, MissingSource, StoreFailed
from variantlake.export.export import export_rows
from variantlake.parquet.read.parquet_source import BATCH_ROWS

ROWS: list[dict[str, Any]] = [
    {"id": 1, "name": 'a, "b"', "day": dt.date(2026, 1, 2), "event": {"a": 1, "b": [True, None]}},
    {"id": 2, "name": "", "day": None, "event": {"a": 2.5}},
    {"id": 3, "name": None, "day": dt.date(2026, 1, 3), "event": "x\ny"},
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> vl.Table:
    table = vl.Table.create(
        tmp_path_factory.mktemp("t") / "t", "id INT, name STRING, day DATE, event VARIANT"
    )
    table.append(ROWS)
    return table


def test_parquet_keeps_variants_shredded(table: vl.Table, tmp_path: Path) -> None:
    done = table.export(tmp_path / "x.parquet")
    assert (done.format, done.rows_written) == ("parquet", 3)
    assert done.bytes_written == (tmp_path / "x.parquet").stat().st_size
    read = vl.parquet.read_table(tmp_path / "x.parquet")
    assert vl.to_json(read["event"]).to_pylist() == [
        '{"a":1,"b":[true,null]}',
        '{"a":2.5}',
        '"x\\ny"',
    ]
    assert "typed_value" in str(pq.read_schema(tmp_path / "x.parquet"))
    table.export(tmp_path / "whole.parquet", shredding=None)
    assert "typed_value" not in str(pq.read_schema(tmp_path / "whole.parquet"))
    table.scan("event").as_json().export(tmp_path / "text.parquet")
    assert pq.read_table(tmp_path / "text.parquet")["event"].to_pylist()[1] == '{"a":2.5}'


def test_csv_reads_back_in_duckdb(table: vl.Table, tmp_path: Path) -> None:
    table.export(tmp_path / "x.csv.gz", where="id < 3")
    query = f"SELECT * FROM read_csv('{tmp_path}/x.csv.gz', nullstr='')"
    found = duckdb.connect().execute(query).fetchall()
    assert found == [
        (1, 'a, "b"', dt.date(2026, 1, 2), '{"a":1,"b":[true,null]}'),
        (2, None, None, '{"a":2.5}'),
    ]
    assert gzip.decompress((tmp_path / "x.csv.gz").read_bytes()).endswith(
        b'\n2,"",,"{""a"":2.5}"\n'
    )


def test_json_lines_are_loaded_again(table: vl.Table, tmp_path: Path) -> None:
    table.export(tmp_path / "x.ndjson")
    again = vl.Table.create(tmp_path / "again", "event VARIANT")
    again.append(tmp_path / "x.ndjson")
    values = [each["event"] for each in again.scan()]
    expected = [{**row, "day": row["day"] and str(row["day"])} for row in ROWS]
    assert json.loads(json.dumps(values, default=float)) == expected


def test_a_query_is_exported(table: vl.Table, tmp_path: Path) -> None:
    query = table.sql("SELECT day IS NULL AS n, count(*) AS c FROM t GROUP BY 1 ORDER BY 1")
    query.export(tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text() == "n,c\nfalse,2\ntrue,1\n"


def test_no_rows_are_a_file_with_columns(table: vl.Table, tmp_path: Path) -> None:
    for form, text in (("csv", "id\n"), ("jsonl", "")):
        table.export(tmp_path / f"x.{form}", select="id", where="id > 9")
        assert (tmp_path / f"x.{form}").read_text() == text
    table.export(tmp_path / "x.parquet", where="id > 9")
    assert pq.read_table(tmp_path / "x.parquet").num_rows == 0


@pytest.mark.parametrize("name", ["x.parquet", "x.csv", "x.jsonl.zst"])
def test_a_failure_leaves_what_was_there(tmp_path: Path, name: str) -> None:
    schema = pa.schema([("a", pa.int64())])

    def failing() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"a": [1]})
        raise InvalidValue("no more")

    with pytest.raises(InvalidValue, match="no more"):
        export_rows(schema, failing(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / name).write_text("before")
    with pytest.raises(InvalidValue, match="no more"):
        export_rows(schema, failing(), tmp_path / name, overwrite=True)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [(name, "before")]


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    def slow() -> Iterator[pa.RecordBatch]:
        (tmp_path / "x.csv").write_text("theirs")
        yield pa.record_batch({"a": [1]})

    with pytest.raises(InvalidValue, match="there already"):
        export_rows(pa.schema([("a", pa.int64())]), slow(), tmp_path / "x.csv")
    assert [each.read_text() for each in tmp_path.iterdir()] == ["theirs"]


def test_two_exports_to_one_target_do_not_mix(tmp_path: Path) -> None:
    target = tmp_path / "rows.csv"
    schema = pa.schema({"n": pa.int64()})

    def rows(numbers: list[int]) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": numbers})

    def first() -> Iterator[pa.RecordBatch]:
        yield from rows([1, 2, 3])
        export_rows(schema, rows([9]), target, overwrite=True)  # as another thread may
        assert target.read_text() == "n\n9\n"
        yield from rows([4])

    export_rows(schema, first(), target, overwrite=True)
    assert target.read_text() == "n\n1\n2\n3\n4\n"
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


def test_rules_of_the_target(table: vl.Table, tmp_path: Path) -> None:
    target = tmp_path / "x.csv"
    assert table.export(target, dry_run=True).rows_written == 3
    assert not target.exists()
    table.export(target)
    with pytest.raises(InvalidValue, match="there already"):
        table.export(target)
    table.export(target, select="id", overwrite=True)
    assert target.read_text() == "id\n1\n2\n3\n"
    with pytest.raises(InvalidValue, match="does not say a format"):
        table.export(tmp_path / "x.txt")
    assert table.export(tmp_path / "x.txt", "csv").format == "csv"
    wrong: Any = "xml"
    with pytest.raises(InvalidValue, match="format is 'xml'"):
        table.export(tmp_path / "y", wrong)
    with pytest.raises(InvalidValue, match=r"table\.sql\(query\)\.export"):
        table.export(tmp_path / "y.csv", "SELECT id FROM t")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="compressed inside"):
        table.export(tmp_path / "y.parquet.gz", "parquet")
    with pytest.raises(InvalidValue, match="no file"):
        table.export(tmp_path, "csv", overwrite=True)
    with pytest.raises(MissingSource, match="no such folder"):
        table.export(tmp_path / "none" / "x.csv")


def test_a_disk_that_refuses_is_an_error_of_ours(table: vl.Table) -> None:
    with pytest.raises((StoreFailed, MissingSource, InvalidValue)):
        table.export("/proc/none.csv")


def test_progress_and_pieces_of_bounded_size(tmp_path: Path) -> None:
    batch = pa.record_batch({"a": pa.array(range(2 * BATCH_ROWS + 1))})
    seen: list[vl.Progress] = []
    export_rows(batch.schema, [batch], tmp_path / "x.csv", progress=seen.append)
    assert [each.done for each in seen] == [BATCH_ROWS, 2 * BATCH_ROWS, 2 * BATCH_ROWS + 1]


def test_the_command(
    table: vl.Table,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    target = tmp_path / "x.csv"
    done = run(monkeypatch, capfd, "export", table.uri, target, "--select", "id", "--where", "id>1")
    assert (done.code, target.read_text()) == (0, "id\n2\n3\n")
    assert done.out.startswith("2 rows, ")
    again = run(monkeypatch, capfd, "export", table.uri, target)
    assert again.code == 1
    assert "--overwrite" in again.err
    given = ("--sql", "SELECT count(*) AS c FROM t", "--overwrite", "--json")
    counted = run(monkeypatch, capfd, "export", table.uri, target, *given)
    assert json.loads(counted.out)["rows_written"] == 1
    assert target.read_text() == "c\n3\n"
    text = tmp_path / "x.parquet"
    run(monkeypatch, capfd, "export", table.uri, text, "--json-variants", "--select", "event")
    assert pq.read_schema(text).field("event").type == pa.string()
