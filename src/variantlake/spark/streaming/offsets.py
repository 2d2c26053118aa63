"""Offsets, which say how far a stream has read a table, in the form of Delta Spark's.

    {"sourceVersion": 1, "reservoirId": id of the table, "reservoirVersion": version,
     "index": last file of the version that was read, "isStartingVersion": bool}

Files of a version are counted from 0; the index is -1 if the stream has read none of them. It reads
the starting version as a whole: all files that the table had then, the oldest first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from variantlake.errors import MalformedFile

NONE_READ = -1
_FORM = 1


@dataclass(frozen=True, slots=True)
class Offset:
    """A place in a table's history: after file `index` of a version's commit.

    If `is_starting`, the index counts all files of the table at that version. `place` orders the
    offsets of a stream.
    """

    table: str
    version: int
    index: int = NONE_READ
    is_starting: bool = False

    @property
    def place(self) -> tuple[int, bool, int]:
        """The sort key of offsets: a whole table comes before the files that a commit adds."""
        return (self.version, not self.is_starting, self.index)

    def to_json(self) -> dict[str, Any]:
        """Return the offset in the form that Spark keeps in the checkpoint."""
        return {
            "sourceVersion": _FORM,
            "reservoirId": self.table,
            "reservoirVersion": self.version,
            "index": self.index,
            "isStartingVersion": self.is_starting,
        }

    @classmethod
    def of(cls, given: dict[str, Any]) -> Self:
        """Parse the offset that a checkpoint holds. Raises MalformedFile for anything else."""
        match given:
            case {
                "sourceVersion": 1,
                "reservoirId": str(table),
                "reservoirVersion": int(version),
                "index": int(index),
                "isStartingVersion": bool(starting),
            } if version >= 0 and index >= NONE_READ:
                return cls(table, version, index, starting)
        raise MalformedFile(
            f"the checkpoint holds an offset that is not of this source: {given!r:.300}",
            hint="start the stream with the checkpoint that it had, or with a new one",
        )
