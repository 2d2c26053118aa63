"""Decode numbers of a few bits in runs, the form of levels and dictionary codes in pages.

Spec: Parquet, "Run Length Encoding / Bit-Packing Hybrid".
"""

from __future__ import annotations

from variantlake.kernels.native.declared import Bytes, Int32s, Int64s, int64, uint64
from variantlake.kernels.native.jit import helper, tiny
from variantlake.kernels.tape.words import load8, load64


@tiny
def varint(data: Bytes, at: int, out: Int64s, slot: int) -> int:
    """Read an unsigned number of up to 63 bits into out[slot]; returns where it ends, or -1."""
    result = shift = int64(0)
    while at < data.size and shift < 63:
        byte = load8(data, at)
        at += 1
        result |= (byte & 127) << shift
        if byte < 128:
            out[uint64(slot)] = result
            return at
        shift += 7
    return -1


@tiny
def packed(data: Bytes, bit: int, width: int) -> int:
    """The number of `width` bits, 0 to 64, that begins at a bit, whose bytes must exist."""
    at, shift = bit >> 3, bit & 7
    if width == 0:
        return int64(0)
    if at + 9 <= data.size:
        word = load64(data, at)
        last = load8(data, at + 8)
    else:
        word = last = int64(0)
        for k in range(min(int64(data.size) - at, 9)):
            if k < 8:
                word |= load8(data, at + k) << (8 * k)
            else:
                last = load8(data, at + k)
    if shift > 0:
        word = (word >> shift & ((int64(1) << (64 - shift)) - 1)) | last << (64 - shift)
    return word if width == 64 else word & ((int64(1) << width) - 1)


@helper
def unpack(data: Bytes, at: int, width: int, count: int, out: Int32s, place: int) -> None:
    """Unpack `count` numbers of `width` bits, 0 to 31, that begin at a byte."""
    mask, done = (int64(1) << width) - 1, int64(0)
    if 0 < width <= 16:
        # Eight numbers are `width` bytes: four of them are within one word.
        half, shift = width >> 1, (width & 1) * 4
        while done + 8 <= count and at + half + 8 <= data.size:
            one, other = load64(data, at), load64(data, at + half) >> shift
            for k in range(4):
                out[uint64(place + done + int64(k))] = one >> (width * int64(k)) & mask
                out[uint64(place + done + 4 + int64(k))] = other >> (width * int64(k)) & mask
            at += width
            done += 8
    bit = at * 8
    while width > 16 and done < count and (bit >> 3) + 8 <= data.size:
        out[uint64(place + done)] = load64(data, bit >> 3) >> (bit & 7) & mask
        bit += width
        done += 1
    for k in range(done, count):
        out[uint64(place + int64(k))] = packed(data, bit, width)
        bit += width


@helper
def hybrid(data: Bytes, width: int, count: int, out: Int32s, place: int, scratch: Int64s) -> int:
    """Decode `count` numbers of `width` bits, 0 to 31, to out[place:]; returns 0, or -1.

    Spec: "Run Length Encoding / Bit-Packing Hybrid".
    """
    at = done = int64(0)
    while done < count:
        at = varint(data, at, scratch, int64(0))
        if at < 0:
            return -1
        header, left = scratch[uint64(0)], int64(data.size) - at
        if header & 1:
            groups = header >> 1
            if groups == 0 or groups > 1 << 31 or groups * width > left:
                return -1
            run = min(groups * 8, count - done)
            unpack(data, at, width, run, out, place + done)
            at += groups * width
        else:
            size = (width + 7) // 8
            if header == 0 or size > left:
                return -1
            value = packed(data, at * 8, size * 8)
            at += size
            run = min(header >> 1, count - done)
            for k in range(run):
                out[uint64(place + done + k)] = value
        done += run
    return 0
