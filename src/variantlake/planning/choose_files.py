"""Choose the files that a query reads of a table version: the part that all engines share.

A file is read unless the predicate, or a LIMIT, proves by bounds that none of its rows is needed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from variantlake.expressions.tree import And, Predicate, Ref, Unknown, conjuncts
from variantlake.logs import logger
from variantlake.parquet.stats.fact_columns import Int64s, are_few
from variantlake.planning.exact.readings import Reader, Reading, Readings
from variantlake.planning.files import FileColumns, FileRows, ScanFile, pieces_with
from variantlake.planning.stats.first_rows import FirstRows, enough, reach
from variantlake.planning.stats.skipping import NOT_SKIPPED, Skipper
from variantlake.telemetry.tracing import traced

_LOG = logger("plan")

MAX_KEPT_SAMPLE = 20
"""The most kept files for which a choice tells why each predicate could not skip them."""


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file that may hold matching rows, and why each conjunct could not skip it."""

    file: ScanFile
    reasons: tuple[tuple[Predicate, str], ...]


@dataclass(frozen=True)
class FileChoice:
    """The files that one query reads of one table version.

    `table` has all files of the version except those in its `left_out`. `skipped_by` has for each
    the index of the conjunct that skips it, or NOT_SKIPPED. `kept` explains the first
    MAX_KEPT_SAMPLE files to read, if there is a predicate. `conjuncts` are the predicate's parts,
    in order, and then those that a LIMIT adds. `first` is that LIMIT if it leaves something out.
    `reach` is a condition that all of its rows fulfil by its order; the query's text does not have
    it.
    """

    table: FileColumns
    skipped_by: Int64s
    kept: tuple[KeptFile, ...]
    conjuncts: tuple[Predicate, ...]
    first: FirstRows | None = None
    reach: Predicate | None = None

    @cached_property
    def rows(self) -> Int64s:
        """The rows of `table` to read, ascending."""
        return np.flatnonzero(self.skipped_by == NOT_SKIPPED)

    @property
    def files(self) -> Iterator[ScanFile]:
        """The files to read, in the table's order."""
        return iter(FileRows(self.table, self.rows))

    @property
    def read_files(self) -> int:
        """Number of files to read."""
        return len(self.rows)

    @property
    def read_bytes(self) -> int:
        """Bytes of the files to read; a scan also skips columns and row groups."""
        return int(self.table.sizes[self.rows].sum())

    @property
    def total_files(self) -> int:
        """Number of files of the table version."""
        return self.table.rows + self.table.left_out.files

    @property
    def total_bytes(self) -> int:
        """Bytes of all files of the table version."""
        return int(self.table.sizes.sum()) + self.table.left_out.bytes

    @property
    def skipped_files(self) -> list[int]:
        """The number of files that each conjunct skips."""
        skipped = self.skipped_by[self.skipped_by != NOT_SKIPPED]
        counts = np.bincount(skipped, minlength=len(self.conjuncts))
        for number, count in self.table.left_out.by.items():
            counts[number] += count
        found: list[int] = counts.tolist()
        return found

    def ways(self, path: Ref) -> Iterator[tuple[Reading, int]]:
        """Yield each reading of this path in the files to read, with the number of its files."""
        readings = readings_of(self.table, path, self.rows)
        codes, counts = np.unique(readings.codes[self.rows], return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            yield readings.choices[code], count


@traced(
    "plan",
    lambda *_, **__: {},
    lambda choice: {"files": choice.total_files, "files_read": len(choice.rows)},
)
def choose_files(
    files: FileColumns,
    predicate: Predicate | None = None,
    *,
    partition_types: Mapping[str, str] | None = None,
    first: FirstRows | None = None,
) -> FileChoice:
    """Leave out the files that the predicate excludes.

    `partition_types` gives Spark types of partition columns. `first` is a LIMIT on the rows that
    fulfil the predicate, which must then be their whole condition.
    """
    far = None if first is None else reach(first, files, predicate, partition_types)
    whole = predicate if far is None else And((*conjuncts(predicate), far))
    skipper = Skipper(whole, partition_types)
    skipped, parts = skipper.skipped_by(files), skipper.conjuncts
    if first is not None:
        chosen = enough(first, files, predicate, partition_types)
        if chosen is not None:
            others = np.equal(skipped, NOT_SKIPPED)
            others[chosen] = False
            skipped[others] = len(parts)
            parts = (*parts, Unknown(str(first)))
    sample = np.flatnonzero(skipped == NOT_SKIPPED)[: MAX_KEPT_SAMPLE if skipper.conjuncts else 0]
    kept = tuple(
        KeptFile(file, skipper.why_kept(files, row))
        for row, file in zip(sample.tolist(), files.files(sample), strict=True)
    )
    limited = first if len(parts) > len(conjuncts(predicate)) else None
    choice = FileChoice(files, skipped, kept, parts, limited, far)
    _log_choice(choice)
    return choice


def _log_choice(choice: FileChoice) -> None:
    if not _LOG.isEnabledFor(logging.DEBUG):
        return
    _LOG.debug(
        "read files %d of %d, bytes %d of %d",
        choice.read_files, choice.total_files, choice.read_bytes, choice.total_bytes,
    )  # fmt: skip
    for conjunct, count in zip(choice.conjuncts, choice.skipped_files, strict=True):
        _LOG.debug("skipped files %d by %s", count, conjunct)


def readings_of(files: FileColumns, path: Ref, read: Int64s) -> Readings:
    """How to read a path in the files `read` (ascending); for others `codes` mean nothing."""
    reader = Reader(path)
    choices: dict[Reading, int] = {}
    codes = np.zeros(files.rows, np.int64)
    for piece, start, rows in pieces_with(files, read):
        found = _readings_of(piece, reader, rows)
        numbers = [choices.setdefault(each, len(choices)) for each in found.choices]
        codes[start + rows] = np.array(numbers, np.int64)[found.codes[rows]]
    return Readings(tuple(choices), codes)


def _readings_of(files: FileColumns, reader: Reader, rows: Int64s) -> Readings:
    """As `readings_of`; unless the rows are few, for all files, and cached with them."""
    key = ("readings", reader.ref)
    known = files.memo.get(key)
    if isinstance(known, Readings):
        return known
    if are_few(rows, files.rows):
        return reader.read_all(files.facts, rows)
    known = files.memo[key] = reader.read_all(files.facts)
    return known
