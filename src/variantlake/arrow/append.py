"""Append Arrow data to a table in this process."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from variantlake.arrow.encode import (
    ColumnEncoder,
    PlainColumn,
    VariantColumn,
    is_variant_storage,
)
from variantlake.arrow.files import FileLimits, FileSet, new_load_id
from variantlake.arrow.target import NOT_COMMITTED, FilePlan, Target
from variantlake.delta.actions import AddFile
from variantlake.delta.partition_values import partition_text
from variantlake.delta.replacing import Replacement
from variantlake.delta.schema import StructField, StructType, VariantType
from variantlake.delta.snapshot import Snapshot
from variantlake.errors import InvalidSchema, InvalidValue, UnsupportedFeature, VariantLakeError
from variantlake.kernels.profiler import profile
from variantlake.kernels.tape import Tape
from variantlake.shredding.arrays import AnyArray
from variantlake.shredding.infer import infer
from variantlake.shredding.schema import ShreddingSchema

SLICE_BYTES = 4 << 20
"""Arrow bytes that are encoded at a time."""

MAX_OPEN_FILES = 64
"""Partitions that are written at the same time; beyond it files are finished early."""

Partition = tuple[str | None, ...]


def append_arrow(
    data: Any,
    snapshot: Snapshot,
    *,
    json_columns: Collection[str] = (),
    merge_schema: bool = False,
    replacing: Replacement | None = None,
) -> int:
    """Append rows to the table of `snapshot` in one commit; gives the new version.

    Columns go by name, those that are left out are NULL; those that the table does not have become
    columns of it with `merge_schema`. A Variant column without a shredding schema gets one from the
    first rows, which the table keeps. `replacing` says which files the rows take the place of.
    Nothing to do, no commit: the version is that of `snapshot`.

    Raises InvalidSchema for data that do not fit the table, InvalidJson, MalformedVariant,
    InvalidValue and LimitExceeded for a bad value, with its row in the data; UnsupportedFeature and
    CommitConflict.
    """
    reader = _reader(data)
    target = replace(Target.of(snapshot), replacing=replacing)
    if merge_schema:
        target = target.with_columns(given_schema(reader.schema, json_columns))
    rows = _Rows(reader, target, frozenset(json_columns))
    plan = rows.target.file_plan(new_load_id(), FileLimits())
    try:
        adds = _write(rows, plan)
        if not adds and replacing is None:
            return snapshot.version
        return rows.target.commit(adds, {"numOutputRows": str(rows.count)})
    except NOT_COMMITTED:
        rows.target.clean_up(plan.load_id)
        raise


def _write(rows: _Rows, plan: FilePlan) -> list[AddFile]:
    """Write the rows as files, by partition. When an error passes, none of the files stays."""
    sets: dict[Partition, FileSet] = {}
    with contextlib.ExitStack() as stack:
        for partition, batch in rows:
            files = sets.get(partition)
            if files is None:
                files = plan.file_set(len(sets), batch.schema, rows.variant_columns)
                sets[partition] = stack.enter_context(files)
            files.write(batch)
            open_sets = [each for each in sets.values() if each.is_open]
            if len(open_sets) > MAX_OPEN_FILES:
                open_sets[0].close()
        return [
            plan.add(file, dict(zip(rows.partition_names, partition, strict=True)))
            for partition, files in sets.items()
            for file in files.close()
        ]


class _Rows:
    """The data as batches to be stored, each with the partition that all of its rows belong to.

    `target` is the table with the shredding schemas that the data decided; `count` the rows so far.
    """

    def __init__(
        self, reader: pa.RecordBatchReader, target: Target, json_columns: Collection[str]
    ) -> None:
        self.target = target
        self.count = 0
        self._reader = reader
        fields = {field.name: field for field in target.schema.fields}
        _check_columns(reader.schema, fields.values(), json_columns, target.store.uri)
        partitioned = [fields[name] for name in target.partition_columns]
        self.partition_names = [field.physical_name for field in partitioned]
        self._partitioned = [
            (field, PlainColumn(field, reader.schema.field(field.name).type))
            if field.name in reader.schema.names
            else None
            for field in partitioned
        ]
        self._encoders: list[tuple[str, ColumnEncoder]] = [
            (given.name, self._encoder(fields[given.name], given.type, json_columns))
            for given in reader.schema
            if given.name not in target.partition_columns
        ]
        if not self._encoders:
            raise InvalidSchema("the data have none of the columns that files hold")
        self.variant_columns = [(each.name,) for _, each in self._encoders if each.variant]

    def __iter__(self) -> Iterator[tuple[Partition, pa.RecordBatch]]:
        for piece in _slices(self._reader):
            try:
                columns = [each.encode(piece.column(name)) for name, each in self._encoders]
                partitions = self._partitions(piece)
            except VariantLakeError as error:
                error.row = self.count + (error.row or 0)
                raise
            batch = _batch([each.name for _, each in self._encoders], columns)
            self.count += piece.num_rows
            yield from _by_partition(batch, partitions)

    def _encoder(
        self, field: StructField, given: pa.DataType, json_columns: Collection[str]
    ) -> ColumnEncoder:
        if not isinstance(field.type, VariantType):
            return PlainColumn(field, given)

        def decide(tape: Tape) -> ShreddingSchema:
            schema = self.target.shredding(field.physical_name)
            if schema is None:
                schema = infer(profile(tape)).schema
                self.target = self.target.with_shredding(field.physical_name, schema)
            return schema

        return VariantColumn(field, given, decide, from_json=field.name in json_columns)

    def _partitions(self, piece: pa.RecordBatch) -> list[Partition]:
        """The partition of every row."""
        texts: list[Sequence[str | None]] = []
        for each in self._partitioned:
            if each is None:
                texts.append([None] * piece.num_rows)
                continue
            field, encoder = each
            values = encoder.encode(piece.column(field.name)).to_pylist()
            texts.append([partition_text(value, field) for value in values])
        return list(zip(*texts, strict=True)) if texts else [()] * piece.num_rows


def _reader(data: Any) -> pa.RecordBatchReader:
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return data.to_reader()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    raise InvalidValue(
        f"{type(data).__name__} cannot be appended",
        hint="give ndjson(...), an Arrow table, or whatever has __arrow_c_stream__",
    )


def given_schema(given: pa.Schema, json_columns: Collection[str]) -> StructType:
    """The columns of a table that Arrow data would make.

    Columns of JSON text and structs of `metadata` and `value` are Variants. Raises InvalidSchema.
    """
    variants = [
        field.name
        for field in given
        if field.name in json_columns or is_variant_storage(field.type)
    ]
    return StructType.from_arrow(given, variants=variants)


def _check_columns(
    given: pa.Schema, fields: Collection[StructField], json_columns: Collection[str], uri: str
) -> None:
    names = [field.name for field in fields]
    if len(set(given.names)) != len(given.names):
        raise InvalidSchema(f"column names repeat: {given.names}", file=uri)
    for name in (*given.names, *json_columns):
        if name not in names:
            raise InvalidSchema(
                f"the table has no column {name!r}", file=uri, hint=f"columns: {', '.join(names)}"
            )
    for field in fields:
        if not field.nullable and field.name not in given.names:
            raise InvalidSchema(
                f"the data have no column {field.name!r}, which is NOT NULL", file=uri
            )
    for field in fields:
        if field.default is not None and field.name not in given.names:
            raise UnsupportedFeature(
                f"the data have no column {field.name!r}, whose default is an SQL expression: "
                f"{field.default}",
                file=uri,
                hint="give the column, or append with Spark (lake.append)",
            )
    for name in json_columns:
        if name not in given.names:
            raise InvalidSchema(f"the data have no column {name!r} of JSON text")


def _slices(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        rows = max(1, SLICE_BYTES * batch.num_rows // max(batch.nbytes, 1))
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


def _batch(names: Sequence[str], columns: Sequence[AnyArray]) -> pa.RecordBatch:
    fields = [pa.field(name, each.type) for name, each in zip(names, columns, strict=True)]
    return pa.record_batch(list(columns), schema=pa.schema(fields))


def _by_partition(
    batch: pa.RecordBatch, partitions: Sequence[Partition]
) -> Iterator[tuple[Partition, pa.RecordBatch]]:
    """The batch, or the rows of it for each partition, in the order of their first rows."""
    rows: dict[Partition, list[int]] = {}
    for row, partition in enumerate(partitions):
        rows.setdefault(partition, []).append(row)
    for partition, chosen in rows.items():
        if len(chosen) == batch.num_rows:
            yield partition, batch
        else:
            yield partition, batch.take(np.array(chosen, np.int64))
