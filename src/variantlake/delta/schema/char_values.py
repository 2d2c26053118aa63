"""Check values of CHAR(n) and VARCHAR(n) columns on write, and pad CHAR values on read.

As in Spark, lengths are in code points. Writers cut spaces beyond the length and refuse longer
text; readers pad CHAR values with spaces.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import numpy_array
from variantlake.delta.schema.char_types import char_length_of, holds_char
from variantlake.delta.schema.table_schema import ArrayType, DataType, MapType, StructType
from variantlake.errors import InvalidValue
from variantlake.shredding.arrays import (
    AnyArray,
    list_array,
    map_array,
    members,
    offsets_of,
    struct_of,
)


def within_length(array: AnyArray, length: int, name: str) -> AnyArray:
    """Cut spaces beyond `length`. Raises InvalidValue for a string that is still too long."""
    strings: Any = array
    if _lengths(strings).max(initial=0) <= length:
        return array
    trimmed = _lengths(pc.utf8_rtrim(strings, " "))
    too_long = np.flatnonzero(trimmed > length)
    if too_long.size:
        row = int(too_long[0])
        raise InvalidValue(
            f"column {name!r} holds up to {length} characters, and this value has {trimmed[row]}",
            row=row,
            hint="shorten it, or give the column a longer type",
        )
    cut: AnyArray = pc.utf8_slice_codeunits(strings, 0, length)
    return cut


def _lengths(strings: Any) -> npt.NDArray[np.int32]:
    """Return the lengths in code points; 0 for NULL."""
    lengths: Any = pc.utf8_length(strings)
    found: npt.NDArray[np.int32] = numpy_array(lengths)
    return found


def padded_to(array: AnyArray, length: int) -> AnyArray:
    """Pad strings with spaces to `length`; longer ones stay as they are."""
    padded: AnyArray = pc.utf8_rpad(array, length) if length else array
    return padded


def padded(array: AnyArray, declared: DataType) -> AnyArray:
    """Pad every CHAR in a column, at any depth. `declared` is the column's declared type."""
    if not holds_char(declared):
        return array
    match declared:
        case StructType(fields):
            children = [
                padded(child, item.type)
                for child, item in zip(struct_of(array).flatten(), fields, strict=True)
            ]
            return pa.StructArray.from_arrays(
                children, fields=members(array.type), mask=array.is_null()
            )
        case ArrayType(element):
            offsets, elements = offsets_of(array)
            return list_array(array.type, offsets, padded(elements, element), array.is_null())
        case MapType(key, value):
            offsets, entries = offsets_of(array)
            keys, items = struct_of(entries).flatten()
            parts = [padded(keys, key), padded(items, value)]
            return map_array(array.type, offsets, parts, array.is_null())
        case _:
            return padded_to(array, char_length_of(declared))
