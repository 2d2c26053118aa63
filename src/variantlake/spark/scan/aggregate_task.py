"""The Spark tasks that group rows: they yield partial rows, which Spark's own aggregate merges.

A task reads its files one row group at a time, filters rows, groups them on dictionary codes and
yields a row for each group. The partial rows of files that the log answers come with the task.
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
"""The most groups that a task merges before it yields them; of more, few would be equal."""

BATCH_ROWS = 1 << 14

PART_BYTES = 1 << 30
"""Bytes of files for one task: it reads few of their columns, and starting it takes 60 ms."""


@dataclass(frozen=True, slots=True)
class Groups:
    """The keys and aggregates of a grouping, by the table's own names.

    `flags` are conditions that serve as keys: the column `flag(i)` says where condition i is true.
    """

    keys: tuple[Ref | Call, ...]
    aggregates: tuple[Aggregate, ...]
    where: Predicate | None = None
    flags: tuple[Predicate, ...] = ()

    @property
    def columns(self) -> tuple[Ref, ...]:
        """The columns and paths of the keys and aggregates, without those of conditions."""
        own: list[Expression] = [*self.keys, *self.aggregates]
        found = [part for each in own for part in below(each) if isinstance(part, Ref)]
        flags = {flag(number) for number in range(len(self.flags))}
        return tuple(dict.fromkeys(part for part in found if part not in flags))


def flag(number: int) -> Ref:
    """Return the key that stands for the condition `number`."""
    return Ref(("", f"flag {number}"), None, "boolean")


@dataclass(frozen=True)
class AggregateTask:
    """The body of the tasks of one aggregate; pickles.

    `table` is the version without its files. `schema` is that of the partial rows: the keys and
    aggregates of `groups`. The first task yields `log_rows`, the partial rows that the log answers.
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
        """Return an aggregate of these files in about `tasks` tasks."""
        parts = split_files(files, tasks, most=PART_BYTES)
        return cls(snapshot.without_files(), parts or ((),), groups, schema, known)

    def __call__(self, number: int) -> Iterator[pa.RecordBatch]:
        """The partial rows of task `number`, among them possibly several of one group.

        Raises MalformedFile.
        """
        # Imported here, since it loads the kernels: only tasks need them.
        from variantlake.engine.grouped import merged

        if number == 0 and self.log_rows is not None:
            yield self.log_rows
        held: list[PartialGroups] = []
        for rows in (rows for part in self.parts[number] for rows in self._rows(part)):
            held.append(self._part(rows))
            if sum(each.count for each in held) > MERGED:
                # Keep merging only while it leaves few enough groups.
                found = merged(held)
                held = [found] if found.count <= MERGED else []
                if not held:
                    yield from self._batches(found)
        if held:
            yield from self._batches(held[0] if len(held) == 1 else merged(held))

    def groups_of(self, part: FilePart) -> list[PartialGroups]:
        """Merge the groups of a part of a file into at most one PartialGroups; thread-safe."""
        from variantlake.engine.grouped import merged

        found = [self._part(rows) for rows in self._rows(part)]
        return found if len(found) < 2 else [merged(found)]

    def sample(self) -> tuple[int, int]:
        """Count the rows of the first row group that meet the condition, and the groups of them."""
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
