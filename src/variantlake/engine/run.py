"""Run a query without Spark: groups from the log and from rows, order, and result.

Files that the log answers for are not read. From the others, only the columns that the query needs
are read, a row group at a time, strings as dictionaries.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

import numpy as np
import pyarrow as pa

from variantlake.arrays import arrow_array
from variantlake.delta.log.identity import check_before_read
from variantlake.delta.log.snapshot import Snapshot
from variantlake.engine.grouped import (
    MERGED,
    PartialGroups,
    all_merged,
    are_of_stretches,
    evaluate_used,
    merged,
    part_of_log,
    part_of_rows,
)
from variantlake.engine.ordering import in_order
from variantlake.engine.queries import Query
from variantlake.engine.reading import Counted, Known, Reading, take_rows
from variantlake.engine.top import sorted_rows
from variantlake.errors import in_memory
from variantlake.expressions.arrays import Values
from variantlake.expressions.rows import truth_of
from variantlake.expressions.tree import Expression, Ref
from variantlake.expressions.typing import type_of
from variantlake.parallel.prefetch import ahead
from variantlake.parallel.streams import chained
from variantlake.planning.explain import Explanation
from variantlake.scan.arrow_stream import ArrowStream, marked
from variantlake.scan.decoded_log import DecodedLog
from variantlake.scan.files.chosen_rows import cast_error
from variantlake.scan.files.file_rows import Rows
from variantlake.scan.files.file_tasks import FileTask
from variantlake.scan.files.several_files import JoinedRows
from variantlake.scan.table_scan import FOR_USERS
from variantlake.sql.select import Item
from variantlake.storage.store import is_local

BATCH_ROWS = 1 << 16


@dataclass(frozen=True, repr=False)
class LocalQuery(ArrowStream):
    """The result of a query of one table version; it reads nothing until rows are requested.

    It is an Arrow stream, like a Scan.
    """

    snapshot: Snapshot = field(repr=False)
    query: Query
    decoded: DecodedLog = field(default_factory=DecodedLog, repr=False, compare=False)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name in FOR_USERS]

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return pa.schema(
            [
                marked(pa.field(each.name, self._type(each.expression)))
                for each in self.query.outputs
            ]
        )

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in batches.

        Raises InvalidValue if Spark raises an error, UnsupportedFeature for a value whose result
        only Spark knows, MalformedFile, TableReplaced, OutOfMemory for too many groups or rows to
        sort.
        """
        fewer = "ask for fewer by WHERE, or ORDER BY with LIMIT"
        spilling = "or let DuckDB answer it, which spills to a disk: vl.duckdb.attach"
        with in_memory("the rows or groups of this query do", f"{fewer}; {spilling}", fewer):
            yield from _without_first(self._rows(), self.query.skip)

    def _rows(self) -> Iterator[pa.RecordBatch]:
        query = self.query
        if query.keys is None and not query.order and self._plain:
            yield from replace(
                self._reading.scan, items=self._plain, max_rows=query.limit
            ).to_batches()
            return
        check_before_read(self.snapshot)
        if self.query.keys is not None:
            yield from self._grouped()
        elif self.query.order:
            yield from self._sorted()
        else:
            yield from self._streamed()

    def __repr__(self) -> str:
        names = reprlib.repr([each.name for each in self.query.outputs])
        return f"<LocalQuery of {names}, version {self.snapshot.version}>"

    @property
    def read_bytes(self) -> int:
        """Bytes of the files to read, of which only some columns are read."""
        table = self._reading.scan.choice.table
        return int(table.sizes[self._reading.log_answer.read].sum())

    def explain(self) -> Explanation:
        """Explain what is read, what is skipped, and what the log alone answers."""
        found = self._reading.scan.explain()
        answered = len(self._reading.log_answer.answered)
        if not answered:
            return found
        return replace(
            found,
            answered=answered,
            read_files=len(self._reading.log_answer.read),
            read_bytes=self.read_bytes,
            row_groups=None,
        )

    def _type(self, expression: Expression) -> pa.DataType:
        if isinstance(expression, Ref):
            return self._reading.scan.type_of(expression)
        type_ = type_of(expression)
        return pa.null() if type_ is None else type_.arrow

    @cached_property
    def _plain(self) -> tuple[Item, ...]:
        """The result's columns if all are columns and paths, which a scan can read; else none."""
        items = [
            Item(each.name, each.expression)
            for each in self.query.outputs
            if isinstance(each.expression, Ref)
        ]
        return tuple(items) if len(items) == len(self.query.outputs) else ()

    @cached_property
    def _reading(self) -> Reading:
        return Reading(self.snapshot, self.query, self.decoded)

    # --- Groups ---

    def _grouped(self) -> Iterator[pa.RecordBatch]:
        query = self.query
        keys = query.keys or ()
        if query.limit == 0:
            return
        found = all_merged(self._parts(keys))
        if found is None:
            if keys:
                return
            empty: Known = {column: _no_rows(column) for column in query.columns}
            found = part_of_rows((), query.aggregates, Counted(empty, 0))
        above: Known = dict(zip(keys, map(Values, found.keys), strict=True))
        for aggregate, state in zip(query.aggregates, found.states, strict=True):
            above[aggregate] = Values(state.result())
        rows = found.count
        if query.having is not None:
            truth = truth_of(query.having, above.get, rows)
            if truth.failed.any():
                raise cast_error(query.having, None)
            kept = np.flatnonzero(truth.true)
            above, rows = take_rows(above, kept), len(kept)
        terms = [evaluate_used(term.expression, above, rows) for term in query.order]
        chosen = in_order(query.order, terms, rows, query.limit)
        above = take_rows(above, chosen)
        for start in range(0, len(chosen), BATCH_ROWS):
            size = min(BATCH_ROWS, len(chosen) - start)
            yield self._batch({k: _slice(v, start, size) for k, v in above.items()}, size)

    def _parts(self, keys: tuple[Expression, ...]) -> Iterator[PartialGroups]:
        if len(self._reading.log_answer.answered):
            yield part_of_log(keys, self.query.aggregates, self._reading.log_answer)
        tasks = self._reading.tasks()
        work: Callable[[list[FileTask]], list[PartialGroups]] = _GroupsOf(self._reading)
        if self._reading.is_small:
            yield from chain.from_iterable(map(work, tasks))
            return
        # Small queries need not import what starts processes.
        from variantlake.parallel.processes import in_processes

        shared = in_processes(work)

        def groups_of(some: list[FileTask]) -> list[PartialGroups]:
            # Credentials of an object store stay in this process.
            are_local = all(is_local(task.file.path) for task in some)
            return (shared if are_local else work)(some)

        yield from chain.from_iterable(ahead(tasks, groups_of))

    def _batch(self, known: Known, rows: int) -> pa.RecordBatch:
        arrays = [evaluate_used(each.expression, known, rows) for each in self.query.outputs]
        return pa.RecordBatch.from_arrays(
            [
                array if array.type == item.type else array.cast(item.type)
                for array, item in zip(arrays, self.schema, strict=True)
            ],
            schema=self.schema,
        )

    # --- Rows as they are ---

    def _streamed(self) -> Iterator[pa.RecordBatch]:
        reading, columns, limit = self._reading, self.query.columns, self.query.limit
        if limit is not None:
            yield from self._batches(reading.rows(reading.files(), columns, limit=limit))
            return
        parts = (
            self._batches(reading.joined_rows(files, columns, part=part))
            for files, part in reading.pieces(reading.files())
        )
        yield from chained(parts, lambda batch: batch.nbytes)

    def _batches(self, found: Iterable[Rows | JoinedRows]) -> Generator[pa.RecordBatch, None, None]:
        for rows in found:
            yield self._batch(self._reading.values(rows, self.query.columns), rows.count)

    def _sorted(self) -> Iterator[pa.RecordBatch]:
        known = sorted_rows(self._reading)
        if known is None:
            return
        rows = len(next(iter(known.values())).array)
        for start in range(0, rows, BATCH_ROWS):
            size = min(BATCH_ROWS, rows - start)
            yield self._batch({k: _slice(v, start, size) for k, v in known.items()}, size)


@dataclass(frozen=True, slots=True)
class _GroupsOf:
    """Groups the rows of part of a file, or of small files; pickles."""

    reading: Reading

    def __call__(self, tasks: list[FileTask]) -> list[PartialGroups]:
        """Return the groups of each row group, merged if they are many."""
        query = self.reading.query
        stretched = are_of_stretches(query.aggregates)
        found = [
            part_of_rows(query.keys or (), query.aggregates, rows)
            for rows in self.reading.counted(tasks, query.columns, stretched=stretched)
        ]
        # The caller merges them with those of other files: once is less work than twice.
        return found if sum(part.size for part in found) < MERGED else [merged(found)]

    def __reduce__(self) -> tuple[type[_GroupsOf], tuple[Reading]]:
        return _GroupsOf, (self.reading.without_files(),)


def _without_first(batches: Iterator[pa.RecordBatch], skipped: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if skipped < batch.num_rows:
            yield batch.slice(skipped) if skipped else batch
        skipped = max(0, skipped - batch.num_rows)


def _slice(values: Values, start: int, size: int) -> Values:
    failed = None if values.failed is None else values.failed[start : start + size]
    return Values(values.array.slice(start, size), failed)


def _no_rows(ref: Ref) -> Values:
    type_ = type_of(ref)
    return Values(pa.nulls(0) if type_ is None else arrow_array([], type_.arrow))
