"""Gather the values of a column at given places: numbers, and dictionary codes."""

from __future__ import annotations

from typing import Any

from variantlake.kernels.native.declared import (
    Bytes,
    BytesIn,
    Int32s,
    Int32sIn,
    Int64s,
    Int64sIn,
    int64,
    uint64,
)
from variantlake.kernels.native.jit import entry, tiny
from variantlake.kernels.tape.words import load8


@tiny
def _gathered(values: Any, bits: Bytes, offset: int, places: Int64s, out: Any, valid: Bytes) -> int:
    """See `gather_longs`; values and out: int32 or int64."""
    if out.size < places.size or offset < 0:
        return -1
    if bits.size > 0 and valid.size < places.size:
        return -1
    if bits.size > 0 and (offset + int64(values.size) + 7) >> 3 > bits.size:
        return -1
    count = int64(places.size)
    if bits.size == 0:
        for row in range(places.size):
            place = places[uint64(row)]
            if place < 0 or place >= values.size:
                return -1
            out[uint64(row)] = values[uint64(place)]
        return count
    count = int64(0)
    for row in range(places.size):
        place = places[uint64(row)]
        if place < 0 or place >= values.size:
            return -1
        at = offset + place
        there = load8(bits, at >> 3) >> (at & 7) & 1
        out[uint64(row)] = int64(values[uint64(place)]) * there
        valid[uint64(row)] = there
        count += there
    return count


@entry
def gather_codes(
    values: Int32sIn, bits: BytesIn, offset: int, places: Int64sIn, out: Int32s, valid: Bytes
) -> int:
    """The same for int32."""
    return _gathered(values, bits, offset, places, out, valid)


@entry
def gather_longs(
    values: Int64sIn, bits: BytesIn, offset: int, places: Int64sIn, out: Int64s, valid: Bytes
) -> int:
    """Copy the values at some places; returns how many of them are valid, or -1.

    values, out: int64. bits: uint8, Arrow's bitmap of the values that are valid, the first of which
    is bit `offset`; empty if all are. places: int64. out: one for each place. valid: uint8, 1
    for each place whose value is valid, else 0; empty if all values are. -1 for a place beyond the
    values. Allocates nothing, never raises. Twin: Arrow's `take`.
    """
    return _gathered(values, bits, offset, places, out, valid)
