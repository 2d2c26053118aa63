"""A table that is removed, made again and restored at one place, and what it holds by then."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import obstore
import pyarrow as pa

import variantlake as vl
from variantlake.storage.objects import ObjectStore
from variantlake.storage.opening import open_store
from variantlake.storage.store import Store, is_local

SCHEMAS = ("event VARIANT, n INT", "n INT, event VARIANT, extra STRING")


def rows(*numbers: int) -> pa.Table:
    """Rows that fit each of the schemas."""
    events = [f'{{"a": {number}}}' for number in numbers]
    return pa.table({"event": events, "n": pa.array(numbers, pa.int32())})


class Place:
    """A location with a table. `versions` are the numbers that each version of it holds."""

    def __init__(self, location: str, rng: random.Random) -> None:
        self.location = location
        self.rng = rng
        self.next = 0
        self.versions: list[list[int]] = []
        self.schema = ""
        self._copy: tuple[dict[str, bytes], list[list[int]], str] | None = None
        self.remake()

    @property
    def numbers(self) -> list[int]:
        """What the newest version holds."""
        return self.versions[-1]

    def open(self) -> vl.Table:
        """The table that is there."""
        return vl.Table.open(self.location)

    def fresh(self) -> list[int]:
        """A few numbers that no row had before."""
        start, self.next = self.next, self.next + self.rng.randint(1, 3)
        return list(range(start, self.next))

    def remake(self) -> None:
        """Another table at the place, of any schema and number of versions."""
        self._remove()
        self.schema = self.rng.choice(SCHEMAS)
        shredding = {"event": self.rng.choice(["a BIGINT", "VARIANT"])}
        vl.Table.create(self.location, self.schema, shredding=shredding)
        self.versions = [[]]
        # With a checkpoint too, but where each request takes long.
        for _ in range(self.rng.choice([0, 1, 2, 3, 11 if is_local(self.location) else 1])):
            self.append()

    def append(self) -> None:
        """One more commit, by somebody else."""
        new = self.fresh()
        self.open().append(rows(*new), json_columns=["event"])
        self.wrote(new)

    def wrote(self, new: list[int]) -> None:
        """Note that the table has a version with these rows more."""
        self.versions.append([*self.numbers, *new])

    def keep(self) -> None:
        """Make a copy of the table as it is."""
        self._copy = (self._files(), list(self.versions), self.schema)

    def restore(self) -> None:
        """Put the copy back in the place of the table."""
        if self._copy is None:
            return
        files, versions, self.schema = self._copy
        self.versions = list(versions)
        self._remove()
        store = self._store()
        for path, data in files.items():
            store.put(path, data)

    def _store(self) -> Store:
        return open_store(self.location)

    def _paths(self) -> list[str]:
        store = self._store()
        if isinstance(store, ObjectStore):
            return [meta["path"] for page in obstore.list(store.backend) for meta in page]
        root = Path(self.location)
        return [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]

    def _files(self) -> dict[str, bytes]:
        return {path: self._store().read(path) for path in self._paths()}

    def _remove(self) -> None:
        if is_local(self.location):
            shutil.rmtree(self.location, ignore_errors=True)
        else:
            for path in self._paths():
                self._store().delete(path)
