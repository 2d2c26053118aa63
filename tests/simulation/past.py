"""A mapping as it was at each version: the newest whole, and what each version changed of it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Gone:
    """Stands for a key that is not there."""


GONE = Gone()
_CACHED = 16


class Past(Generic[K, V]):
    """`now` is the newest version's mapping. A version costs as much memory as it changed."""

    def __init__(self) -> None:
        self.now: dict[K, V] = {}
        self._undo: list[Mapping[K, V | Gone]] = []
        self._cache: dict[int, Mapping[K, V]] = {}

    def advance(self, changes: Mapping[K, V | Gone]) -> None:
        """The next version, which differs by these."""
        undo: dict[K, V | Gone] = {}
        for key, value in changes.items():
            undo[key] = self.now.get(key, GONE)
            if isinstance(value, Gone):
                self.now.pop(key, None)
            else:
                self.now[key] = value
        self._undo.append(undo)

    def at(self, version: int) -> Mapping[K, V]:
        """The mapping of a version, which nobody may change."""
        newest = len(self._undo) - 1
        if version == newest:
            return self.now
        if version not in self._cache:
            found = dict(self.now)
            for undo in reversed(self._undo[version + 1 :]):
                for key, value in undo.items():
                    if isinstance(value, Gone):
                        found.pop(key, None)
                    else:
                        found[key] = value
            if len(self._cache) >= _CACHED:
                del self._cache[next(iter(self._cache))]
            self._cache[version] = found
        return self._cache[version]

    def new_in(self, version: int) -> frozenset[K]:
        """The keys that a version has and the one before has not."""
        return frozenset(k for k, old in self._undo[version].items() if isinstance(old, Gone))
