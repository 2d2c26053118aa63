"""Write quarantine lines for rows of Arrow data with a bad Variant or document."""

from __future__ import annotations

import base64
import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from variantlake.export.time_texts import with_time_texts
from variantlake.ingest.encode.encode import Reason, VariantColumn
from variantlake.shown import utf8_text
from variantlake.shredding.arrays import AnyArray, map_leaves


def row_lines(
    piece: pa.RecordBatch,
    is_bad: npt.NDArray[np.bool_],
    columns: Sequence[tuple[str, VariantColumn, Sequence[int]]],
    before: int,
) -> Iterator[bytes]:
    """Write a line for each bad row: the reason of its first bad column, and all its values.

    `columns` are those with bad Variants, each with its bad rows; `before` is the number of rows
    before the piece.
    """
    names = piece.schema.names
    reasons: dict[int, tuple[str, Reason]] = {}
    for name, encoder, bad in columns:
        of_column = [row for row in bad if row not in reasons]
        found = encoder.reasons(piece.column(name), of_column)
        reasons |= zip(of_column, zip(itertools.repeat(name), found, strict=False), strict=True)
    rows = np.flatnonzero(is_bad).astype(np.int64)
    values = [_values(piece.column(name).take(rows)) for name in names]
    for row, of_row in zip(rows.tolist(), zip(*values, strict=True), strict=True):
        name, (message, line, column) = reasons[row]
        given = {key: jsonable(value) for key, value in zip(names, of_row, strict=True)}
        text = of_row[names.index(name)]
        if isinstance(text, bytes):  # JSON: as text, if it is UTF-8
            with contextlib.suppress(UnicodeDecodeError):
                given[name] = text.decode()
        place = {} if line is None else {"line": line, "column": column}
        record = {"reason": utf8_text(message), **place, "row": before + row, "values": given}
        yield orjson.dumps(record, default=str, option=orjson.OPT_APPEND_NEWLINE)


def _values(column: AnyArray) -> list[Any]:
    try:
        return column.to_pylist()
    except (ValueError, OverflowError):
        return [_row_value(column.slice(row, 1)) for row in range(len(column))]


def _row_value(column: AnyArray) -> Any:
    """Return the value of a column of one row; text for times that Python's types cannot hold.

    Text that is not UTF-8, which Arrow does not check, becomes bytes.
    """
    try:
        return column[0].as_py()
    except (ValueError, OverflowError):
        column = with_time_texts(column)
    try:
        return column[0].as_py()
    except UnicodeDecodeError:
        is_text = pa.types.is_string, pa.types.is_large_string
        column = map_leaves(
            column,
            lambda leaf: leaf.cast(pa.binary()) if any(f(leaf.type) for f in is_text) else leaf,
        )
    return column[0].as_py()


def jsonable(value: Any) -> Any:
    """Convert an Arrow value for JSON: bytes to base64, and large integers to text."""
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case dict():
            return {str(key): jsonable(child) for key, child in value.items()}
        case list() | tuple():
            return [jsonable(child) for child in value]
        case int() if not -(1 << 63) <= value < 1 << 63:
            return str(value)
    return value
