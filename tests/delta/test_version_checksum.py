"""Version checksums: written with every commit, true, and held against the log on request."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.delta.tables import SCHEMA
from variantlake.delta.actions import AddFile, Metadata, Transaction
from variantlake.delta.commit import append, commit, create_table
from variantlake.delta.conflicts import Changes
from variantlake.delta.file_actions import removes_of
from variantlake.delta.snapshot import Snapshot
from variantlake.delta.store import open_store
from variantlake.delta.version_checksum import checksum_path, verify_checksum, write_checksum
from variantlake.errors import MalformedLog

FILE = AddFile("f.parquet", 10, 1, stats='{"numRecords":1}')


def _document(root: Path, version: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / checksum_path(version)).read_text())
    return found


def test_every_commit_has_a_checksum_of_the_state_after_it(tmp_path: Path) -> None:
    create_table(open_store(tmp_path), SCHEMA)
    old = Snapshot.load(tmp_path)
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
        snapshot = Snapshot.load(tmp_path, version)
        info = snapshot.commit_info
        assert info is not None
        assert found[version]["txnId"] == info.txn_id
        assert Metadata.from_json(found[version]["metadata"]) == snapshot.metadata
        verify_checksum(snapshot.store, version, replace(snapshot.state(), commit_info=info))


def test_a_timestamp_in_the_commit_is_in_the_checksum(tmp_path: Path) -> None:
    properties = {"delta.enableInCommitTimestamps": "true"}
    create_table(open_store(tmp_path), SCHEMA, properties=properties)
    info = Snapshot.load(tmp_path).commit_info
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
    snapshot = Snapshot.load(tmp_path)
    with pytest.raises(MalformedLog, match=message) as caught:
        verify_checksum(snapshot.store, 0, snapshot.state())
    assert caught.value.file == str(path)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"numFiles": 7, "txnId": "another commit"}', '{"protocol": 1}']
)
def test_a_checksum_that_does_not_speak_of_the_commit_says_nothing(
    tmp_path: Path, text: str
) -> None:
    create_table(open_store(tmp_path), SCHEMA, adds=[FILE])
    (tmp_path / checksum_path(0)).write_text(text)
    snapshot = Snapshot.load(tmp_path)
    verify_checksum(snapshot.store, 0, replace(snapshot.state(), commit_info=snapshot.commit_info))


def test_a_checksum_is_never_overwritten(tmp_path: Path) -> None:
    create_table(open_store(tmp_path), SCHEMA, adds=[FILE])
    before = _document(tmp_path, 0)
    snapshot = Snapshot.load(tmp_path)
    write_checksum(snapshot.store, 0, replace(snapshot.state(), files=snapshot.files.slice(0, 0)))
    assert _document(tmp_path, 0) == before
