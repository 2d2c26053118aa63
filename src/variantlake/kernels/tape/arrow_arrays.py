"""Make Arrow arrays of buffers that kernels filled, and take arrays apart for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa

from variantlake.kernels.native.declared import Bytes

AnyArray: TypeAlias = "pa.Array[pa.Scalar[pa.DataType]]"

LARGEST_ARRAY = (1 << 31) - 1
"""The most bytes of an Arrow array of strings or binaries, whose offsets have 32 bits."""


def buffer_of(array: np.ndarray[Any, Any]) -> pa.Buffer:
    """Return the memory of a contiguous NumPy array; the buffer keeps the array alive."""
    return pa.py_buffer(cast("bytes", array))


def new_buffer(size: int) -> tuple[pa.Buffer, Bytes]:
    """Return uninitialised memory of Arrow's pool and, as writable bytes, the same memory."""
    buffer = pa.allocate_buffer(size)
    return buffer, cast("Bytes", np.frombuffer(cast("bytes", buffer), np.uint8))


def larger_buffer(out: Bytes, used: int) -> tuple[pa.Buffer, Bytes]:
    """Double the memory, to LARGEST_ARRAY at most, and copy the first `used` bytes of `out`."""
    buffer, larger = new_buffer(min(2 * len(out), LARGEST_ARRAY))
    larger[:used] = out[:used]
    return buffer, larger


def bitmap_of(good: np.ndarray[Any, np.dtype[np.bool_]]) -> pa.Buffer | None:
    """Return an Arrow validity bitmap of the good slots; None when all are good."""
    return None if good.all() else buffer_of(np.packbits(good, bitorder="little"))


def plain_binary(array: AnyArray) -> AnyArray:
    """Convert a column of bytes of any Arrow type to binary with 32-bit offsets."""
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    return array if pa.types.is_binary(array.type) else array.cast(pa.binary())


def slots_of(array: AnyArray) -> tuple[Bytes, Any]:
    """Return the data of strings or bytes, and the slots' offsets, int32 or int64, unchecked."""
    is_large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    wide = np.int64 if is_large else np.int32
    _, places, content = array.buffers()
    if places is None or not len(places):  # Arrow may leave them out of an empty array
        return np.empty(0, np.uint8), np.zeros(len(array) + 1, wide)
    offsets = np.frombuffer(cast("bytes", places), wide)
    offsets = offsets[array.offset : array.offset + len(array) + 1]
    return cast("Bytes", np.frombuffer(cast("bytes", content or b""), np.uint8)), offsets


def are_within(offsets: np.ndarray[Any, Any], data: Bytes) -> bool:
    """Whether the offsets ascend and stay within the data."""
    return bool(offsets[0] >= 0 and offsets[-1] <= len(data) and (np.diff(offsets) >= 0).all())


def array_of(
    arrow: pa.DataType, rows: int, buffers: Sequence[pa.Buffer | None], *, nulls: int = 0
) -> AnyArray:
    """Make an array without children, also of an extension type; buffers in Arrow's order."""
    if isinstance(arrow, pa.BaseExtensionType):
        storage = array_of(arrow.storage_type, rows, buffers, nulls=nulls)
        return pa.ExtensionArray.from_storage(arrow, storage)
    return pa.Array.from_buffers(arrow, rows, list(buffers), null_count=nulls)


def struct_of(
    arrow: pa.DataType, rows: int, valid: pa.Buffer | None, children: Sequence[AnyArray]
) -> pa.StructArray:
    """Make a struct array of exactly the type `arrow`."""
    array = pa.Array.from_buffers(arrow, rows, [valid], children=list(children))
    return cast("pa.StructArray", array)


def list_of(
    arrow: pa.DataType,
    rows: int,
    valid: pa.Buffer | None,
    offsets: pa.Buffer,
    items: AnyArray,
) -> AnyArray:
    """Make a list array of exactly the type `arrow`."""
    return pa.Array.from_buffers(arrow, rows, [valid, offsets], children=[items])


def nulls_of(arrow: pa.DataType, rows: int) -> AnyArray:
    """Make an array of `rows` nulls."""
    return cast("AnyArray", pa.nulls(rows, cast("Any", arrow)))
