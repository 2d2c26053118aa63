"""Decode integers stored as differences from the one before: numbers, and lengths of texts.

Spec: Parquet, "Delta Encoding (DELTA_BINARY_PACKED)".
"""

from __future__ import annotations

from variantlake.kernels.columns.hybrid import packed, varint
from variantlake.kernels.native.declared import Bytes, Int64s, int64, uint64
from variantlake.kernels.native.jit import helper
from variantlake.kernels.tape.words import load8, load64


@helper
def _zigzag(data: Bytes, at: int, out: Int64s, slot: int) -> int:
    """Read a signed number of 64 bits into out[slot]; returns where it ends, or -1."""
    result = shift = int64(0)
    while at < data.size and shift < 70:
        byte = load8(data, at)
        at += 1
        if shift < 64:
            result |= (byte & 127) << shift
        if byte < 128:
            out[uint64(slot)] = (result >> 1 & 0x7FFFFFFFFFFFFFFF) ^ -(result & 1)
            return at
        shift += 7
    return -1


@helper
def differences(
    values: Bytes, start: int, count: int, numbers: Int64s, place: int, scratch: Int64s
) -> int:
    """Decode `count` integers that begin at a byte to numbers[place:]; returns their end, or -1."""
    at = varint(values, start, scratch, int64(0))
    block = scratch[uint64(0)]
    if at < 0 or block <= 0 or block > 1 << 20 or block % 128:
        return -1
    at = varint(values, at, scratch, int64(0))
    parts = scratch[uint64(0)]
    if at < 0 or parts <= 0 or parts > block or block % parts or block // parts % 32:
        return -1
    at = varint(values, at, scratch, int64(0))
    if at < 0 or scratch[uint64(0)] != count:
        return -1
    at = _zigzag(values, at, scratch, int64(0))
    if at < 0:
        return -1
    if count == 0:
        return at
    last = scratch[uint64(0)]
    numbers[uint64(place)] = last
    size, done = block // parts, int64(1)
    while done < count:
        at = _zigzag(values, at, scratch, int64(0))
        if at < 0 or parts > values.size - at:
            return -1
        least, widths = scratch[uint64(0)], at
        at += parts
        for part in range(parts):
            if done == count:
                break  # what follows holds no value, and may be left out
            width = load8(values, widths + int64(part))
            if width > 64 or size // 8 * width > values.size - at:
                return -1
            bit, mask = at * 8, (int64(1) << width) - 1
            run = min(size, count - done)
            if width <= 56 and at + size // 8 * width + 8 <= values.size:
                for k in range(run):
                    last += least + (load64(values, bit >> 3) >> (bit & 7) & mask)
                    numbers[uint64(place + done + int64(k))] = last
                    bit += width
            else:
                for k in range(run):
                    last += least + packed(values, bit, width)
                    numbers[uint64(place + done + int64(k))] = last
                    bit += width
            done += run
            at += size // 8 * width
    return at
