"""Logs that the protocol allows and no suite has: vectors, checkpoints, times, domains."""

from __future__ import annotations

import datetime as dt
import json
import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import variantlake as vl
from tests.suites.by_hand import V2, VECTORS, Action, HandMade, inline, numbers, remove
from variantlake.errors import InvalidQuery


def _values(root: Path, version: int | None = None) -> list[Any]:
    return sorted(vl.Table.open(root, version).scan().to_arrow()["a"].to_pylist())


def _with_vector(add: Action, *places: int) -> Action:
    return {"add": {**add["add"], "deletionVector": inline(*places)}}


def _without(path: str, *places: int) -> Action:
    return {"remove": {**remove(path)["remove"], "deletionVector": inline(*places)}}


@pytest.mark.parametrize("compacted", [False, True])
def test_one_commit_changes_the_deleted_rows_of_a_file(tmp_path: Path, compacted: bool) -> None:
    """In any order of the two actions; logical files are told apart by their vectors."""
    properties = {"delta.enableDeletionVectors": "true"}
    made = HandMade(tmp_path, protocol=VECTORS, properties=properties)
    add = made.add(numbers(0, 1, 2, 3), "a.parquet")
    made.commit(*made.head, add)
    made.commit(_with_vector(add, 0, 1), remove("a.parquet"))
    made.commit(_without("a.parquet", 0, 1), _with_vector(add, 2))
    made.commit(add, _without("a.parquet", 2))
    if compacted:
        last = [_without("a.parquet", 0, 1), remove("a.parquet"), _with_vector(add, 2)]
        lines = "".join(f"{json.dumps(each)}\n" for each in last)
        (made.log / f"{1:020d}.{2:020d}.compacted.json").write_text(lines)
    found = [_values(tmp_path, version) for version in range(4)]
    assert found == [[0, 1, 2, 3], [2, 3], [0, 1, 3], [0, 1, 2, 3]]


def test_checkpoints_of_other_shapes(tmp_path: Path) -> None:
    """V2 by its classic name, removes in a sidecar, and columns that are left out."""
    for number, columns in enumerate([["add", "metaData", "protocol"], None]):
        made = HandMade(tmp_path / str(number), protocol=V2 if columns is None else None)
        adds = [made.add(numbers(n), f"{n}.parquet") for n in range(2)]
        made.commit(*made.head, *adds)
        if columns is None:
            about: Action = {"checkpointMetadata": {"version": 0}}
            side = made.sidecar(*adds, remove("gone.parquet"))
            made.checkpoint(0, "parquet", [about, *made.head, side])
        else:
            made.checkpoint(0, "parquet", [*made.head, *adds])
            file = made.log / f"{0:020d}.checkpoint.parquet"
            pq.write_table(pq.read_table(file).select(columns), file)
        made.forget(0)
        assert _values(made.root) == [0, 1]


def test_times_of_commits_are_found_at_their_bounds(tmp_path: Path) -> None:
    """In-commit timestamps from the version on that the properties name, of files before it."""
    protocol = {**V2, "readerFeatures": [], "writerFeatures": ["inCommitTimestamp"]}
    made = HandMade(tmp_path, protocol=protocol)
    adds = [made.add(numbers(n), f"{n}.parquet") for n in range(4)]
    made.commit(*made.head, adds[0])
    made.commit(adds[1])
    configuration = {
        "delta.enableInCommitTimestamps": "true",
        "delta.inCommitTimestampEnablementVersion": "2",
        "delta.inCommitTimestampEnablementTimestamp": "300000",
    }
    enabled = {"metaData": {**made.metadata, "configuration": configuration}}
    made.commit({"commitInfo": {"inCommitTimestamp": 300_000}}, enabled, adds[2])
    made.commit({"commitInfo": {"inCommitTimestamp": 900_000}}, adds[3])
    for version, seconds in enumerate((100, 200, 1, 1)):
        os.utime(made.log / f"{version:020d}.json", (seconds, seconds))
    times = [100_000, 199_999, 200_000, 299_999, 300_000, 899_999, 900_000]
    found = [
        vl.Table.open(tmp_path, timestamp=dt.datetime.fromtimestamp(ms / 1000, dt.UTC)).version
        for ms in times
    ]
    assert found == [0, 0, 1, 1, 2, 2, 3]
    for ms in (99_999, 900_001):
        with pytest.raises(InvalidQuery):
            vl.Table.open(tmp_path, timestamp=dt.datetime.fromtimestamp(ms / 1000, dt.UTC))


def test_domains_of_others_are_kept(tmp_path: Path) -> None:
    protocol = {**V2, "readerFeatures": [], "writerFeatures": ["domainMetadata"]}
    made = HandMade(tmp_path, protocol=protocol)
    domain = {"domain": "their.app", "configuration": '{"k":1}', "removed": False, "more": 1}
    made.commit(*made.head, made.add(numbers(0), "a.parquet"), {"domainMetadata": domain})
    table = vl.Table.open(tmp_path)
    table.append(numbers(1))
    table.optimize()
    table.checkpoint()
    made.forget(0)
    assert vl.Table.open(tmp_path).snapshot.domains["their.app"].configuration == '{"k":1}'
    assert _values(tmp_path) == [0, 1]
