"""`Table.changes`: what commits say of rows, ranges, what is refused, what is skipped."""

from __future__ import annotations

import datetime as dt
import os
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variantlake as vl
from tests.dml.changed import FEED, VECTORS, arrow, new_table
from variantlake.delta.log.log_segment import commit_path
from variantlake.errors import InvalidQuery, MalformedLog, MissingSource, UnsupportedFeature

BOTH = pytest.mark.parametrize("vectors", [VECTORS, {}], ids=["vectors", "rewritten"])


def changed(table: vl.Table, *args: Any, **kwargs: Any) -> list[tuple[int, str, int]]:
    """(version, kind, id) of each change, in their order."""
    found = table.refresh().changes(*args, **kwargs).to_arrow().to_pylist()
    return [(row["_commit_version"], row["_change_type"], row["id"]) for row in found]


@BOTH
def test_the_feed_adds_up_to_the_difference_of_versions(tmp_path: Path, vectors: Any) -> None:
    table = new_table(tmp_path / "t", rows=20, properties={**FEED, **vectors})
    table.delete("id IN (3, 4, 11)")
    table.append(arrow([50, 51]))
    table.delete("event:n::int >= 50")
    table.delete("day = 'd1'")
    newest = table.refresh().version
    assert [version for version, _, _ in changed(table, 0)] == sorted(
        version for version, _, _ in changed(table, 0)
    )
    for first in range(newest + 1):
        before = Counter(_ids(tmp_path / "t", first - 1))
        for version, kind, number in changed(table, first):
            before[number] += 1 if kind in ("insert", "update_postimage") else -1
            assert first <= version <= newest
        assert +before == Counter(_ids(tmp_path / "t", newest))
    assert sorted(changed(table, 2, 2)) == [(2, "delete", n) for n in (3, 4, 11)]
    assert sorted(changed(table, 3, 3)) == [(3, "insert", 50), (3, "insert", 51)]


def _ids(location: Path, version: int) -> list[int]:
    if version < 0:
        return []
    found: list[Any] = vl.Table.open(location, version).scan("id").to_arrow()["id"].to_pylist()
    return found


def test_columns_paths_conditions_and_what_they_skip(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=40, properties={**FEED, **VECTORS})
    table.delete("id = 38")
    found = table.refresh().changes(
        0,
        select="event:user::string AS user, _change_type AS kind, event",
        where="event:n::bigint > 37 AND _commit_version > 0",
    )
    rows = found.to_arrow().to_pylist()
    assert [(row["user"], row["kind"]) for row in rows] == [
        ("u3", "insert"), ("u4", "insert"), ("u3", "delete"),
    ]  # fmt: skip
    first, *_ = found.explain()
    assert (first.total_files, first.read_files) == (4, 1)
    assert found.count() == 3
    schema = table.refresh().changes(1).schema
    assert schema.names == [
        "id",
        "day",
        "event",
        "_change_type",
        "_commit_version",
        "_commit_timestamp",
    ]
    assert table.refresh().changes(0, where="_commit_version = 2").count() == 1


@BOTH
def test_change_files_say_their_types_where_columns_are_found_by_ids(
    tmp_path: Path, vectors: Any
) -> None:
    """`_change_type` has no id: a change file has it by its name."""
    by_id = {**FEED, **vectors, "delta.columnMapping.mode": "id"}
    table = new_table(tmp_path / "t", rows=4, properties=by_id)
    table.update({"day": "x"}, "id = 1")
    table.refresh().delete("id = 2")
    assert sorted(changed(table, 2)) == [
        (2, "update_postimage", 1), (2, "update_preimage", 1), (3, "delete", 2),
    ]  # fmt: skip
    assert table.refresh().changes(0, where="_change_type = 'update_preimage'").count() == 1


def test_files_of_any_names_say_their_types_too(tmp_path: Path) -> None:
    """Column mapping by ids lets a file call its columns anything."""
    by_id = {**FEED, "delta.columnMapping.mode": "id"}
    table = new_table(tmp_path / "t", rows=4, properties=by_id)
    table.delete("id = 2")
    (path,) = (tmp_path / "t" / "_change_data").iterdir()
    stored = pq.read_table(path)
    # A column without an id before it: whatever has no id is not what is sought.
    other = pa.array(["x"] * len(stored))
    names = [name if name == "_change_type" else f"other-{name}" for name in stored.column_names]
    renamed = stored.rename_columns(names).add_column(0, pa.field("extra", pa.string()), other)
    pq.write_table(renamed, path)
    assert changed(table, 2) == [(2, "delete", 2)]


def test_times_are_ranges_too(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=1, properties=FEED)
    table.append(arrow([7]))
    for version in range(3):
        path = tmp_path / "t" / commit_path(version)
        os.utime(path, (1_700_000_000 + 100 * version,) * 2)
    table = vl.Table.open(tmp_path / "t")

    def at(seconds: float) -> dt.datetime:
        return dt.datetime.fromtimestamp(1_700_000_000 + seconds, dt.UTC)

    assert changed(table, starting_timestamp=at(100)) == [(1, "insert", 0), (2, "insert", 7)]
    assert changed(table, starting_timestamp=at(100.0005)) == [(2, "insert", 7)]
    assert changed(table, starting_timestamp=at(-5), ending_timestamp=at(150)) == [(1, "insert", 0)]
    assert changed(table, 1, ending_timestamp=at(199)) == [(1, "insert", 0)]
    (row,) = table.changes(2).to_arrow().to_pylist()
    assert row["_commit_timestamp"] == at(200)
    late = "2023-11-14T22:16:41.000Z is after the table's newest version"
    with pytest.raises(InvalidQuery, match=late):
        changed(table, starting_timestamp=at(201))
    with pytest.raises(MissingSource, match="version 2 does not exist, the newest is 1"):
        vl.Table.open(tmp_path / "t", version=1).changes(starting_timestamp=at(101))


def test_in_commit_timestamps_go_before_times_of_files(tmp_path: Path) -> None:
    table = new_table(
        tmp_path / "t", rows=1, properties={**FEED, "delta.enableInCommitTimestamps": "true"}
    )
    os.utime(tmp_path / "t" / commit_path(1), (5, 5))
    (row,) = vl.Table.open(table.uri).changes(1).to_arrow().to_pylist()
    assert row["_commit_timestamp"].year > 2000


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"starting_version": 1, "starting_timestamp": "2026-01-01"},
            InvalidQuery,
            "leave out one",
        ),
        (
            {"starting_version": 2, "ending_version": 1},
            InvalidQuery,
            "the end is before the beginning",
        ),
        ({"starting_version": 9}, MissingSource, "version 9 does not exist, the newest is 2"),
        ({"starting_version": 0, "ending_version": 9}, MissingSource, "version 9 does not exist"),
        ({"starting_version": -1}, MissingSource, "version -1 does not exist"),
        ({"starting_version": 0, "where": "nothing = 1"}, InvalidQuery, "nothing"),
        (
            {
                "starting_version": 0,
                "ending_version": 1,
                "ending_timestamp": "2026-01-01",
            },
            InvalidQuery,
            "leave out one",
        ),
    ],
)
def test_ranges_that_are_none(
    tmp_path: Path, arguments: Any, error: type[Exception], message: str
) -> None:
    table = new_table(tmp_path / "t", rows=1, properties=FEED)
    table.append(arrow([7]))
    with pytest.raises(error, match=message):
        table.refresh().changes(**arguments)


def test_versions_that_recorded_nothing_are_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=1, properties={})
    with pytest.raises(UnsupportedFeature, match="version 0 recorded no changes") as caught:
        table.changes(0)
    assert "set_properties({'delta.enableChangeDataFeed': 'true'})" in caught.value.hint
    table.set_properties(FEED)
    table = table.refresh()
    with pytest.raises(UnsupportedFeature, match="version 1 recorded no changes"):
        table.changes(1)
    table.append(arrow([7]))
    assert changed(table, 2) == [(3, "insert", 7)]


def test_a_column_that_came_later_is_null_before(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=1, properties=FEED)
    table.add_column("more INT")
    rows = table.refresh().changes(0).to_arrow().to_pylist()
    assert [row["more"] for row in rows] == [None]


def test_another_schema_is_refused(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=1, properties=FEED)
    last = tmp_path / "t" / commit_path(2)
    (line,) = (
        line
        for line in (tmp_path / "t" / commit_path(0)).read_bytes().splitlines()
        if b'"metaData"' in line
    )
    action = orjson.loads(line)
    schema = orjson.loads(action["metaData"]["schemaString"])
    schema["fields"][1]["name"] = "date"
    action["metaData"]["schemaString"] = orjson.dumps(schema).decode()
    last.write_bytes(orjson.dumps(action) + b"\n")
    with pytest.raises(UnsupportedFeature, match="column 'day' was renamed or dropped"):
        table.refresh().changes(0)


def test_a_file_that_vacuum_took_is_said(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=10, properties=FEED)
    table.delete("id = 1")
    for path in (tmp_path / "t" / "_change_data").iterdir():
        path.unlink()
    with pytest.raises(MissingSource) as caught:
        table.refresh().changes(2).to_arrow()
    assert "vacuum" in caught.value.hint


def test_a_merge_that_changed_no_row_has_no_changes(tmp_path: Path) -> None:
    """Its files moved rows; Delta Spark leaves them out by the commit's own metrics."""
    table = new_table(tmp_path / "t", rows=2, properties=FEED)
    commit = (tmp_path / "t" / commit_path(1)).read_bytes().splitlines()
    actions = [orjson.loads(line) for line in commit]
    (add,) = (each["add"] for each in actions if "add" in each)
    names = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
    info = {"operation": "MERGE", "operationMetrics": dict.fromkeys(names, "0")}
    remove = {"path": add["path"], "dataChange": True, "deletionTimestamp": 1,
              "extendedFileMetadata": True, "partitionValues": {}, "size": add["size"]}  # fmt: skip
    lines = [{"commitInfo": info}, {"remove": remove}]
    path = tmp_path / "t" / commit_path(2)
    path.write_bytes(b"\n".join(map(orjson.dumps, lines)) + b"\n")
    assert changed(table, 2) == []
    info["operationMetrics"]["numTargetRowsDeleted"] = "2"  # type: ignore[index]  # a dict
    path.write_bytes(b"\n".join(map(orjson.dumps, lines)) + b"\n")
    assert changed(vl.Table.open(table.uri), 2) == [(2, "delete", 0), (2, "delete", 1)]


def test_a_remove_that_says_little_is_looked_up(tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=4, partition_by="day", properties=FEED)
    (add, *_) = table.refresh().snapshot.add_files()
    line = {"remove": {"path": add.path, "dataChange": True, "deletionTimestamp": 1}}
    (tmp_path / "t" / commit_path(2)).write_bytes(orjson.dumps(line) + b"\n")
    rows = table.refresh().changes(2).to_arrow().to_pylist()
    assert {row["day"] for row in rows} == {add.partition_values["day"]}


def test_a_commit_of_no_time_is_refused(tmp_path: Path) -> None:
    table = new_table(
        tmp_path / "t", rows=1, properties={**FEED, "delta.enableInCommitTimestamps": "true"}
    )
    log = tmp_path / "t" / commit_path(1)
    info, *others = log.read_bytes().splitlines(keepends=True)
    fields = orjson.loads(info)["commitInfo"] | {"inCommitTimestamp": 9 * 10**18}
    log.write_bytes(b"".join([orjson.dumps({"commitInfo": fields}), b"\n", *others]))
    with pytest.raises(MalformedLog, match="version 1 has a timestamp outside of the calendar"):
        vl.Table.open(table.uri).changes(1)
