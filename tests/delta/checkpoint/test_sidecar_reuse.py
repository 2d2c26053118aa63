"""Sidecars that stand in the next checkpoint too: the state is the same as without."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.delta.tables import SCHEMA, append, create_table
from tests.strategies import MORE
from variantlake.delta.actions.actions import AddFile, RemoveFile
from variantlake.delta.checkpoint import sidecar_reuse
from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint, write_state
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.log.snapshot_state import read_state
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import Changes
from variantlake.storage.opening import open_store

V2 = {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "1000000"}


def _new(name: str) -> AddFile:
    return AddFile(name, 1, 1, stats='{"numRecords":1}')


def _sidecars(root: Path) -> set[str]:
    return {path.name for path in (root / "_delta_log/_sidecars").iterdir()}


def _named(root: Path, version: int) -> set[str]:
    (top,) = (root / "_delta_log").glob(f"{version:020d}.checkpoint.*.parquet")
    return {row["path"] for row in pq.read_table(top)["sidecar"].to_pylist() if row}


def _check(root: Path, version: int) -> None:
    """The checkpoint says what the commits say."""
    store = open_store(root)
    segment, state = read_state(store, version, tombstones=True)
    assert segment.checkpoint is not None
    assert not segment.commits
    hidden = {path: path.read_bytes() for path in (root / "_delta_log").glob("*checkpoint*")}
    for path in hidden:
        path.unlink()
    segment, wanted = read_state(store, version, tombstones=True)
    assert segment.checkpoint is None
    for path, data in hidden.items():
        path.write_bytes(data)
    assert state.files.whole().sort_by("path").equals(wanted.files.whole().sort_by("path"))
    assert state.removes == wanted.removes
    assert (state.protocol, state.metadata) == (wanted.protocol, wanted.metadata)


@settings(max_examples=10 * MORE, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 6), st.sets(st.integers(0, 30), max_size=2), st.booleans()),
        min_size=1,
        max_size=5,
    )
)
def test_checkpoints_that_reuse_sidecars_say_what_the_log_says(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, set[int], bool]]
) -> None:
    root = tmp_path_factory.mktemp("table")
    store = open_store(root)
    create_table(store, SCHEMA, properties=V2, adds=[_new(f"{n}%20x") for n in range(20)])
    now = time.time_ns() // 1_000_000
    number = 100
    for added, removed, checkpoint in steps:
        snapshot = Snapshot.read(root)
        paths: list[Any] = snapshot.files["path"].to_pylist()
        gone = {paths[place % len(paths)] for place in removed} if paths else set()
        changes = Changes(
            "WRITE",
            adds=tuple(_new(str(number + n)) for n in range(added)),
            removes=tuple(RemoveFile(path, deletion_timestamp=now) for path in sorted(gone)),
        )
        number += added
        commit(snapshot, changes)
        if checkpoint:
            version = write_checkpoint(store)
            _check(root, version)


def test_appends_write_what_is_new(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    create_table(store, SCHEMA, properties=V2, adds=[_new(f"a{n}") for n in range(20)])
    write_checkpoint(store)
    (first,) = _sidecars(tmp_path)
    append(Snapshot.read(tmp_path), [_new("b")])
    write_checkpoint(store)
    _check(tmp_path, 1)
    (second,) = _sidecars(tmp_path) - {first}
    assert _named(tmp_path, 1) == {first, second}
    # Small ones are written again with what is new, so that they do not become many.
    append(Snapshot.read(tmp_path), [_new("c")])
    write_checkpoint(store)
    _check(tmp_path, 2)
    assert first in _named(tmp_path, 2)
    assert len(_named(tmp_path, 2)) == 2
    assert second not in _named(tmp_path, 2)


@pytest.mark.parametrize("change", ["remove", "again", "property", "missing", "purge"])
def test_sidecars_of_what_changed_are_written_again(tmp_path: Path, change: str) -> None:
    store = open_store(tmp_path)
    create_table(store, SCHEMA, properties=V2, adds=[_new(f"a{n}") for n in range(20)])
    write_checkpoint(store)
    (first,) = _sidecars(tmp_path)
    snapshot = Snapshot.read(tmp_path)
    changes = Changes("WRITE", adds=(_new("b"),))
    if change == "remove":
        changes = replace(changes, removes=(RemoveFile("a3", deletion_timestamp=1 << 50),))
    elif change == "again":
        changes = replace(changes, adds=(replace(_new("a3"), stats=None),))
    elif change == "property":
        configuration = {
            **snapshot.metadata.configuration,
            "delta.checkpoint.writeStatsAsJson": "false",
        }
        changes = replace(changes, metadata=replace(snapshot.metadata, configuration=configuration))
    commit(snapshot, changes)
    if change == "missing":
        (tmp_path / "_delta_log/_sidecars" / first).unlink()
        state: Any = read_state(store, None, tombstones=True)[1]
    else:
        state = read_state(store, None, tombstones=True)[1]
    write_state(store, 1, state, reuse=change != "purge")
    assert first not in _named(tmp_path, 1)
    if change != "property":
        _check(tmp_path, 1)


def test_a_sidecar_with_a_file_that_is_not_there_is_not_reused(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    create_table(store, SCHEMA, properties=V2, adds=[_new(f"a{n}") for n in range(20)])
    write_checkpoint(store)
    _, state = read_state(store, None, tombstones=True)
    fewer = replace(state, files=state.files.slice(1))
    assert sidecar_reuse.reusable_sidecars(store, 0, state).count == 20
    assert sidecar_reuse.reusable_sidecars(store, 0, fewer).count == 0
