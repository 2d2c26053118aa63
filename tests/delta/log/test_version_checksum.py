"""Version checksums: written with every commit, true, and held against the log at each load."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests import corpora
from tests.delta.tables import SCHEMA, append, create_table
from variantlake.delta.actions.actions import (
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    Metadata,
    Transaction,
)
from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint
from variantlake.delta.log import version_checksum
from variantlake.delta.log.log_segment import checksum_path, commit_path
from variantlake.delta.log.reconciliation import read_commit
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.log.version_checksum import write_checksum
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import Changes
from variantlake.delta.transaction.new_actions import removes_of
from variantlake.errors import MalformedLog
from variantlake.storage.opening import open_store

TABLES = corpora.DELTA_TABLES
FILE = AddFile("f.parquet", 10, 1, stats='{"numRecords":1}')


def _document(root: Path, version: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / checksum_path(version)).read_text())
    return found


def test_every_commit_has_a_checksum_of_the_state_after_it(tmp_path: Path) -> None:
    create_table(open_store(tmp_path), SCHEMA)
    old = Snapshot.read(tmp_path)
    append(old, [FILE], transactions=[Transaction("app", 1)])
    # Another commit in between, and files that go.
    append(old, [replace(FILE, path="g", size=20)])
    commit(old.refresh(), Changes("DELETE", removes=removes_of([FILE])))
    found = [_document(tmp_path, version) for version in range(4)]
    assert [(one["numFiles"], one["tableSizeBytes"]) for one in found] == [
        (0, 0),
        (1, 10),
        (2, 30),
        (1, 20),
    ]
    assert all((one["numMetadata"], one["numProtocol"]) == (1, 1) for one in found)
    assert found[3]["setTransactions"] == [{"appId": "app", "version": 1}]
    assert "inCommitTimestampOpt" not in found[3]
    for version in range(4):
        snapshot = Snapshot.read(tmp_path, version)
        info = snapshot.commit_info
        assert info is not None
        assert found[version]["txnId"] == info.txn_id
        assert Metadata.from_json(found[version]["metadata"]) == snapshot.metadata


def test_the_checksum_bins_sizes_and_deleted_rows(tmp_path: Path) -> None:
    create_table(open_store(tmp_path), SCHEMA)
    sizes = [0, 8191, 8192, 5 << 20, 1 << 40]
    old = Snapshot.read(tmp_path)
    append(old, [replace(FILE, path=str(size), size=size) for size in sizes])
    histogram = _document(tmp_path, 1)["fileSizeHistogram"]
    bounds = histogram["sortedBinBoundaries"]
    assert (len(bounds), bounds) == (95, sorted(set(bounds)))
    expected = [
        [size for size in sizes if low <= size < high] for low, high in pairwise([*bounds, 1 << 62])
    ]
    assert histogram["fileCounts"] == list(map(len, expected))
    assert histogram["totalBytes"] == list(map(sum, expected))
    assert "numDeletedRecordsOpt" not in _document(tmp_path, 1)


def test_the_checksum_counts_deleted_rows(tmp_path: Path) -> None:
    properties = {"delta.enableDeletionVectors": "true"}
    create_table(open_store(tmp_path), SCHEMA, properties=properties)
    vectors = [None, *(DeletionVectorDescriptor("i", "0" * 40, 4, rows) for rows in (1, 9, 10))]
    adds = [replace(FILE, path=f"f{at}", deletion_vector=each) for at, each in enumerate(vectors)]
    append(Snapshot.read(tmp_path), adds)
    document = _document(tmp_path, 1)
    assert document["numDeletedRecordsOpt"] == 20
    assert document["numDeletionVectorsOpt"] == 3
    counts = document["deletedRecordCountsHistogramOpt"]["deletedRecordCounts"]
    assert counts == [1, 2, 1, 0, 0, 0, 0, 0, 0, 0]


def test_a_timestamp_in_the_commit_is_in_the_checksum(tmp_path: Path) -> None:
    properties = {"delta.enableInCommitTimestamps": "true"}
    create_table(open_store(tmp_path), SCHEMA, properties=properties)
    info = Snapshot.read(tmp_path).commit_info
    assert info is not None
    assert _document(tmp_path, 0)["inCommitTimestampOpt"] == info.in_commit_timestamp


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"numFiles": 2}, "number of files: 2 and 1"),
        ({"tableSizeBytes": 9}, "size of the table in bytes: 9 and 10"),
        ({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, "the protocol"),
    ],
)
def test_a_checksum_that_contradicts_the_log_is_an_error(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    create_table(open_store(tmp_path), SCHEMA, adds=[FILE])
    path = tmp_path / checksum_path(0)
    path.write_text(json.dumps({**_document(tmp_path, 0), **change}))
    with pytest.raises(MalformedLog, match=message) as caught:
        Snapshot.read(tmp_path)
    assert caught.value.file == str(path)
    # A checkpoint in place of the commit changes nothing.
    path.unlink()
    write_checkpoint(open_store(tmp_path), 0)
    path.write_text(json.dumps({"txnId": _txn_id(tmp_path), **change}))
    with pytest.raises(MalformedLog, match=message):
        Snapshot.read(tmp_path)


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"numFiles": 7, "txnId": "another commit"}', '{"protocol": 1}']
)
def test_a_checksum_that_does_not_speak_of_the_commit_says_nothing(
    tmp_path: Path, text: str, checkpoint: bool
) -> None:
    create_table(open_store(tmp_path), SCHEMA, adds=[FILE])
    if checkpoint:
        write_checkpoint(open_store(tmp_path), 0)
    (tmp_path / checksum_path(0)).write_text(text)
    assert Snapshot.read(tmp_path).files.num_rows == 1


def test_a_checksum_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_table(open_store(tmp_path), SCHEMA, adds=[FILE])
    (tmp_path / checksum_path(0)).write_text('{"numFiles": 7}')
    monkeypatch.setattr(version_checksum, "MAX_CHECKSUM_BYTES", 10)
    assert Snapshot.read(tmp_path).files.num_rows == 1


def test_only_the_checksum_of_the_version_itself_counts(tmp_path: Path) -> None:
    create_table(open_store(tmp_path), SCHEMA, adds=[FILE])
    append(Snapshot.read(tmp_path), [replace(FILE, path="g")])
    (tmp_path / checksum_path(0)).write_text('{"numFiles": 7}')
    (tmp_path / checksum_path(2)).write_text('{"numFiles": 7}')
    assert Snapshot.read(tmp_path).files.num_rows == 2
    with pytest.raises(MalformedLog, match="number of files: 7 and 1"):
        Snapshot.read(tmp_path, 0)


def test_two_spellings_of_one_state_agree(tmp_path: Path) -> None:
    create_table(open_store(tmp_path), SCHEMA, adds=[FILE])
    document = _document(tmp_path, 0)
    document["protocol"]["writerFeatures"].reverse()
    schema = document["metadata"]["schemaString"]
    document["metadata"]["schemaString"] = json.dumps(json.loads(schema), indent=1)
    (tmp_path / checksum_path(0)).write_text(json.dumps(document))
    assert Snapshot.read(tmp_path).files.num_rows == 1


SPARK = ("spark-shredded-variant-preview-delta", "variant-stats-no-checkpoint")


@pytest.mark.corpus(corpora.DELTA_TABLES)
@pytest.mark.parametrize("name", SPARK)
def test_the_checksums_of_delta_spark_hold_and_are_held_against_the_log(
    tmp_path: Path, name: str
) -> None:
    table = corpora.copy_writable(TABLES / name, tmp_path / name)
    newest = Snapshot.read(table)
    path = table / checksum_path(newest.version)
    document = json.loads(path.read_text())
    assert document["numFiles"] == newest.files.num_rows
    path.write_text(json.dumps({**document, "tableSizeBytes": document["tableSizeBytes"] + 1}))
    with pytest.raises(MalformedLog, match="size of the table in bytes") as caught:
        Snapshot.read(table)
    assert caught.value.file == str(path)


def _txn_id(root: Path) -> str | None:
    info = Snapshot.read(root).commit_info
    if info is not None:
        return info.txn_id
    actions = read_commit(open_store(root), commit_path(0))
    return next(action.txn_id for action in actions if isinstance(action, CommitInfo))


def test_a_checksum_is_never_overwritten(tmp_path: Path) -> None:
    create_table(open_store(tmp_path), SCHEMA, adds=[FILE])
    before = _document(tmp_path, 0)
    snapshot = Snapshot.read(tmp_path)
    write_checksum(snapshot.store, 0, replace(snapshot.state(), files=snapshot.files.slice(0, 0)))
    assert _document(tmp_path, 0) == before
