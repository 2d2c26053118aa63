"""Read files with our kernels in the tasks of another engine, as the types that it wants.

A task's description is small and pickles; the planner of the scan makes it. Conditions only leave
out rows here: the engine evaluates the query's own conditions on the rows that it gets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from variantlake.arrays import arrow_array, arrow_scalar
from variantlake.batches import packed
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import UnsupportedFeature
from variantlake.expressions.arrays import Values
from variantlake.expressions.rows import of_refs, truth_of
from variantlake.expressions.tree import And, Predicate, Ref, refs
from variantlake.parquet.stats.fact_columns import Bools
from variantlake.parquet.variant.key_orders import in_spark_order
from variantlake.planning.exact.readings import Native
from variantlake.planning.files import ScanFile
from variantlake.planning.stats.skipping import Skipper

if TYPE_CHECKING:
    from variantlake.scan.files.file_rows import FileReader, Rows

PART_BYTES = 64 << 20
"""Bytes of files that one task reads, unless a single row group has more."""

_SMALLEST_PART = 2 << 20
_OPEN_BYTES = 1 << 20
"""The cost of opening a file, as a number of bytes."""

BATCH_ROWS = 8192


@dataclass(frozen=True, slots=True)
class FilePart:
    """The row groups that begin in part `number` of `count` equal parts of a file."""

    file: ScanFile
    number: int = 0
    count: int = 1


@dataclass(frozen=True)
class ScanTask:
    """The function that the tasks of one scan run; pickles.

    `table` is the snapshot without its files. `schema` has the wanted columns with their types, by
    their names in the files. `texts` maps additional columns of text to the partition columns whose
    serialized values they hold. Rows for which a condition of `prefilter` is false or NULL may be
    left out. `row_place` is the column of `schema` that gets a row's place in its file, from 0;
    empty if there is none.
    """

    table: Snapshot
    parts: tuple[tuple[FilePart, ...], ...]
    schema: pa.Schema
    texts: Mapping[str, str]
    prefilter: tuple[Predicate, ...]
    partition_types: Mapping[str, str]
    row_place: str = ""

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        files: Sequence[ScanFile],
        schema: pa.Schema,
        texts: Mapping[str, str],
        *,
        prefilter: Sequence[Predicate] = (),
        partition_types: Mapping[str, str] | None = None,
        tasks: int = 1,
        row_place: str = "",
    ) -> ScanTask:
        """Make a scan of these files in about `tasks` tasks, in more if the files are large."""
        return cls(
            snapshot.without_files(),
            split_files(files, tasks),
            schema,
            dict(texts),
            tuple(prefilter),
            dict(partition_types or {}),
            row_place,
        )

    def __call__(self, number: int) -> Iterator[pa.RecordBatch]:
        """The rows of task `number`: the columns of `schema`, then those of `texts`.

        Raises MalformedFile and MalformedVariant with file and row, UnsupportedFeature.
        """
        # Imported in the task, because it loads the kernels, which planning does not need.
        from variantlake.scan.files.file_rows import FileReader

        skipper = Skipper(And(self.prefilter), self.partition_types)
        requested = tuple(dict.fromkeys(ref for part in self.prefilter for ref in refs(part)))
        for part in self.parts[number]:
            with FileReader(self.table, part.file, requested, self.partition_types) as reader:
                for rows in reader.rows(skipper, (part.number, part.count)):
                    yield from self._read(reader, rows)

    def _read(self, reader: FileReader, rows: Rows) -> Iterator[pa.RecordBatch]:
        chosen = np.flatnonzero(self._find_rows(reader, rows))
        if not len(chosen):
            return
        values = [reader.file.partition.get(column) or None for column in self.texts.values()]
        stored = pa.schema([item for item in self.schema if item.name != self.row_place])
        first = sum(group.num_rows for group in reader.footer.row_groups[: rows.row_group])
        given = 0
        for part in reader.columns(rows.row_group, stored, chosen):
            table = part
            if self.row_place in self.schema.names:
                places = arrow_array(first + chosen[given : given + part.num_rows], pa.int64())
                at = self.schema.get_field_index(self.row_place)
                table = part.add_column(at, self.schema.field(at), places)
            given += part.num_rows
            texts = [pa.repeat(arrow_scalar(text, pa.string()), table.num_rows) for text in values]
            found = pa.Table.from_arrays([*table.columns, *texts], schema=self.result)
            for batch in found.to_batches(BATCH_ROWS):
                arrays = [in_spark_order(column) for column in batch.columns]
                yield pa.RecordBatch.from_arrays(arrays, schema=self.result)

    @cached_property
    def result(self) -> pa.Schema:
        """The schema of the batches."""
        return pa.schema([*self.schema, *(pa.field(name, pa.string()) for name in self.texts)])

    def _find_rows(self, reader: FileReader, rows: Rows) -> Bools:
        """The rows that no condition leaves out; the engine judges rows with an error."""
        kept = rows.kept.copy()
        for condition in self.prefilter:
            if any(isinstance(reader.reading(ref), Native) for ref in refs(condition)):
                continue
            try:
                truth = truth_of(condition, of_refs(partial(_operand, rows)), rows.count)
            except UnsupportedFeature:
                continue
            kept &= truth.true | truth.failed
        return kept


def _operand(rows: Rows, ref: Ref) -> Values:
    """A condition's operand. Raises UnsupportedFeature for one that needs Spark's time zone."""
    values = rows.values(ref)
    if ref.path is None and ref.type == "date" and pa.types.is_timestamp(values.array.type):
        raise UnsupportedFeature("a timestamp is a date of the session's time zone")
    return values


def split_files(
    files: Sequence[ScanFile], tasks: int, *, most: int = PART_BYTES
) -> tuple[tuple[FilePart, ...], ...]:
    """Divide files, and parts of large ones, into about `tasks` tasks of similar size, in order.

    Makes more tasks if one would read more than `most` bytes of files.
    """
    total = sum(file.size + _OPEN_BYTES for file in files)
    wanted = min(most, max(_SMALLEST_PART, -(-total // max(tasks, 1))))
    counts = [max(1, -(-file.size // wanted)) for file in files]
    parts = (
        FilePart(replace(file, facts=None), number, count)
        for file, count in zip(files, counts, strict=True)
        for number in range(count)
    )
    limit = wanted + _OPEN_BYTES
    return tuple(packed(parts, lambda part: part.file.size // part.count + _OPEN_BYTES, limit))
