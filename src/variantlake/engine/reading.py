"""Choose the files of a query, and read its columns in the rows that fulfil its condition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np
import pyarrow as pa

from variantlake.delta.log.snapshot import Snapshot
from variantlake.engine.queries import Query, asked_of_log
from variantlake.expressions.arrays import Values, joined_values
from variantlake.expressions.tree import And, Expression, Predicate, Ref, refs
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.planning.files import NO_ROWS, ScanFile
from variantlake.planning.stats.exact_facts import KnownFiles
from variantlake.planning.stats.skipping import Skipper
from variantlake.scan.decoded_log import DecodedLog
from variantlake.scan.files.chosen_rows import chosen_alike, chosen_rows, rows_that_fulfil
from variantlake.scan.files.file_layouts import MOST_FILES
from variantlake.scan.files.file_rows import FileReader, Rows
from variantlake.scan.files.file_tasks import (
    MOST_BYTES,
    SMALL_VALUES,
    FileTask,
    parts_of,
    tasks_of,
    together,
)
from variantlake.scan.files.several_files import JoinedRows, joined_groups
from variantlake.scan.table_scan import Scan
from variantlake.sql.select import Item
from variantlake.storage.store import is_local

Known = dict[Expression, Values]

_NOTHING = KnownFiles(NO_ROWS, NO_ROWS, (), ())


@dataclass(frozen=True, slots=True)
class Counted:
    """Columns in some rows, or in stretches of equal rows, which have `sizes`."""

    values: Known
    count: int
    sizes: Int64s | None = None

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.count if self.sizes is None else int(self.sizes.sum())


class Reading:
    """Reads one table version for one query."""

    def __init__(self, snapshot: Snapshot, query: Query, decoded: DecodedLog | None = None) -> None:
        self.snapshot = snapshot
        self.query = query
        items = tuple(Item("", column) for column in query.columns)
        self.scan = Scan(snapshot, items, query.where, decoded=decoded or DecodedLog())

    def without_files(self) -> Reading:
        """A copy for a worker process, whose tasks name the files to read; pickles."""
        return Reading(self.snapshot.without_files(), self.query)

    @cached_property
    def log_answer(self) -> KnownFiles:
        """The files that the log answers for, and the files to read."""
        keys = self.query.keys
        asked = None
        if keys is not None:
            asked = asked_of_log(keys, self.query.aggregates, self.scan.stored)
        if asked is None:
            return replace(_NOTHING, read=self.scan.choice.rows)
        return self.scan.exact_facts.answerable(self.scan.predicate, *asked)

    def files(self) -> Iterable[ScanFile]:
        """The files to read."""
        return self.scan.choice.table.files(self.log_answer.read)

    @cached_property
    def is_small(self) -> bool:
        """Whether one thread is faster than several, which wait for each other.

        Never for an object store, where one thread would wait for each response, nor for Variants
        and ordinary columns, which take longer than typed columns.
        """
        if self._values is None or self._values > SMALL_VALUES:
            return False
        return all(is_local(file.path) for file in self.files())

    @cached_property
    def _values(self) -> int | None:
        """Rows times columns that are read; None if these are not all typed columns."""
        asked = {self.scan.stored(column) for column in self.query.columns}
        asked |= set(refs(self.scan.predicate))
        return self.scan.typed_values(self.log_answer.read, asked)

    def tasks(self) -> Iterator[list[FileTask]]:
        """Divide the files to read into tasks, small files together.

        Splits large files if there are fewer files than threads.
        """
        return self._tasks() if self._few_tasks is None else iter(self._few_tasks)

    @cached_property
    def _few_tasks(self) -> Sequence[list[FileTask]] | None:
        """The tasks, to keep for the next run of the query; None if there are many files."""
        return tuple(self._tasks()) if len(self.log_answer.read) <= MOST_FILES else None

    def _tasks(self) -> Iterator[list[FileTask]]:
        threads = pa.cpu_count()
        read, table = self.log_answer.read, self.scan.choice.table
        # Files with the same condition follow each other, and can be read together.
        read = read[np.argsort(self.scan.certain[read], kind="stable")]
        rows = table.facts.num_records[read] if self._values else np.full(len(read), -1)
        files = zip(table.files(read), self.scan.certain[read].tolist(), rows.tolist(), strict=True)
        wanted = (
            (file, None if is_certain else self.scan.predicate, count)
            for file, is_certain, count in files
        )
        return tasks_of(wanted, most_parts=threads if len(read) < threads else 1)

    def counted(
        self, tasks: Sequence[FileTask], columns: Sequence[Ref], *, stretched: bool
    ) -> Iterator[Counted]:
        """Yield columns in the rows of tasks that share a condition, some row groups at a time.

        In stretches or combinations where possible, if `stretched`.
        """
        where, scan = tasks[0].where, self.scan
        skipper = Skipper(where, scan.partition_types)
        asked = [*map(scan.stored, columns), *refs(where)]
        with ExitStack() as opened:
            readers = [opened.enter_context(self.reader(task.file, columns)) for task in tasks]
            groups = (
                reader.rows(skipper, task.part) for reader, task in zip(readers, tasks, strict=True)
            )
            for rows in joined_groups(chain.from_iterable(groups), asked):
                found = self._stretched(rows, columns, where) if stretched else None
                if found is None:
                    chosen = chosen_rows(where, rows)
                    own = rows if chosen.all() else rows.only(chosen)
                    found = Counted(self.values(own, columns) if own.count else {}, own.count)
                if found.count:
                    yield found

    def _stretched(
        self, rows: Rows | JoinedRows, columns: Sequence[Ref], where: Predicate | None
    ) -> Counted | None:
        stored = {column: self.scan.stored(column) for column in columns}
        asked = dict.fromkeys(refs(where))
        every = dict.fromkeys([*asked, *stored.values()])
        # Few rows may be needed of columns that the condition does not use.
        whole = not asked or len(every) == len(asked)
        found = rows.alike(every) if whole else rows.stretches(every)
        if found is None:
            return None
        sizes = found.rows(rows.kept)
        there = sizes > 0
        if where is not None:
            there &= chosen_alike(where, found, rows.kept)
        chosen = np.flatnonzero(there)
        known: Known = {column: found.columns[ref].take(chosen) for column, ref in stored.items()}
        return Counted(known, len(chosen), sizes[chosen])

    def pieces(
        self, files: Iterable[ScanFile]
    ) -> Iterator[tuple[Sequence[ScanFile], tuple[int, int]]]:
        """Yield what each thread reads, in order: a part of a large file, or small files."""
        for some in together((file, 0 if file.size <= MOST_BYTES else -1) for file in files):
            for part in parts_of(some):
                yield some, part

    def rows(
        self,
        files: Iterable[ScanFile],
        columns: Sequence[Ref],
        also: Sequence[Predicate] = (),
        part: tuple[int, int] = (0, 1),
        limit: int | None = None,
    ) -> Iterator[Rows]:
        """Yield the rows of these files that fulfil the condition, a row group at a time.

        `also` only skips row groups that cannot match it. Yields at most `limit` rows altogether.
        `part` is as in `FileReader.rows`.
        """
        scan = self.scan
        skipper = self._skipper(also)
        left = limit
        for file in files:
            if left == 0:
                return
            with self.reader(file, columns) as reader:
                for rows in rows_that_fulfil(scan.predicate, reader.rows(skipper, part), left):
                    yield rows
                    left = None if left is None else left - rows.count

    def joined_rows(
        self,
        files: Sequence[ScanFile],
        columns: Sequence[Ref],
        also: Sequence[Predicate] = (),
        part: tuple[int, int] = (0, 1),
    ) -> Iterator[Rows | JoinedRows]:
        """As `rows`, for files that are open together, several row groups at a time."""
        scan, skipper = self.scan, self._skipper(also)
        with ExitStack() as opened:
            readers = [opened.enter_context(self.reader(file, columns)) for file in files]
            groups = chain.from_iterable(reader.rows(skipper, part) for reader in readers)
            asked = [*map(scan.stored, columns), *refs(scan.predicate)]
            yield from rows_that_fulfil(scan.predicate, joined_groups(groups, asked))

    def _skipper(self, also: Sequence[Predicate]) -> Skipper:
        both = And(tuple(each for each in (self.scan.predicate, *also) if each is not None))
        return Skipper(both, self.scan.partition_types)

    def reader(self, file: ScanFile, columns: Sequence[Ref]) -> FileReader:
        """Open a file for the condition and these columns."""
        wanted = [self.scan.stored(column) for column in columns]
        requested = [*wanted, *refs(self.scan.predicate)]
        types = self.scan.partition_types
        return FileReader(
            self.snapshot, file, requested, types, encoded=True, layouts=self.scan.decoded.layouts
        )

    def values(self, rows: Rows | JoinedRows, columns: Sequence[Ref]) -> Known:
        """The columns in some rows."""
        return {column: rows.values(self.scan.stored(column)) for column in columns}


def take_rows(known: Known, rows: Int64s) -> Known:
    """Take some rows, in this order."""
    return {each: values.take(rows) for each, values in known.items()}


def joined(parts: Sequence[Known]) -> Known:
    """Concatenate the rows of all parts."""
    first = parts[0]
    if len(parts) == 1:
        return first
    return {each: joined_values([part[each] for part in parts]) for each in first}
