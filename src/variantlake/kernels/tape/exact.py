"""Convert exact numbers of the tape to a decimal column's scale."""

from __future__ import annotations

import numpy as np

from variantlake.kernels.native.declared import Bytes, Records, int64, uint64
from variantlake.kernels.native.jit import helper, tiny
from variantlake.kernels.tape.nodes import DECIMAL4, DECIMAL16, INT8, INT64
from variantlake.kernels.tape.words import load64, multiply_high, store64

POWERS = np.array([10**power for power in range(19)], np.int64)
"""Powers of ten within int64."""

WHOLE, PADDED = 4, 8
"""Forms of decimals that are longer than necessary; bits of a field's `special`."""

_WIDE = [10**power for power in range(39)]
_WIDE_HIGH = np.array([power >> 64 for power in _WIDE], np.uint64)
_WIDE_LOW = np.array([power & 0xFFFFFFFFFFFFFFFF for power in _WIDE], np.uint64)

_TEN, _SIX, _ONE, _HALF = uint64(10), uint64(6), uint64(1), uint64(32)
_LARGEST = uint64((1 << 63) - 1)
BILLION = uint64(10**9)
_LOW_HALF = uint64(0xFFFFFFFF)
_OVERFLOW = uint64((1 << 127) // 10 >> 64)
"""Ten times a 128-bit number stays below 2**128 if the number's upper half is at most this."""


@tiny
def is_exact_number(tag: int) -> bool:
    """Whether the tag is that of an integer or a decimal."""
    return INT8 <= tag <= INT64 or DECIMAL4 <= tag <= DECIMAL16


@tiny
def scale_of(node: Records) -> int:
    """Return the scale of an exact number's node."""
    return int64(node.extra) if node.tag >= DECIMAL4 else int64(0)


@tiny
def negate(low: int, high: int) -> tuple[int, int]:
    """Negate a 128-bit number given as two uint64."""
    low = ~low + _ONE
    high = ~high
    if low == 0:
        high = high + _ONE
    return low, high


@tiny
def magnitude(text: Bytes, arena: Bytes, node: Records) -> tuple[int, int, bool]:
    """Return an exact number's unscaled magnitude as two uint64, and whether it is negative."""
    value = int64(node.value)
    if node.tag == DECIMAL16:
        if value >= 0:
            low, high = uint64(load64(text, value)), uint64(load64(text, value + 8))
        else:
            low, high = uint64(load64(arena, ~value)), uint64(load64(arena, ~value + 8))
    else:
        low, high = uint64(value), uint64(value >> int64(63))
    negative = int64(high) < 0
    if negative:
        low, high = negate(low, high)
    return low, high, negative


@tiny
def divide(low: int, high: int, by: int) -> tuple[int, int, int]:
    """Divide a number of two uint64 by one below 2**32; return the quotient's halves, the rest."""
    # Long division, the lower half in two steps.
    quotient = high // by
    upper = ((high - quotient * by) << _HALF) | (low >> _HALF)
    middle = upper // by
    lower = ((upper - middle * by) << _HALF) | (low & _LOW_HALF)
    last = lower // by
    return (middle << _HALF) | last, quotient, lower - last * by


@helper
def count_digits(text: Bytes, arena: Bytes, node: Records) -> int:
    """Return the number of decimal digits of an exact number's unscaled value; 0 has none."""
    low, high, _ = magnitude(text, arena, node)
    digits = int64(0)
    while digits < 39 and (
        high > _WIDE_HIGH[uint64(digits)]
        or (high == _WIDE_HIGH[uint64(digits)] and low >= _WIDE_LOW[uint64(digits)])
    ):
        digits += 1
    return digits


@helper
def put_decimal(
    text: Bytes, arena: Bytes, node: Records, precision: int, scale: int, out: Bytes, to: int
) -> bool:
    """Write an exact number as a decimal128(precision, scale), 16 bytes, little-endian.

    Returns False, without writing, if that would change its value.
    """
    low, high, negative = magnitude(text, arena, node)
    missing = scale - scale_of(node)
    while missing > 0 and (low | high) != 0:
        if high > _OVERFLOW:
            return False
        carry = multiply_high(low, _TEN)
        low = low * _TEN
        high = high * _TEN + carry
        missing -= 1
    while missing < 0 and (low | high) != 0:
        low, high, rest = divide(low, high, _TEN)
        if rest != 0:
            return False
        missing += 1
    most_high, most_low = _WIDE_HIGH[uint64(precision)], _WIDE_LOW[uint64(precision)]
    if high > most_high or (high == most_high and low >= most_low):
        return False
    if negative:
        low, high = negate(low, high)
    store64(out, to, int64(low))
    store64(out, to + 8, int64(high))
    return True


@tiny
def fits_decimal(
    text: Bytes, arena: Bytes, node: Records, precision: int, scale: int, spare: Bytes
) -> bool:
    """Whether a decimal(precision, scale) holds the node's value exactly.

    spare: 16 bytes that may be overwritten.
    """
    missing = scale - scale_of(node)
    if node.tag != DECIMAL16 and missing >= 0:
        value = int64(node.value)
        room = precision - missing
        if room >= 19:
            return True
        if room < 0:
            return value == 0
        limit = int64(POWERS[uint64(room)])
        return -limit < value < limit
    return put_decimal(text, arena, node, precision, scale, spare, int64(0))


@tiny
def longer_form(text: Bytes, arena: Bytes, node: Records, spare: Bytes, at: int) -> int:
    """Return the form of a decimal that is longer than necessary, or 0.

    WHOLE: its fraction is zero, or it has none and an integer of 64 bits holds it. PADDED: its
    fraction ends in a zero. spare: 16 bytes at `at` may be overwritten.
    """
    scale = int64(node.extra)
    if node.tag != DECIMAL16:
        value = int64(node.value)
        if scale == 0:
            return WHOLE
        if value % 10 != 0:
            return int64(0)
        if scale <= 18:
            return WHOLE if value % POWERS[uint64(scale)] == 0 else PADDED
    else:
        low, high, _ = magnitude(text, arena, node)
        if scale == 0:
            return WHOLE if high == 0 and low <= _LARGEST else int64(0)
        # 2**64 ends in 6.
        if (low % _TEN + (high % _TEN) * _SIX) % _TEN != 0:
            return int64(0)
    if put_decimal(text, arena, node, int64(38), int64(0), spare, at):
        return WHOLE
    return PADDED
