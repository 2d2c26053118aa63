"""A load into a table, without Spark: what lands there, and what a bad input leaves behind."""

from __future__ import annotations

import bz2
import gzip
import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import zstandard

import variantlake as vl
from tests.corpora import EARTHQUAKES, WEBHOOKS
from tests.ingest import bad_input
from variantlake.delta.log.snapshot import Snapshot
from variantlake.encoding.json import parse_json
from variantlake.encoding.variant import Variant
from variantlake.errors import (
    CommitConflict,
    InvalidJson,
    InvalidSchema,
    NotADeltaTable,
    UnsupportedFeature,
    VariantLakeError,
)
from variantlake.ingest import load, local_run
from variantlake.ingest.commit_load import LoadResult
from variantlake.ingest.encode import document_rows
from variantlake.ingest.load import LoadTask
from variantlake.ingest.local_run import ingest_here
from variantlake.ingest.sources.sources import json_array, ndjson
from variantlake.jobs import threads
from variantlake.parquet.read.reader import read_table
from variantlake.progress import Progress
from variantlake.writing.files import new_load_id


def documents(table: Path) -> list[Variant | None]:
    """Every row of the column `event`, in the order of the files' names."""
    snapshot = Snapshot.read(table)
    rows: list[Variant | None] = []
    for add in sorted(snapshot.add_files(), key=lambda add: add.path):
        column = read_table(snapshot.location(add.path)).column("event")
        rows += [
            None if row is None else Variant(row["metadata"], row["value"])
            for row in column.to_pylist()
        ]
    return rows


@pytest.mark.parametrize("source", [EARTHQUAKES, WEBHOOKS], ids=lambda path: path.name)
def test_every_row_comes_back(tmp_path: Path, source: Path) -> None:
    result = ingest_here(source, tmp_path / "table", max_rows_per_file=150)
    expected = [parse_json(line) for line in gzip.decompress(source.read_bytes()).splitlines()]
    assert documents(tmp_path / "table") == expected
    assert (result.version, result.rows_written) == (0, len(expected))
    assert result.files_written == -(-len(expected) // 150)


def test_plain_gzip_and_zstd_give_the_same_rows(tmp_path: Path) -> None:
    text = gzip.decompress(EARTHQUAKES.read_bytes())
    packed = {
        "plain": text,
        "gzip": gzip.compress(text[:100_000]) + gzip.compress(text[100_000:]),
        "zstd": zstandard.compress(text),
    }
    found = []
    for name, content in packed.items():
        (tmp_path / f"{name}.ndjson").write_bytes(content)
        ingest_here(tmp_path / f"{name}.ndjson", tmp_path / name)
        found.append(documents(tmp_path / name))
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == text.count(b"\n")


def test_blank_lines_and_odd_line_ends_are_no_documents(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b'\xef\xbb\xbf\n  {"a": 1}\r\n\r\n\t[2]\t\nnull\n   \n"x"')
    ingest_here(tmp_path / "a", tmp_path / "table")
    assert documents(tmp_path / "table") == [
        parse_json(text) for text in ('{"a": 1}', "[2]", "null", '"x"')
    ]


def test_a_second_load_appends_with_the_schema_of_the_first(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('{"a": 1}\n' * 3)
    (tmp_path / "b").write_text('{"a": "x", "b": true}\n' * 2)
    first = ingest_here(tmp_path / "a", tmp_path / "table")
    second = ingest_here(tmp_path / "b", tmp_path / "table")
    assert first.shredding == second.shredding == {"event": "a BIGINT"}
    assert (second.version, second.rows_written, second.files_written) == (1, 2, 1)
    assert len(documents(tmp_path / "table")) == 5


def test_a_given_schema_is_kept_by_the_table(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('{"a": 1, "b": 2}\n')
    ingest_here(tmp_path / "a", tmp_path / "table", shredding="b BIGINT")
    again = ingest_here(tmp_path / "a", tmp_path / "table")
    assert again.shredding == {"event": "b BIGINT"}
    properties = Snapshot.read(tmp_path / "table").properties
    assert properties["variantlake.shredding.event"] == "b BIGINT"
    assert properties["delta.enableVariantShredding"] == "true"


def test_another_column_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('{"a": 1}\n')
    ingest_here(tmp_path / "a", tmp_path / "table", column="payload")
    assert [field.name for field in Snapshot.read(tmp_path / "table").schema.fields] == ["payload"]
    with pytest.raises(InvalidSchema, match="no column 'event'") as caught:
        ingest_here(tmp_path / "a", tmp_path / "table", column="event")
    assert "payload" in caught.value.hint


def test_progress_reaches_the_total(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('{"a": 1}\n' * 10)
    seen: list[Progress] = []
    ingest_here(tmp_path / "a", tmp_path / "table", progress=seen.append)
    assert seen[-1] == Progress(90, 90, "bytes", "read", files_written=1)


@pytest.mark.parametrize("name", bad_input.CASES)
@pytest.mark.parametrize("existing", [False, True], ids=["new-table", "existing-table"])
def test_a_bad_input_commits_nothing(
    tmp_path: Path, name: str, existing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "table"
    if existing:
        (tmp_path / "good").write_text('{"a": 1}\n')
        ingest_here(tmp_path / "good", table)
    before = bad_input.listing(table)
    case = bad_input.CASES[name]
    source = case.prepare(tmp_path, monkeypatch)
    with pytest.raises(VariantLakeError) as caught:
        ingest_here(source, table, max_rows_per_file=2)
    case.check(caught.value, source)
    assert bad_input.listing(table) == before


def test_a_folder_with_other_files_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('{"a": 1}\n')
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(NotADeltaTable) as caught:
        ingest_here(tmp_path / "a", folder)
    assert caught.value.file == str(folder)
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


EMPTY = {
    "nothing": b"",
    "blanks": b" \r\n\t\n",
    "byte order mark": b"\xef\xbb\xbf",
    "gzip": gzip.compress(b""),
    "gzip of blanks": gzip.compress(b"\n\n"),
    "zstd": zstandard.compress(b""),
    "bz2": bz2.compress(b""),
}


@pytest.mark.parametrize("mode", ["strict", "quarantine", "null"])
@pytest.mark.parametrize("documents", [ndjson, json_array])
@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_file_among_others_is_skipped_and_counted(
    tmp_path: Path, name: str, documents: Any, mode: Any
) -> None:
    text = '{"a": 1}\n' if documents is ndjson else '[{"a": 1}]'
    for place in ("a.json", "c.json"):
        (tmp_path / place).write_text(text)
    (tmp_path / "b.json").write_bytes(EMPTY[name])
    result = ingest_here(documents(tmp_path), tmp_path / "t", mode=mode)
    assert (result.rows_written, result.files_empty, result.rows_bad) == (2, 1, 0)
    assert (
        vl.Table.open(tmp_path / "t").history()[0].info["operationMetrics"]["numEmptySources"]
        == "1"
    )
    with pytest.raises(InvalidJson, match="empty") as caught:
        ingest_here(documents(tmp_path), tmp_path / "u", mode=mode, skip_empty=False)
    assert caught.value.file == str(tmp_path / "b.json")
    assert "skip_empty" in caught.value.hint
    assert not (tmp_path / "u").exists()


def test_an_empty_array_counts_as_empty_and_a_bad_document_does_not(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[]")
    (tmp_path / "b.json").write_text("[1]")
    assert ingest_here(json_array(tmp_path), tmp_path / "t").files_empty == 1
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.json").write_text("1")
    result = ingest_here(ndjson(tmp_path), tmp_path / "u", mode="quarantine", skip_empty=False)
    assert (result.rows_written, result.rows_bad, result.files_empty) == (1, 1, 0)


def test_blanks_shared_by_tasks_are_one_empty_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "TASK_BYTES", 64)
    (tmp_path / "a.json").write_text("\n" * 1000)
    (tmp_path / "b.json").write_text("\n" * 1000 + "1\n")
    assert ingest_here(ndjson(tmp_path), tmp_path / "t").files_empty == 1


def test_only_blank_lines_are_an_empty_input(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("\n\n")
    with pytest.raises(InvalidJson, match="no document"):
        ingest_here(tmp_path / "a", tmp_path / "table")
    assert not (tmp_path / "table").exists()


def test_the_result_is_json() -> None:
    result = LoadResult(version=0, rows_written=2, shredding={"event": "a BIGINT"})
    assert json.loads(json.dumps(result.to_dict()))["shredding"] == {"event": "a BIGINT"}


def test_row_groups_follow_the_table_properties(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('{"a": 1}\n' * 10)
    ingest_here(tmp_path / "a", tmp_path / "table", properties={"variantlake.rowGroupRows": "4"})
    (add,) = Snapshot.read(tmp_path / "table").add_files()
    metadata = pq.read_metadata(tmp_path / "table" / add.path)
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [4, 4, 2]


def test_first_loads_at_once_all_land(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"{number}.json").write_text(f'{{"a{number}": {number}}}\n' * 3)

    def run(number: int) -> int:
        return ingest_here(tmp_path / f"{number}.json", tmp_path / "table").version

    with ThreadPoolExecutor(6) as pool:
        versions = sorted(pool.map(run, range(6)))
    assert versions == list(range(6))
    assert len(documents(tmp_path / "table")) == 18


def test_a_schema_that_was_asked_for_does_not_give_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text('{"a": 1}\n')
    run = threads.run_in_threads

    def overtaken(task: LoadTask, watch: Callable[[int], None]) -> list[bytes]:
        with monkeypatch.context() as patch:
            patch.setattr(local_run, "run_in_threads", run)
            ingest_here(tmp_path / "a", tmp_path / "table", shredding="a STRING")
        return run(task, watch)

    monkeypatch.setattr(local_run, "run_in_threads", overtaken)
    with pytest.raises(CommitConflict):
        ingest_here(tmp_path / "a", tmp_path / "table", shredding="a BIGINT")
    assert len(list((tmp_path / "table").glob("*.parquet"))) == 1


def test_a_load_after_one_that_was_killed_works(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('{"a": 1}\n')
    ingest_here(tmp_path / "a", tmp_path / "table")
    # What a kill before the first commit leaves: finished files, and the flag.
    shutil.rmtree(tmp_path / "table" / "_delta_log")
    (tmp_path / "table" / f"variantlake-load-{new_load_id()}.running").touch()
    assert ingest_here(tmp_path / "a", tmp_path / "table").version == 0
    assert len(documents(tmp_path / "table")) == 1


def test_files_end_at_their_target_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A file can end where a block does.
    monkeypatch.setattr(document_rows, "bytes_at_once", lambda _: 50_000)
    lines = [f'{{"a": {i}, "b": "{hash(str(i))}"}}' for i in range(40_000)]
    (tmp_path / "a").write_text("\n".join(lines))
    properties = {"variantlake.rowGroupBytes": "50000"}
    whole = ingest_here(tmp_path / "a", tmp_path / "whole", properties=properties)
    target = whole.bytes_written // 5
    result = ingest_here(
        tmp_path / "a", tmp_path / "t", properties=properties, target_file_size=target
    )
    (*full, last) = sorted(Snapshot.read(tmp_path / "t").add_files(), key=lambda add: add.path)
    assert whole.files_written == 1
    assert 3 <= len(full) <= 5
    sizes = [add.size for add in full]
    assert all(target <= size < 2 * target for size in sizes), sizes
    assert last.size < 2 * target
    assert result.rows_written == 40_000


def test_rows_that_need_spark_make_no_new_table(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    lines = tmp_path / "in/rows.ndjson"
    lines.write_text('{"a": 1}\n')
    rule = {"delta.constraints.c": "event IS NULL"}
    for write in (
        lambda: ingest_here(lines, tmp_path / "t", properties=rule),
        lambda: vl.autoload(tmp_path / "t", tmp_path / "in", properties=rule),
    ):
        with pytest.raises(UnsupportedFeature, match="checkConstraints") as error:
            write()
        assert "lake.append" in error.value.hint
        assert not (tmp_path / "t/_delta_log").exists()


def test_documents_go_into_the_only_variant_column(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    lines = tmp_path / "in/rows.ndjson"
    lines.write_text('{"a": 1}\n')
    one = vl.Table.create(tmp_path / "one", "id INT, doc VARIANT")
    assert set(ingest_here(lines, one.uri).shredding or ()) == {"doc"}
    vl.autoload(one.uri, tmp_path / "in")
    assert one.refresh().scan("doc:a::int AS a, id").to_pylist() == 2 * [{"a": 1, "id": None}]
    two = vl.Table.create(tmp_path / "two", "doc VARIANT, other VARIANT")
    with pytest.raises(InvalidSchema, match=r"no column 'event'(.|\n)*doc, other"):
        ingest_here(lines, two.uri)
    ingest_here(lines, two.uri, column="other")
    assert two.refresh().scan("other:a::int AS a, doc").to_pylist() == [{"a": 1, "doc": None}]
