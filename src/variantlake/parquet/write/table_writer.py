"""Shred the Variant columns of an Arrow table and write it as a Parquet file."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Literal

import numpy as np
import pyarrow as pa

from variantlake.errors import InvalidSchema, InvalidValue, VariantLakeError
from variantlake.kernels.shredded.legacy_shredder import LegacyShredder
from variantlake.kernels.shredded.shredder import Shredder
from variantlake.kernels.variant.profile_limits import ProfileLimits
from variantlake.kernels.variant.profiler import Profiler
from variantlake.kernels.variant.variant_reader import VariantReader, bad_variant
from variantlake.parquet.metadata.annotate import ColumnPath
from variantlake.parquet.read.parquet_source import BATCH_BYTES, BATCH_ROWS
from variantlake.parquet.stats.facts import read_facts
from variantlake.parquet.write.file_writer import (
    FileWriter,
    WriteOptions,
    WrittenFile,
    inner_fields,
)
from variantlake.progress import OnProgress, Progress
from variantlake.shredding.arrays import (
    AnyArray,
    AnyField,
    list_array,
    list_of,
    map_array,
    members,
    offsets_of,
    struct_of,
)
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.inference.infer import InferenceOptions, infer
from variantlake.shredding.inference.profile import Profile
from variantlake.shredding.layout import (
    arrow_type,
    is_list,
    is_struct,
    is_variant_type,
    map_type,
)
from variantlake.shredding.legacy.layout import legacy_type
from variantlake.shredding.schema import ShreddingSchema

SAMPLE_ROWS = 10_000
"""The first rows of a column, from which inference works."""

Shredding = str | ShreddingSchema | None

Layout = Literal["final", "legacy"]

_LAYOUTS: Mapping[
    str,
    tuple[Callable[[ShreddingSchema], pa.DataType], type[Shredder | LegacyShredder]],
] = {"final": (arrow_type, Shredder), "legacy": (legacy_type, LegacyShredder)}


def write_table(
    table: pa.Table | pa.RecordBatch,
    path: str | os.PathLike[str],
    *,
    shredding: Shredding | Mapping[str, Shredding] = None,
    variant_columns: Collection[str] | None = None,
    inference: InferenceOptions | None = None,
    options: WriteOptions | None = None,
    layout: Layout = "final",
    progress: OnProgress | None = None,
) -> WrittenFile:
    """Write a Parquet file whose Variant columns are shredded and marked as VARIANT(1).

    Args:
        table: Variant columns are struct<metadata: binary, value: binary>, at any depth; SQL NULL
            is a null struct. `read_table` returns such tables.
        path: The file, which is overwritten.
        shredding: A schema, its DDL, "infer" for one from a sample, or None to leave the columns
            unshredded. It holds for every Variant column, unless it is a mapping from dotted column
            names (columns that the mapping does not name stay unshredded).
        variant_columns: Dotted names of the columns that are Variants; None means all of that
            type. Inside a list the Parquet names are `list.element`, inside a map `key_value.key`
            and `key_value.value`.
        inference: Thresholds for "infer".
        options: Compression, sizes of row groups and pages.
        layout: "legacy" for Spark's older layout, whose columns are not marked.
        progress: Called after each batch with the rows shredded so far and the rows of the table.

    Raises:
        InvalidSchema: A schema that does not parse or must not be written, or that is given for a
            column that is not a Variant.
        InvalidValue: An unknown layout, or an argument that is not a table.
        MalformedVariant: Bytes that are not a Variant; with column and row.
    """
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    elif not isinstance(table, pa.Table):
        raise InvalidValue(
            f"{type(table).__name__} is not an Arrow table", hint="pa.table makes one"
        )
    # Small batches bound the memory of shredded columns, however large the table's chunks are.
    rows = max(1, min(BATCH_ROWS, BATCH_BYTES * table.num_rows // max(table.nbytes, 1)))
    return write_batches(
        table.schema,
        table.to_batches(max_chunksize=rows),
        path,
        shredding=shredding,
        variant_columns=variant_columns,
        inference=inference,
        options=options,
        layout=layout,
        progress=progress,
        total=table.num_rows,
    )


def write_batches(
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    path: str | os.PathLike[str],
    *,
    shredding: Shredding | Mapping[str, Shredding] = None,
    variant_columns: Collection[str] | None = None,
    inference: InferenceOptions | None = None,
    options: WriteOptions | None = None,
    layout: Layout = "final",
    progress: OnProgress | None = None,
    total: int | None = None,
) -> WrittenFile:
    """Write batches of rows as `write_table` writes a table; memory grows with the batches.

    Schemas are inferred from the first SAMPLE_ROWS rows. `total` is the number of all rows, if
    known. Raises as `write_table`.
    """
    if layout not in _LAYOUTS:
        raise InvalidValue(f"no layout {layout!r}", hint=f"there are {', '.join(_LAYOUTS)}")
    type_of, shredder = _LAYOUTS[layout]
    found = find_variants(schema, variant_columns)
    sample, batches = _sampled(schema, batches, SAMPLE_ROWS if found else 0)
    schemas = _schemas(sample, found, shredding, inference or InferenceOptions())
    del sample
    types = {column: type_of(wanted) for column, wanted in schemas.items()}
    schema = pa.schema(
        [field.with_type(_type(field.type, (field.name,), types)) for field in schema]
    )
    marked = list(schemas) if layout == "final" else []
    with FileWriter(
        path, schema, variant_columns=marked, options=options or WriteOptions()
    ) as writer:
        start = 0
        shredders = {column: _Shredder(shredder(wanted)) for column, wanted in schemas.items()}
        for batch in batches:
            arrays = [
                _array(array, field.type, (field.name,), shredders, start)
                for field, array in zip(schema, batch.columns, strict=True)
            ]
            notes = {column: each.shredder.notes for column, each in shredders.items()}
            writer.write(pa.RecordBatch.from_arrays(arrays, schema=schema), notes)
            start += batch.num_rows
            if progress is not None:
                progress(Progress(start, total, "rows", "shredded"))
        written = writer.close()
    # The writer collects facts only for marked columns, and the legacy layout has none.
    if layout == "final":
        return written
    return replace(written, facts=read_facts(path, list(schemas)))


# --- Which columns are Variants, and how each is shredded -----------------------------------------


def _sampled(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], rows: int
) -> tuple[pa.Table, Iterable[pa.RecordBatch]]:
    """Return batches with at least `rows` rows as a table, and an iterable of all batches."""
    rest, first = iter(batches), list[pa.RecordBatch]()
    while sum(batch.num_rows for batch in first) < rows and (batch := next(rest, None)):
        first.append(batch)
    return pa.Table.from_batches(first, schema), chain(first, rest)


def find_variants(schema: pa.Schema, wanted: Collection[str] | None) -> list[ColumnPath]:
    """Find the Variant columns, at any depth, or only those `wanted`. Raises InvalidSchema."""
    found = [column for field in schema for column in _variants_below(field, (field.name,))]
    names = [".".join(column) for column in found]
    for name in wanted or ():
        if name not in names:
            raise _unknown(name, names)
    return [column for column in found if wanted is None or ".".join(column) in wanted]


def _unknown(name: str, names: Collection[str]) -> InvalidSchema:
    return InvalidSchema(
        f"{name!r} is not a column of type struct<metadata: binary, value: binary>",
        hint=f"the table has {', '.join(map(repr, names)) or 'none'}",
    )


def _variants_below(field: AnyField, column: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if is_variant_type(field.type):
        yield column
        return
    for name, child in inner_fields(field.type):
        yield from _variants_below(child, (*column, *name))


def _schemas(
    table: pa.Table,
    columns: Sequence[ColumnPath],
    shredding: Shredding | Mapping[str, Shredding],
    inference: InferenceOptions,
) -> dict[ColumnPath, ShreddingSchema]:
    """Return the shredding schema of each Variant column."""
    names = [".".join(column) for column in columns]
    if isinstance(shredding, Mapping):
        for name in shredding:
            if name not in names:
                raise _unknown(name, names)
        requested = {column: shredding.get(".".join(column)) for column in columns}
    else:
        if shredding is not None and not columns:
            raise InvalidSchema(
                "the table has no Variant column to shred",
                hint="Variant columns are struct<metadata: binary, value: binary>;"
                " parquet.variant_array makes one",
            )
        requested = dict.fromkeys(columns, shredding)
    return {
        column: _schema(table, column, wanted, inference) for column, wanted in requested.items()
    }


def _schema(
    table: pa.Table, column: ColumnPath, wanted: Shredding, inference: InferenceOptions
) -> ShreddingSchema:
    match wanted:
        case None:
            return ShreddingSchema()
        case ShreddingSchema():
            return wanted
        case "infer":
            return infer(_profile(table, column, inference), inference).schema
        case str():
            return parse_ddl(wanted)
    raise InvalidSchema(
        f"shredding cannot be of type {type(wanted).__name__}",
        hint="DDL as text, a ShreddingSchema, 'infer', None, or a mapping of those by column",
    )


def _profile(table: pa.Table, column: ColumnPath, inference: InferenceOptions) -> Profile:
    """Profile the first SAMPLE_ROWS values of a column."""
    profiler, rows, reader = Profiler(ProfileLimits.of(inference)), 0, VariantReader()
    index = table.schema.names.index(column[0])  # the writer refuses names that repeat
    for batch in table.select([index]).to_batches(max_chunksize=SAMPLE_ROWS):
        array: AnyArray = batch.column(0)
        for step in column[1:]:
            array = _child(array, step)
        profiler.add(reader.read(struct_of(array.slice(0, SAMPLE_ROWS - rows))))
        rows += len(array)
        if rows >= SAMPLE_ROWS:
            break
    return profiler.result()


def _child(array: AnyArray, step: str) -> AnyArray:
    """Return the part of an array with a Parquet name; `list` and `key_value` return the array."""
    if step in ("list", "key_value") and not is_struct(array.type):
        return array
    if isinstance(array, pa.MapArray):
        _, entries = offsets_of(array)
        return struct_of(entries).flatten()[0 if step == "key" else 1]
    if is_list(array.type):
        return offsets_of(list_of(array))[1]
    index = [field.name for field in members(array.type)].index(step)
    return struct_of(array).flatten()[index]


# --- Rewriting ------------------------------------------------------------------------------------


class _Shredder:
    """Shreds the batches of one column; its key dictionary serves all of them."""

    def __init__(self, shredder: Shredder | LegacyShredder) -> None:
        self.shredder = shredder
        self._reader = VariantReader()

    def shred(self, array: AnyArray) -> AnyArray:
        """Shred an array. Raises MalformedVariant with the row."""
        group = struct_of(array)
        tape = self._reader.read(group)
        bad = np.flatnonzero(tape.bad)
        if bad.size:
            raise bad_variant(group, int(bad[0]))
        return self.shredder.shred(tape)


def _is_rewritten(column: ColumnPath, columns: Collection[ColumnPath]) -> bool:
    return any(variant[: len(column)] == column for variant in columns)


def _type(
    arrow: pa.DataType, column: ColumnPath, types: Mapping[ColumnPath, pa.DataType]
) -> pa.DataType:
    """Return the type of a column in the file."""
    if column in types:
        return types[column]
    if not _is_rewritten(column, types):
        return arrow
    fields = [
        child.with_type(_type(child.type, (*column, *names), types))
        for names, child in inner_fields(arrow)
    ]
    if isinstance(arrow, pa.MapType):
        return map_type(*fields)
    return pa.struct(fields) if is_struct(arrow) else pa.list_(fields[0])


def _array(
    array: AnyArray,
    target: pa.DataType,
    column: ColumnPath,
    shredders: Mapping[ColumnPath, _Shredder],
    start: int | None,
) -> AnyArray:
    """Convert a column to `target`. `start` is its first row's number, None inside lists."""
    if column in shredders:
        try:
            return shredders[column].shred(array)
        except VariantLakeError as error:
            error.row = None if error.row is None or start is None else start + error.row
            error.say_first(f"column {'.'.join(column)!r}")
            raise
    if not _is_rewritten(column, shredders):
        return array
    nulls = array.is_null()
    inner = [(field.type, (*column, *name)) for name, field in inner_fields(target)]
    if is_struct(array.type):
        parts = [
            _array(part, wanted, name, shredders, start)
            for part, (wanted, name) in zip(struct_of(array).flatten(), inner, strict=True)
        ]
        return pa.StructArray.from_arrays(parts, fields=members(target), mask=nulls)
    offsets, elements = offsets_of(array if isinstance(array, pa.MapArray) else list_of(array))
    values = struct_of(elements).flatten() if isinstance(array, pa.MapArray) else [elements]
    parts = [
        _array(part, wanted, name, shredders, None)
        for part, (wanted, name) in zip(values, inner, strict=True)
    ]
    if isinstance(array, pa.MapArray):
        return map_array(target, offsets, parts, nulls)
    return list_array(target, offsets, parts[0], nulls)
