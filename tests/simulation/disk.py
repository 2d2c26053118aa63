"""A local disk whose power is cut: what was not flushed may be there, be gone, or be torn.

A history runs on a real folder. Before each call that makes names or flushes, the folder is noted,
with what of it is durable by POSIX: the bytes that a file had when it was flushed, and the names
that a folder had when that was. Of all else a cut leaves what chance chooses, each name by itself.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

Tree = Mapping[str, tuple["int", "bytes | None"]]
"""Paths from the root with the inode and the bytes of each; None for a folder."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A moment: what the folder holds, and what of its files and of its names is durable.

    `done` are the calls of the history that had returned.
    """

    now: Tree
    flushed: Mapping[int, bytes]
    names: Mapping[str, Tree]
    done: int
    what: str

    def leave(self, folder: Path, chance: random.Random, *, power: bool = True) -> None:
        """Make a folder as the cut leaves it; without `power` only the process ended."""
        folder.mkdir()
        self._leave("", folder, chance, power=power)

    def _leave(self, place: str, folder: Path, chance: random.Random, *, power: bool) -> None:
        now, durable = _children(self.now, place), self.names.get(place, {})
        for name in sorted(now.keys() | durable.keys()):
            new, old = now.get(name), durable.get(name)
            kept = new
            if power and (new is None or old is None or new[0] != old[0]):
                kept = chance.choice([new, old])
            if kept is None:
                continue
            inode, data = kept
            if data is None:
                (folder / name).mkdir()
                below = f"{place}/{name}".lstrip("/")
                self._leave(below, folder / name, chance, power=power)
                continue
            if power and self.flushed.get(inode) != data:
                data = chance.choice([data, data[: chance.randrange(len(data) + 1)], b""])
            (folder / name).write_bytes(data)


@dataclass(slots=True)
class Disk:
    """Notes all cuts of what happens below `root` within `watched`."""

    root: Path
    cuts: list[Cut] = field(default_factory=list)
    done: int = 0
    _flushed: dict[int, bytes] = field(default_factory=dict)
    _names: dict[str, Tree] = field(default_factory=dict)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Within it cuts are noted."""
        with contextlib.ExitStack() as stack:
            for owner, name in (
                (os, "fsync"), (os, "link"), (Path, "replace"), (Path, "unlink"), (Path, "mkdir"),
            ):  # fmt: skip
                call = self._noted(name, getattr(owner, name))
                stack.enter_context(patch.object(owner, name, call))
            yield

    def _noted(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            self._note(name)
            result = original(*args, **options)
            if name == "fsync":
                self._flush(args[0])
            return result

        return call

    def _note(self, what: str) -> None:
        self.cuts.append(
            Cut(_tree(self.root), dict(self._flushed), dict(self._names), self.done, what)
        )

    def _flush(self, handle: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))  # noqa: PTH115 - of a handle
        if path == self.root.parent or not path.is_relative_to(self.root.parent):
            return
        place = "" if path == self.root else path.relative_to(self.root).as_posix()
        if path.is_dir():
            self._names[place] = _children(_tree(self.root), place)
        else:
            self._flushed[path.stat().st_ino] = path.read_bytes()

    def ends(self) -> None:
        """A call of the history returned."""
        self.done += 1
        self._note("return")


def _tree(root: Path) -> Tree:
    found: dict[str, tuple[int, bytes | None]] = {}
    for path in root.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            data = None if path.is_dir() else path.read_bytes()
            found[path.relative_to(root).as_posix()] = path.stat().st_ino, data
    return found


def _children(tree: Tree, place: str) -> Tree:
    start = f"{place}/" if place else ""
    return {
        path.removeprefix(start): each
        for path, each in tree.items()
        if path.startswith(start) and "/" not in path.removeprefix(start)
    }
