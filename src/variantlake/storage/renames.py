"""Detect temporary files that Delta Spark is about to rename to commits, perhaps over our own.

On local disks, Delta Spark checks that a commit does not exist and then renames its temporary file
to it. This file, `.NAME.UUID.tmp` in the commit's folder, announces the rename. Listing the folder
finds it, but is slow in a long log. So on Linux, from this process's first commit in a folder on,
the kernel reports new names there (inotify), and the folder is listed only once, after the watch
has begun. Folders on disks that other machines may write are listed every time.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import struct
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

_RENAMED = re.compile(r"\.(.+)\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.tmp")
RENAME_SECONDS = 2.0
"""How long to wait for a rename. A writer that was killed may have left its temporary file."""

MAX_WATCHES = 16
"""Our limit on the folders that are watched at a time."""

_MAX_NAMES = 1 << 12
"""Our limit on the names kept for a folder. Beyond it, the folder is listed again."""

_EVENT = struct.Struct("iIII")
_CREATE, _MOVED_TO = 0x100, 0x80
# The kernel dropped events, or the folder was deleted, moved or unmounted.
_OVERFLOW, _DELETE_SELF, _MOVE_SELF, _IGNORED, _UNMOUNT = 0x4000, 0x400, 0x800, 0x8000, 0x2000
_LOST = _OVERFLOW | _DELETE_SELF | _MOVE_SELF | _IGNORED | _UNMOUNT
_ONLY_FOLDERS = 0x1000000
# ext, xfs, btrfs, tmpfs, overlay, zfs, f2fs: no other machine can write there unnoticed.
_LOCAL = {0xEF53, 0x58465342, 0x9123683E, 0x1021994, 0x794C7630, 0x2FC12FC1, 0xF2F52010}
_STATFS_BYTES = 256


def await_renames(target: Path) -> None:
    """Wait while another writer has a temporary file that it will rename to the commit `target`.

    Does not wait if `target` is not a `.json` file, and at most RENAME_SECONDS. Raises OSError if
    the folder cannot be read.
    """
    if target.suffix != ".json":
        return
    deadline = time.monotonic() + RENAME_SECONDS
    while is_rename_expected(target) and time.monotonic() < deadline:
        time.sleep(0.002)


def is_rename_expected(target: Path) -> bool:
    """Whether there is now a temporary file that a writer will rename to `target`."""
    start = f".{target.name}."
    return any(name.startswith(start) for name in _watches.temporaries(str(target.parent)))


def _temporaries(folder: str) -> set[str]:
    return _only_temporary(os.listdir(folder))  # noqa: PTH208 - a Path for each takes ten times as long


def _only_temporary(names: Iterable[str]) -> set[str]:
    # Few names in a log are hidden; the others skip the slower match.
    return {name for name in names if name[0] == "." and _RENAMED.fullmatch(name)}


class _Watch:
    """The temporary files of one folder, kept current by the kernel's events.

    `number` is the kernel's number of the watch, `identity` the folder's device and inode from
    before the watch began.
    """

    def __init__(self, folder: str, number: int, identity: tuple[int, int] | None) -> None:
        """Raises OSError if the folder cannot be read."""
        self.folder, self.number, self.identity = folder, number, identity
        self.names = _temporaries(folder)
        self.is_lost = False

    def add(self, created: Iterable[str]) -> None:
        """Add names that appeared in the folder."""
        self.names |= _only_temporary(created)
        self.is_lost |= len(self.names) > _MAX_NAMES

    def update(self) -> bool:
        """Drop names that no longer exist. Returns False if events may have been missed."""
        if self.is_lost or _identity(self.folder) != self.identity:
            return False
        self.names = {name for name in self.names if os.path.lexists(f"{self.folder}/{name}")}
        return True


class _Inotify:
    """One inotify instance, which watches many folders."""

    def __init__(self, library: Any) -> None:
        """Raises OSError if the kernel grants no further instance."""
        self._library = library
        self.handle = int(library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        if self.handle < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")

    def watch(self, folder: str) -> int:
        """Watch a folder and return its number in events. Raises OSError if the kernel refuses."""
        events = _CREATE | _MOVED_TO | _DELETE_SELF | _MOVE_SELF | _ONLY_FOLDERS
        number = int(self._library.inotify_add_watch(self.handle, os.fsencode(folder), events))
        if number < 0:
            raise OSError(ctypes.get_errno(), "inotify_add_watch")
        return number

    def forget(self, number: int) -> None:
        """End a watch, which the kernel may have ended before."""
        self._library.inotify_rm_watch(self.handle, number)

    def close(self) -> None:
        os.close(self.handle)

    def events(self) -> Iterator[tuple[int, int, str]]:
        """Yield new events: the folder's number, the event mask, and the name, if any."""
        while events := self._read():
            at = 0
            while at < len(events):
                number, mask, _, length = _EVENT.unpack_from(events, at)
                at += _EVENT.size + length
                yield number, mask, os.fsdecode(events[at - length : at].rstrip(b"\0"))

    def _read(self) -> bytes:
        try:
            return os.read(self.handle, 1 << 16)
        except BlockingIOError:
            return b""


class _Watches:
    """The folders that this process watches, at most the MAX_WATCHES used last."""

    def __init__(self) -> None:
        self.inotify = _find_inotify()
        self.lock = threading.Lock()
        self.watches: dict[str, _Watch] = {}
        self._instance: _Inotify | None = None
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(after_in_child=self._begin_again)

    def temporaries(self, folder: str) -> set[str]:
        """Return the temporary files in a folder. Raises OSError if it cannot be read."""
        with self.lock:
            self._take_in()
            watch = self.watches.pop(folder, None)
            if watch is not None and not watch.update():
                self._end(watch)
                watch = None
            if watch is None:
                watch = self._start(folder)
            if watch is None:
                return _temporaries(folder)
            self.watches[folder] = watch
            return watch.names

    def _take_in(self) -> None:
        """Apply the kernel's new events to the watches of their folders."""
        events = [] if self._instance is None else [*self._instance.events()]
        if not events:
            return
        # A folder with two paths (through a link) has two watches with one number.
        of_number: dict[int, list[_Watch]] = {}
        for watch in self.watches.values():
            of_number.setdefault(watch.number, []).append(watch)
        created: dict[int, list[str]] = {}
        for number, mask, name in events:
            concerned = self.watches.values() if mask & _OVERFLOW else of_number.get(number, ())
            for watch in concerned:
                watch.is_lost |= bool(mask & _LOST)
            if name:
                created.setdefault(number, []).append(name)
        for number, names in created.items():
            for watch in of_number.get(number, ()):
                watch.add(names)

    def _start(self, folder: str) -> _Watch | None:
        if self.inotify is None or not _is_local(self.inotify, folder):
            return None
        while len(self.watches) >= MAX_WATCHES:
            self._end(self.watches.pop(next(iter(self.watches))))
        identity = _identity(folder)
        try:
            if self._instance is None:
                self._instance = _Inotify(self.inotify)
            # Watch first, then list: events cover every name that the listing misses.
            number = self._instance.watch(folder)
            return _Watch(folder, number, identity)
        except OSError:  # too many watches, or the folder cannot be read
            return None

    def _end(self, watch: _Watch) -> None:
        shared = any(other.number == watch.number for other in self.watches.values())
        if self._instance is not None and not shared:
            self._instance.forget(watch.number)

    def _begin_again(self) -> None:
        """Start afresh in a forked child, which would otherwise take its parent's events."""
        self.lock = threading.Lock()
        if self._instance is not None:
            self._instance.close()
        self._instance, self.watches = None, {}


def _find_inotify() -> Any | None:
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None, use_errno=True)
    return library if hasattr(library, "inotify_init1") and hasattr(library, "statfs") else None


def _is_local(library: Any, folder: str) -> bool:
    """Whether all changes to a folder go through this machine's kernel."""
    status = ctypes.create_string_buffer(_STATFS_BYTES)
    if library.statfs(os.fsencode(folder), status):
        return False
    return cast("int", struct.unpack_from("@l", status)[0]) & 0xFFFFFFFF in _LOCAL


def _identity(folder: str) -> tuple[int, int] | None:
    try:
        status = os.stat(folder)  # noqa: PTH116 - twice in each commit
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            raise
        return None
    return status.st_dev, status.st_ino


_watches = _Watches()
