"""Notes on the values of a file's Variant columns, in its footer's key-value metadata.

The entry `variantlake.values` is JSON, `[[column, notes], …]`, with the column as a list of the
names of schema nodes and the notes as `ValueNotes.encode` returns them. Unshredded columns have
notes only if Spark may order their keys differently.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import orjson

from variantlake.paths import Path
from variantlake.shredding.values import ValueNotes, decode_notes

ColumnPath = tuple[str, ...]

NOTES_KEY = "variantlake.values"
NO_NOTES: Mapping[ColumnPath, ValueNotes] = MappingProxyType({})

SPARK_KEY = "org.apache.spark.version"
"""Spark's entry in the metadata of its files. Its shredded files hold no values that Spark lacks,
because its writer fails at them, as its reader does."""


UNKNOWN_REORDERED = ValueNotes(lacking=True, reordered=True)
"""The notes of rows of which we know only that Spark may give their keys in another order."""


class NotesCollector:
    """Joins the notes of a file's parts. A column keeps notes only if every part has some."""

    def __init__(self, columns: Iterable[ColumnPath]) -> None:
        self.by_column: dict[ColumnPath, ValueNotes] = {path: ValueNotes() for path in columns}

    def add(self, notes: Mapping[ColumnPath, ValueNotes]) -> None:
        """Join the notes of more rows."""
        for path in list(self.by_column):
            if path in notes:
                self.by_column[path] = self.by_column[path].merge(notes[path])
            else:
                del self.by_column[path]


NotedPart = Mapping[ColumnPath, tuple[ValueNotes, frozenset[Path]]]
"""The notes of a file's columns, each with the paths that hold no typed value in that file."""


def joined_notes(parts: Sequence[NotedPart]) -> dict[ColumnPath, ValueNotes]:
    """Join the notes of files into notes that hold for the rows of all.

    If a file lacks notes of a column, the column gets UNKNOWN_REORDERED if another file's notes
    have `reordered`, and none otherwise.

    Notes do not tell what decimals look like if there are no integers. So the numbers of a path
    count as told apart only if they have the same form in all files with values there.
    """
    found: dict[ColumnPath, ValueNotes] = {}
    for column in dict.fromkeys(column for part in parts for column in part):
        if not all(column in part for part in parts):
            if any(column in part and part[column][0].reordered for part in parts):
                found[column] = UNKNOWN_REORDERED
            continue
        notes = [part[column] for part in parts]
        joined = notes[0][0]
        for each, _ in notes[1:]:
            joined = joined.merge(each)
        mixed = {
            path
            for path in joined.integers
            if len({each.forms.of(path) for each, empty in notes if path not in empty}) > 1
        }
        found[column] = replace(joined, whole=joined.whole | mixed)
    return found


def encode_all(notes: Mapping[ColumnPath, ValueNotes]) -> str:
    """Encode the value of the metadata entry."""
    return orjson.dumps([[path, each.encode()] for path, each in notes.items()]).decode()


def notes_of(metadata: Iterable[tuple[str, str | None]]) -> Mapping[ColumnPath, ValueNotes]:
    """Return the notes in a footer's metadata; ignores invalid ones."""
    found: dict[ColumnPath, ValueNotes] = {}
    for text in (text for key, text in metadata if key == NOTES_KEY):
        for entry in _entries(text):
            match entry:
                case [list(column), given] if all(isinstance(name, str) for name in column):
                    notes = decode_notes(given)
                    if notes is not None:
                        found[tuple(column)] = notes
    return found


def _entries(text: str | None) -> list[Any]:
    try:
        given = orjson.loads(text or "[]")
    except orjson.JSONDecodeError:
        return []
    return given if isinstance(given, list) else []
