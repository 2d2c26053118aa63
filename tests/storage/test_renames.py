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
        patch.setattr(renames._Inotify, "_read", lambda _, found=[lost]: found and found.pop())
        assert fresh.temporaries(str(tmp_path)) == {NAMES[0]}


@needs_inotify
def test_a_system_without_more_watches_is_asked_by_listings(
    tmp_path: Path, fresh: renames._Watches, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_inotify: renames._Inotify, _folder: str) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(renames._Inotify, "watch", refuse)
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


@needs_inotify
def test_many_folders_share_one_instance(tmp_path: Path, fresh: renames._Watches) -> None:
    folders = [_made(tmp_path / str(number)) for number in range(renames.MAX_WATCHES)]
    before = _open_files()
    assert not any(fresh.temporaries(folder) for folder in folders)
    assert len(_open_files() - before) == (1 if fresh.watches else 0)
    for folder in folders[::2]:
        Path(folder, NAMES[0]).touch()
    # What one folder asks for tells the others too.
    for number, folder in reversed(list(enumerate(folders))):
        assert fresh.temporaries(folder) == ({NAMES[0]} if number % 2 == 0 else set())


def _open_files() -> set[str]:
    listed = [each.name for each in Path("/proc/self/fd").iterdir()]
    return {number for number in listed if _is_open(int(number))}


def _is_open(number: int) -> bool:
    """Of what was listed, the listing itself is closed again."""
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


@needs_inotify
def test_a_folder_by_two_names_is_watched_for_both(
    tmp_path: Path, fresh: renames._Watches, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, link = _made(tmp_path / "folder"), str(tmp_path / "link")
    Path(link).symlink_to(folder)
    assert not fresh.temporaries(folder)
    assert not fresh.temporaries(link)
    Path(folder, NAMES[0]).touch()
    assert fresh.temporaries(link) == fresh.temporaries(folder) == {NAMES[0]}
    # The watch of one name ends, and that of the other goes on.
    monkeypatch.setattr(renames, "MAX_WATCHES", 2)
    fresh.temporaries(_made(tmp_path / "other"))
    Path(folder, NAMES[1]).touch()
    assert fresh.temporaries(folder) == fresh.temporaries(link) == {*NAMES[:2]}


@needs_inotify
def test_names_that_nobody_asks_for_stay_few(
    tmp_path: Path, fresh: renames._Watches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renames, "_MAX_NAMES", 1)
    busy, other = _made(tmp_path / "busy"), _made(tmp_path / "other")
    assert not fresh.temporaries(busy)
    for name in NAMES[:3]:
        Path(busy, name).touch()
    assert not fresh.temporaries(other)
    assert fresh.watches[busy].is_lost
    assert fresh.temporaries(busy) == {*NAMES[:3]}
