"""Round decimal digits to the nearest double, as Eisel and Lemire do (arXiv:2101.11408).

The method multiplies by a power of ten known to 128 bits, and detects when that does not decide the
rounding (about one number in 10^18, subnormals, overflow). Python's float() converts those.
"""

from __future__ import annotations

import numpy as np

from variantlake.kernels.native.declared import int64, uint64
from variantlake.kernels.native.jit import helper
from variantlake.kernels.tape.words import leading_zeros, multiply_high

UNDECIDED = -1
"""A result that cannot be the bits of a double without its sign."""

LOWEST, HIGHEST = -342, 324
"""The exponents of the powers of ten that any double or its text needs."""


def _powers() -> tuple[np.ndarray[tuple[int], np.dtype[np.uint64]], ...]:
    """Return the upper 128 bits of each 10**e, rounded down, as two arrays of halves."""
    halves = np.empty((2, HIGHEST - LOWEST + 1), np.uint64)
    for exponent in range(LOWEST, HIGHEST + 1):
        if exponent >= 0:
            power = 10**exponent
            shift = power.bit_length() - 128
            bits = power >> shift if shift >= 0 else power << -shift
        else:
            divisor = 10**-exponent
            bits = (1 << (divisor.bit_length() + 128)) // divisor
            bits >>= bits.bit_length() - 128
        halves[0, exponent - LOWEST] = bits >> 64
        halves[1, exponent - LOWEST] = bits & 0xFFFFFFFFFFFFFFFF
    return halves[0].copy(), halves[1].copy()


HIGH, LOW = _powers()
_ONE, _ALL = uint64(1), uint64(0xFFFFFFFFFFFFFFFF)
_TAIL = uint64(0x1FF)
"""Bits of a 64-bit product below a double's 53 bits and the rounding bit, without the top bit."""


@helper
def double_bits(digits: int, exponent: int) -> int:
    """Return the bits of the double nearest to digits * 10**exponent, or UNDECIDED.

    digits: uint64, exact.
    """
    if digits == 0:
        return int64(0)
    if exponent < LOWEST or exponent > HIGHEST:
        return int64(UNDECIDED)
    zeros = leading_zeros(digits)
    scaled = digits << uint64(zeros)
    power = uint64(exponent - LOWEST)
    high = multiply_high(scaled, HIGH[power])
    low = scaled * HIGH[power]
    if high & _TAIL == _TAIL and low + scaled < scaled:
        # The lower half of the power may carry into the bits that round.
        more = multiply_high(scaled, LOW[power])
        rest = scaled * LOW[power]
        total = low + more
        if total < low:
            high = high + _ONE
        if high & _TAIL == _TAIL and total == _ALL and rest + scaled < scaled:
            return int64(UNDECIDED)
        low = total
    top = high >> uint64(63)
    mantissa = high >> (top + uint64(9))
    # 217706 / 2**16 is log2(10), close enough for our exponents.
    biased = (217706 * exponent >> 16) + 1024 + 63 - zeros - 1 + int64(top)
    if low == 0 and high & _TAIL == 0 and mantissa & uint64(3) == _ONE:
        return int64(UNDECIDED)  # half-way, as far as 128 bits tell
    mantissa = (mantissa + (mantissa & _ONE)) >> _ONE
    if mantissa >> uint64(53) != 0:
        mantissa = mantissa >> _ONE
        biased += 1
    if biased < 1 or biased > 2046:
        return int64(UNDECIDED)
    return int64((uint64(biased) << uint64(52)) | (mantissa & uint64(0xFFFFFFFFFFFFF)))
