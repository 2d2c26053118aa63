"""What a commit names is on the disk before the commit is there: a power cut tears no table."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import variantlake as vl
from tests.delta.crashes import append, create, overwrite

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="tells what was flushed by Linux's table of files"
)


def quarantine(root: Path) -> None:
    source = root.with_suffix(".ndjson")
    source.write_text('{"a": 1}\nnonsense\n')
    vl.Table.open(root).append(vl.ndjson(source), mode="quarantine")


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, set[str]]]:
    """Each name that a commit is given, and what had been flushed until then, and since the last.

    The names of a folder are flushed by flushing the folder. A file that gets its name after it was
    flushed counts by that name, too.
    """
    events: list[tuple[str, set[str]]] = []
    so_far: set[str] = set()
    fsync, link, rename = os.fsync, os.link, Path.replace

    def noted_fsync(handle: int) -> None:
        fsync(handle)
        so_far.add(str(Path(f"/proc/self/fd/{handle}").readlink()))

    def noted_link(source: Path, target: Path) -> None:
        link(source, target)
        if target.suffix == ".json":
            events.append((str(target), set(so_far)))
            so_far.clear()

    def noted_rename(source: Path, target: Path) -> Path:
        if str(source) in so_far:
            so_far.add(str(target))
            so_far.discard(str(target.parent))  # which has a new name
        return rename(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "replace", noted_rename)
    monkeypatch.setattr(os, "link", noted_link)
    events.append(("", so_far))
    return events


@pytest.mark.parametrize("write", [lambda root: append(root, 1, 2, 3), overwrite])
def test_data_files_are_durable_before_their_commit(
    tmp_path: Path, flushed: list[tuple[str, set[str]]], write: Callable[[Path], None]
) -> None:
    root = tmp_path / "t"
    create(root)
    write(root)
    commit, before = flushed[-1]
    actions = [json.loads(line) for line in Path(commit).read_text().splitlines()]
    files = {str(root / action["add"]["path"]) for action in actions if "add" in action}
    assert files
    assert files <= before
    assert str(root) in before
    assert any(".json." in name and name.endswith(".tmp") for name in before), "the commit itself"
    # The commit's name, after it.
    assert str(root / "_delta_log") in flushed[0][1]


def test_the_folders_of_a_new_table_are_durable(
    tmp_path: Path, flushed: list[tuple[str, set[str]]]
) -> None:
    create(tmp_path / "a" / "b")
    _, before = flushed[1]
    assert {str(tmp_path), str(tmp_path / "a"), str(tmp_path / "a" / "b")} <= before


def test_rows_in_quarantine_are_durable_before_the_commit_that_leaves_them_out(
    tmp_path: Path, flushed: list[tuple[str, set[str]]]
) -> None:
    root = tmp_path / "t"
    vl.Table.create(root, "event VARIANT")
    quarantine(root)
    _, before = flushed[-1]
    (kept,) = root.rglob("*.ndjson")
    assert str(kept) in before


def test_files_that_are_copied_into_a_table_are_durable(
    tmp_path: Path, flushed: list[tuple[str, set[str]]]
) -> None:
    create(tmp_path / "t")
    append(tmp_path / "t", 1)
    (file,) = (tmp_path / "t").glob("*.parquet")
    (tmp_path / "source").mkdir()
    shutil.copy(file, tmp_path / "source")
    vl.convert(tmp_path / "new", tmp_path / "source")
    _, before = flushed[-1]
    (copied,) = (tmp_path / "new").glob("*.parquet")
    assert {str(copied), str(copied.parent)} <= before
