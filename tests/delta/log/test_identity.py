"""A table that is removed and made again at its place is another table."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import variantlake as vl
from tests import s3_server
from tests.delta.remade import SCHEMAS, Place, rows
from tests.delta.tables import append
from tests.strategies import MORE
from variantlake.delta.log.files.logical_files import values
from variantlake.delta.log.log_segment import commit_path
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import (
    CommitConflict,
    MissingSource,
    NotADeltaTable,
    TableReplaced,
    VariantLakeError,
)
from variantlake.storage.store import LocalStore, is_local


@pytest.fixture(scope="module")
def s3() -> Iterator[Mapping[str, str]]:
    with s3_server.running() as environment:
        yield environment


def numbers(table: vl.Table) -> list[int]:
    """What the table holds: consecutive numbers in each file, by its statistics."""
    table.history(1)  # which asks for the log, as a scan does
    found: list[int] = []
    for text in values(table.files()["stats"]):
        stats = json.loads(text)
        found += range(stats["minValues"]["n"], stats["maxValues"]["n"] + 1)
    if is_local(table.uri):
        assert sorted(found) == sorted(values(table.scan("n").to_arrow()["n"]))
    return sorted(found)


def identity(table: vl.Table) -> str:
    return table.snapshot.metadata.id


def make(root: Path | str, *loads: int, schema: str = SCHEMAS[0]) -> vl.Table:
    if isinstance(root, Path):
        shutil.rmtree(root, ignore_errors=True)
    table = vl.Table.create(root, schema, shredding={"event": "a BIGINT"})
    for number in loads:
        table.append(rows(number), json_columns=["event"])
    return vl.Table.open(root)


@pytest.mark.parametrize("versions", [0, 1, 2, 3])
def test_a_handle_sees_a_table_that_was_made_again(tmp_path: Path, versions: int) -> None:
    old = make(tmp_path / "t", 1, 2)
    pinned = vl.Table.open(tmp_path / "t", version=1)
    make(tmp_path / "t", *range(7, 7 + versions), schema=SCHEMAS[1])
    for handle in (old, pinned):
        for ask in (
            handle.scan().to_arrow,
            handle.scan().count,
            handle.scan().explain,
            handle.history,
        ):
            with pytest.raises(TableReplaced, match="replaced by another one since it was opened"):
                ask()
    assert numbers(old.refresh()) == list(range(7, 7 + versions))
    assert old.schema == vl.Table.open(tmp_path / "t").schema


def test_a_stale_handle_writes_nothing(tmp_path: Path) -> None:
    old = make(tmp_path / "t", 1, 2)
    new = make(tmp_path / "t", 7, schema=SCHEMAS[1])
    (tmp_path / "d.ndjson").write_text('{"a": 1}\n')
    writes: list[Any] = [
        lambda: old.append(rows(3), json_columns=["event"]),
        lambda: old.append(vl.ndjson(tmp_path / "d.ndjson")),
        lambda: old.overwrite(rows(3), json_columns=["event"]),
        lambda: old.set_properties({"delta.appendOnly": "true"}),
        lambda: old.unset_properties("delta.appendOnly"),
        lambda: old.add_column("more STRING"),
        lambda: old.drop_not_null("n"),
        old.analyze,
    ]
    for write in writes:
        with pytest.raises(TableReplaced, match="since it was opened"):
            write()
    found = vl.Table.open(tmp_path / "t")
    assert (found.version, found.schema, found.properties) == (1, new.schema, new.properties)
    assert len(list((tmp_path / "t").glob("*.parquet"))) == 1


@pytest.mark.parametrize("versions", [0, 1, 2, 3])
def test_what_was_decided_on_the_old_table_is_not_committed(tmp_path: Path, versions: int) -> None:
    old = make(tmp_path / "t", 1, 2).snapshot
    file = next(old.add_files())
    make(tmp_path / "t", *range(versions))
    with pytest.raises(TableReplaced):
        append(old, [replace(file, path="x.parquet")])
    assert vl.Table.open(tmp_path / "t").version == versions
    shutil.rmtree(tmp_path / "t")
    with pytest.raises(NotADeltaTable):
        append(old, [replace(file, path="x.parquet")])
    assert not (tmp_path / "t").exists()


def test_a_table_made_again_between_reading_and_committing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = make(tmp_path / "t", 1)
    original = Snapshot.refresh

    def refresh(snapshot: Snapshot) -> Snapshot:
        found = original(snapshot)
        monkeypatch.undo()
        make(tmp_path / "t", 5, 6, 7)
        return found

    monkeypatch.setattr(Snapshot, "refresh", refresh)
    with pytest.raises(TableReplaced):
        old.append(rows(2), json_columns=["event"])
    assert numbers(vl.Table.open(tmp_path / "t")) == [5, 6, 7]
    assert len(list((tmp_path / "t").glob("*.parquet"))) == 3


def test_a_log_restored_from_a_copy_goes_on_from_there(tmp_path: Path) -> None:
    root = tmp_path / "t"
    handle = make(root, 1, 2)
    shutil.copytree(root, tmp_path / "copy")
    ahead = vl.Table.open(root)
    for number in (3, 4):
        ahead.append(rows(number), json_columns=["event"])
    stale = vl.Table(ahead.snapshot)
    shutil.rmtree(root)
    shutil.copytree(tmp_path / "copy", root)
    assert numbers(vl.Table(ahead.snapshot).refresh()) == numbers(handle.refresh()) == [1, 2]
    assert numbers(handle) == [1, 2]  # the very version that it was
    with pytest.raises(MissingSource, match="version 4 is not in the log any more"):
        ahead.scan().to_arrow()
    with pytest.raises(CommitConflict, match="rewritten at or before version 4"):
        append(ahead.snapshot, [])
    for number in (5, 6, 7):
        assert ahead.append(rows(number), json_columns=["event"]).version == number - 2
    assert numbers(vl.Table.open(root)) == numbers(ahead) == [1, 2, 5, 6, 7]
    with pytest.raises(MissingSource, match="version 4"):
        stale.scan().to_arrow()


def test_a_commit_that_was_only_touched_is_the_same(tmp_path: Path) -> None:
    handle = make(tmp_path / "t", 1)
    os.utime(tmp_path / "t" / commit_path(1), (1, 1))
    assert numbers(handle) == [1]
    assert vl.Table(handle.snapshot).append(rows(2), json_columns=["event"]).version == 2
    append(handle.snapshot, [])
    shutil.copytree(tmp_path / "t", tmp_path / "u")
    shutil.rmtree(tmp_path / "t")
    shutil.move(tmp_path / "u", tmp_path / "t")
    append(handle.snapshot, [])
    assert numbers(handle) == [1]


def test_a_version_whose_log_was_cleaned_up_can_be_read(tmp_path: Path) -> None:
    table = make(tmp_path / "t", *range(12))
    old = vl.Table.open(tmp_path / "t", version=3)
    for version in range(10):
        (tmp_path / "t" / commit_path(version)).unlink()
    assert numbers(old) == [0, 1, 2]
    assert vl.Table(old.snapshot).append(rows(12), json_columns=["event"]).version == 13
    assert numbers(table.refresh()) == list(range(13))
    make(tmp_path / "t", *range(20, 33))
    with pytest.raises(TableReplaced):
        old.scan().to_arrow()


def test_no_commit_is_said_to_be_lost_with_its_table(tmp_path: Path) -> None:
    for versions in (1, 2, 3):
        table = make(tmp_path / "t", 1, 2)
        copy = tmp_path / f"copy{versions}"
        shutil.copytree(tmp_path / "t", copy)
        table.append(rows(3), json_columns=["event"])
        # By another process, which this one knows nothing of.
        shutil.rmtree(tmp_path / "t")
        other = make(tmp_path / "other", *range(versions + 1)).snapshot
        shutil.move(tmp_path / "other", tmp_path / "t")
        assert vl.Table.open(tmp_path / "t").version == other.version
        table.refresh()
        shutil.rmtree(tmp_path / "t")


def test_identity_costs_one_look_at_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "t", *range(5))
    requested: list[str] = []
    original = LocalStore.entry

    def entry(store: LocalStore, path: str) -> Any:
        requested.append(path)
        return original(store, path)

    monkeypatch.setattr(LocalStore, "entry", entry)
    monkeypatch.setattr(LocalStore, "list_from", None)
    monkeypatch.setattr(LocalStore, "stream", None)
    assert table.refresh().version == 5
    assert requested == [commit_path(version) for version in (5, 6, 7)]
    requested.clear()
    table.scan("n").to_arrow()
    assert requested == [commit_path(5)]


@pytest.mark.parametrize("seed", range(4 * MORE))
def test_tables_made_again_at_random_on_a_disk(tmp_path: Path, seed: int) -> None:
    at_random(Place(str(tmp_path / "t"), random.Random(seed)), steps=40)


@pytest.mark.usefixtures("s3")
@pytest.mark.parametrize("seed", range(2))
def test_tables_made_again_at_random_in_an_object_store(seed: int) -> None:
    at_random(Place(f"s3://{s3_server.BUCKET}/remade{seed}", random.Random(seed)), steps=15)


def at_random(place: Place, steps: int) -> None:
    """Handles of all ages, and what becomes of them: the truth, or an error that says why."""
    handles: list[tuple[vl.Table, list[int]]] = []

    def moved(table: vl.Table) -> None:
        assert table.version == len(place.versions) - 1
        handles[:] = [each for each in handles if each[0] is not table]
        handles.append((table, place.numbers))

    for _ in range(steps):
        match place.rng.choice(
            ["remake", "append", "keep", "restore", "open", "travel", "read", "refresh", "write"]
        ):
            case "remake":
                place.remake()
            case "append":
                place.append()
            case "keep":
                place.keep()
            case "restore":
                place.restore()
            case "open":
                handles.append((place.open(), place.numbers))
            case "travel":
                version = place.rng.randrange(len(place.versions))
                table = vl.Table.open(place.location, version=version)
                handles.append((vl.Table(table.snapshot), place.versions[version]))
            case "read" if handles:
                table, known = place.rng.choice(handles)
                try:
                    found = numbers(table)
                except VariantLakeError:
                    current = place.versions[table.version : table.version + 1]
                    assert current != [known] or identity(table) != identity(place.open())
                else:
                    assert found == known == place.versions[table.version]
            case "refresh" if handles:
                table, _ = place.rng.choice(handles)
                assert numbers(table.refresh()) == place.numbers
                moved(table)
            case "write" if handles:
                table, _ = place.rng.choice(handles)
                new = place.fresh()
                try:
                    version = table.append(rows(*new), json_columns=["event"]).version
                except TableReplaced:
                    assert identity(table) != identity(place.open())
                else:
                    place.wrote(new)
                    assert version == len(place.versions) - 1
                    moved(table)
        assert numbers(place.open()) == place.numbers
