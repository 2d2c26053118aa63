"""Log compaction files: read in place of the commits that they cover, believed no further."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.delta.tables import PROTOCOL, add, first_commit, metadata, remove, write_log
from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint
from variantlake.delta.log import snapshot_state
from variantlake.delta.log.log_segment import find_segment
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import MalformedLog, StoreFailed
from variantlake.storage.opening import open_store
from variantlake.storage.store import LocalStore

VECTOR = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}
INFO = {"commitInfo": {"txnId": "last"}}
COMMITS = [
    first_commit(add("a")),
    [add("b"), {"txn": {"appId": "t", "version": 1}}],
    [remove("a"), add("c")],
    [remove("b"), add("d"), {"txn": {"appId": "t", "version": 2}}],
    [add("e"), INFO],
]
# What reconciliation makes of versions 1 to 3, and of 0 to 4.
MIDDLE = [remove("a"), remove("b"), add("c"), add("d"), {"txn": {"appId": "t", "version": 2}}]
WHOLE = [*first_commit(), *MIDDLE, add("e")]


def _compact(root: Path, first: int, last: int, actions: list[dict[str, Any]] | str) -> Path:
    text = actions if isinstance(actions, str) else "\n".join(map(json.dumps, actions))
    path = root / "_delta_log" / f"{first:020d}.{last:020d}.compacted.json"
    path.write_text(text)
    return path


def _state(location: str, version: int | None = None) -> tuple[Any, ...]:
    snapshot = Snapshot.read(location, version)
    files = sorted((file.path, file.size) for file in snapshot.add_files())
    info = snapshot.commit_info
    return files, dict(snapshot.transactions), snapshot.metadata, info and info.txn_id


@pytest.fixture
def read_paths(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the log's JSON files that are read."""
    names: list[str] = []
    stream = LocalStore.stream

    def recorded(self: LocalStore, path: str) -> Any:
        names.append(path.rpartition("/")[2].replace("0" * 19, ""))
        return stream(self, path)

    monkeypatch.setattr(LocalStore, "stream", recorded)
    return names


@pytest.mark.parametrize("large_commit", [-1, 1 << 20], ids=["columns", "lines"])
def test_compactions_stand_for_their_commits(
    tmp_path: Path, read_paths: list[str], monkeypatch: pytest.MonkeyPatch, large_commit: int
) -> None:
    monkeypatch.setattr(snapshot_state, "LARGE_COMMIT", large_commit)
    location = write_log(tmp_path, *COMMITS)
    wanted = [_state(location, version) for version in range(5)]
    _compact(tmp_path, 1, 3, MIDDLE)
    _compact(tmp_path, 1, 2, "a shorter one is passed over")
    read_paths.clear()
    assert _state(location) == wanted[4]
    assert sorted(read_paths) == ["0.json", "1.3.compacted.json", "4.json"]
    # One that goes to the last version: its commit still says what it was.
    _compact(tmp_path, 0, 4, WHOLE)
    read_paths.clear()
    assert _state(location) == wanted[4]
    assert sorted(read_paths) == ["0.4.compacted.json", "4.json"]
    assert [_state(location, version) for version in range(5)] == wanted


def test_a_compaction_that_starts_before_the_checkpoint_is_passed_over(tmp_path: Path) -> None:
    write_log(tmp_path, *COMMITS)
    for first, last in ((0, 4), (1, 3), (3, 4)):
        _compact(tmp_path, first, last, [])
    (tmp_path / "_delta_log" / f"{1:020d}.checkpoint.parquet").touch()
    found = [Path(entry.path).name for entry in find_segment(open_store(tmp_path)).compacted]
    # Versions 0 and 1 are in the checkpoint.
    assert found == [
        f"{2:020d}.json",
        f"{3:020d}.{4:020d}.compacted.json",
        f"{4:020d}.json",
    ]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        '{"add":{"path":1}}',
        [*MIDDLE, remove("c")],
        # Of one file as it is and with a vector: Databricks compacted without reconciling.
        [*MIDDLE, remove("c"), add("c", deletionVector=VECTOR), remove("c", deletionVector=VECTOR)],
        [*MIDDLE, {"protocol": {**PROTOCOL, "writerFeatures": []}}],
        [*MIDDLE, {"protocol": {"minReaderVersion": 99, "minWriterVersion": 99}}],
        [*MIDDLE, {"metaData": {**metadata(), "schemaString": "{"}}],
        [*MIDDLE, add("x"), add("x", deletionVector=VECTOR)],
        [*MIDDLE, {"metaData": metadata()}, {"metaData": metadata()}],
        [{"protocol": PROTOCOL}, {"protocol": PROTOCOL}],
    ],
)
def test_a_broken_compaction_gives_way_to_the_commits(
    tmp_path: Path, content: list[dict[str, Any]] | str
) -> None:
    location = write_log(tmp_path, *COMMITS)
    wanted = _state(location)
    _compact(tmp_path, 1, 3, content)
    assert _state(location) == wanted


def test_a_compaction_that_the_checksum_contradicts_gives_way_to_the_commits(
    tmp_path: Path,
) -> None:
    location = write_log(tmp_path, *COMMITS)
    (tmp_path / "_delta_log" / f"{4:020d}.crc").write_text('{"numFiles":3,"txnId":"last"}')
    wanted = _state(location)
    _compact(tmp_path, 1, 3, MIDDLE[:-2])
    assert _state(location) == wanted


def test_a_compaction_without_the_metadata_gives_way_to_the_commits(tmp_path: Path) -> None:
    location = write_log(tmp_path, *COMMITS)
    wanted = _state(location)
    _compact(tmp_path, 0, 3, MIDDLE)
    assert _state(location) == wanted


def test_a_compaction_that_the_store_does_not_give_gives_way_to_the_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = write_log(tmp_path, *COMMITS)
    wanted = _state(location)
    _compact(tmp_path, 1, 3, MIDDLE)
    stream = LocalStore.stream

    def failing(self: LocalStore, path: str) -> Any:
        if path.endswith("compacted.json"):
            raise StoreFailed("denied")
        return stream(self, path)

    monkeypatch.setattr(LocalStore, "stream", failing)
    assert _state(location) == wanted


def test_a_checkpoint_is_made_of_the_commits_themselves(tmp_path: Path) -> None:
    location = write_log(tmp_path, *COMMITS)
    wanted = _state(location)
    _compact(tmp_path, 1, 3, [*MIDDLE, add("never")])  # nothing contradicts it
    write_checkpoint(open_store(location))
    assert _state(location)[:3] == wanted[:3]


def test_a_hole_that_a_compaction_covers_is_still_a_hole(tmp_path: Path) -> None:
    location = write_log(tmp_path, *COMMITS)
    _compact(tmp_path, 1, 3, MIDDLE)
    (tmp_path / "_delta_log" / f"{2:020d}.json").unlink()
    with pytest.raises(MalformedLog, match="hole"):
        Snapshot.read(location)
