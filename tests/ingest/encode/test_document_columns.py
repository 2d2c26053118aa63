"""Columns beside the documents of a load: partitions of folders and paths, the file, the time."""

from __future__ import annotations

import datetime as dt
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.errors import InvalidQuery, InvalidSchema, InvalidValue, VariantLakeError
from variantlake.ingest.commit_load import LoadResult
from variantlake.ingest.encode.document_columns import RequestedColumns
from variantlake.ingest.local_run import ingest_here

LINES = {
    "day=2026-01-01": ['{"ts":"2026-03-01T10:00:00Z","k":1}', '{"ts":"2026-03-02 11:00","k":2}'],
    "day=2026-01-02": ['{"ts":"2026-03-01","k":3}', '{"k":4}'],
    "day=__HIVE_DEFAULT_PARTITION__": ['{"ts":null,"k":5}'],
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for folder, lines in LINES.items():
        (tmp_path / "src" / folder).mkdir(parents=True)
        (tmp_path / "src" / folder / "x.ndjson").write_text("\n".join(lines) + "\n")
    return tmp_path / "src"


def by_k(table: Path | str, *columns: str) -> dict[int, Any]:
    rows = vl.Table.open(table).scan(["event:k::int AS k_", *columns]).to_arrow().to_pylist()
    found = {row.pop("k_"): tuple(row.values()) for row in rows}
    return {k: values[0] if len(values) == 1 else values for k, values in found.items()}


def load(source: Path, table: Path, **options: Any) -> LoadResult:
    return ingest_here(str(source), table, **options)


FIRST, SECOND = dt.date(2026, 1, 1), dt.date(2026, 1, 2)


@pytest.mark.parametrize("partition_by", ["day DATE", ["day date"]])
def test_partitions_of_folders(source: Path, tmp_path: Path, partition_by: Any) -> None:
    result = load(source, tmp_path / "t", partition_by=partition_by)
    assert (result.rows_written, result.files_written) == (5, 3)
    expected = {1: FIRST, 2: FIRST, 3: SECOND, 4: SECOND, 5: None}
    assert by_k(tmp_path / "t", "day") == expected
    load(source, tmp_path / "t")  # the table's own partitions
    assert by_k(tmp_path / "t", "day") == expected
    scan = vl.Table.open(tmp_path / "t").scan("day", where="day = DATE '2026-01-01'")
    assert (scan.to_arrow().num_rows, scan.explain().read_files) == (4, 2)


def test_folders_are_strings_where_nothing_is_said(source: Path, tmp_path: Path) -> None:
    load(source, tmp_path / "t", partition_by="day")
    assert by_k(tmp_path / "t", "day")[1] == "2026-01-01"


@pytest.mark.parametrize(
    "partition_by",
    ["d=event:ts::date", ["d = variant_get(event, '$.ts', 'date')"], {"d": "event:ts::date"}],
)
def test_partitions_of_paths(source: Path, tmp_path: Path, partition_by: Any) -> None:
    load(source, tmp_path / "t", partition_by=partition_by)
    march = dt.date(2026, 3, 1)
    expected = {1: march, 2: dt.date(2026, 3, 2), 3: march, 4: None, 5: None}
    assert by_k(tmp_path / "t", "d") == expected
    vl.Table.open(tmp_path / "t").append(vl.ndjson(source), partition_by=partition_by)
    assert by_k(tmp_path / "t", "d") == expected


@pytest.mark.parametrize("shredding", ["VARIANT", "a STRUCT<b ARRAY<STRUCT<c INT>>>", None])
def test_paths_of_any_layout(tmp_path: Path, shredding: str | None) -> None:
    lines = [
        {"a": {"b": [{"c": 1}, {"c": 7}]}, "k": 0},
        {"a": {"b": [{"c": 1}]}, "k": 1},
        {"a": {"b": "x"}, "k": 2},
        {"a": 5, "k": 3},
        {"a": {"b": [1, {"c": "8"}]}, "k": 4},
        {"a": {"b": [1, {"c": None}]}, "k": 5},
    ]
    (tmp_path / "a.json").write_text("\n".join(map(json.dumps, lines)))
    ingest_here(
        tmp_path / "a.json",
        tmp_path / "t",
        shredding=shredding,
        partition_by="c=event:a.b[1].c::bigint",
        arrays=True,
    )
    assert by_k(tmp_path / "t", "c") == {0: 7, 1: None, 2: None, 3: None, 4: 8, 5: None}


def test_a_value_of_another_type_follows_the_mode(source: Path, tmp_path: Path) -> None:
    (source / "day=2026-01-01/y.ndjson").write_text(
        '{"ts":"soon","k":6}\n{"ts":"2026-13-01","k":7}\n'
    )
    paths: Any = {"partition_by": "d=event:ts::date"}
    with pytest.raises(InvalidValue, match=r'"soon" is not a date') as caught:
        load(source, tmp_path / "t", **paths)
    assert caught.value.file.endswith("y.ndjson")
    assert caught.value.path == "$['ts']"
    assert not (tmp_path / "t").exists()
    result = load(source, tmp_path / "q", mode="quarantine", **paths)
    assert (result.rows_written, result.rows_bad) == (5, 2)
    (kept,) = Path(str(result.quarantine)).iterdir()
    texts = [
        json.loads(json.loads(line)["values"]["event"]) for line in kept.read_text().splitlines()
    ]
    assert [text["k"] for text in texts] == [6, 7]
    result = load(source, tmp_path / "n", mode="null", **paths)
    assert (result.rows_written, result.rows_bad) == (7, 2)
    assert by_k(tmp_path / "n", "d")[6] is None
    tried = "d=try_variant_get(event, '$.ts', 'date')"
    assert load(source, tmp_path / "y", partition_by=tried).rows_bad == 0
    assert by_k(tmp_path / "y", "d")[7] is None


def test_folders_are_decoded_and_checked(tmp_path: Path) -> None:
    source = tmp_path / "src"
    for folder, text in [("n=07/p%3D=a%2Fb%25", "1"), ("N=-3/p%3D=", "2")]:
        (source / folder).mkdir(parents=True)
        (source / folder / "a.json").write_text(f'{{"k": {text}}}')
    mapped = {"delta.columnMapping.mode": "name"}
    wanted = {"n": None, "p=": None}
    ingest_here(str(source / "*/*/*.json"), tmp_path / "t", partition_by=wanted, properties=mapped)
    assert by_k(tmp_path / "t", "n", "`p=`") == {1: ("07", "a/b%"), 2: ("-3", None)}
    ingest_here(str(source / "*/*/*.json"), tmp_path / "i", partition_by="n INT")
    assert by_k(tmp_path / "i", "n") == {1: 7, 2: -3}
    with pytest.raises(InvalidValue, match="is not a value of date"):
        ingest_here(str(source / "*/*/*.json"), tmp_path / "d", partition_by="n DATE")
    (source / "n=1/n=2").mkdir(parents=True)
    (source / "n=1/n=2/a.json").write_text("{}")
    with pytest.raises(InvalidValue, match="two values"):
        ingest_here(str(source / "n=1"), tmp_path / "u", partition_by="n")


@pytest.mark.parametrize(
    ("partition_by", "error", "says"),
    [
        ("day=event:ts", InvalidQuery, "with a type"),
        ("day=other:ts::date", InvalidQuery, "no column 'other'"),
        (["day", "day=event:ts::date"], InvalidSchema, "twice"),
        ("hour", InvalidSchema, "hour=…"),
        ("day=event:ts::", VariantLakeError, "event:ts::"),
        ("event", InvalidSchema, "event"),
    ],
)
def test_what_cannot_be_asked_for(
    source: Path, tmp_path: Path, partition_by: Any, error: type[VariantLakeError], says: str
) -> None:
    with pytest.raises(error, match=says):
        load(source, tmp_path / "t", partition_by=partition_by)
    assert not (tmp_path / "t").exists()


def test_an_existing_table_keeps_its_partitions(source: Path, tmp_path: Path) -> None:
    load(source, tmp_path / "t", partition_by="day DATE")
    with pytest.raises(InvalidSchema, match="partitioned by day"):
        load(source, tmp_path / "t", partition_by="k=event:k::int")
    with pytest.raises(InvalidSchema, match="day' is date in the table, integer here"):
        load(source, tmp_path / "t", partition_by="day=event:k::int")
    (tmp_path / "flat.json").write_text("{}")
    with pytest.raises(InvalidSchema, match="has no folder"):
        load(tmp_path / "flat.json", tmp_path / "t")


def test_the_file_and_the_time(source: Path, tmp_path: Path) -> None:
    before = dt.datetime.now(dt.UTC)
    load(source, tmp_path / "t", file_column="_file", loaded_at_column="_loaded_at")
    found = by_k(tmp_path / "t", "_file", "_loaded_at")
    assert found[1][0] == str(source / "day=2026-01-01/x.ndjson")
    assert len({moment for _, moment in found.values()}) == 1
    assert before <= found[1][1] <= dt.datetime.now(dt.UTC)
    scan = vl.Table.open(tmp_path / "t").scan("_file", where="_file LIKE '/nowhere%'")
    assert scan.explain().read_files == 0


def test_columns_are_added_where_merge_schema_says_so(source: Path, tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "event VARIANT, n INT")
    with pytest.raises(InvalidSchema, match="no column '_file'") as caught:
        table.append(vl.ndjson(source), file_column="_file")
    assert "merge_schema=True" in caught.value.hint
    assert table.append(vl.ndjson(source), file_column="_file", merge_schema=True).version == 1
    assert [field.name for field in table.refresh().schema.fields] == ["event", "n", "_file"]
    with pytest.raises(InvalidSchema, match="n is integer in the table"):
        table.append(vl.ndjson(source), file_column="n", merge_schema=True)
    with pytest.raises(InvalidSchema, match="'n' is integer"):
        table.append(vl.ndjson(source), file_column="n")
    rows = pa.table({"n": pa.array([1], pa.int32()), "new": ["x"]})
    with pytest.raises(InvalidSchema) as caught:
        table.append(rows)
    assert "merge_schema=True" in caught.value.hint
    table.append(rows, merge_schema=True)
    assert table.refresh().schema.fields[-1].name == "new"
    with pytest.raises(InvalidValue, match="no option 'file_column'"):
        table.append(rows, file_column="_file")


def test_a_folder_whose_name_is_not_utf8_has_no_value(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/in/day=\xff"))
    folder.mkdir(parents=True)
    (folder / "a.json").write_text("1")
    with pytest.raises(InvalidValue, match="is not a value of string"):
        load(tmp_path / "in", tmp_path / "t", partition_by="day")


def test_a_value_that_does_not_fit_has_no_row_that_is_not_its_own(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "n INT")
    with pytest.raises(InvalidSchema, match="column 'n' is integer") as caught:
        table.append(pa.table({"n": pa.array([1, 1 << 40], pa.int64())}))
    assert caught.value.row is None


def test_what_no_partition_value_can_be_is_named(tmp_path: Path) -> None:
    text: Any = pa.array([b"\xff"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 1, text.buffers())  # Arrow does not look at it
    late = pa.array([10**18], pa.int64()).cast(pa.timestamp("us", "UTC"))
    for kind, values in (("STRING", text), ("TIMESTAMP", late)):
        ddl = f"p {kind}, n BIGINT"
        table = vl.Table.create(tmp_path / kind, ddl, partition_by=["p"])
        with pytest.raises(InvalidValue, match="partition column 'p'"):
            table.append(pa.table({"p": values, "n": [1]}))
        assert not list((tmp_path / kind).glob("*.parquet"))


@pytest.mark.parametrize("nested", [False, True])
def test_text_that_is_no_utf8_is_refused_by_its_row(tmp_path: Path, nested: bool) -> None:
    given = pa.array([b"a", None, b"\xc3\xa9", b"\xff", b"b"], pa.binary())
    text: Any = pa.Array.from_buffers(pa.string(), 5, given.buffers())  # Arrow does not look at it
    column = pa.StructArray.from_arrays([text], ["x"]) if nested else text
    table = vl.Table.create(tmp_path / "t", "s STRUCT<x: STRING>" if nested else "s STRING")
    data = pa.table({"s": column})
    with pytest.raises(
        InvalidValue, match=r"column 's' holds a value that is not a .*UTF8"
    ) as caught:
        table.append(data)
    assert caught.value.row == 3
    assert not list((tmp_path / "t").glob("*.parquet"))
    # Only the rows that are given count.
    assert table.append(data[:3]).version == 1
    assert table.append(data[4:]).version == 2
    assert table.refresh().scan().to_arrow().num_rows == 4


def test_options_nobody_knows(source: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"partition_bye[\s\S]*did you mean partition_by"):
        load(source, tmp_path / "t", partition_bye="day")


def test_several_ways_to_say_it() -> None:
    assert RequestedColumns.of("`odd name`=event:a::int", None, None).paths == {
        "odd name": "event:a::int"
    }
    assert RequestedColumns.of(("a", "b = event:b::decimal(10,2)"), None, None).paths == {
        "a": None,
        "b": "event:b::decimal(10,2)",
    }
    assert RequestedColumns.of({"a": None}, None, None).paths == {"a": None}


def test_text_that_is_no_utf8_is_refused_by_its_row_behind_rows_in_quarantine(
    tmp_path: Path,
) -> None:
    given = pa.array([b"a", b"b", b"\xff"], pa.binary())
    text: Any = pa.Array.from_buffers(pa.string(), 3, given.buffers())  # Arrow does not look at it
    table = vl.Table.create(tmp_path / "t", "event VARIANT, s STRING")
    data = pa.table({"event": ["{", "1", "2"], "s": text})
    with pytest.raises(InvalidValue, match="column 's' holds a value that is not a") as caught:
        table.append(data, json_columns=["event"], mode="quarantine")
    assert caught.value.row == 2
