"""JSON numbers, typed as Spark's `parse_json` types them.

An integer takes the narrowest width; beyond int64 it is a decimal of scale 0 up to 38 digits. A
number with a point and no exponent is a decimal, exactly as written, up to 38 digits and scale 38.
Everything else is a double, correctly rounded. Twin: encoding.json.
"""

from __future__ import annotations

import struct

import numpy as np

from variantlake.encoding.limits import MAX_NUMBER_DIGITS
from variantlake.kernels.json.doubles import UNDECIDED, double_bits
from variantlake.kernels.native.declared import Bytes, Int64s, Records, float64, int64, uint64
from variantlake.kernels.native.jit import helper, tiny
from variantlake.kernels.tape.exact import negate
from variantlake.kernels.tape.nodes import (
    DECIMAL4,
    DECIMAL8,
    DECIMAL16,
    DOUBLE,
    integer_size,
    integer_tag,
)
from variantlake.kernels.tape.words import float_bits, load8, load64, multiply_high, store64

UNDECIDED_DOUBLE = 64
"""Tag of a DOUBLE node that Python must finish: value is where its text starts, extra its
length."""

ARENA, UNDECIDED_COUNT = 2, 3
"""Places in the reader's state: used bytes of the arena; the number of UNDECIDED_DOUBLE nodes."""

_FAST_DIGITS = 18
"""A number with up to this many digits always fits in an int64."""

_ZEROS = 0x3030303030303030
_TENS = np.array([10.0**power for power in range(23)])
"""Powers of ten that are exact as doubles."""


@tiny
def digits8(word: int) -> int:
    """Parse 8 ASCII digits, the first in the low byte; return -1 if not all are digits."""
    digits = word ^ _ZEROS
    if ((digits + 0x0606060606060606) | digits) & -0x0F0F0F0F0F0F0F10 != 0:
        return int64(-1)
    digits = (digits * 10 + (digits >> 8)) & 0x00FF00FF00FF00FF
    digits = (digits * 100 + (digits >> 16)) & 0x0000FFFF0000FFFF
    return (digits * 10000 + (digits >> 32)) & 0xFFFFFFFF


@helper
def _round(text: Bytes, start: int, end: int) -> int:
    """Return the bits of the double nearest to text[start:end], without the sign, or UNDECIDED."""
    digits, significant, dropped = uint64(0), int64(0), int64(0)
    exponent, after_point, inexact = int64(0), int64(0), False
    p = int64(start)
    while p < end:
        byte = load8(text, p)
        digit = byte - 48
        if 0 <= digit <= 9:
            exponent -= after_point
            if significant > 0 or digit > 0:
                if significant < 19:
                    digits = digits * uint64(10) + uint64(digit)
                    significant += 1
                else:
                    dropped += 1
                    inexact |= digit > 0
        elif byte == 46:
            after_point = int64(1)
        elif byte == 101 or byte == 69:
            break
        p += 1
    written, sign = int64(0), int64(1)
    while p + 1 < end:
        p += 1
        byte = load8(text, p)
        if byte == 45:
            sign = int64(-1)
        elif byte != 43 and written < 100000:
            written = written * 10 + byte - 48
    exponent += dropped + sign * written
    bits = double_bits(digits, exponent)
    if inexact and double_bits(digits + uint64(1), exponent) != bits:
        return int64(UNDECIDED)
    return bits


@helper
def put_double(text: Bytes, start: int, end: int, nodes: Records, at: int, state: Int64s) -> None:
    """Write the number text[start:end] as a DOUBLE node."""
    node = nodes[uint64(at)]
    node.length = 9
    bits = _round(text, start, end)
    if bits == UNDECIDED:
        node.tag = UNDECIDED_DOUBLE
        node.value = start
        node.extra = end - start
        state[UNDECIDED_COUNT] += 1
        return
    node.tag = DOUBLE
    if load8(text, start) == 45:
        bits |= int64(-9223372036854775808)
    node.value = bits


@helper
def _too_long(text: Bytes, start: int, digits: int) -> bool:
    """Whether a number has too many digits: a sign and a whole part of 0 do not count."""
    if load8(text, start) == 45:
        start += 1
    return digits - (1 if load8(text, start) == 48 else 0) > MAX_NUMBER_DIGITS


@helper
def put_long_number(
    text: Bytes,
    start: int,
    end: int,
    scale: int,
    nodes: Records,
    at: int,
    arena: Bytes,
    state: Int64s,
) -> int:
    """Write a number of more than 18 digits without exponent; scale is -1 without a point.

    Returns its end, or -1 - its start if it has too many digits.
    """
    digits = end - start - (1 if scale >= 0 else 0) - (1 if load8(text, start) == 45 else 0)
    if _too_long(text, start, digits):
        return -1 - start
    significant = int64(0)
    low, high = uint64(0), uint64(0)
    for p in range(start, end):
        digit = load8(text, p) - 48
        if 0 <= digit <= 9 and (significant > 0 or digit > 0):
            significant += 1
            # 38 digits fit in 128 bits; longer numbers become doubles, as in Spark.
            if significant <= 38:
                carry = multiply_high(low, uint64(10))
                low = low * uint64(10)
                high = high * uint64(10) + carry
                low = low + uint64(digit)
                if low < uint64(digit):
                    high = high + uint64(1)
    if significant > 38 or scale > 38:
        put_double(text, start, end, nodes, at, state)
        return end
    if load8(text, start) == 45:
        low, high = negate(low, high)
    first, second = int64(low), int64(high)
    node = nodes[uint64(at)]
    # 19 digits may still fit in 64 bits.
    if scale < 0 and second == first >> int64(63):
        tag = integer_tag(first)
        node.tag = tag
        node.value = first
        node.length = integer_size(tag)
        return end
    node.extra = max(int64(scale), int64(0))
    if significant <= 18 and scale <= 18:
        node.tag = DECIMAL4 if significant <= 9 and scale <= 9 else DECIMAL8
        node.length = 6 if significant <= 9 and scale <= 9 else 10
        node.value = first
    else:
        place = state[ARENA]
        store64(arena, place, first)
        store64(arena, place + 8, second)
        state[ARENA] = place + 16
        node.tag = DECIMAL16
        node.length = 18
        node.value = ~place
    return end


@tiny
def read_number(
    text: Bytes,
    start: int,
    end: int,
    nodes: Records,
    at: int,
    arena: Bytes,
    state: Int64s,
) -> int:
    """Write the number at text[start] as node `at`.

    Returns where it ends, or -1 - the place where it stops being a number.
    """
    p = start
    negative = load8(text, p) == 45
    if negative:
        p += 1
    first = p
    value = int64(0)
    # Eight digits at a time, then one by one. More than 18 overflow here and are read again below.
    while p + 8 <= end:
        eight = digits8(load64(text, p))
        if eight < 0:
            break
        value = value * 100000000 + eight
        p += 8
    digit = load8(text, p) - 48
    while 0 <= digit <= 9 and p < end:
        value = value * 10 + digit
        p += 1
        digit = load8(text, p) - 48
    count = p - first
    bad = count == 0 or (count > 1 and load8(text, first) == 48)
    scale = int64(-1)
    if digit == -2 and p < end and not bad:
        p += 1
        point = p
        while p + 8 <= end:
            eight = digits8(load64(text, p))
            if eight < 0:
                break
            value = value * 100000000 + eight
            p += 8
        digit = load8(text, p) - 48
        while 0 <= digit <= 9 and p < end:
            value = value * 10 + digit
            p += 1
            digit = load8(text, p) - 48
        scale = p - point
        count += scale
        bad = scale == 0
    if negative:
        value = -value
    # `digit` is the byte after the digits, less 48: 53 is `e`, 21 is `E`.
    if bad:
        p = -1 - p
    elif (digit == 53 or digit == 21) and p < end:
        p = _read_exponent(text, start, p + 1, end, value, count, scale, nodes, at, state)
    elif count > _FAST_DIGITS:
        p = put_long_number(text, start, p, scale, nodes, at, arena, state)
    elif scale > 0:
        node = nodes[uint64(at)]
        node.value = value
        node.extra = scale
        small = scale <= 9 and -1000000000 < value < 1000000000
        node.tag = DECIMAL4 if small else DECIMAL8
        node.length = 6 if small else 10
    else:
        node = nodes[uint64(at)]
        tag = integer_tag(value)
        node.tag = tag
        node.value = value
        node.length = integer_size(tag)
    return p


@helper
def _read_exponent(
    text: Bytes,
    start: int,
    p: int,
    end: int,
    value: int,
    count: int,
    scale: int,
    nodes: Records,
    at: int,
    state: Int64s,
) -> int:
    """Finish a number from the byte after its e on. value: the digits before, exact up to 18."""
    sign = load8(text, p)
    if p < end and (sign == 45 or sign == 43):
        p += 1
    first = p
    exponent = int64(0)
    while p < end:
        digit = load8(text, p) - 48
        if digit < 0 or digit > 9:
            break
        if exponent < 100000:
            exponent = exponent * 10 + digit
        p += 1
    if p == first:
        return -1 - p
    if count + p - first > MAX_NUMBER_DIGITS and _too_long(text, start, count + p - first):
        return -1 - start
    exponent = (-exponent if sign == 45 else exponent) - max(int64(scale), int64(0))
    # Clinger's fast path: both factors are exact, so one rounding gives the nearest double.
    exact = count <= _FAST_DIGITS and -9007199254740992 <= value <= 9007199254740992
    if exact and -22 <= exponent <= 22 and value != 0:
        number = float64(value)
        if exponent < 0:
            number = number / _TENS[uint64(-exponent)]
        else:
            number = number * _TENS[uint64(exponent)]
        node = nodes[uint64(at)]
        node.tag = DOUBLE
        node.value = float_bits(number)
        node.length = 9
    else:
        put_double(text, start, p, nodes, at, state)
    return p


def finish_doubles(text: Bytes, nodes: Records) -> None:
    """Convert the UNDECIDED_DOUBLE nodes, which are few, with Python's exact float()."""
    for at in np.flatnonzero(nodes["tag"] == UNDECIDED_DOUBLE).tolist():
        start, length = int(nodes["value"][at]), int(nodes["extra"][at])
        number = float(text[start : start + length].tobytes())
        nodes["tag"][at] = DOUBLE
        nodes["value"][at] = struct.unpack("<q", struct.pack("<d", number))[0]
