"""Doubles and floats as JSON text. Twin: encoding.java_numbers, which says why these digits."""

from __future__ import annotations

import math

import numpy as np

from variantlake.kernels._declared import Bytes, Int64s, float64, int64, uint64
from variantlake.kernels._jit import helper, tiny
from variantlake.kernels.exact import POWERS
from variantlake.kernels.words import leading_zeros, load8, store8, trailing_zeros

_POWERS_OF_5 = np.array([5**power for power in range(27)], np.int64)
_BITS_OF_POWERS = np.array([0, *((5**power).bit_length() for power in range(1, 27))], np.int64)
_DIGITS_OF_BITS = np.array(
    [0, 0, *(len(str(1 << bits)) - 1 for bits in range(2, 64))], np.int64
)  # decimal digits that so many binary ones stand for

_LIMBS = 40
"""32-bit limbs of a large number: the largest has 1,100 bits."""
WORK = 4 * _LIMBS
"""Words of room that put_float needs."""
_REST, _UNIT, _HALF, _TEN = 0, _LIMBS, 2 * _LIMBS, 3 * _LIMBS
_LIMB = 0xFFFFFFFF
_FIVE_13 = 5**13

# Places of a few numbers in the words after those of WORK.
_COUNT, _POINT = WORK, WORK + 1
WORDS = WORK + 2

_ZERO = 48


@helper
def put_float(bits: int, is_double: int, out: Bytes, to: int, digits: Bytes, work: Int64s) -> int:
    """Write a double (is_double 1) or float of the given bits; returns where it ends.

    NaN and infinities are quoted. out: room for 32 bytes; digits: uint8, 32, and work: int64,
    WORDS, may be overwritten.
    """
    precision, bias = int64(53), int64(1023)
    if is_double == 0:
        precision, bias = int64(24), int64(127)
        sign = bits >> 31 & 1
    else:
        sign = bits >> 63 & 1
    fraction = bits & ((int64(1) << (precision - 1)) - 1)
    biased = bits >> (precision - 1) & (2 * bias + 1)
    if biased == 2 * bias + 1:
        return _put_special(out, to, sign, fraction != 0)
    if sign != 0:
        store8(out, to, 45)
        to += 1
    if biased == 0 and fraction == 0:
        store8(out, to, 48)
        store8(out, to + 1, 46)
        store8(out, to + 2, 48)
        return to + 3
    significant = precision
    significand, exponent = fraction | int64(1) << (precision - 1), biased - bias
    if biased == 0:  # subnormal: shift its first one to the place where normal numbers have it
        significant = 64 - leading_zeros(uint64(fraction))
        significand = fraction << (precision - significant)
        exponent = 1 - bias - (precision - significant)
    _find_digits(significand, precision, exponent, significant, digits, work)
    return _put_layout(digits, work[_COUNT], work[_POINT], out, to)


@helper
def _put_special(out: Bytes, to: int, sign: int, is_nan: bool) -> int:
    store8(out, to, 34)
    to += 1
    if is_nan:
        for byte in (78, 97, 78):
            store8(out, to, int64(byte))
            to += 1
    else:
        if sign != 0:
            store8(out, to, 45)
            to += 1
        for byte in (73, 110, 102, 105, 110, 105, 116, 121):
            store8(out, to, int64(byte))
            to += 1
    store8(out, to, 34)
    return to + 1


@helper
def _put_layout(digits: Bytes, count: int, point: int, out: Bytes, to: int) -> int:
    """Write `count` digits with the decimal point after the first `point`, as Java lays it out."""
    plain = -3 < point < 8
    before = point if plain else int64(1)
    if before <= 0:
        store8(out, to, _ZERO)
        to += 1
    k = int64(0)
    while k < before:
        store8(out, to, load8(digits, k) if k < count else _ZERO)
        to += 1
        k += 1
    store8(out, to, 46)
    to += 1
    zeros = before
    while zeros < 0:
        store8(out, to, _ZERO)
        to += 1
        zeros += 1
    if k >= count:
        store8(out, to, _ZERO)
        to += 1
    while k < count:
        store8(out, to, load8(digits, k))
        to += 1
        k += 1
    if plain:
        return to
    store8(out, to, 69)
    to += 1
    exponent = point - 1
    if exponent < 0:
        store8(out, to, 45)
        to += 1
        exponent = -exponent
    if exponent >= 100:
        store8(out, to, _ZERO + exponent // 100)
        to += 1
    if exponent >= 10:
        store8(out, to, _ZERO + exponent // 10 % 10)
        to += 1
    store8(out, to, _ZERO + exponent % 10)
    return to + 1


@helper
def _find_digits(
    significand: int, precision: int, exponent: int, significant: int, digits: Bytes, work: Int64s
) -> None:
    """The decimal digits, their count and the place of the point. Twin: _digits."""
    zeros = trailing_zeros(significand)
    fraction_bits = precision - zeros
    after_point = max(int64(0), fraction_bits - exponent - 1)
    if after_point == 0 and exponent <= 62:
        shift = exponent - precision + 1
        whole = significand << shift if shift >= 0 else significand >> -shift
        _whole_digits(whole, exponent - significant - 1, digits, work)
        return
    scaled = float64(significand) / float64(int64(1) << (precision - 1))
    guess = (scaled - 1.5) * 0.289529654 + 0.176091259 + float64(exponent) * 0.301029995663981
    decimal = int64(math.floor(guess))
    rest_5, unit_5 = max(int64(0), -decimal), max(int64(0), decimal)
    rest_2 = rest_5 + after_point + exponent
    unit_2 = unit_5 + after_point
    half_2 = rest_2 - significant
    rest_2 -= fraction_bits - 1
    common = min(rest_2, unit_2)
    rest_2 -= common
    unit_2 -= common
    half_2 -= common
    if fraction_bits == 1:  # below a power of two the next number is only half as far away
        half_2 -= 1
    if half_2 < 0:
        rest_2 -= half_2
        unit_2 -= half_2
        half_2 = int64(0)
    bits = max(
        fraction_bits + rest_2 + _bits_of_power(rest_5), unit_2 + 1 + _bits_of_power(unit_5 + 1)
    )
    odd = significand >> zeros
    if bits < 64:
        rest = odd * _POWERS_OF_5[uint64(rest_5)] << rest_2
        unit = _POWERS_OF_5[uint64(unit_5)] << unit_2
        half = _POWERS_OF_5[uint64(rest_5)] << half_2
        _word_digits(rest, unit, half, int64(32 if bits < 32 else 64), decimal, digits, work)
    else:
        # Half is the last to grow: it stops within two digits behind all others.
        limbs = min((bits + 16) // 32 + 2, int64(_LIMBS))
        _set_power(work, limbs, _REST, odd, rest_5, rest_2)
        _set_power(work, limbs, _UNIT, int64(1), unit_5, unit_2)
        _set_power(work, limbs, _HALF, int64(1), rest_5, half_2)
        _set_power(work, limbs, _TEN, int64(10), unit_5, unit_2)
        _large_digits(limbs, decimal, digits, work)


@tiny
def _bits_of_power(power: int) -> int:
    """Bits of 5^power: exact within Java's table, an upper bound beyond."""
    return _BITS_OF_POWERS[uint64(power)] if power < 27 else power * 3


@helper
def _whole_digits(whole: int, spare_bits: int, digits: Bytes, work: Int64s) -> None:
    """A whole number below 2^63; digits below its precision (`spare_bits`) are rounded off."""
    dropped = int64(0)
    if spare_bits > 1:
        dropped = _DIGITS_OF_BITS[uint64(spare_bits)]
    if dropped > 0:
        unit = POWERS[uint64(dropped)]
        rest = whole % unit
        whole //= unit
        if rest >= unit // 2:
            whole += 1
    count = int64(1)
    while count < 19 and whole >= POWERS[uint64(min(count, int64(18)))]:
        count += 1
        if count == 19:
            break
    for k in range(count):
        store8(digits, count - 1 - int64(k), _ZERO + whole % 10)
        whole //= 10
    work[_POINT] = count + dropped
    while load8(digits, count - 1) == _ZERO:
        count -= 1
    work[_COUNT] = count


@tiny
def _wrapped(number: int, word: int) -> int:
    """The number as a signed integer of `word` bits."""
    if word == 32:
        return (number << int64(32)) >> int64(32)
    return number


@helper
def _word_digits(
    rest: int, unit: int, half: int, word: int, decimal: int, digits: Bytes, work: Int64s
) -> None:
    """Digits one by one, in arithmetic of 32 or 64 bits as Java's. Twin: _fraction_digits."""
    ten = unit * 10
    count = int64(0)
    first = True
    low = high = False
    while first or not (low or high):
        digit = rest // unit
        rest = (rest - digit * unit) * 10
        half = _wrapped(half * 10, word)
        if half <= 0:  # overflowed, and so beyond every rest
            low = high = True
        else:
            low = rest < half
            high = _wrapped(rest + half, word) > ten
        if first and digit == 0 and not high:
            decimal -= 1
        else:
            store8(digits, count, _ZERO + digit)
            count += 1
        if first and (decimal < -3 or decimal >= 8):
            low = high = False  # scientific: a digit after the point at the least
        first = False
    beyond = _wrapped(rest * 2 - ten, word)  # against half of the last digit's unit
    _finish_digits(digits, count, decimal, low, high, beyond, work)


@helper
def _finish_digits(
    digits: Bytes, count: int, decimal: int, low: bool, high: bool, beyond: int, work: Int64s
) -> None:
    """Round the last digit up where that is closer, to the even one in the middle."""
    if high and (not low or beyond > 0 or (beyond == 0 and load8(digits, count - 1) & 1 == 1)):
        k = count - 1
        while k >= 0 and load8(digits, k) == _ZERO + 9:
            store8(digits, k, _ZERO)
            k -= 1
        if k >= 0:
            store8(digits, k, load8(digits, k) + 1)
        else:  # 99 became 100
            store8(digits, int64(0), _ZERO + 1)
            decimal += 1
    work[_COUNT] = count
    work[_POINT] = decimal + 1


# --- Numbers of some limbs of 32 bits, little-endian, one in a word -------------------------------


@helper
def _multiply(work: Int64s, limbs: int, at: int, factor: int) -> None:
    """Multiply the number by a factor below 2^31."""
    carry = int64(0)
    for k in range(limbs):
        product = work[uint64(at + k)] * factor + carry
        work[uint64(at + k)] = product & _LIMB
        carry = product >> int64(32)


@helper
def _set_power(work: Int64s, limbs: int, at: int, odd: int, power: int, shift: int) -> None:
    """Set the number to odd * 5^power * 2^shift."""
    for k in range(limbs):
        work[uint64(at + k)] = 0
    # The shift's whole limbs first: what follows moves nothing.
    skipped = shift >> 5
    work[uint64(at + skipped)] = odd & _LIMB
    work[uint64(at + skipped + 1)] = odd >> int64(32) & _LIMB
    _multiply(
        work, limbs, at, int64(1) << (shift & 31) if shift & 31 != 31 else int64(1) << int64(30)
    )
    if shift & 31 == 31:
        _multiply(work, limbs, at, int64(2))
    while power >= 13:
        _multiply(work, limbs, at, int64(_FIVE_13))
        power -= 13
    _multiply(work, limbs, at, _POWERS_OF_5[uint64(power)])


@helper
def _compare(work: Int64s, limbs: int, one: int, two: int, other: int) -> int:
    """The sign of one + two - other; `two` -1 for nothing."""
    # Borrows come from below, so from the lowest limb on.
    carry = int64(0)
    rest = int64(0)
    for k in range(limbs):
        word = work[uint64(one + k)] - work[uint64(other + k)] + carry
        if two >= 0:
            word += work[uint64(two + k)]
        rest |= word & _LIMB
        carry = word >> int64(32)
    if carry < 0:
        return int64(-1)
    return int64(1 if rest != 0 or carry > 0 else 0)


@helper
def _take_digit(work: Int64s, limbs: int) -> int:
    """Divide rest by unit: returns the digit and leaves what remains."""
    digit = int64(0)
    while _compare(work, limbs, int64(_REST), int64(-1), int64(_UNIT)) >= 0:
        borrow = int64(0)
        for k in range(limbs):
            word = work[uint64(_REST + k)] - work[uint64(_UNIT + k)] + borrow
            work[uint64(_REST + k)] = word & _LIMB
            borrow = word >> int64(32)
        digit += 1
    return digit


@helper
def _large_digits(limbs: int, decimal: int, digits: Bytes, work: Int64s) -> None:
    """As _word_digits, in arithmetic without bounds."""
    count = int64(0)
    first = True
    low = high = False
    while first or not (low or high):
        digit = _take_digit(work, limbs)
        _multiply(work, limbs, int64(_REST), int64(10))
        _multiply(work, limbs, int64(_HALF), int64(10))
        low = _compare(work, limbs, int64(_REST), int64(-1), int64(_HALF)) < 0
        high = _compare(work, limbs, int64(_REST), int64(_HALF), int64(_TEN)) >= 0
        if first and digit == 0 and not high:
            decimal -= 1
        else:
            store8(digits, count, _ZERO + digit)
            count += 1
        if first and (decimal < -3 or decimal >= 8):
            low = high = False
        first = False
    beyond = _compare(work, limbs, int64(_REST), int64(_REST), int64(_TEN))
    _finish_digits(digits, count, decimal, low, high, beyond, work)
