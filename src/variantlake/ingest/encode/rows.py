"""Encode rows of Arrow data for a table's files, with their partitions."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from variantlake.delta.protocol.properties import hints
from variantlake.delta.schema.table_schema import StructField, StructType, VariantType
from variantlake.delta.schema.type_parts import required_in
from variantlake.delta.stats.partition_values import partition_text
from variantlake.errors import InvalidSchema, InvalidValue, UnsupportedFeature, VariantLakeError
from variantlake.ingest.encode.bad_values import row_lines
from variantlake.ingest.encode.encode import (
    BAD_VALUES,
    ColumnEncoder,
    VariantColumn,
    joined_notes,
)
from variantlake.ingest.encode.micros import batch_in_micros
from variantlake.ingest.encode.nested import column_encoder
from variantlake.ingest.encode.plain_arrays import plain_batch, plain_schema, signed_schema
from variantlake.ingest.sources.blocks import bytes_at_once
from variantlake.jobs.write_rows import Partition
from variantlake.kernels.tape.tape import Tape
from variantlake.kernels.variant.profile_limits import ProfileLimits
from variantlake.kernels.variant.profiler import profile
from variantlake.parquet.metadata.annotate import ColumnPath
from variantlake.shredding.arrays import AnyArray
from variantlake.shredding.inference.infer import InferenceOptions, infer
from variantlake.shredding.layout import is_variant_type
from variantlake.shredding.schema import ShreddingSchema
from variantlake.shredding.values import ValueNotes
from variantlake.writing.file_plan import FilePlan
from variantlake.writing.options.row_policies import BadRows
from variantlake.writing.quarantine import BadRow, BadRowLog


class TableRows:
    """The data as batches to store, each of one partition.

    `shreddings` are the schemas of the VARIANT columns by physical name, with those inferred from
    the data; `count` are the rows so far. Rows with a bad Variant or document go to `bad_rows`.
    `notes` describe the Variants of the rows from which the last batch was taken. `check_texts`
    refuses text that is not UTF-8, which Spark would store and Arrow does not check.
    """

    def __init__(
        self,
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        plan: FilePlan,
        *,
        shreddings: Mapping[str, ShreddingSchema],
        json_columns: Collection[str],
        bad_rows: BadRowLog,
        inference: InferenceOptions,
        check_texts: bool = False,
    ) -> None:
        self.shreddings = dict(shreddings)
        self.count = 0
        given, schema = schema, plain_schema(schema)
        self._batches = (
            batches if schema == given else (plain_batch(batch, schema) for batch in batches)
        )
        if plan.truncate_timestamps:
            schema = batch_in_micros(pa.RecordBatch.from_pylist([], schema)).schema
            self._batches = map(batch_in_micros, self._batches)
        self.bad_rows = bad_rows
        self._inference = inference
        self._check_texts = check_texts
        self._properties = plan.properties
        self._contracts = plan.contracts
        fields = {field.name: field for field in (*plan.schema.fields, *plan.hidden)}
        check_columns(schema.names, fields.values(), json_columns, plan.location)
        partitioned = [fields[name] for name in plan.partition_columns]
        self.partition_names = [field.physical_name for field in partitioned]
        self._partitioned = [
            (
                field,
                column_encoder(field, schema.field(field.name).type)
                if field.name in schema.names
                else None,
            )
            for field in partitioned
        ]
        self._encoders: list[tuple[str, ColumnEncoder]] = [
            (given.name, self._encoder(fields[given.name], given.type, json_columns))
            for given in schema
            if given.name not in plan.partition_columns
        ]
        if not self._encoders:
            raise InvalidSchema("the data has no column that files hold")
        self.variant_columns = [path for _, each in self._encoders for path in each.variants]
        self.notes: Mapping[ColumnPath, ValueNotes] = {}
        # The rows of the current piece that are not in the quarantine; None means all.
        self._left: npt.NDArray[np.int64] | None = None

    def __iter__(self) -> Iterator[tuple[Partition, pa.RecordBatch]]:
        for given in self._slices():
            self._left = None
            self.bad_rows.seen += given.num_rows
            try:
                columns, piece = self._encode(given)
                partitions = self._partitions(piece)
                if self._check_texts:
                    self._check(columns)
            except VariantLakeError as error:
                if error.row is not None:
                    row = error.row if self._left is None else int(self._left[error.row])
                    error.row = self.count + row
                raise
            batch = _batch([each.name for _, each in self._encoders], columns)
            self.notes = joined_notes(each for _, each in self._encoders)
            self.count += given.num_rows
            yield from by_partition(batch, partitions)

    def _slices(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in pieces to encode at a time."""
        for batch in self._batches:
            most = bytes_at_once(self.shreddings.values())
            rows = max(1, most * batch.num_rows // max(batch.nbytes, 1))
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows)

    def _encode(self, piece: pa.RecordBatch) -> tuple[list[AnyArray], pa.RecordBatch]:
        """Encode the columns of a piece; also returns the piece without its bad rows."""
        try:
            return [each.encode(piece.column(name)) for name, each in self._encoders], piece
        except BAD_VALUES:
            if self.bad_rows.mode is BadRows.STRICT:
                raise
            cleaned = self._without_bad(piece)
            if cleaned is None:
                raise
            return [each.encode(cleaned.column(name)) for name, each in self._encoders], cleaned

    def _check(self, columns: Sequence[AnyArray]) -> None:
        """Raise InvalidValue for the first row with text that is not UTF-8."""
        for (name, encoder), column in zip(self._encoders, columns, strict=True):
            if isinstance(encoder, VariantColumn) or _why_invalid(column) is None:
                continue
            # Validating a slice may check the whole array, so take each row.
            for row in range(len(column)):
                if why := _why_invalid(column.take(pa.array([row]))):
                    raise InvalidValue(
                        f"column {name!r} holds a value that is not a {column.type}: {why}", row=row
                    )

    def _without_bad(self, piece: pa.RecordBatch) -> pa.RecordBatch | None:
        """Remove the bad rows of a piece, or set NULLs in them; None if no Variant is bad."""
        bad = {
            name: found
            for name, each in self._encoders
            if isinstance(each, VariantColumn) and (found := each.bad_rows(piece.column(name)))
        }
        if not bad:
            return None
        rows, given = np.zeros(piece.num_rows, np.bool_), piece
        for name, found in bad.items():
            mask = np.zeros(piece.num_rows, np.bool_)
            mask[found] = True
            if self.bad_rows.mode is BadRows.NULL:
                index = piece.schema.get_field_index(name)
                cleaned = _nulled(piece.column(name), mask)
                piece = piece.set_column(index, piece.schema.field(index), cleaned)
            rows |= mask
        if self.bad_rows.mode is BadRows.NULL:
            first = int(np.flatnonzero(rows)[0])
            count = int(np.count_nonzero(rows))
            self.bad_rows.add_null(count, lambda: self._bad_row(given, first, bad))
            return piece
        first = int(np.flatnonzero(rows)[0])
        columns = [
            (name, each, bad[name])
            for name, each in self._encoders
            if isinstance(each, VariantColumn) and name in bad
        ]
        self.bad_rows.add_lines(
            int(np.count_nonzero(rows)),
            lambda: self._bad_row(piece, first, bad),
            lambda: row_lines(piece, rows, columns, self.count),
        )
        self._left = np.flatnonzero(~rows)
        return piece.filter(pa.array(~rows))

    def _bad_row(self, piece: pa.RecordBatch, row: int, bad: Mapping[str, Sequence[int]]) -> BadRow:
        """Return a bad row with the error of its first bad column."""
        name = next(name for name, rows in bad.items() if row in rows)
        encoder = dict(self._encoders)[name]
        try:
            encoder.encode(piece.column(name).slice(row, 1))
        except VariantLakeError as error:
            found = error
        found.row = self.count + row
        return BadRow(found)

    def _encoder(
        self, field: StructField, given: pa.DataType, json_columns: Collection[str]
    ) -> ColumnEncoder:
        if not isinstance(field.type, VariantType):
            return column_encoder(field, given)

        def decide(tape: Tape) -> ShreddingSchema:
            name = field.physical_name
            if name not in self.shreddings:
                options = replace(self._inference, hints=hints(self._properties, name))
                self.shreddings[name] = infer(
                    profile(tape, ProfileLimits.of(options)), options
                ).schema
            return self.shreddings[name]

        return VariantColumn(
            field,
            given,
            decide,
            from_json=field.name in json_columns,
            contract=self._contracts.get(field.physical_name),
        )

    def _partitions(self, piece: pa.RecordBatch) -> list[list[str | None]]:
        """Return the values of the partition columns, in the form of the log."""
        return [
            [None]
            if encoder is None
            else partition_texts(encoder.encode(piece.column(field.name)), field)
            for field, encoder in self._partitioned
        ]


def given_schema(
    given: pa.Schema, json_columns: Collection[str], *, keeps_unsigned: bool = False
) -> StructType:
    """Return the columns of a new table for Arrow data.

    Columns of JSON text and structs of `metadata` and `value` become Variants. Unsigned integers
    get the next wider type, those of 64 bits DECIMAL(20, 0); with `keeps_unsigned` all are refused.
    Raises InvalidSchema.
    """
    given = plain_schema(given) if keeps_unsigned else signed_schema(given)
    variants = [
        field.name for field in given if field.name in json_columns or is_variant_type(field.type)
    ]
    return StructType.from_arrow(given, variants=variants)


def check_columns(
    names: Sequence[str], fields: Collection[StructField], json_columns: Collection[str], uri: str
) -> None:
    """Raise InvalidSchema or UnsupportedFeature for data whose columns do not fit the table's."""
    known = [field.name for field in fields]
    if len(set(names)) != len(names):
        raise InvalidSchema(f"column names repeat: {names}", file=uri)
    for name in (*names, *json_columns):
        if name not in known:
            same = [each for each in known if each.lower() == name.lower()]
            raise InvalidSchema(
                f"the table has no column {name!r}" + "".join(f", but {each!r}" for each in same),
                file=uri,
                hint="merge_schema=True adds it, column= names the VARIANT column of rows that "
                f"are documents; columns: {', '.join(known)}",
                cli_hint=f"columns: {', '.join(known)}",
            )
    for field in fields:
        if field.name not in names and (required := required_in(field)):
            what = "which" if required == field.name else f"whose field {required}"
            raise InvalidSchema(
                f"the data have no column {field.name!r}, {what} is NOT NULL", file=uri
            )
    for field in fields:
        if field.default is not None and field.name not in names:
            raise UnsupportedFeature(
                f"the data have no column {field.name!r}, whose default is an SQL expression: "
                f"{field.default}",
                file=uri,
                hint="give the column, or append with Spark (lake.append)",
                cli_hint="",
            )
    for name in json_columns:
        if name not in names:
            raise InvalidSchema(f"the data have no column {name!r} of JSON text")


def _batch(names: Sequence[str], columns: Sequence[AnyArray]) -> pa.RecordBatch:
    fields = [pa.field(name, each.type) for name, each in zip(names, columns, strict=True)]
    return pa.record_batch(list(columns), schema=pa.schema(fields))


def partition_texts(array: AnyArray, field: StructField) -> list[str | None]:
    """Write the values of a partition column in the form of the log, each distinct one once.

    Raises InvalidValue for text that is not UTF-8, and for times after the year 9999.
    """
    encoded: Any = array.dictionary_encode()
    try:
        values = encoded.dictionary.to_pylist()
    except (ValueError, OverflowError) as error:
        raise InvalidValue(
            f"partition column {field.name!r} holds a value that cannot be a partition value:"
            f" {error}"
        ) from error
    known = [partition_text(value, field) for value in values]
    return [None if at is None else known[at] for at in encoded.indices.to_pylist()]


def by_partition(
    batch: pa.RecordBatch, columns: Sequence[Sequence[str | None]]
) -> Iterator[tuple[Partition, pa.RecordBatch]]:
    """Split rows by partition, in the order of the partitions' first rows.

    `columns` have a text for each row, or one for all of them.
    """
    if not batch.num_rows:
        return
    if all(len(texts) == 1 for texts in columns):
        yield tuple(text for (text,) in columns), batch
        return
    rows_of = [texts if len(texts) > 1 else [*texts] * batch.num_rows for texts in columns]
    keys: list[Partition] = list(zip(*rows_of, strict=True))
    places: dict[Partition, list[int]] = {}
    for key, rows in itertools.groupby(range(len(keys)), keys.__getitem__):
        places.setdefault(key, []).extend(rows)
    for partition, chosen in places.items():
        if len(chosen) == batch.num_rows:
            yield partition, batch
        else:
            yield partition, batch.take(np.array(chosen, np.int64))


def _why_invalid(array: AnyArray) -> str | None:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        return str(error)
    return None


def _nulled(array: AnyArray, mask: npt.NDArray[np.bool_]) -> AnyArray:
    """Set the rows of the mask to NULL."""
    places = pa.array(np.arange(len(array)), pa.int64(), mask=mask)
    return array.take(places)
