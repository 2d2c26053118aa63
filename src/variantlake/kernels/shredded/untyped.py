"""Metadata and value of `untyped_value`s in one binary. Twin: shredding.legacy.layout."""

from __future__ import annotations

from variantlake.kernels.native.declared import (
    Bytes,
    BytesIn,
    Int32s,
    Int64sIn,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import entry, helper
from variantlake.kernels.tape.words import copy_bytes, load8, load32


@helper
def _metadata_size(data: Bytes, start: int, end: int) -> int:
    """Bytes of the metadata that data[start:end] begins with; -1 when it has none or no value."""
    if start == end:
        return int64(-1)
    header = load8(data, start)
    width = (header >> 6) + 1
    mask = (int64(1) << (8 * width)) - 1
    if header & 0x0F != 1 or end - start < 1 + width:
        return int64(-1)
    count = load32(data, start + 1) & mask
    strings = start + 1 + (count + 2) * width
    if strings > end:
        return int64(-1)
    size = strings - start + (load32(data, strings - width) & mask)
    if size >= end - start:
        return int64(-1)
    return size


@entry
def split_untyped(
    data: BytesIn,
    offsets: Int64sIn,
    is_set: BytesIn,
    metadata: Bytes,
    metadata_ends: Int32s,
    value: Bytes,
    value_ends: Int32s,
    bad: Bytes,
) -> None:
    """Take the binaries data[offsets[i]:offsets[i + 1]] that are set apart.

    data: uint8, any bytes, padded, less than 2**31 of them; offsets: int64, ascending, within it.
    metadata, value: uint8, as long as data each, filled one after another; metadata_ends,
    value_ends: int32, slots + 1, the offsets of the parts. bad: uint8, one a slot, zero; set for
    what has no metadata or no value, both of whose parts are empty. The order of the dictionary's
    offsets is not checked. Allocates nothing, never raises.
    """
    to_metadata, to_value = int64(0), int64(0)
    metadata_ends[uint64(0)] = 0
    value_ends[uint64(0)] = 0
    for i in range(is_set.size):
        if is_set[uint64(i)] != 0:
            start, end = offsets[uint64(i)], offsets[uint64(i + 1)]
            size = _metadata_size(data, start, end)
            if size < 0:
                bad[uint64(i)] = 1
            else:
                copy_bytes(metadata, to_metadata, data, start, size)
                copy_bytes(value, to_value, data, start + size, end - start - size)
                to_metadata += size
                to_value += end - start - size
        metadata_ends[uint64(i + 1)] = to_metadata
        value_ends[uint64(i + 1)] = to_value
