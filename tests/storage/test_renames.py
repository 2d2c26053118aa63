"""Temporary files that a writer is about to rename: what the kernel tells equals a listing."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import uuid
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from variantlake.storage import renames
from variantlake.storage.opening import open_store

needs_inotify = pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells no names")

NAMES = [f".{version}.json.{uuid.UUID(int=version)}.tmp" for version in range(3)]
NAMES += [".1.json.tmp", "1.json", f".{uuid.UUID(int=9)}.tmp", f".ü.{uuid.UUID(int=8)}.tmp"]

Step = tuple[str, str]
STEPS: st.SearchStrategy[Step] = st.tuples(
    st.sampled_from(["make", "move in", "rename", "delete", "replace", "look", "overflow"]),
    st.sampled_from(NAMES),
)


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> renames._Watches:
    watches = renames._Watches()
    monkeypatch.setattr(renames, "_watches", watches)
    return watches


def _do(folder: Path, step: str, name: str) -> None:
    file = folder / name
    if step == "make":
        file.write_bytes(b"x")
    elif step == "move in":
        outside = folder.with_name("outside")
        outside.write_bytes(b"x")
        outside.rename(file)
    elif step == "rename" and file.exists():
        file.rename(folder / "2.json")
    elif step == "delete":
        file.unlink(missing_ok=True)
    elif step == "replace":
        shutil.rmtree(folder)
        folder.mkdir()


@given(st.lists(STEPS, max_size=12))
@settings(max_examples=60, deadline=None)
def test_what_is_watched_is_what_is_listed(steps: list[Step]) -> None:
    watches = renames._Watches()
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root, "_delta_log")
        folder.mkdir()
        for step, name in steps:
            _do(folder, step, name)
            if step == "overflow":
                with patch.object(renames, "MAX_WATCHES", 1):  # which ends the watch of `folder`
                    watches.temporaries(_made(Path(root, "other")))
            elif step == "look":
                names = watches.temporaries(str(folder))
                assert names == renames._temporaries(str(folder))
        assert watches.temporaries(str(folder)) == renames._temporaries(str(folder))
        assert len(watches.watches) <= renames.MAX_WATCHES
        watches._begin_again()


def _made(folder: Path) -> str:
    folder.mkdir(exist_ok=True)
    return str(folder)


@needs_inotify
def test_a_folder_is_listed_once(
    tmp_path: Path, fresh: renames._Watches, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many commits follow."""
    listed: list[str] = []
    listdir = os.listdir

    def count(folder: str) -> list[str]:
        listed.append(folder)
        return listdir(folder)

    monkeypatch.setattr(os, "listdir", count)
    store = open_store(tmp_path)
    assert all(store.put_if_absent(f"log/{version}.json", b"x") for version in range(20))
    assert listed == [str(tmp_path / "log")] * (1 if fresh.watches else 40)


@needs_inotify
def test_events_that_the_kernel_left_out_are_made_up_for(
    tmp_path: Path, fresh: renames._Watches, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not fresh.temporaries(str(tmp_path))
    (tmp_path / NAMES[0]).touch()
    lost = renames._EVENT.pack(-1, renames._OVERFLOW, 0, 0)
    with monkeypatch.context() as patch:
        patch.setattr(renames._Watch, "_events", lambda _watch: lost)
        assert fresh.temporaries(str(tmp_path)) == {NAMES[0]}


@needs_inotify
def test_a_system_without_more_watches_is_asked_by_listings(
    tmp_path: Path, fresh: renames._Watches, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_watch: renames._Watch, _folder: str, _inotify: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(renames._Watch, "__init__", refuse)
    (tmp_path / NAMES[0]).touch()
    assert fresh.temporaries(str(tmp_path)) == {NAMES[0]}
    assert not fresh.watches


@pytest.mark.parametrize("platform", ["without inotify", "a network disk"])
def test_other_disks_are_listed(
    tmp_path: Path, fresh: renames._Watches, monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    if platform == "without inotify":
        monkeypatch.setattr(fresh, "inotify", None)
    else:
        monkeypatch.setattr(renames, "_LOCAL", set())
    for name in NAMES[:2]:
        (tmp_path / name).touch()
        assert renames.is_rename_expected(tmp_path / f"{name[1]}.json")
    assert not renames.is_rename_expected(tmp_path / "2.json")
    assert not fresh.watches


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_a_fork_leaves_the_events_to_its_parent(tmp_path: Path, fresh: renames._Watches) -> None:
    assert not fresh.temporaries(str(tmp_path))
    (tmp_path / NAMES[0]).touch()
    child = os.fork()
    if child == 0:
        right = not fresh.watches and fresh.temporaries(str(tmp_path)) == {NAMES[0]}
        os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert fresh.temporaries(str(tmp_path)) == {NAMES[0]}
