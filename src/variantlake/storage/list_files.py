"""All files below a table's root, as a stream: however many there are, few are in memory.

Links are told apart and never followed: what lies behind one need not be the table's.
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
"""Whether to look into a folder, by its path from the root."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of a disk, after all that is in it. `modified` is from before that was listed."""

    path: str
    modified: int


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link. `target` is where it leads, from the root; None if that is outside."""

    path: str
    target: str | None


def walk(store: Store, enter: Enter) -> Iterator[Entry | Folder | Link]:
    """The files below the root, those of a folder before those of its folders; in no other order.

    Object stores have neither folders nor links. A file that goes meanwhile may be left out.
    Raises StoreFailed.
    """
    if isinstance(store, LocalStore):
        return _walk_folders(store, enter)
    if isinstance(store, ObjectStore):
        return _walk_objects(store, enter)
    message = f"{type(store).__name__} cannot be walked"
    raise TypeError(message)


def _walk_folders(store: LocalStore, enter: Enter) -> Iterator[Entry | Folder | Link]:
    # A folder twice: to be entered, and once more, with its time, when all below it was.
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
    """The files and links of one folder; its folders are put into `inner`."""
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
