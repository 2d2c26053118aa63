"""Convert documents to rows of a table, with their partitions and further columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from variantlake.delta.protocol.identity_columns import IdentityColumn
from variantlake.delta.schema.table_schema import StructField
from variantlake.delta.schema.table_schema import arrow_type as arrow_form
from variantlake.errors import InvalidValue, UnsupportedFeature
from variantlake.ingest.encode.document_columns import DocumentColumns
from variantlake.ingest.encode.documents import read_tapes
from variantlake.ingest.encode.encode import PlainColumn, check_not_null
from variantlake.ingest.encode.numbers import numbers_from
from variantlake.ingest.encode.rows import by_partition, partition_texts
from variantlake.ingest.sources.blocks import bytes_at_once
from variantlake.ingest.sources.joined import JoinedText, groups, join
from variantlake.ingest.sources.sources import Source, Split
from variantlake.jobs.write_rows import Partition
from variantlake.kernels.json.json_reader import JsonReader
from variantlake.kernels.json.lines import split_lines
from variantlake.kernels.shredded.shredder import Shredder
from variantlake.kernels.tape.tape import Tape
from variantlake.parquet.metadata.annotate import ColumnPath
from variantlake.shown import utf8_text
from variantlake.shredding.arrays import AnyArray
from variantlake.shredding.layout import arrow_type
from variantlake.shredding.schema import ShreddingSchema
from variantlake.shredding.values import ValueNotes
from variantlake.writing.file_plan import FilePlan
from variantlake.writing.options.row_policies import BadRows
from variantlake.writing.quarantine import BadRow, BadRowLog


class DocumentRows:
    """The documents of one task's splits as batches to store, each of one partition.

    The task is one of `tasks`, which take the numbers of identity columns in turn.

    `empty` are the splits so far without a document, `counts` each split's source with its stored
    and its bad rows; `notes` describe the Variants of the last batch.
    """

    def __init__(
        self,
        splits: Sequence[Split],
        plan: FilePlan,
        *,
        columns: DocumentColumns,
        shredding: ShreddingSchema,
        bad_rows: BadRowLog,
        check: Callable[[], None],
        task: int = 0,
        tasks: int = 1,
    ) -> None:
        self.empty: list[Split] = []
        self.counts: list[tuple[str, int, int]] = []
        self.notes: Mapping[ColumnPath, ValueNotes] = {}
        self.bad_rows = bad_rows
        bad_rows.check = check  # if all documents are bad, no batch is stored
        self._splits = splits
        self._columns = columns
        self._check = check
        self._numbers = [(field, IdentityColumn.of(field)) for field in columns.numbers]
        self._task, self._tasks, self._place = task, tasks, 0
        self._shredder = Shredder(shredding)
        self._size = bytes_at_once([shredding])
        name = columns.documents.physical_name
        self._contract = plan.contracts.get(name)
        # Without NULLs, the column is not nullable: its metadata is then written faster.
        nullable = plan.mode is BadRows.NULL
        self._schema = pa.schema([pa.field(name, arrow_type(shredding), nullable=nullable)])
        self.variant_columns: list[ColumnPath] = [(name,)]
        beside = [field for field in (columns.file, columns.moment) if field is not None]
        stored = [pa.field(field.physical_name, arrow_form(field.type)) for field in beside]
        # Refuse an impossible sort order before the work.
        plan.order(pa.schema([*self._schema, *stored]))
        fields = {field.name: field for field in plan.schema.fields}
        self._partitioned = [fields[column] for column in plan.partition_columns]
        self.partition_names = [field.physical_name for field in self._partitioned]

    def __iter__(self) -> Iterator[tuple[Partition, pa.RecordBatch]]:
        reader = JsonReader()
        # Errors about values of paths need their file: such documents are read file by file.
        most = 0 if self._columns.paths else self._size
        for group in groups(self._splits, most, by_folder=bool(self._columns.folders)):
            joined = join(group) if len(group) > 1 else None
            if joined is not None and (tape := self._tape_of(joined, reader)) is not None:
                yield from self._of_joined(group, joined, *tape)
                del tape
                self._check()
                continue
            for split in group:
                yield from self._of_split(split, reader)

    def _of_split(
        self, split: Split, reader: JsonReader
    ) -> Iterator[tuple[Partition, pa.RecordBatch]]:
        same = dict(self._same(split.source))
        before, rows, stored = self.bad_rows.count, 0, 0
        tapes = read_tapes(
            [split], self.bad_rows, reader, block_bytes=self._size, contract=self._contract
        )
        for tape in tapes:
            rows += tape.rows
            batch = pa.record_batch([self._shredder.shred(tape)], schema=self._schema)
            del tape  # see read_tapes
            self.notes = {self.variant_columns[0]: self._shredder.notes}
            for partition, part in self._stored(batch, same, split.source):
                stored += part.num_rows
                yield partition, part
            self._check()
        self.counts.append((split.source.path, stored, self.bad_rows.count - before))
        if not rows and self.bad_rows.count == before:
            self.empty.append(split)

    def _tape_of(
        self, joined: JoinedText, reader: JsonReader
    ) -> tuple[Tape, npt.NDArray[np.int64]] | None:
        """Read the documents of several files, and their starts; None if one of them is bad."""
        lines = split_lines(joined.text)
        tape = reader.read(joined.padded, lines.starts, lines.ends)
        broken = self._contract is not None and self._contract.breaches(tape) is not None
        return None if broken or tape.status.any() else (tape, lines.starts)

    def _of_joined(
        self,
        group: Sequence[Split],
        joined: JoinedText,
        tape: Tape,
        starts: npt.NDArray[np.int64],
    ) -> Iterator[tuple[Partition, pa.RecordBatch]]:
        self.bad_rows.seen += tape.rows
        files = joined.files_of(starts)
        rows = np.bincount(files, minlength=len(group)).tolist()
        for split, count in zip(group, rows, strict=True):
            self.counts.append((split.source.path, count, 0))
            if not count:
                self.empty.append(split)
        if not tape.rows:
            return
        batch = pa.record_batch([self._shredder.shred(tape)], schema=self._schema)
        self.notes = {self.variant_columns[0]: self._shredder.notes}
        source = group[0].source
        same = dict(self._same(source))
        file = self._columns.file
        if file is not None:
            paths = pa.array([utf8_text(split.source.label) for split in group], pa.string())
            same[file.name] = paths.take(files)
        yield from self._stored(batch, same, source)

    def _same(self, source: Source) -> Iterator[tuple[str, AnyArray]]:
        """Yield the columns that have one value in a source, by name."""
        for field, array in self._columns.of_source(source):
            check_not_null(array, field)
            yield field.name, array

    def _stored(
        self, batch: pa.RecordBatch, same: dict[str, AnyArray], source: Source
    ) -> Iterator[tuple[Partition, pa.RecordBatch]]:
        texts: dict[str, list[str | None]] = {}
        if self._columns.paths:
            batch, values = self._of_paths(batch, source)
            texts = {field.name: partition_texts(array, field) for field, array in values}
        kept = batch
        for column in (self._columns.file, self._columns.moment):
            if column is not None:
                array = same[column.name]
                if len(array) != kept.num_rows:
                    array = array.take(np.zeros(kept.num_rows, np.int64))
                stored = PlainColumn(column, array.type).encode(array)
                kept = kept.append_column(pa.field(column.physical_name, stored.type), stored)
        for field, array in self._columns.defaults:
            constant_array = array.take(np.zeros(kept.num_rows, np.int64))
            stored = PlainColumn(field, array.type).encode(constant_array)
            kept = kept.append_column(pa.field(field.physical_name, stored.type), stored)
        kept = self._numbered(kept)
        constant = {
            name: partition_texts(array.slice(0, 1), self._field(name))[0]
            for name, array in same.items()
        }
        partitions = [
            texts.get(field.name, [constant.get(field.name)]) for field in self._partitioned
        ]
        yield from by_partition(kept, partitions)

    def _numbered(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Add identity numbers to the rows: each task uses every `tasks`-th number."""
        for field, column in self._numbers:
            every = replace(column, step=column.step * self._tasks, mark=None)
            every = replace(every, start=column.number(self._task))
            numbers = numbers_from(every, self._place, batch.num_rows)
            batch = batch.append_column(pa.field(field.physical_name, pa.int64()), numbers)
        self._place += batch.num_rows
        return batch

    def _field(self, name: str) -> StructField:
        columns = self._columns
        fields = (*columns.folders, columns.file, columns.moment)
        return next(field for field in fields if field is not None and field.name == name)

    def _of_paths(
        self, batch: pa.RecordBatch, source: Source
    ) -> tuple[pa.RecordBatch, list[tuple[StructField, AnyArray]]]:
        """Return the good rows and their values of paths. Raises InvalidValue in strict mode."""
        try:
            found = list(self._columns.of_paths(batch))
        except UnsupportedFeature as error:
            error.file = error.file or source.label
            error.hint = "partition by the path in another type, or load with Spark and lake.append"
            error.cli_hint = "partition by the path in another type"
            raise
        bad = np.zeros(batch.num_rows, np.bool_)
        for field, array, failed in found:
            if failed is not None:
                bad |= failed
                self._refuse(batch, field, failed, source)
            check_not_null(array, field)
        values = [(field, array) for field, array, _ in found]
        if not bad.any() or self.bad_rows.mode is BadRows.NULL:
            return batch, values
        good = pa.array(~bad)
        return batch.filter(good), [(field, array.filter(good)) for field, array in values]

    def _refuse(
        self, batch: pa.RecordBatch, field: StructField, failed: Any, source: Source
    ) -> None:
        """Log or refuse documents whose value is not of the column's type."""
        ref = next(ref for known, ref in self._columns.paths if known is field)
        for row in np.flatnonzero(failed).tolist():
            document, value = self._columns.document(batch.slice(row, 1), field)
            error = InvalidValue(
                f"{value} is not a {field.type}, the type of the partition column {field.name!r}",
                file=source.label,
                path=str(ref.path),
                hint="try_variant_get(…) gives NULL there, mode='quarantine' leaves it out",
                cli_hint="try_variant_get gives NULL there, --mode quarantine leaves it out",
            )
            self.bad_rows.add(BadRow(error, values={self._columns.documents.name: document}))
