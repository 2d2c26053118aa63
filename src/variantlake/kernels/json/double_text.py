"""Write doubles and floats as JSON text: Giulietti's "The Schubfach way to render doubles".

The method multiplies by a power of ten known to 126 bits. The product decides the shortest digits
that read back as the number, and the closest of these. Twin: encoding.java_numbers.
"""

from __future__ import annotations

from variantlake.kernels.json.doubles import HIGH, LOW, LOWEST
from variantlake.kernels.json.scalar_text import decimal_digits, put_integer, put_padded
from variantlake.kernels.native.declared import Bytes, int64, uint64
from variantlake.kernels.native.jit import helper, tiny
from variantlake.kernels.tape.exact import POWERS
from variantlake.kernels.tape.words import load8, multiply_high, store8

_ONE, _TWO, _TEN, _63 = uint64(1), uint64(2), uint64(10), uint64(63)
_HUNDRED_MILLION = uint64(10**8)
_LOW_63 = uint64((1 << 63) - 1)
_TINY_DOUBLE, _TINY_FLOAT = 3, 8
"""Smaller significands are multiplied by 10, so that the method finds two digits, not one."""

_ZERO, _POINT, _EXPONENT, _MINUS, _QUOTE = 48, 46, 69, 45, 34


@helper
def put_float(bits: int, is_double: int, out: Bytes, to: int) -> int:
    """Write the double (is_double 1) or float with these bits; return where it ends.

    Quotes NaN and infinities. out: room for 32 bytes.
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
        store8(out, to, _MINUS)
        to += 1
    if biased == 0 and fraction == 0:
        return _put_digits(int64(0), int64(0), out, to)
    # The number is significand * 2^exponent.
    significand, exponent = fraction, int64(2) - bias - precision
    if biased != 0:
        significand |= int64(1) << (precision - 1)
        exponent += biased - 1
    if -precision < exponent <= 0 and significand & ((int64(1) << -exponent) - 1) == 0:
        return _put_digits(significand >> -exponent, int64(0), out, to)
    more = int64(0)
    if significand < (_TINY_FLOAT if is_double == 0 else _TINY_DOUBLE):
        significand *= 10
        more = int64(-1)
    # The next number below a power of two is only half as far away, except among subnormals.
    uneven = fraction == 0 and biased > 1
    number, power = _shortest(uint64(significand), exponent, uneven)
    return _put_digits(number, power + more, out, to)


@helper
def _shortest(significand: int, exponent: int, uneven: bool) -> tuple[int, int]:
    """Return number and power: number * 10^power is the text of significand * 2^exponent.

    All intermediate numbers have the paper's scale: four times the significand times a power of
    ten.
    """
    odd = significand & _ONE
    middle = significand << _TWO
    below, above = middle - _TWO, middle + _TWO
    # The logarithm of the interval's width, by constants that are exact for these exponents.
    power = exponent * 661_971_961_083
    if uneven:
        below += _ONE
        power -= 274_743_187_321
    power >>= 41
    shift = uint64(exponent + ((-power * 913_124_641_741) >> 38) + 2)
    row = uint64(-power - LOWEST)
    high, low = HIGH[row] >> _ONE, ((HIGH[row] & _ONE) << uint64(62) | LOW[row] >> _TWO) + _ONE
    middle = _product(high, low, middle << shift)
    below = _product(high, low, below << shift) + odd
    above = _product(high, low, above << shift) - odd
    number = middle >> _TWO
    if number >= uint64(100):
        fewer = number // _TEN * _TEN
        down, up = below <= fewer << _TWO, (fewer + _TEN) << _TWO <= above
        if down != up:
            return int64(fewer if down else fewer + _TEN), power
    down, up = below <= number << _TWO, (number + _ONE) << _TWO <= above
    if down == up:  # both or none: take the closer one, halfway the even one
        half = (number << _TWO) + _TWO
        down = middle < half or (middle == half and (number & _ONE) == 0)
    return int64(number if down else number + _ONE), power


@tiny
def _product(high: int, low: int, number: int) -> int:
    """Return the upper bits of number * (high * 2^63 + low); the last one is set if inexact."""
    carried = (high * number >> _ONE) + multiply_high(low, number)
    upper = multiply_high(high, number) + (carried >> _63)
    return upper | ((carried & _LOW_63) + _LOW_63) >> _63


@helper
def _put_special(out: Bytes, to: int, sign: int, is_nan: bool) -> int:
    store8(out, to, _QUOTE)
    to += 1
    if is_nan:
        for byte in (78, 97, 78):
            store8(out, to, int64(byte))
            to += 1
    else:
        if sign != 0:
            store8(out, to, _MINUS)
            to += 1
        for byte in (73, 110, 102, 105, 110, 105, 116, 121):
            store8(out, to, int64(byte))
            to += 1
    store8(out, to, _QUOTE)
    return to + 1


@helper
def _put_digits(number: int, power: int, out: Bytes, to: int) -> int:
    """Write number * 10^power, which is not negative, in Java's layout; return its end."""
    count = decimal_digits(number)
    point = count + power  # the number of digits before it
    digits = uint64(number)
    while count > 8 and digits % _HUNDRED_MILLION == 0:
        digits = digits // _HUNDRED_MILLION
        count -= 8
    while count > 1 and digits % _TEN == 0:
        digits = digits // _TEN
        count -= 1
    number = int64(digits)
    if 0 < point < 8:
        if count <= point:
            to = put_padded(number * POWERS[uint64(point - count)], point, out, to)
            store8(out, to, _POINT)
            store8(out, to + 1, _ZERO)
            return to + 2
        unit = POWERS[uint64(count - point)]
        whole = int64(digits // uint64(unit))
        to = put_padded(whole, point, out, to)
        store8(out, to, _POINT)
        return put_padded(number - whole * unit, count - point, out, to + 1)
    if -3 < point <= 0:
        store8(out, to, _ZERO)
        store8(out, to + 1, _POINT)
        return put_padded(number, count - point, out, to + 2)
    end = put_padded(number, count, out, to + 1)
    store8(out, to, load8(out, to + 1))
    store8(out, to + 1, _POINT)
    if count == 1:
        store8(out, end, _ZERO)
        end += 1
    store8(out, end, _EXPONENT)
    return put_integer(point - 1, out, end + 1)
