"""Groups of rows made by our tasks: partial rows, which Spark's own aggregate merges.

A task reads its files a row group at a time, chooses rows, groups them on the codes of dictionaries
and gives a row for each group. Files that the log answers for are rows that a task has from the
start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from variantlake.delta.log.snapshot import Snapshot
from variantlake.engine.queries import Output, Query
from variantlake.expressions.arrays import Values
from variantlake.expressions.rows import of_refs, truth_of
from variantlake.expressions.tree import (
    Aggregate,
    Call,
    Expression,
    Predicate,
    Ref,
    below,
    refs,
)
from variantlake.planning.files import ScanFile
from variantlake.scan.scan_task import FilePart, split_files

if TYPE_CHECKING:
    from variantlake.engine.grouped import PartialGroups
    from variantlake.engine.reading import Counted, Known, Reading
    from variantlake.scan.files.file_rows import Rows

MERGED = 1 << 16
"""Groups that a task merges before it gives them; of more, few would be alike."""

BATCH_ROWS = 1 << 14

PART_BYTES = 1 << 30
"""Bytes of files for one task: it reads few of their columns, and to start it takes 60 ms."""


@dataclass(frozen=True, slots=True)
class Groups:
    """What rows are grouped by and what is kept of them, by the table's own names.

    `flags` are conditions that keys stand for: a column `flag(i)` tells where number i is true.
    """

    keys: tuple[Ref | Call, ...]
    aggregates: tuple[Aggregate, ...]
    where: Predicate | None = None
    flags: tuple[Predicate, ...] = ()

    @property
    def columns(self) -> tuple[Ref, ...]:
        """The columns and paths that are read beside those of conditions."""
        own: list[Expression] = [*self.keys, *self.aggregates]
        found = [part for each in own for part in below(each) if isinstance(part, Ref)]
        flags = {flag(number) for number in range(len(self.flags))}
        return tuple(dict.fromkeys(part for part in found if part not in flags))


def flag(number: int) -> Ref:
    """The key that stands for a condition."""
    return Ref(("", f"flag {number}"), None, "boolean")


@dataclass(frozen=True)
class AggregateTask:
    """The body of the tasks of one aggregate; pickles.

    `table` is the version without its files, `schema` that of the partial rows: keys and aggregates
    as `groups` has them. `known` are partial rows that the log gives, of the first task.
    """

    table: Snapshot
    parts: tuple[tuple[FilePart, ...], ...]
    groups: Groups
    schema: pa.Schema
    log_rows: pa.RecordBatch | None = None

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        files: Sequence[ScanFile],
        groups: Groups,
        schema: pa.Schema,
        *,
        known: pa.RecordBatch | None = None,
        tasks: int = 1,
    ) -> AggregateTask:
        """An aggregate of these files by about `tasks` tasks."""
        parts = split_files(files, tasks, most=PART_BYTES)
        return cls(snapshot.without_files(), parts or ((),), groups, schema, known)

    def __call__(self, number: int) -> Iterator[pa.RecordBatch]:
        """The partial rows of task `number`; two of them may be of one group.

        Raises MalformedFile.
        """
        # Loads the kernels: in the task, and not where the query is planned.
        from variantlake.engine.grouped import merged

        if number == 0 and self.log_rows is not None:
            yield self.log_rows
        held: list[PartialGroups] = []
        for rows in (rows for part in self.parts[number] for rows in self._rows(part)):
            held.append(self._part(rows))
            if sum(each.count for each in held) > MERGED:
                # Merged once more only if that made less of them.
                found = merged(held)
                held = [found] if found.count <= MERGED else []
                if not held:
                    yield from self._batches(found)
        if held:
            yield from self._batches(held[0] if len(held) == 1 else merged(held))

    def groups_of(self, part: FilePart) -> list[PartialGroups]:
        """The groups of a part of a file, as one Part if any; threads may do this."""
        from variantlake.engine.grouped import merged

        found = [self._part(rows) for rows in self._rows(part)]
        return found if len(found) < 2 else [merged(found)]

    def sample(self) -> tuple[int, int]:
        """How many rows the first row group has that fulfil the condition, and how many groups."""
        for part in self.parts[0]:
            for rows in self._rows(part):
                return rows.rows, self._part(rows).count
        return 0, 0

    def _rows(self, part: FilePart) -> Iterator[Counted]:
        from variantlake.engine.grouped import are_of_stretches
        from variantlake.engine.reading import Counted
        from variantlake.scan.files.file_tasks import FileTask

        place, groups = (part.number, part.count), self.groups
        if not groups.flags:
            stretched = are_of_stretches(groups.aggregates)
            task = FileTask(part.file, place, self._reading.scan.predicate)
            yield from self._reading.counted([task], groups.columns, stretched=stretched)
            return
        for rows in self._reading.rows([part.file], self._also_read, part=place):
            known = {**self._reading.values(rows, groups.columns), **self._flags(rows)}
            yield Counted(known, rows.count)

    def _part(self, some: Counted) -> PartialGroups:
        from variantlake.engine.grouped import part_of_rows

        return part_of_rows(self.groups.keys, self.groups.aggregates, some)

    @cached_property
    def _reading(self) -> Reading:
        from variantlake.engine.reading import Reading

        outputs = tuple(Output("", column) for column in self.groups.columns)
        return Reading(self.table, Query(outputs, self.groups.where))

    @cached_property
    def _also_read(self) -> tuple[Ref, ...]:
        asked = [ref for each in self.groups.flags for ref in refs(each)]
        return tuple(dict.fromkeys([*self.groups.columns, *asked]))

    def _flags(self, rows: Rows) -> Known:
        found: Known = {}
        for number, condition in enumerate(self.groups.flags):
            known = of_refs(lambda ref: rows.values(self._reading.scan.stored(ref)))
            truth = truth_of(condition, known, rows.count)
            found[flag(number)] = Values(pa.array(truth.true))
        return found

    def _batches(self, part: PartialGroups) -> Iterator[pa.RecordBatch]:
        table = partial_rows(part, self.schema)
        for start in range(0, table.num_rows, BATCH_ROWS):
            yield table.slice(start, BATCH_ROWS)


def partial_rows(part: PartialGroups, schema: pa.Schema) -> pa.RecordBatch:
    """Groups as rows: their keys, then their aggregates."""
    arrays: list[Any] = [*part.keys, *(state.result() for state in part.states)]
    return pa.RecordBatch.from_arrays(
        [
            array if array.type == item.type else array.cast(item.type)
            for array, item in zip(arrays, schema, strict=True)
        ],
        schema=schema,
    )
