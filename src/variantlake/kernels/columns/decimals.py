"""Decimals as the doubles nearest to them."""

from __future__ import annotations

import numpy as np

from variantlake.kernels.json.doubles import HIGH, LOWEST, UNDECIDED, double_bits
from variantlake.kernels.native.declared import Int64s, Int64sIn, int64, uint64
from variantlake.kernels.native.jit import entry, helper, tiny
from variantlake.kernels.tape.words import leading_zeros, multiply_high

_SIGN = -(1 << 63)
_POWERS = np.array([10**exponent for exponent in range(10)], np.uint64)
_LOWER = uint64(0xFFFFFFFF)
_HALF = uint64(32)
_FIVE = uint64(5)
_ONE, _TEN = uint64(1), uint64(10)


@helper
def _exact(digits: int, exponent: int) -> int:
    """The same of 64 bits times 10**exponent if that is a whole number over a power of two.

    Of such ones, 2.50 for example, powers of ten rounded down do not tell.
    """
    halved = int64(0)
    while exponent < 0 and digits % _FIVE == 0:
        digits = digits // _FIVE
        exponent += 1
        halved += 1
    found = double_bits(digits, exponent)
    if exponent != 0 or found == UNDECIDED:
        return int64(UNDECIDED)
    return found - (halved << 52)


@helper
def _nearest(high: int, low: int, exponent: int) -> int:
    """The bits of the double nearest to a number of 128 bits times 10**exponent, or UNDECIDED.

    high, low: uint64. Digits are cut off until 64 bits remain, which are more than a double has. If
    the next number of these digits has the same double, so has what lies between them.
    """
    is_cut = False
    while high != 0:
        # 1233 / 2**12 is log10(2), rounded up: no more digits than need be, or one more.
        digits = min((int64(64) - int64(leading_zeros(high))) * 1233 // 4096 + 1, int64(9))
        power = _POWERS[uint64(digits)]
        upper = (high % power) << _HALF | low >> _HALF
        lower = (upper % power) << _HALF | low & _LOWER
        high = high // power
        low = (upper // power) << _HALF | lower // power
        is_cut = is_cut or lower % power != 0
        exponent += digits
    found = double_bits(low, exponent)
    if found == UNDECIDED and not is_cut:
        return _exact(low, exponent)
    if is_cut and found != double_bits(low + uint64(1), exponent):
        return int64(UNDECIDED)
    return found


@tiny
def _rounded(high: int, low: int, exponent: int) -> int:
    """The bits of the double nearest to a number of 128 bits times 10**exponent, or UNDECIDED.

    high, low: uint64, not both 0. exponent: -38 to 0. By the upper 64 bits of the number and of the
    power, both cut off: their product is too small by less than 3 in its own last bit. That decides
    for all but one number in 250.
    """
    zeros = int64(leading_zeros(high))
    if high == 0:
        zeros = int64(64) + int64(leading_zeros(low))
        scaled = low << uint64(zeros - 64)
    elif zeros == 0:
        scaled = high
    else:
        scaled = high << uint64(zeros) | low >> uint64(64 - zeros)
    product = multiply_high(scaled, HIGH[uint64(exponent - LOWEST)])
    top = product >> uint64(63)
    below = top + _TEN
    half = _ONE << (below - _ONE)
    rest = product & ((half << _ONE) - _ONE)
    if rest <= half and rest + uint64(3) >= half:
        return int64(UNDECIDED)
    mantissa = (product >> below) + uint64(rest > half)
    # A mantissa that is rounded up to 2**53 counts the exponent up by itself.
    biased = (217706 * exponent >> 16) + 1024 + 127 - zeros - 1 + int64(top)
    return ((biased - 1) << 52) + int64(mantissa)


@entry
def round_decimals(words: Int64sIn, scale: int, bits: Int64s) -> int:
    """Write the bits of the double nearest to each decimal; returns how many were not decided.

    words: int64, the lower and the upper half of each unscaled number, as Arrow has them. scale:
    0 to 38. bits: int64, half as long; UNDECIDED, no double, if the first 64 bits of a number do
    not decide it. Allocates nothing, never raises. Twin: scan.files.casts, by a text of decimals.
    """
    left = int64(0)
    for row in range(bits.size):
        low, high = uint64(words[uint64(2 * row)]), uint64(words[uint64(2 * row + 1)])
        sign = int64(0)
        if words[uint64(2 * row + 1)] < 0:
            low = ~low + uint64(1)
            high = ~high + uint64(low == 0)
            sign = int64(_SIGN)
        found = int64(0)
        if high | low != 0:
            found = _rounded(high, low, -scale)
            if found == UNDECIDED:
                found = _nearest(high, low, -scale)
        if found == UNDECIDED:
            left += 1
        else:
            found = found | sign
        bits[uint64(row)] = found
    return left
