"""Commits on a local disk whose power is cut at any moment: what was answered is there, whole."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake as vl
from tests.simulation.disk import Cut, Disk
from variantlake.errors import VariantLakeError
from variantlake.storage import store as stores

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="tells what was flushed by Linux's table of files"
)

Rows = list[tuple[int, int | None]]


def rows_of(table: vl.Table) -> Rows:
    scanned = table.scan(["event:id::bigint AS id", "val"]).to_arrow()
    ids: list[Any] = scanned["id"].to_pylist()
    return sorted(zip(ids, scanned["val"].to_pylist(), strict=True))


def arrow(first: int, count: int) -> pa.Table:
    keys = range(first, first + count)
    return pa.table({"event": [f'{{"id": {key}}}' for key in keys], "val": list(keys)})


PROPERTIES = {"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "4"}
KEY = "event:id::bigint"
HISTORY: tuple[Callable[[Path], object], ...] = (
    lambda root: vl.Table.create(root, "event VARIANT, val BIGINT", properties=PROPERTIES),
    lambda root: vl.Table.open(root).append(arrow(0, 300), json_columns=["event"]),
    lambda root: vl.Table.open(root).append(arrow(300, 30), json_columns=["event"]),
    lambda root: vl.Table.open(root).delete(f"{KEY} < 250 AND val % 3 = 0"),
    lambda root: vl.Table.open(root).update({"val": -1}, f"{KEY} IN (7, 8, 310)"),
    lambda root: vl.Table.open(root).upsert(arrow(320, 20), KEY, json_columns=["event"]),
    lambda root: vl.Table.open(root).optimize(),
    lambda root: vl.Table.open(root).checkpoint(),
    lambda root: vl.Table.open(root).restore(4),
)


def played(root: Path) -> tuple[list[Cut], dict[int, Rows], list[int]]:
    """All moments of the history, the rows of each version, the newest version after each call."""
    disk = Disk(root)
    versions = []
    with disk.watched():
        for call in HISTORY:
            call(root)
            disk.ends()
            versions.append(vl.Table.open(root).version)
    rows = {number: rows_of(vl.Table.open(root, number)) for number in range(versions[-1] + 1)}
    return disk.cuts, rows, versions


def faults(tmp_path: Path, *, powers: tuple[bool, ...] = (True, False)) -> Iterator[str]:
    """What is wrong in folders that cuts leave."""
    root = tmp_path / "table"
    root.mkdir()
    cuts, rows, versions = played(root)
    chance = random.Random(7)
    for number, cut in enumerate(cuts):
        for turn, power in enumerate(powers):
            folder = tmp_path / f"cut-{number}-{turn}"
            cut.leave(folder, chance, power=power)
            found = wrong(folder, rows, versions[cut.done - 1] if cut.done else -1)
            if found:
                yield f"at {cut.what} {number} after {cut.done} calls: {found}"


def wrong(folder: Path, rows: dict[int, Rows], least: int) -> str:
    """What is wrong of a table in which at least version `least` was answered; empty if nothing."""
    if least < 0 and not list(folder.glob("_delta_log/*.json")):
        return ""  # nobody was told that there is a table
    try:
        table = vl.Table.open(folder)
        if table.version < least:
            return f"version {least} was answered, the newest is {table.version}"
        newest = table.version
        for version in {0, newest - newest % 4, newest - 1, newest} - {-1}:
            if rows_of(vl.Table.open(folder, version)) != rows[version]:
                return f"version {version} has other rows"
        done = table.append(arrow(9000, 1), json_columns=["event"])
        if rows_of(vl.Table.open(folder)) != sorted([*rows[newest], (9000, 9000)]):
            return f"version {done.version} lacks rows"
    except VariantLakeError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def test_what_was_answered_outlives_a_cut(tmp_path: Path) -> None:
    """Takes longer than other tests: a table is opened for each moment at which power may go."""
    assert list(faults(tmp_path)) == []


@pytest.mark.parametrize(
    ("owner", "name", "new"),
    [
        (stores, "_flush_folder", lambda _folder: None),
        (stores, "_flush_file", lambda _file: None),
        (stores, "_write", lambda file, data: file.write_bytes(data)),
        (stores.LocalStore, "flush", lambda _store, _path: None),
    ],
)
def test_a_store_that_does_not_flush_loses_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: object, name: str, new: object
) -> None:
    monkeypatch.setattr(owner, name, new)
    assert next(faults(tmp_path, powers=(True,)), None) is not None
