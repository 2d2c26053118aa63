"""Write a whole Variant column as JSON text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa

from variantlake.encoding.json_text import to_json as value_to_json
from variantlake.errors import InvalidValue, LimitExceeded, VariantLakeError
from variantlake.kernels.json.json_writer import write_json
from variantlake.kernels.variant.variant_reader import VariantReader, bad_variant
from variantlake.parallel.prefetch import ahead
from variantlake.shredding.arrays import struct_of
from variantlake.shredding.layout import METADATA, VALUE, is_variant_type

BATCH_ROWS = 16384
"""The most rows written at a time."""

BATCH_BYTES = 64 << 20
"""The most bytes of values written at a time; a single value may have more."""


def to_json(column: pa.Array[Any] | pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    """Return a column of struct<metadata, value>, such as `read_table` returns, as JSON texts.

    They are Spark's `to_json`: fields in stored order, decimals without trailing zeros, timestamps
    in UTC. SQL NULL is null, a Variant null the text `null`.

    Raises InvalidValue for another column; MalformedVariant, LimitExceeded and UnknownVariantType,
    with the row, for a value that has no text.
    """
    if not is_variant_type(column.type):
        raise InvalidValue(
            f"a column of {column.type} is not a struct<metadata: binary, value: binary>"
        )
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    readers: list[VariantReader] = []

    def texts_of(part: tuple[pa.StructArray, int]) -> list[pa.Array[Any]]:
        try:
            reader = readers.pop()
        except IndexError:
            reader = VariantReader()
        texts = _texts_of(reader, *part)
        readers.append(reader)
        return texts

    found = ahead(_slices(chunks), texts_of)
    return pa.chunked_array([text for texts in found for text in texts], pa.string())


def _slices(chunks: Sequence[pa.Array[Any]]) -> Iterator[tuple[pa.StructArray, int]]:
    """Yield parts small enough to write at once, each with the number of its first row."""
    row = 0
    for chunk in chunks:
        array = struct_of(chunk)
        start = 0
        while start < len(array):
            rows = min(BATCH_ROWS, len(array) - start)
            while rows > 1 and array.field(VALUE).slice(start, rows).nbytes > BATCH_BYTES:
                rows //= 2
            yield array.slice(start, rows), row + start
            start += rows
        row += len(array)


def _texts_of(reader: VariantReader, array: pa.StructArray, first_row: int) -> list[pa.Array[Any]]:
    """Write the texts of some rows, in several arrays if they are too long for one."""
    tape = reader.read(array)
    try:
        texts, left = write_json(tape)
    except LimitExceeded as too_long:
        if len(array) == 1:
            too_long.row = first_row
            raise
        half = len(array) // 2
        return [
            *_texts_of(reader, array.slice(0, half), first_row),
            *_texts_of(reader, array.slice(half), first_row + half),
        ]
    if tape.bad.any():
        row = int(np.flatnonzero(tape.bad)[0])
        error = bad_variant(array, row)
        error.row = first_row + row
        raise error
    if not left.any():
        return [cast("pa.Array[Any]", texts)]
    rows: list[Any] = cast("Any", texts).to_pylist()
    metadata, value = array.field(METADATA), array.field(VALUE)
    for row in np.flatnonzero(left).tolist():
        try:
            rows[row] = value_to_json(metadata[row].as_py(), value[row].as_py())
        except VariantLakeError as error:
            error.row = first_row + row
            raise
    return [pa.array(rows, pa.string())]
