"""Log compactions that we write say what their commits say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.delta.tables import (
    SCHEMA,
    add,
    append,
    create_table,
    first_commit,
    metadata,
    remove,
    write_log,
)
from tests.strategies import MORE
from variantlake.delta.actions.actions import AddFile
from variantlake.delta.checkpoint.log_compaction import compaction_due, write_compaction
from variantlake.delta.log.log_segment import compaction_path, find_segment
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.log.snapshot_state import read_state
from variantlake.storage.opening import open_store

VECTOR = {"storageType": "i", "pathOrInlineDv": "x", "sizeInBytes": 1, "cardinality": 1}


def _txn(version: int) -> dict[str, Any]:
    return {"txn": {"appId": "t", "version": version}}


def _domain(*, removed: bool = False) -> dict[str, Any]:
    return {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": removed}}


def _same(one: Any, other: Any) -> None:
    """Two states are equal, tombstones included."""
    assert one.files.whole().sort_by("path").equals(other.files.whole().sort_by("path"))
    one_removed, other_removed = (
        {key: replace(each, data_change=True) for key, each in state.removes.items()}
        for state in (one, other)
    )
    assert one_removed == other_removed
    for name in ("protocol", "metadata", "transactions", "domains", "commit_info"):
        assert getattr(one, name) == getattr(other, name)


@st.composite
def commits(draw: st.DrawFn) -> list[list[dict[str, Any]]]:
    """Commits that add and remove a few files, again and again, and other actions."""
    made = [first_commit(*draw(_files()))]
    others = [_txn(1), _txn(2), _domain(), _domain(removed=True), {"metaData": metadata(a="1")}]
    for number in range(draw(st.integers(1, 6))):
        some = draw(st.lists(st.sampled_from(others), max_size=2, unique_by=lambda a: str(a)[:8]))
        made.append([{"commitInfo": {"txnId": str(number)}}, *draw(_files()), *some])
    return made


def _files() -> st.SearchStrategy[list[dict[str, Any]]]:
    action = st.sampled_from([add, remove])
    return st.dictionaries(st.sampled_from("abc"), action, max_size=3).map(
        lambda found: [make(name) for name, make in found.items()]
    )


@settings(max_examples=25 * MORE, deadline=None)
@given(made=commits(), data=st.data())
def test_a_compaction_says_what_its_commits_say(
    tmp_path_factory: pytest.TempPathFactory, made: list[list[dict[str, Any]]], data: st.DataObject
) -> None:
    root = tmp_path_factory.mktemp("log")
    store = open_store(write_log(root, *made))
    first = data.draw(st.integers(0, len(made) - 2))
    last = data.draw(st.integers(first + 1, len(made) - 1))
    assert write_compaction(store, first, last)
    segment = find_segment(store)
    assert compaction_path(first, last) in [entry.path for entry in segment.compacted]
    _same(
        read_state(store, None, tombstones=True)[1],
        read_state(store, None, tombstones=True, compactions=False)[1],
    )
    text = (root / compaction_path(first, last)).read_text()
    actions = [json.loads(line) for line in text.splitlines()]
    assert not any("commitInfo" in action for action in actions)
    files = [action.get("add") or action.get("remove") for action in actions]
    assert not any(file["dataChange"] for file in files if file)


def test_a_file_with_another_vector_stands_there_once(tmp_path: Path) -> None:
    later = [remove("a"), add("a", deletionVector=VECTOR)]
    location = write_log(tmp_path, first_commit(add("a")), [add("b")], later)
    assert write_compaction(open_store(location), 1, 2)
    state = read_state(open_store(location), None)[1]
    assert set(state.files["path"].to_pylist()) == {"a", "b"}
    assert state.files.num_rows == 2
    assert state.files["deletion_vector"].null_count == 1


def test_actions_of_an_unknown_kind_are_not_lost(tmp_path: Path) -> None:
    location = write_log(tmp_path, first_commit(), [{"new": {}}], [add("a")])
    assert not write_compaction(open_store(location), 1, 2)
    assert not list(Path(location, "_delta_log").glob("*.compacted.json"))
    with pytest.raises(ValueError, match="two at least"):
        write_compaction(open_store(location), 1, 1)


@pytest.mark.parametrize(
    ("version", "interval", "due"),
    [(10, None, False), (10, "20", False), (10, "21", True), (10, "0", True), (11, "100", False),
     (0, "100", False), (10, "often", False)],
)  # fmt: skip
def test_commits_are_compacted_if_checkpoints_are_rare(
    version: int, interval: str | None, due: bool
) -> None:
    properties = {} if interval is None else {"delta.checkpointInterval": interval}
    assert compaction_due(version, properties) is due


def test_commits_write_compactions(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    create_table(store, SCHEMA, properties={"delta.checkpointInterval": "100"})
    snapshot = Snapshot.read(tmp_path)
    for number in range(21):
        append(snapshot, [AddFile(f"f{number}", 1, 1)])
    found = sorted(path.name[18:41] for path in Path(tmp_path, "_delta_log").glob("*.compacted*"))
    assert found == [f"01.{10:020d}", f"11.{20:020d}"]
    assert len(find_segment(store).compacted) == 4
    assert Snapshot.read(tmp_path).files.num_rows == 21
