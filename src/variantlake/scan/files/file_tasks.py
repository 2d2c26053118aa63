"""Divide a scan's files into tasks for threads: parts of large files, several small files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeVar

from variantlake.expressions.tree import Predicate
from variantlake.planning.files import ScanFile

T = TypeVar("T")

PART_BYTES = 8 << 20
"""A file of more bytes is worth opening twice."""

MANY = 1 << 10
"""The most parts of a file, however large."""

SMALL_VALUES = 1 << 21
"""Rows times columns that a thread reads in some 10 to 20 ms."""


@dataclass(frozen=True, slots=True)
class FileTask:
    """A file, or the row groups that begin in a `part` of it: (number, count).

    The task reads the rows that fulfil `where`.
    """

    file: ScanFile
    part: tuple[int, int]
    where: Predicate | None


MOST_ROWS = 1 << 18
"""The most rows of files that are read together."""

MOST_BYTES = 4 << 20
"""The most bytes of a file that is read with others."""

MOST_FILES = 32
"""The most files that are read together."""


def tasks_of(
    files: Iterable[tuple[ScanFile, Predicate | None, int]], most_parts: int
) -> Iterator[list[FileTask]]:
    """Yield up to `most_parts` parts of each large file, and small files to read together.

    `files` has each file's condition and its number of rows, -1 to read it alone.
    """
    for where, alike in groupby(files, lambda each: each[1]):
        for some in together(
            (file, rows if file.size <= MOST_BYTES else -1) for file, _, rows in alike
        ):
            for part in parts_of(some, most_parts):
                yield [FileTask(replace(file, facts=None), part, where) for file in some]


def parts_of(files: Sequence[ScanFile], most_parts: int = MANY) -> list[tuple[int, int]]:
    """The parts, as (number, count), of a file that is read alone; one part for several files."""
    parts = 1 if len(files) > 1 else min(most_parts, -(-files[0].size // PART_BYTES))
    return [(number, max(parts, 1)) for number in range(max(parts, 1))]


def together(files: Iterable[tuple[T, int]]) -> Iterator[list[T]]:
    """Group files to read together, in order; each has its rows, or -1 to read it alone."""
    held: list[T] = []
    total = 0
    for file, rows in files:
        if held and (rows < 0 or total + rows > MOST_ROWS or len(held) == MOST_FILES):
            yield held
            held, total = [], 0
        if rows < 0:
            yield [file]
        else:
            held, total = [*held, file], total + rows
    if held:
        yield held
