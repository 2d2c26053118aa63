"""Restore makes an older version the newest one, or says what is missing."""

from __future__ import annotations

import datetime as dt
import json
import re
import time
import uuid
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

import variantlake as vl
from tests.cli.command import run
from tests.delta.crashes import rows
from tests.maintenance.folders import HOUR, add, commit, found, put, remove, touch, vector_file
from tests.maintenance.vacuuming.test_vacuum import check_files, opened
from variantlake.delta.schema.table_schema import PrimitiveType, StructField, StructType
from variantlake.delta.transaction.commit import commit as commit_changes
from variantlake.errors import (
    CommitConflict,
    InvalidQuery,
    InvalidValue,
    MalformedLog,
    MissingSource,
    UnsupportedFeature,
)
from variantlake.maintenance.restore import restore
from variantlake.maintenance.restore_state import with_given_out
from variantlake.maintenance.vacuuming.vacuum import vacuum

NOW = time.time_ns() // 1_000_000


def numbers(table: vl.Table) -> list[int]:
    found: list[Any] = table.refresh().scan("n").to_arrow()["n"].to_pylist()
    return sorted(found)


def three_versions(root: Path) -> vl.Table:
    """Version 1 holds 1 and 2, version 2 also 3 and 4, version 3 only 5 and 6."""
    table = vl.Table.create(root, "event VARIANT, n INT, day STRING", partition_by="day")
    table.append(rows(1, 2), json_columns=["event"])
    table.append(rows(3, 4), json_columns=["event"])
    table.overwrite(rows(5, 6), json_columns=["event"])
    return table


def test_the_rows_of_a_version_come_back_and_the_others_go(tmp_path: Path) -> None:
    table = three_versions(tmp_path)
    plan = table.restore(1, dry_run=True)
    assert (plan.files_restored, plan.files_removed, plan.table_files, plan.version) == (
        2,
        2,
        2,
        None,
    )
    assert table.refresh().version == 3
    done = table.restore(1)
    assert (done.restored_version, done.version) == (1, 4)
    assert numbers(table) == [1, 2]
    assert table.restore(3).files_restored == 2
    assert numbers(table) == [5, 6]
    entry = table.refresh().history()[1]
    assert (entry.operation, entry.info["operationParameters"]) == (
        "RESTORE", {"version": 1, "timestamp": None},
    )  # fmt: skip
    sizes = {name: int(text) for name, text in entry.info["operationMetrics"].items()}
    assert sizes.pop("tableSizeAfterRestore") == sizes.pop("restoredFilesSize") == done.table_bytes
    assert sizes.pop("removedFilesSize") == done.bytes_removed
    assert sizes == {"numOfFilesAfterRestore": 2, "numRemovedFiles": 2, "numRestoredFiles": 2}


def test_a_time_names_the_version_of_then(tmp_path: Path) -> None:
    table = three_versions(tmp_path)
    for version in range(4):
        touch(tmp_path / "_delta_log" / f"{version:020d}.json", NOW - (10 - version) * HOUR)
    table = vl.Table.open(tmp_path)
    moment = dt.datetime.fromtimestamp((NOW - 8.5 * HOUR) / 1000, dt.UTC)
    with pytest.raises(InvalidQuery):
        table.restore(timestamp=dt.datetime(2001, 1, 1, tzinfo=dt.UTC))
    assert table.restore(timestamp=moment, dry_run=True).restored_version == 1
    assert table.restore(timestamp=moment.replace(tzinfo=None)).restored_version == 1
    parameters = table.refresh().history(1)[0].info["operationParameters"]
    assert parameters["version"] is None
    assert parameters["timestamp"].startswith(f"{moment:%Y-%m-%d %H:%M:%S}.")
    with pytest.raises(InvalidValue, match="one of them"):
        table.restore()
    with pytest.raises(InvalidValue, match="one of them"):
        table.restore(1, timestamp=moment)
    with pytest.raises(InvalidValue, match="missing is 'ignore'"):
        table.restore(1, missing="ignore")  # type: ignore[arg-type]
    with pytest.raises(MissingSource, match="version 9 does not exist"):
        table.restore(9)


def test_schema_and_properties_come_back_and_features_stay(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path, "n INT", cluster_by="n")
    table.append(pa.table({"n": pa.array([1], pa.int32())}))
    table.set_properties({"delta.enableRowTracking": "true"})
    table.set_properties({"delta.columnMapping.mode": "name"})
    table.add_column("note STRING")
    newest = vl.Table(table.snapshot)
    done = table.restore(1)
    after = table.refresh()
    assert done.changes_metadata
    assert [field.name for field in after.schema.fields] == ["n"]
    assert after.protocol == newest.protocol
    assert "delta.enableRowTracking" not in after.properties
    kept = "delta.rowTracking.materializedRowIdColumnName"
    assert after.properties[kept] == newest.properties[kept]
    table.restore(newest.version)
    assert table.refresh().properties == newest.properties
    assert table.refresh().scan().to_arrow().to_pydict() == {"n": [1], "note": [None]}


def test_deletion_vectors_come_back(tmp_path: Path) -> None:
    first, second = uuid.UUID(int=1), uuid.UUID(int=2)
    for name in ("a.parquet", vector_file(first), vector_file(second)):
        put(tmp_path, name, NOW)
    commit(tmp_path, 0, NOW, [add("a.parquet")])
    steps = [(None, first), (first, second), (second, None)]
    for version, (old, new) in enumerate(steps, start=1):
        gone, come = remove("a.parquet", NOW, vector=old), add("a.parquet", vector=new)
        commit(tmp_path, version, NOW, [gone, come])
    for version, vector in ((1, first), (0, None), (2, second)):
        assert restore(opened(tmp_path), version).files_restored == 1
        (file,) = opened(tmp_path).add_files()
        descriptor = file.deletion_vector
        assert (descriptor is None) == (vector is None)
        check_files(tmp_path, opened(tmp_path).version)
    (tmp_path / vector_file(first)).unlink()
    with pytest.raises(MissingSource, match=vector_file(first)):
        restore(opened(tmp_path), 1)


def test_files_that_a_vacuum_took_are_named_before_anything_is_committed(tmp_path: Path) -> None:
    table = three_versions(tmp_path)
    (one, two) = vl.Table.open(tmp_path, 1).files()["path"].to_pylist()
    (tmp_path / str(one)).unlink()
    with pytest.raises(MissingSource, match=rf"1 of the 4 files that version 2 .* gone: {one}"):
        table.restore(2)
    assert table.refresh().version == 3
    assert table.restore(2, dry_run=True).missing == (one,)
    done = table.restore(2, missing="skip")
    assert (done.files_restored, done.files_missing, done.table_files) == (3, 1, 3)
    left = table.refresh().files()["path"].to_pylist()
    assert one not in left
    assert two in left


def test_a_vacuum_at_the_same_time_is_told(tmp_path: Path) -> None:
    table = three_versions(tmp_path)

    def vacuumed(*args: Any) -> Any:
        done = commit_changes(*args)
        for name in vl.Table.open(tmp_path, 1).files()["path"].to_pylist():
            (tmp_path / str(name)).unlink()
        return done

    told = "restored as version 4, and meanwhile a vacuum removed 2"
    with (
        patch("variantlake.maintenance.restore.commit", vacuumed),
        pytest.raises(MissingSource, match=told),
    ):
        table.restore(1)


def test_what_others_commit_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    table = three_versions(tmp_path)
    snapshot = table.refresh().snapshot
    table.append(rows(7), json_columns=["event"])
    with pytest.raises(CommitConflict, match="added file"):
        restore(snapshot, 1)
    assert numbers(table) == [5, 6, 7]


def test_an_append_only_table_is_refused(tmp_path: Path) -> None:
    table = three_versions(tmp_path)
    table.set_properties({"delta.appendOnly": "true"})
    with pytest.raises(UnsupportedFeature, match="append-only"):
        table.restore(1)


@pytest.mark.parametrize(
    ("old", "newest", "wanted"),
    [
        ((1, 1, 5), (1, 1, 9), 9),
        ((1, 1, None), (1, 1, 9), 9),
        ((1, 1, 9), (1, 1, None), 9),
        ((1, 1, 9), (1, 1, 5), 9),
        ((-1, -2, -5), (-1, -2, -9), -9),
        ((-1, -2, None), (-1, -2, 3), None),
        ((10, 3, None), (1, 1, 9), None),
        ((10, 3, None), (1, 1, 12), 13),
        ((10, 3, 10), (10, 3, 2**63 - 4), 2**63 - 4),
    ],
)
def test_identity_columns_give_out_no_number_again(
    old: Any, newest: Any, wanted: int | None
) -> None:
    """Start, step and the last number that was given out, of the old and the newest version."""

    def schema(numbers: Any) -> StructType:
        names = ("start", "step", "highWaterMark")
        given = {f"delta.identity.{k}": v for k, v in zip(names, numbers, strict=True)}
        metadata = {k: v for k, v in given.items() if v is not None}
        return StructType((StructField("i", PrimitiveType("long"), metadata=metadata),))

    assert with_given_out(schema(old), schema(newest)).fields == schema((*old[:2], wanted)).fields
    plain = StructType((StructField("i", PrimitiveType("long")),))
    assert with_given_out(plain, schema(newest)).fields == plain.fields
    with pytest.raises(MalformedLog, match="whole numbers"):
        with_given_out(schema((1, "x", 3)), schema((1, 1, 4)))


def test_a_restored_version_survives_a_vacuum(tmp_path: Path) -> None:
    """Files that left the table long ago and came back are files of the table."""
    for name in ("old.parquet", "new.parquet"):
        put(tmp_path, name, NOW - 900 * HOUR)
    commit(tmp_path, 0, NOW - 900 * HOUR, [add("old.parquet")])
    gone = remove("old.parquet", NOW - 800 * HOUR)
    commit(tmp_path, 1, NOW - 800 * HOUR, [gone, add("new.parquet")])
    restore(opened(tmp_path), 0)
    assert vacuum(opened(tmp_path)).files_unneeded == 0
    assert found(tmp_path) == {"old.parquet", "new.parquet"}
    assert vacuum(opened(tmp_path), now=NOW + 200 * HOUR).sample == ("new.parquet",)


def test_the_command_restores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    three_versions(tmp_path)
    plan = run(monkeypatch, capfd, "restore", tmp_path, "--version", "1", "--dry-run")
    assert "1, not restored: dry run" in plan.out
    done = run(monkeypatch, capfd, "restore", tmp_path, "--version", "1", "--json")
    assert json.loads(done.out)["version"] == 4
    shown = run(monkeypatch, capfd, "history", tmp_path).out
    times = re.findall(r"^(\d+)\t(\d{4}-\S+ \S+Z)\t", shown, re.MULTILINE)
    assert [version for version, _ in times] == ["4", "3", "2", "1", "0"]
    for version, shown_time in times:
        asked = ("restore", tmp_path, "--dry-run", "--json", "--timestamp", shown_time)
        result = json.loads(run(monkeypatch, capfd, *asked).out)
        assert result["restored_version"] == int(version)
    for name in vl.Table.open(tmp_path, 3).files()["path"].to_pylist():
        (tmp_path / str(name)).unlink()
    lost = run(monkeypatch, capfd, "restore", tmp_path, "--version", "3")
    assert lost.code == 1
    assert "2 of the 2 files" in lost.err
    assert "--skip-missing" in lost.err
    assert run(monkeypatch, capfd, "restore", tmp_path).code == 2
    assert run(monkeypatch, capfd, "restore", tmp_path, "--timestamp", "soon").code == 2
