"""What one thread reads of the files of a scan: a part of a large one, or several small ones."""

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
"""Parts of a file, however large."""

SMALL_VALUES = 1 << 21
"""Rows times columns that take a thread some 10 to 20 ms."""


@dataclass(frozen=True, slots=True)
class FileTask:
    """A file, or the row groups that begin in one of so many parts of it: (number, count).

    Of the rows those that fulfil `where` are asked for.
    """

    file: ScanFile
    part: tuple[int, int]
    where: Predicate | None


MOST_ROWS = 1 << 18
"""Rows of files that are read together."""

MOST_BYTES = 4 << 20
"""Of a file that is read with others."""

MOST_FILES = 32
"""So many are open at once."""


def tasks_of(
    files: Iterable[tuple[ScanFile, Predicate | None, int]], most_parts: int
) -> Iterator[list[FileTask]]:
    """Up to so many parts of large files, and small files that are read together.

    Of each file what its rows are asked for, and how many they are, or -1 to read it alone.
    """
    for where, alike in groupby(files, lambda each: each[1]):
        for some in together(
            (file, rows if file.size <= MOST_BYTES else -1) for file, _, rows in alike
        ):
            for part in parts_of(some, most_parts):
                yield [FileTask(replace(file, facts=None), part, where) for file in some]


def parts_of(files: Sequence[ScanFile], most_parts: int = MANY) -> list[tuple[int, int]]:
    """The parts, as (number, count), of a file that is read alone; a single one of several."""
    parts = 1 if len(files) > 1 else min(most_parts, -(-files[0].size // PART_BYTES))
    return [(number, max(parts, 1)) for number in range(max(parts, 1))]


def together(files: Iterable[tuple[T, int]]) -> Iterator[list[T]]:
    """Files that are read together, in their order; of each its rows, or -1 to read it alone."""
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
