"""The few machine-level operations: unaligned words, block copies, SIMD scans.

Each has two forms with the same results. The compiled one is an LLVM snippet (`compile.snippets`)
without bounds checks. Callers must guarantee PADDING readable bytes after the last position that
they read, and PADDING writable bytes after the last one that they copy to. The plain form, below,
is Python with array indexing; it runs in pure Python, and compiled when bounds are checked.
"""

from __future__ import annotations

import numpy as np

from variantlake.kernels.native.declared import Bytes, int64, uint64
from variantlake.kernels.native.jit import helper, machine, tiny

PADDING = 64
"""Bytes after the last one of interest that block operations may touch."""


@machine(memory=True)
def load8(array: Bytes, index: int) -> int:
    """Return the byte at `index`, as int64."""
    return int64(array[uint64(index)])


@machine(memory=True)
def load32(array: Bytes, index: int) -> int:
    """Return the 4 bytes from `index` on, little-endian, unsigned."""
    word = int64(0)
    for k in range(4):
        word |= int64(array[uint64(index + k)]) << int64(8 * k)
    return word


@tiny
def load_unsigned(array: Bytes, index: int, width: int) -> int:
    """Return an unsigned little-endian number of 1 to 4 bytes; reads 4."""
    return load32(array, index) & ((int64(1) << (8 * width)) - 1)


@machine(memory=True)
def load64(array: Bytes, index: int) -> int:
    """Return the 8 bytes from `index` on, little-endian, two's complement."""
    word = uint64(0)
    for k in range(8):
        word |= uint64(array[uint64(index + k)]) << uint64(8 * k)
    return int64(word)


@helper
def _store(array: Bytes, index: int, value: int, width: int) -> None:
    for k in range(width):
        array[uint64(index + k)] = np.uint8((int64(value) >> int64(8 * k)) & int64(255))


@machine(memory=True)
def store8(array: Bytes, index: int, value: int) -> None:
    """Write the low byte of `value`."""
    _store(array, index, value, 1)


@machine(memory=True)
def store16(array: Bytes, index: int, value: int) -> None:
    """Write the low 2 bytes of `value`, little-endian."""
    _store(array, index, value, 2)


@machine(memory=True)
def store32(array: Bytes, index: int, value: int) -> None:
    """Write the low 4 bytes of `value`, little-endian."""
    _store(array, index, value, 4)


@machine(memory=True)
def store64(array: Bytes, index: int, value: int) -> None:
    """Write the 8 bytes of `value`, little-endian."""
    _store(array, index, value, 8)


@machine(memory=True)
def copy_block(target: Bytes, to: int, source: Bytes, start: int) -> None:
    """Copy 32 bytes; the ranges may not overlap."""
    for k in range(32):
        target[uint64(to + k)] = source[uint64(start + k)]


@machine(memory=True)
def scan_string(array: Bytes, index: int) -> int:
    """Classify 32 bytes of a JSON string.

    Bit i of the result is set if byte i ends a run of plain text (quote, backslash, control
    character), bit 32 + i if byte i is not ASCII.
    """
    word = int64(0)
    for k in range(32):
        byte = int64(array[uint64(index + k)])
        if byte == 34 or byte == 92 or byte < 32:
            word |= int64(1) << int64(k)
        if byte >= 128:
            word |= int64(1) << int64(32 + k)
    return word


@machine(memory=True)
def equal_block(first: Bytes, start: int, second: Bytes, other: int) -> int:
    """Return a word whose bit i is set if first[start + i] == second[other + i], for 32 bytes."""
    word = int64(0)
    for k in range(32):
        if first[uint64(start + k)] == second[uint64(other + k)]:
            word |= int64(1) << int64(k)
    return word


@machine(memory=True)
def match_block(array: Bytes, index: int, byte: int) -> int:
    """Return a word whose bit i is set if array[index + i] == byte, for 64 bytes."""
    word = uint64(0)
    for k in range(64):
        if int64(array[uint64(index + k)]) == byte:
            word |= uint64(1) << uint64(k)
    return int64(word)


@machine(memory=False)
def trailing_zeros(word: int) -> int:
    """Count the zero bits below the lowest set bit; 64 for 0."""
    bits = int(word) & 0xFFFFFFFFFFFFFFFF
    return int64((bits & -bits).bit_length() - 1 if bits else 64)


@machine(memory=False)
def leading_zeros(word: int) -> int:
    """Count the zero bits above the highest set bit of a uint64; 64 for 0."""
    return int64(64 - int(word).bit_length())


@machine(memory=False)
def multiply_high(one: int, two: int) -> int:
    """Return the upper 64 bits of the product of two uint64."""
    return uint64(int(one) * int(two) >> 64)


@machine(memory=False)
def float_bits(number: float) -> int:
    """Return the IEEE 754 bits of a double."""
    return int64(np.float64(number).view(np.int64))


@tiny
def copy_bytes(target: Bytes, to: int, source: Bytes, start: int, count: int) -> None:
    """Copy `count` bytes in blocks of 32; touches up to 31 bytes after the end of both ranges."""
    done = int64(0)
    while done < count:
        copy_block(target, to + done, source, start + done)
        done += 32
