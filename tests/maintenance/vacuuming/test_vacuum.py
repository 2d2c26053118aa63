"""Vacuum removes what no version within the retention needs, and nothing else."""

from __future__ import annotations

import datetime as dt
import os
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import variantlake as vl
from tests.delta.crashes import rows
from tests.maintenance.folders import HOUR, add, commit, found, put, remove, touch, vector_file
from tests.strategies import MORE
from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint
from variantlake.delta.log.deletion_vectors import vector_location
from variantlake.delta.log.log_segment import all_commits, commit_path
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import (
    CommitConflict,
    InvalidValue,
    MalformedLog,
    MissingSource,
    StoreFailed,
    UnsupportedFeature,
)
from variantlake.maintenance.vacuuming import removed
from variantlake.maintenance.vacuuming.listing import UnneededFile
from variantlake.maintenance.vacuuming.vacuum import vacuum
from variantlake.storage.opening import open_store
from variantlake.storage.store import Entry, LocalStore, Store

NOW = time.time_ns() // 1_000_000
LONG_AGO = NOW - 1000 * HOUR
WEEK = 168 * HOUR


def opened(root: Path) -> Snapshot:
    return Snapshot.read(root, applies=["deletionVectors"])


def small_table(root: Path) -> None:
    """A table of one old file, which no vacuum may touch."""
    put(root, "live.parquet", LONG_AGO)
    commit(root, 0, LONG_AGO, [add("live.parquet")])


def test_what_the_log_does_not_name_goes_once_it_is_old(tmp_path: Path) -> None:
    small_table(tmp_path)
    load = "a" * 32
    goes = {
        "orphan.parquet",
        "part=1/orphan.parquet",
        "_change_data/cdc-1.parquet",
        vector_file(uuid.UUID(int=1)),
        "ab/" + vector_file(uuid.UUID(int=2)),
        f"variantlake-load-{load}.running",
        f"_quarantine/{load}/part-0.ndjson",
        ".x.parquet." + "b" * 32 + ".tmp",
        ".orphan.parquet.crc",
    }
    stays = {
        "live.parquet",
        ".live.parquet.crc",
        "_hidden.parquet",
        ".hidden.parquet",
        "_temporary/0/part.parquet",
        ".folder/x.parquet",
        "_delta_index/x",
        "_quarantine/other/part-0.ndjson",
        "inner/x.parquet",
    }
    for path in goes | stays:
        put(tmp_path, path, LONG_AGO)
    put(tmp_path, "inner/_delta_log/00000000000000000000.json", LONG_AGO)
    put(tmp_path, "young.parquet", NOW - HOUR)
    kept = stays | {"young.parquet", "inner/_delta_log/00000000000000000000.json"}

    planned: list[UnneededFile] = []
    plan = vl.Table.open(tmp_path).vacuum(dry_run=True, on_file=planned.append)
    assert {each.path for each in planned} == goes == set(plan.sample)
    assert (plan.files_unneeded, plan.bytes_unneeded, plan.files_removed) == (
        len(goes),
        100 * len(goes),
        0,
    )
    assert plan.may_break_clones
    assert found(tmp_path) == goes | kept

    done = vl.Table.open(tmp_path).vacuum()
    assert found(tmp_path) == kept
    assert (done.files_removed, done.files_quarantined, done.version) == (len(goes), 1, 2)
    assert vl.Table.open(tmp_path).vacuum().files_unneeded == 0
    assert vl.Table.open(tmp_path).vacuum(quarantine=True).files_unneeded == 1


def test_the_history_says_what_delta_spark_says(tmp_path: Path) -> None:
    small_table(tmp_path)
    put(tmp_path, "orphan.parquet", LONG_AGO)
    vl.Table.open(tmp_path).vacuum(200)
    end, start, _ = vl.Table.open(tmp_path).history()
    assert (start.operation, end.operation) == ("VACUUM START", "VACUUM END")
    assert start.info["operationParameters"] == {
        "retentionCheckEnabled": True,
        "defaultRetentionMillis": WEEK,
        "specifiedRetentionMillis": 200 * HOUR,
    }
    metrics = {"numFilesToDelete": "1", "sizeOfDataToDelete": "100"}
    assert start.info["operationMetrics"] == metrics
    assert end.info["operationParameters"] == {"status": "COMPLETED"}
    metrics = {"numDeletedFiles": "1", "numVacuumedDirectories": "1"}
    assert end.info["operationMetrics"] == metrics
    for entry in (start, end):
        assert entry.info["isolationLevel"] == "SnapshotIsolation"
        assert entry.info["isBlindAppend"] is True


def test_a_retention_below_the_tables_own_needs_force(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path, "n INT")
    table.append(pa.table({"n": pa.array([1], pa.int32())}))
    table.overwrite(pa.table({"n": pa.array([2], pa.int32())}))
    with pytest.raises(InvalidValue, match=r"1 hour is shorter than the table's own, 168 hours"):
        table.vacuum(1, dry_run=True)
    assert table.vacuum(168).files_unneeded == 0
    time.sleep(0.02)
    assert table.vacuum(dt.timedelta(0), force=True).files_removed == 1
    assert table.refresh().scan().to_arrow().num_rows == 1
    table.set_properties({"delta.deletedFileRetentionDuration": "interval 1 hour"})
    assert table.vacuum(1).retention_hours == 1
    assert table.vacuum().retention_hours == 1


@pytest.mark.parametrize("retention", [-1, float("nan"), float("inf"), "7 days", True])
def test_a_retention_that_is_none_is_refused(tmp_path: Path, retention: Any) -> None:
    small_table(tmp_path)
    with pytest.raises(InvalidValue, match="retention is"):
        vl.Table.open(tmp_path).vacuum(retention, force=True)


def test_a_property_that_is_no_duration_is_refused(tmp_path: Path) -> None:
    small_table(tmp_path)
    with (
        patch.object(Snapshot, "properties", {"delta.deletedFileRetentionDuration": "a while"}),
        pytest.raises(InvalidValue, match="'a while', which is not a duration"),
    ):
        vacuum(opened(tmp_path))


def test_features_of_writers_that_are_not_known_are_refused(tmp_path: Path) -> None:
    small_table(tmp_path)
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["newOne"]}
    commit(tmp_path, 1, NOW, [{"protocol": protocol}])
    put(tmp_path, "orphan.parquet", LONG_AGO)
    with pytest.raises(UnsupportedFeature, match="newOne"):
        vl.Table.open(tmp_path).vacuum()
    assert "orphan.parquet" in found(tmp_path)


def test_all_that_a_path_may_mean_is_kept(tmp_path: Path) -> None:
    root = tmp_path / "table"
    names = [
        "a b/p%41.parquet",
        "absolute.parquet",
        "url.parquet",
        "other-scheme/x.parquet",
        "dots/x.parquet",
        "escaped-dots/x.parquet",
        "vector.bin",
    ]
    for name in [*names, "not-named.parquet"]:
        put(root, name, LONG_AGO)
    outside = put(tmp_path, "source/x.parquet", LONG_AGO)
    files = [
        add("a b/p%41.parquet"),
        add(f"{root}/absolute.parquet", encoded=False),
        add(f"file:{root}/url.parquet", encoded=False),
        add("s3a://bucket/elsewhere/other-scheme/x.parquet", encoded=False),
        add("y/../dots/./x.parquet", encoded=False),
        add("y/%2e%2e/escaped-dots/x.parquet", encoded=False),
        add(f"file://{outside}", encoded=False),
        add("with-vector.parquet"),
    ]
    files[-1]["add"]["deletionVector"] = {
        "storageType": "p",
        "pathOrInlineDv": f"file:{root}/vector.bin",
        "sizeInBytes": 34,
        "offset": 1,
        "cardinality": 1,
    }
    commit(root, 0, LONG_AGO, files)
    assert vacuum(opened(root)).sample == ("not-named.parquet",)
    assert found(root) == set(names)
    assert outside.exists()


def test_a_tombstone_that_leaves_the_table_removes_nothing_there(tmp_path: Path) -> None:
    root = tmp_path / "table"
    outside = put(tmp_path, "secret.parquet", LONG_AGO)
    small_table(root)
    gone = remove("../secret.parquet", LONG_AGO), remove("%2e%2e/secret.parquet", LONG_AGO)
    commit(root, 1, LONG_AGO, [*gone, remove(str(outside), LONG_AGO)])
    assert vacuum(opened(root), 0, force=True).files_unneeded == 0
    assert outside.exists()
    commit(root, 4, LONG_AGO, [add("../secret.parquet", encoded=False)])
    with pytest.raises(MalformedLog, match="leaves the table"):
        opened(root)


def test_paths_of_strangers_take_bounded_time(tmp_path: Path) -> None:
    small_table(tmp_path)
    put(tmp_path, "orphan.parquet", LONG_AGO)
    deep = ["/" + "a/" * 50_000 + "x", "a/../" * 50_000 + "x", "/" * 50_000]
    commit(tmp_path, 1, NOW, [remove(path, NOW) for path in deep])
    assert vacuum(opened(tmp_path)).files_removed == 1


def test_names_of_any_bytes_are_removed(tmp_path: Path) -> None:
    small_table(tmp_path)
    names = [b"two\nlines.parquet", b"escape\x1b[31m.parquet"]
    if os.name == "posix" and os.uname().sysname == "Linux":
        names.append(b"not\xffutf-8.parquet")
    for name in names:
        put(tmp_path, os.fsdecode(name), LONG_AGO)
    assert vacuum(opened(tmp_path)).files_removed == len(names)
    assert found(tmp_path) == {"live.parquet"}


def test_links_are_not_followed_and_what_they_lead_to_is_kept(tmp_path: Path) -> None:
    root = tmp_path / "table"
    small_table(root)
    outside = put(tmp_path, "elsewhere/x.parquet", LONG_AGO)
    for name in ("orphan.parquet", "disk2/x.parquet", "aim.parquet"):
        put(root, name, LONG_AGO)
    (root / "out").symlink_to(outside.parent)
    (root / "in").symlink_to(root / "disk2")
    (root / "file.parquet").symlink_to("aim.parquet")
    (root / "broken").symlink_to(root / "nowhere")
    done = vacuum(opened(root))
    assert done.sample == ("orphan.parquet",)
    assert outside.exists()
    assert {"disk2/x.parquet", "aim.parquet", "live.parquet"} <= found(root)


def test_folders_that_are_left_empty_go_and_young_ones_stay(tmp_path: Path) -> None:
    small_table(tmp_path)
    put(tmp_path, "day=1/hour=2/orphan.parquet", LONG_AGO)
    put(tmp_path, "day=2/young.parquet", NOW)
    (tmp_path / "day=3").mkdir()
    for folder in ("day=1/hour=2", "day=1", "day=2"):
        touch(tmp_path / folder, LONG_AGO)
    assert vacuum(opened(tmp_path)).folders_removed == 2
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_dir()) == [
        "_delta_log", "day=2", "day=3",
    ]  # fmt: skip


def test_a_partition_column_with_a_hidden_name_is_looked_into(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path, "n INT, _p STRING", partition_by="_p")
    for name in ("_p=1/x.parquet", "_q=1/x.parquet"):
        put(tmp_path, name, LONG_AGO)
    assert table.vacuum(dry_run=True).sample == ("_p=1/x.parquet",)


def test_tombstones_that_a_checkpoint_left_out_count_where_commits_tell(tmp_path: Path) -> None:
    """A retention longer than that of whoever wrote the checkpoint."""
    small_table(tmp_path)
    put(tmp_path, "old.parquet", LONG_AGO)
    commit(tmp_path, 1, LONG_AGO, [add("old.parquet")])
    commit(tmp_path, 2, NOW - 300 * HOUR, [remove("old.parquet", NOW - 300 * HOUR)])
    write_checkpoint(open_store(tmp_path))
    assert vacuum(opened(tmp_path), 400, dry_run=True).files_unneeded == 0
    assert vacuum(opened(tmp_path), dry_run=True).sample == ("old.parquet",)


def test_files_that_cannot_be_deleted_are_named_at_the_end(tmp_path: Path) -> None:
    small_table(tmp_path)
    for name in ("a.parquet", "b.parquet", "c.parquet"):
        put(tmp_path, name, LONG_AGO)
    delete = LocalStore.delete

    def failing(store: LocalStore, path: str) -> None:
        if path == "b.parquet":
            raise StoreFailed("permission denied", file=store.join(path))
        delete(store, path)

    with (
        patch.object(LocalStore, "delete", failing),
        pytest.raises(StoreFailed, match=r"1 of 3 files could not be deleted: .*/b.parquet: perm"),
    ):
        vacuum(opened(tmp_path))
    assert found(tmp_path) == {"live.parquet", "b.parquet"}
    assert vl.Table.open(tmp_path).history(1)[0].info["operationParameters"]["status"] == "FAILED"
    assert vacuum(opened(tmp_path)).files_removed == 1


def test_an_interruption_is_in_the_history_and_a_repeat_does_the_rest(tmp_path: Path) -> None:
    small_table(tmp_path)
    put(tmp_path, "a.parquet", LONG_AGO)
    with (
        patch.object(LocalStore, "delete_all", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        vacuum(opened(tmp_path))
    end, start, *_ = vl.Table.open(tmp_path).history()
    assert (start.operation, end.info["operationParameters"]) == (
        "VACUUM START", {"status": "FAILED"},
    )  # fmt: skip
    assert vacuum(opened(tmp_path)).files_removed == 1


def meanwhile(tmp_path: Path, act: Callable[[], None]) -> Any:
    """`act` runs when the folder was listed and nothing is deleted yet."""
    original = vl.Table.open(tmp_path)  # loads the modules
    del original
    from variantlake.maintenance.vacuuming import vacuum as module

    commit_start = module._Run._start

    def start(run: Any) -> Any:
        done = commit_start(run)
        act()
        return done

    return patch.object(module._Run, "_start", start)


def test_what_a_restore_brings_back_meanwhile_is_kept(tmp_path: Path) -> None:
    small_table(tmp_path)
    put(tmp_path, "old.parquet", LONG_AGO)
    put(tmp_path, "orphan.parquet", LONG_AGO)
    commit(tmp_path, 1, LONG_AGO, [add("old.parquet")])
    commit(tmp_path, 2, LONG_AGO, [remove("old.parquet", LONG_AGO)])
    with meanwhile(tmp_path, lambda: commit(tmp_path, 4, NOW, [add("old.parquet")])):
        assert vacuum(opened(tmp_path)).files_removed == 1
    assert found(tmp_path) == {"live.parquet", "old.parquet"}


def test_what_comes_back_while_the_newest_commits_are_read_is_kept(tmp_path: Path) -> None:
    """Seed 151 of the simulation: the vacuum refreshed past a commit that it had not listed."""
    small_table(tmp_path)
    put(tmp_path, "old.parquet", LONG_AGO)
    commit(tmp_path, 1, LONG_AGO, [add("old.parquet")])
    commit(tmp_path, 2, LONG_AGO, [remove("old.parquet", LONG_AGO)])
    refresh = Snapshot.refresh

    def late(snapshot: Snapshot) -> Snapshot:
        if snapshot.version == 2:
            commit(tmp_path, 4, NOW, [add("old.parquet")])
        return refresh(snapshot)

    with patch.object(Snapshot, "refresh", late):
        assert vacuum(opened(tmp_path)).files_removed == 0
    assert found(tmp_path) == {"live.parquet", "old.parquet"}


def test_a_change_of_the_properties_meanwhile_stops_it_before_anything_is_gone(
    tmp_path: Path,
) -> None:
    table = vl.Table.create(tmp_path, "n INT")
    put(tmp_path, "orphan.parquet", LONG_AGO)
    snapshot = table.snapshot
    table.set_properties({"delta.deletedFileRetentionDuration": "interval 2 weeks"})
    with pytest.raises(CommitConflict, match="properties"):
        vacuum(snapshot)
    assert found(tmp_path) == {"orphan.parquet"}


PATHS = [f"{folder}f{n}.parquet" for n in range(4) for folder in ("", "p=a%3Ab/", "x y/")]
VECTORS = [uuid.UUID(int=n) for n in range(1, 5)]
STEP = st.tuples(
    st.lists(st.tuples(st.sampled_from(PATHS), st.none() | st.sampled_from(VECTORS)), max_size=4),
    st.integers(0, 60),  # hours since the commit before
    st.booleans(),  # a change file
    st.booleans(),  # a checkpoint
)


@settings(max_examples=25 * MORE, deadline=None)
@given(
    steps=st.lists(STEP, min_size=1, max_size=8),
    retention=st.sampled_from([0, 24, 100, 168, 400]),
    clock=st.integers(0, 300),
)
def test_every_version_within_the_retention_keeps_its_files(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[list[tuple[str, uuid.UUID | None]], int, bool, bool]],
    retention: int,
    clock: int,
) -> None:
    """Histories that make each version of any files, with any vectors; the rest goes."""
    root = tmp_path_factory.mktemp("history")
    millis = NOW - 500 * HOUR
    state: dict[str, uuid.UUID | None] = {}
    versions: list[tuple[int, set[str]]] = []
    written: dict[str, int] = {}
    changes: list[tuple[int, str]] = []

    def write(path: str) -> None:
        if path not in written:  # else a restore brings it back
            written[path] = millis
            put(root, path, millis)

    for version, (files, hours, has_changes, has_checkpoint) in enumerate(steps):
        millis += hours * HOUR
        new = dict(files)
        gone = [p for p, v in state.items() if p not in new or new[p] != v]
        came = [p for p, v in new.items() if p not in state or state[p] != v]
        actions = [remove(p, millis, vector=state[p]) for p in gone]
        for path in came:
            write(path)
            if (vector := new[path]) is not None:
                write(vector_file(vector))
            actions.append(add(path, vector=new[path]))
        if has_changes:
            name = f"_change_data/cdc-{version}.parquet"
            write(name)
            changes.append((millis, name))
            cdc = {"path": name, "size": 1, "partitionValues": {}, "dataChange": False}
            actions.append({"cdc": cdc})
        commit(root, version, millis, actions)
        if has_checkpoint:
            write_checkpoint(open_store(root))
        state = new
        needed = set(new) | {vector_file(v) for v in new.values() if v is not None}
        versions.append((millis, needed))
    now = millis + clock * HOUR
    cutoff = now - retention * HOUR
    ends = [start for start, _ in versions[1:]] + [1 << 62]
    kept = {path for path, when in written.items() if when >= cutoff}
    kept |= {name for when, name in changes if when >= cutoff}
    for end, (_, needed) in zip(ends, versions, strict=True):
        if end >= cutoff:
            kept |= needed
    before = found(root)
    by_log: list[UnneededFile] = []
    vacuum(
        opened(root), retention, force=True, now=now, lite=True, dry_run=True, on_file=by_log.append
    )
    assert {each.path for each in by_log} == before - kept
    done = vacuum(opened(root), retention, force=True, now=now)
    assert found(root) == kept
    assert done.files_removed == len(before - kept)
    for version, end in enumerate(ends):
        if end >= cutoff:
            check_files(root, version)


def check_files(root: Path, version: int) -> None:
    """Every file of a version, and its deletion vector, is there."""
    snapshot = Snapshot.read(root, version, applies=["deletionVectors"])
    for each in snapshot.add_files():
        assert Path(snapshot.location(each.path)).is_file()
        if each.deletion_vector is not None:
            assert Path(vector_location(snapshot.store, each.deletion_vector)).is_file()


def test_a_table_of_loads_reads_as_before(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path, "event VARIANT, n INT, day STRING", partition_by="day")
    table.append(rows(1, 2), json_columns=["event"])
    table.overwrite(rows(3, 4), json_columns=["event"])
    time.sleep(0.02)
    done = table.vacuum(0, force=True)
    assert done.files_removed == 2
    left: list[Any] = table.refresh().scan("n").to_arrow()["n"].to_pylist()
    assert sorted(left) == [3, 4]
    with pytest.raises(MissingSource):
        vl.Table.open(tmp_path, 1).scan("n").to_arrow()
    assert os.listdir(tmp_path / "_delta_log")  # noqa: PTH208 - short


def test_by_the_log_alone_only_what_left_the_table_goes(tmp_path: Path) -> None:
    """A listing would find all of that, and orphans besides."""
    small_table(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "elsewhere")
    put(tmp_path, "inner/_delta_log/00000000000000000000.json", LONG_AGO)
    goes = {"gone.parquet", "p=1/x y.parquet"}
    stays = {"orphan.parquet", "elsewhere/a.parquet", "inner/a.parquet", "_hidden/a.parquet"}
    for path in goes | stays:
        put(tmp_path, path, LONG_AGO)
    put(tmp_path, "young.parquet", NOW)
    odd = ["../x.parquet", f"file://{tmp_path}/orphan.parquet", "a/../orphan.parquet", "%zz"]
    names = ["gone.parquet", "p=1/x y.parquet", "young.parquet", "linked/a.parquet"]
    names += ["inner/a.parquet", "_hidden/a.parquet", "lost.parquet"]
    actions = [remove(name, LONG_AGO) for name in names]
    actions += [{"remove": {**remove("", LONG_AGO)["remove"], "path": path}} for path in odd]
    commit(tmp_path, 1, LONG_AGO, actions)
    before = found(tmp_path)
    plan = vl.Table.open(tmp_path).vacuum(lite=True, dry_run=True)
    assert (set(plan.sample), plan.bytes_unneeded) == (goes, 200)
    done = vl.Table.open(tmp_path).vacuum(lite=True)
    assert (done.files_removed, found(tmp_path)) == (2, before - goes)
    assert vl.Table.open(tmp_path).vacuum(lite=True).files_unneeded == 0
    assert vl.Table.open(tmp_path).vacuum(dry_run=True).sample == ("orphan.parquet",)
    with pytest.raises(InvalidValue, match="quarantine"):
        vl.Table.open(tmp_path).vacuum(lite=True, quarantine=True)


def test_the_log_alone_must_reach_back_to_a_vacuum(tmp_path: Path) -> None:
    small_table(tmp_path)
    for version in range(1, 4):
        old = NOW - (900 - version) * HOUR
        put(tmp_path, f"{version}.parquet", old)
        commit(tmp_path, version, old, [add(f"{version}.parquet")])
    write_checkpoint(open_store(tmp_path))

    def cleaned(first: int) -> vl.Table:
        for version in range(first):
            (tmp_path / f"_delta_log/{version:020d}.json").unlink(missing_ok=True)
        return vl.Table.open(tmp_path)

    with pytest.raises(
        InvalidValue, match=r"the log begins with version 2: .* nor a vacuum that removed them"
    ):
        cleaned(2).vacuum(lite=True)
    vl.Table.open(tmp_path).vacuum(2000)  # keeps what left since long before the log's first
    with pytest.raises(InvalidValue, match="lite=True"):
        vl.Table.open(tmp_path).vacuum(lite=True)
    vl.Table.open(tmp_path).vacuum()
    newest = vl.Table.open(tmp_path)
    commit(tmp_path, newest.version + 1, NOW, [remove("2.parquet", NOW)])
    later = vacuum(opened(tmp_path), lite=True, now=NOW + 2 * WEEK)
    assert later.sample == ("2.parquet",)
    write_checkpoint(open_store(tmp_path))
    with pytest.raises(InvalidValue, match="the log begins with version"):
        cleaned(99).vacuum(lite=True)


def test_lite_gives_way_to_a_cleanup_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seed 69 of the simulation: the log lost its first commits while they were read."""
    small_table(tmp_path)

    def then_cleaned(store: Store, last: int | None) -> dict[int, Entry]:
        found = all_commits(store, last)
        store.delete(commit_path(0))
        return found

    snapshot = opened(tmp_path)
    monkeypatch.setattr(removed, "all_commits", then_cleaned)
    with pytest.raises(InvalidValue, match="was removed while the log was read") as failed:
        vacuum(snapshot, lite=True, now=NOW)
    assert "lite=True" in str(failed.value.hint)
