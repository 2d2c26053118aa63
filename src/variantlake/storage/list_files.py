"""List all files below a table's root as a stream, with few of them in memory at a time.

Symbolic links are reported but never followed, because their targets may not belong to the table.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import obstore

from variantlake.storage.objects import ObjectStore, entry_of
from variantlake.storage.store import Entry, LocalStore, Store

Enter = Callable[[str], bool]
"""Decides whether to list a folder, by its path from the root."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder on a disk, reported after its contents.

    `modified` (milliseconds since the epoch) was read before the folder was listed.
    """

    path: str
    modified: int


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link. `target` is its target's path from the root; None if outside the root."""

    path: str
    target: str | None


def walk(store: Store, enter: Enter) -> Iterator[Entry | Folder | Link]:
    """Yield the files below the root, on a disk also folders and links.

    On a disk, files of a folder precede those of its subfolders; there is no other order. A file
    that is deleted meanwhile may be left out. Raises StoreFailed.
    """
    if isinstance(store, LocalStore):
        return _walk_folders(store, enter)
    if isinstance(store, ObjectStore):
        return _walk_objects(store, enter)
    message = f"{type(store).__name__} cannot be walked"
    raise TypeError(message)


def _walk_folders(store: LocalStore, enter: Enter) -> Iterator[Entry | Folder | Link]:
    # Each folder is pushed twice: to list it, and, with its time, to report it after its contents.
    waiting: list[tuple[str, int | None]] = [("", None)]
    while waiting:
        folder, modified = waiting.pop()
        if modified is not None:
            if folder:
                yield Folder(folder, modified)
            continue
        inner: list[str] = []
        with store.failures(folder), contextlib.suppress(FileNotFoundError, NotADirectoryError):
            modified = (store.root / folder).stat().st_mtime_ns // 1_000_000
            waiting.append((folder, modified))
            yield from _entries(store, folder, inner)
        waiting += [(path, None) for path in inner if enter(path)]


def _entries(store: LocalStore, folder: str, inner: list[str]) -> Iterator[Entry | Link]:
    """Yield the files and links of one folder, and append its subfolders to `inner`."""
    with os.scandir(store.root / folder) as entries:
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_symlink():
                yield Link(path, _target(store, path))
            elif entry.is_dir(follow_symlinks=False):
                inner.append(path)
            elif entry.is_file(follow_symlinks=False):
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    yield Entry(path, status.st_size, status.st_mtime_ns // 1_000_000)


def _target(store: LocalStore, path: str) -> str | None:
    root = os.path.realpath(store.root)
    found = os.path.realpath(store.root / path)
    if found == root:
        return ""
    return os.path.relpath(found, root) if found.startswith(f"{root}{os.sep}") else None


def _walk_objects(store: ObjectStore, enter: Enter) -> Iterator[Entry]:
    entered: tuple[str, bool] = ("", True)
    with store.failures(""):
        for page in obstore.list(store.backend, chunk_size=1000):
            for meta in page:
                path = meta["path"]
                folder = path.rpartition("/")[0]
                if folder != entered[0]:
                    entered = folder, _is_entered(folder, enter)
                if entered[1]:
                    yield entry_of(meta)


def _is_entered(folder: str, enter: Enter) -> bool:
    steps = folder.split("/") if folder else []
    return all(enter("/".join(steps[:count])) for count in range(1, len(steps) + 1))
