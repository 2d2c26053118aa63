"""What one thread reads of the files of a scan: a part of a large one, or several small ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from variantlake.expressions.tree import Predicate
from variantlake.planning.files import ScanFile

T = TypeVar("T")

PART_BYTES = 8 << 20
"""A file of more bytes is worth opening twice."""

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


def tasks_of(files: Iterable[tuple[FileTask, int]]) -> Iterator[list[FileTask]]:
    """Parts of large files, and small files that are read together.

    Of each file its rows, or -1 if it must be read alone.
    """
    for tasks in together(
        (task, rows if task.file.size <= MOST_BYTES else -1) for task, rows in files
    ):
        file, where = tasks[0].file, tasks[0].where
        parts = -(-file.size // PART_BYTES)
        if len(tasks) > 1 or parts < 2:
            yield tasks
            continue
        for number in range(parts):
            yield [FileTask(file, (number, parts), where)]


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
