"""Convert Python and NumPy values to Arrow arrays without importing pandas.

PyArrow imports pandas, if it is installed, before it converts its first value. That costs 0.45 s
and 40 MB in a process that does not use pandas.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.errors import InvalidQuery

_FEW = 1 << 10
"""The most values that this module converts. PyArrow is faster for more, in spite of the import."""


def arrow_array(
    values: Sequence[Any] | npt.NDArray[Any], type_: pa.DataType | None = None, *, mask: Any = None
) -> Any:
    """Convert as `pa.array` does; `mask` is true for the rows of a NumPy array that are null.

    Does not copy a NumPy array of numbers. Twin: `pa.array`, except for pandas objects.

    Raises pyarrow's errors for values that are not of the type.
    """
    array = None
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "iufb" and values.dtype.isnative:
            array = _numbers(values, type_, mask)
    elif type_ is not None and mask is None and len(values) <= _FEW:
        array = _few(values, type_)
    return pa.array(values, type_, mask=mask) if array is None else array


def arrow_scalar(value: Any, type_: pa.DataType) -> Any:
    """Convert as `pa.scalar` does. Raises as `arrow_array`."""
    return arrow_array([value], type_)[0]


def map_values(maps: Any, key: str) -> Any:
    """Return the first value of a string key in each map, null in a map without the key."""
    return pc.map_lookup(maps, arrow_scalar(key, pa.string()), "first")


def _numbers(values: Any, type_: pa.DataType | None, mask: Any) -> Any:
    arrow_type = pa.from_numpy_dtype(values.dtype)
    data: Any = np.ascontiguousarray(values)
    buffers = [
        None if mask is None else _bits(~np.asarray(mask)),
        _bits(values) if values.dtype == np.bool_ else pa.py_buffer(data),
    ]
    array: Any = pa.Array.from_buffers(arrow_type, len(values), buffers)
    return array if type_ in (None, arrow_type) else array.cast(type_)


def _few(values: Sequence[Any], type_: Any) -> Any:
    """Make an array of a common type; None for other types, and for values of another type."""
    if not len(values):
        return pa.nulls(0, type_)
    children: list[Any] = []
    if not pa.types.is_nested(type_):
        buffers = _plain(values, type_)
    elif pa.types.is_struct(type_):
        buffers, children = _struct(values, type_)
    else:
        buffers, children = _lists(values, type_)
    if buffers is None or any(child is None for child in children):
        return None
    is_valid = np.array([value is not None for value in values], np.bool_)
    validity = None if is_valid.all() else _bits(is_valid)
    return pa.Array.from_buffers(type_, len(values), [validity, *buffers], children=children)


def _struct(values: Sequence[Any], type_: Any) -> tuple[list[Any] | None, list[Any]]:
    if not all(isinstance(value, dict) for value in values if value is not None):
        return None, []
    parts = [([(v or {}).get(each.name) for v in values], each.type) for each in type_]
    return [], [_few(*part) for part in parts]


def _lists(values: Sequence[Any], type_: Any) -> tuple[list[Any] | None, list[Any]]:
    """Return the buffers and children of lists, and of maps, whose values are lists of pairs."""
    is_map = pa.types.is_map(type_)
    if not (is_map or pa.types.is_list(type_)):
        return None, []
    if not all(isinstance(value, list | tuple) for value in values if value is not None):
        return None, []
    items = [item for value in values for item in value or ()]
    offsets = [_offsets([len(value or ()) for value in values])]
    if not is_map:
        return offsets, [_few(items, type_.value_type)]
    if not all(isinstance(item, tuple) and len(item) == 2 for item in items):
        return None, []
    names = type_.key_field.name, type_.item_field.name
    entries = [dict(zip(names, item, strict=True)) for item in items]
    return offsets, [_few(entries, pa.struct([type_.key_field, type_.item_field]))]


def _plain(values: Sequence[Any], type_: Any) -> list[Any] | None:
    """Return the buffers of values that are not nested; None if one does not fit the type."""
    kinds = {type(value) for value in values if value is not None}
    try:
        if pa.types.is_string(type_) and kinds <= {str}:
            return _texts([(value or "").encode() for value in values])
        if pa.types.is_binary(type_) and kinds <= {bytes}:
            return _texts([value or b"" for value in values])
        if pa.types.is_boolean(type_) and kinds <= {bool}:
            return [_bits([value or False for value in values])]
        if pa.types.is_signed_integer(type_) and kinds <= {int}:
            words: Any = np.array([value or 0 for value in values], f"i{type_.bit_width // 8}")
            return [pa.py_buffer(words)]
    except (OverflowError, UnicodeEncodeError):
        return None
    return None


def _texts(parts: Sequence[bytes]) -> list[Any]:
    return [_offsets([len(part) for part in parts]), pa.py_buffer(b"".join(parts))]


def _offsets(lengths: Sequence[int]) -> pa.Buffer:
    data: Any = np.cumsum([0, *lengths], dtype=np.int32)
    return pa.py_buffer(data)


def _bits(flags: Any) -> pa.Buffer:
    bits: Any = np.packbits(np.asarray(flags, np.bool_), bitorder="little")
    return pa.py_buffer(bits)


def numpy_array(array: Any, absent: Any = 0) -> npt.NDArray[Any]:
    """Convert as `to_numpy` does; null numbers and booleans become `absent`.

    Does not copy an array of numbers without nulls.
    """
    if isinstance(array, pa.ChunkedArray):
        if array.num_chunks == 1:
            return numpy_array(array.chunk(0), absent)
        parts = [numpy_array(chunk, absent) for chunk in array.chunks]
        return np.concatenate(parts) if parts else numpy_array(pa.nulls(0, array.type))
    dtype = _dtype(array.type)
    if dtype is None and len(array) <= _FEW and _is_text(array.type):
        return np.array(array.to_pylist(), np.object_)
    if dtype is None:
        return np.asarray(array.to_numpy(zero_copy_only=False))
    validity, data = array.buffers()
    first, count = array.offset, len(array)
    if dtype == np.bool_:
        values = _flags(data, first, count)
    elif data is None or not count:
        values = np.zeros(count, dtype)
    else:
        values = np.frombuffer(data, dtype, count, first * dtype.itemsize)
    if not array.null_count:
        return values
    return np.where(_flags(validity, first, count), values, np.array(absent, dtype))


def _is_text(type_: Any) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_binary(type_))


def _dtype(type_: Any) -> np.dtype[Any] | None:
    """Return the NumPy type of an Arrow type; None unless it is a number or a boolean."""
    if pa.types.is_boolean(type_):
        return np.dtype(np.bool_)
    if pa.types.is_signed_integer(type_):
        return np.dtype(f"i{type_.bit_width // 8}")
    if pa.types.is_unsigned_integer(type_):
        return np.dtype(f"u{type_.bit_width // 8}")
    return np.dtype(f"f{type_.bit_width // 8}") if pa.types.is_floating(type_) else None


def _flags(bits: pa.Buffer | None, first: int, count: int) -> npt.NDArray[np.bool_]:
    """Unpack `count` bits from bit `first` on; all false without a buffer."""
    if bits is None or not count:
        return np.zeros(count, np.bool_)
    data: Any = bits
    words = np.frombuffer(data, np.uint8)[first // 8 : (first + count + 7) // 8]
    start = first % 8
    return np.unpackbits(words, bitorder="little")[start : start + count].view(np.bool_)


def distinct_names(schema: pa.Schema) -> list[str]:
    """The names of the columns. Raises InvalidQuery if two are equal: an object has each once."""
    if len(set(schema.names)) < len(schema.names):
        raise InvalidQuery(
            f"two columns have one name: {schema.names}", hint="give them names of their own, by AS"
        )
    return schema.names
