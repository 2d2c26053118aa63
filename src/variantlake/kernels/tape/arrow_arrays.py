"""Arrow arrays made of buffers that kernels filled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa

from variantlake.kernels.native.declared import Bytes

AnyArray: TypeAlias = "pa.Array[pa.Scalar[pa.DataType]]"

LARGEST_ARRAY = (1 << 31) - 1
"""Bytes of an Arrow array of strings or binaries, whose offsets have 32 bits."""


def buffer_of(array: np.ndarray[Any, Any]) -> pa.Buffer:
    """The memory of a contiguous NumPy array, which stays alive with the buffer."""
    return pa.py_buffer(cast("bytes", array))


def new_buffer(size: int) -> tuple[pa.Buffer, Bytes]:
    """Uninitialised memory of Arrow's pool, which reuses it, and the same as bytes to write to."""
    buffer = pa.allocate_buffer(size)
    return buffer, cast("Bytes", np.frombuffer(cast("bytes", buffer), np.uint8))


def larger_buffer(out: Bytes, used: int) -> tuple[pa.Buffer, Bytes]:
    """Twice the memory, LARGEST_ARRAY at most, whose first `used` bytes are those of `out`."""
    buffer, larger = new_buffer(min(2 * len(out), LARGEST_ARRAY))
    larger[:used] = out[:used]
    return buffer, larger


def bitmap_of(good: np.ndarray[Any, np.dtype[np.bool_]]) -> pa.Buffer | None:
    """Slots that are not null as an Arrow bitmap; None when all are."""
    return None if good.all() else buffer_of(np.packbits(good, bitorder="little"))


def plain_binary(array: AnyArray) -> AnyArray:
    """A column of bytes of any kind with 32-bit offsets."""
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    return array if pa.types.is_binary(array.type) else array.cast(pa.binary())


def slots_of(array: AnyArray) -> tuple[Bytes, Any]:
    """The data of strings or bytes, and the offsets of the slots, int32 or int64, not checked."""
    is_large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    wide = np.int64 if is_large else np.int32
    _, places, content = array.buffers()
    if places is None or not len(places):  # none at all, for no slots
        return np.empty(0, np.uint8), np.zeros(len(array) + 1, wide)
    offsets = np.frombuffer(cast("bytes", places), wide)
    offsets = offsets[array.offset : array.offset + len(array) + 1]
    return cast("Bytes", np.frombuffer(cast("bytes", content or b""), np.uint8)), offsets


def are_within(offsets: np.ndarray[Any, Any], data: Bytes) -> bool:
    """Whether slots lie one after the other in the data."""
    return bool(offsets[0] >= 0 and offsets[-1] <= len(data) and (np.diff(offsets) >= 0).all())


def array_of(
    arrow: pa.DataType, rows: int, buffers: Sequence[pa.Buffer | None], *, nulls: int = 0
) -> AnyArray:
    """An array without children; the buffers in Arrow's order. Extension types are wrapped."""
    if isinstance(arrow, pa.BaseExtensionType):
        storage = array_of(arrow.storage_type, rows, buffers, nulls=nulls)
        return pa.ExtensionArray.from_storage(arrow, storage)
    return pa.Array.from_buffers(arrow, rows, list(buffers), null_count=nulls)


def struct_of(
    arrow: pa.DataType, rows: int, valid: pa.Buffer | None, children: Sequence[AnyArray]
) -> pa.StructArray:
    """A struct array of exactly the type `arrow`."""
    array = pa.Array.from_buffers(arrow, rows, [valid], children=list(children))
    return cast("pa.StructArray", array)


def list_of(
    arrow: pa.DataType,
    rows: int,
    valid: pa.Buffer | None,
    offsets: pa.Buffer,
    items: AnyArray,
) -> AnyArray:
    """A list array of exactly the type `arrow`."""
    return pa.Array.from_buffers(arrow, rows, [valid, offsets], children=[items])


def nulls_of(arrow: pa.DataType, rows: int) -> AnyArray:
    """`rows` nulls."""
    return cast("AnyArray", pa.nulls(rows, cast("Any", arrow)))
