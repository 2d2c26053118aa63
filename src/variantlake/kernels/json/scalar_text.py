"""Write scalars other than strings and floats as JSON text. Twin: encoding.json_text."""

from __future__ import annotations

import numpy as np

from variantlake.encoding.json_text import MICROS, NANOS
from variantlake.kernels.native.declared import Bytes, Records, int64, uint64
from variantlake.kernels.native.jit import helper, tiny
from variantlake.kernels.tape.exact import (
    BILLION,
    POWERS,
    count_digits,
    divide,
    magnitude,
    scale_of,
)
from variantlake.kernels.tape.nodes import (
    DATE,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NANOS,
    TIMESTAMP_NTZ_NANOS,
)
from variantlake.kernels.tape.words import leading_zeros, load8, store8, store16

_DAY = 24 * 60 * 60
_MICROS, _NANOS = MICROS, NANOS
_CYCLE_DAYS, _CYCLE_YEARS = 146_097, 400
"""The Gregorian calendar repeats after 400 years."""
_DAYS_BEFORE_EPOCH = 719_468
"""Days from 1 March of the year 0 to 1 January 1970."""

_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_BASE64 = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8
)
_PAIRS = np.frombuffer(b"".join(b"%02d" % number for number in range(100)), np.uint16)
"""The two digits of each number below 100."""

_TEN, _HUNDRED = uint64(10), uint64(100)
_LEAST = -(1 << 63)
_LEAST_HEAD, _LEAST_TAIL = divmod(-_LEAST, 10**9)

_ZERO, _QUOTE, _MINUS, _PLUS, _POINT, _COLON, _SPACE = 48, 34, 45, 43, 46, 58, 32


@helper
def put_padded(number: int, width: int, out: Bytes, to: int) -> int:
    """Write the last `width` digits of a non-negative number; return their end."""
    left = uint64(number)
    place = to + width
    while place > to + 1:
        hundredth = left // _HUNDRED
        place -= 2
        store16(out, place, int64(_PAIRS[left - hundredth * _HUNDRED]))
        left = hundredth
    if place > to:
        store8(out, to, _ZERO + int64(left % _TEN))
    return to + width


@tiny
def decimal_digits(number: int) -> int:
    """Return the number of decimal digits of a non-negative number; 0 has one."""
    # 1233 / 4096 is a little less than log10(2): the guess is right, or one too low.
    guess = (64 - leading_zeros(uint64(number | 1))) * 1233 >> 12
    return guess + 1 if number >= POWERS[uint64(guess)] else max(guess, int64(1))


@helper
def put_integer(number: int, out: Bytes, to: int) -> int:
    """Write an int64 in decimal; returns its end."""
    if number < 0:
        store8(out, to, _MINUS)
        to += 1
        if number == _LEAST:  # its negation overflows
            to = put_padded(int64(_LEAST_HEAD), int64(10), out, to)
            return put_padded(int64(_LEAST_TAIL), int64(9), out, to)
        number = -number
    return put_padded(number, decimal_digits(number), out, to)


@helper
def put_decimal_text(text: Bytes, arena: Bytes, node: Records, out: Bytes, to: int) -> int:
    """Write a decimal in plain digits without trailing zeros; returns its end."""
    low, high, negative = magnitude(text, arena, node)
    if negative:
        store8(out, to, _MINUS)
        to += 1
    scale = scale_of(node)
    number = int64(low)
    if high == 0 and number >= 0 and scale <= 18:
        while scale > 0 and uint64(number) % _TEN == 0:
            number = int64(uint64(number) // _TEN)
            scale -= 1
        unit = POWERS[uint64(scale)]
        whole = int64(uint64(number) // uint64(unit))
        to = put_padded(whole, decimal_digits(whole), out, to)
        if scale == 0:
            return to
        store8(out, to, _POINT)
        return put_padded(number - whole * unit, scale, out, to + 1)
    width = max(count_digits(text, arena, node), scale + 1)
    # Write the digits one byte further right, then move the whole part to insert the point.
    last = to + width
    for _ in range(5):
        low, high, left = divide(low, high, BILLION)
        rest = int64(left)
        for _ in range(9):
            if last > to:
                store8(out, last, _ZERO + rest % 10)
                rest //= 10
                last -= 1
    end = to + width + 1
    point = end - 1 - scale
    for k in range(to, point):
        store8(out, int64(k), load8(out, int64(k) + 1))
    store8(out, point, _POINT)
    while load8(out, end - 1) == _ZERO and end > point + 1:
        end -= 1
    return point if end == point + 1 else end


@helper
def put_date(days: int, out: Bytes, to: int) -> int:
    """Write days since the epoch as `2025-04-16`; years beyond 9999 or below 0 have a sign."""
    # Years that begin on 1 March have their leap day last.
    shifted = days + _DAYS_BEFORE_EPOCH
    cycle = shifted // _CYCLE_DAYS
    day = shifted - cycle * _CYCLE_DAYS
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5 - 1
    year += cycle * _CYCLE_YEARS
    month += 3
    if month > 12:
        month -= 12
        year += 1
    if year < 0:
        store8(out, to, _MINUS)
        to += 1
        year = -year
    elif year > 9999:
        store8(out, to, _PLUS)
        to += 1
    to = put_padded(year, int64(4), out, to) if year < 10000 else put_integer(year, out, to)
    store8(out, to, _MINUS)
    to = put_padded(month, int64(2), out, to + 1)
    store8(out, to, _MINUS)
    return put_padded(day, int64(2), out, to + 1)


@helper
def _put_clock(within: int, unit: int, out: Bytes, to: int) -> int:
    """Write a time of day as `12:34:56.78`; a second has `unit` parts."""
    seconds = within // unit
    to = put_padded(seconds // 3600, int64(2), out, to)
    store8(out, to, _COLON)
    to = put_padded(seconds // 60 % 60, int64(2), out, to + 1)
    store8(out, to, _COLON)
    to = put_padded(seconds % 60, int64(2), out, to + 1)
    fraction = within - seconds * unit
    if fraction == 0:
        return to
    store8(out, to, _POINT)
    to = put_padded(fraction, int64(6 if unit == _MICROS else 9), out, to + 1)
    while load8(out, to - 1) == _ZERO:
        to -= 1
    return to


@helper
def put_time(tag: int, value: int, out: Bytes, to: int) -> int:
    """Write a date, time or timestamp in quotes; timestamps adjusted to UTC end in +00:00.

    Returns its end, or -1 for a time outside of a day.
    """
    store8(out, to, _QUOTE)
    to += 1
    if tag == DATE:
        to = put_date(value, out, to)
    elif tag == TIME:
        if value < 0 or value >= _DAY * _MICROS:
            return int64(-1)
        to = _put_clock(value, int64(_MICROS), out, to)
    else:
        is_nanos = tag == TIMESTAMP_NANOS or tag == TIMESTAMP_NTZ_NANOS
        unit = int64(_NANOS if is_nanos else _MICROS)
        days = value // (_DAY * unit)
        to = put_date(days, out, to)
        store8(out, to, _SPACE)
        to = _put_clock(value - days * (_DAY * unit), unit, out, to + 1)
        if tag == TIMESTAMP or tag == TIMESTAMP_NANOS:
            store8(out, to, _PLUS)
            to = put_padded(int64(0), int64(2), out, to + 1)
            store8(out, to, _COLON)
            to = put_padded(int64(0), int64(2), out, to + 1)
    store8(out, to, _QUOTE)
    return to + 1


@helper
def put_uuid(source: Bytes, start: int, out: Bytes, to: int) -> int:
    """Write 16 bytes as a UUID in quotes; returns its end."""
    store8(out, to, _QUOTE)
    to += 1
    for k in range(16):
        if k == 4 or k == 6 or k == 8 or k == 10:
            store8(out, to, _MINUS)
            to += 1
        byte = load8(source, start + int64(k))
        store8(out, to, int64(_HEX[uint64(byte >> 4)]))
        store8(out, to + 1, int64(_HEX[uint64(byte & 15)]))
        to += 2
    store8(out, to, _QUOTE)
    return to + 1


@tiny
def base64_size(size: int) -> int:
    """Return the length of `size` bytes as base64, quotes included."""
    return (size + 2) // 3 * 4 + 2


@helper
def put_base64(source: Bytes, start: int, size: int, out: Bytes, to: int) -> int:
    """Write bytes as base64 in quotes; returns its end."""
    store8(out, to, _QUOTE)
    to += 1
    done = int64(0)
    while done < size:
        left = size - done
        word = load8(source, start + done) << 16
        if left > 1:
            word |= load8(source, start + done + 1) << 8
        if left > 2:
            word |= load8(source, start + done + 2)
        store8(out, to, int64(_BASE64[uint64(word >> 18)]))
        store8(out, to + 1, int64(_BASE64[uint64(word >> 12 & 63)]))
        store8(out, to + 2, int64(_BASE64[uint64(word >> 6 & 63)]) if left > 1 else int64(61))
        store8(out, to + 3, int64(_BASE64[uint64(word & 63)]) if left > 2 else int64(61))
        to += 4
        done += 3
    store8(out, to, _QUOTE)
    return to + 1
