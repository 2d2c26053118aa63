"""Doubles and floats as text: the shortest digits that read back, laid out as Java 19+ does.

Java 17 prints a digit or two more than some numbers need (JDK-4511638, mended in Java 19), and with
it Spark on Java 17. The text denotes the same number.
"""

from __future__ import annotations

import math
import struct
from decimal import ROUND_HALF_EVEN, ROUND_UP, Context, Decimal

_BEYOND_FLOATS = 2.0**128
"""What the float after the largest one would be."""


def double_text(number: float) -> str:
    """What `Double.toString` gives from Java 19 on: `1.0`, `1.0E10`, `NaN`, `-Infinity`."""
    return _special_text(number) or _laid_out(_shortest_of_double(number))


def float_text(number: float) -> str:
    """What `Float.toString` gives from Java 19 on; `number` is exactly a 4-byte float."""
    return _special_text(number) or _laid_out(_shortest_of_float(number))


def _special_text(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    sign = "-" if math.copysign(1.0, number) < 0 else ""
    if math.isinf(number):
        return sign + "Infinity"
    return sign + "0.0" if number == 0 else ""


def _shortest_of_double(number: float) -> Decimal:
    shortest = Decimal(repr(number))
    if len(_digits(shortest)) > 1:
        return shortest
    return Decimal(f"{number:.1e}")  # two digits are always written: the closest two


def _shortest_of_float(number: float) -> Decimal:
    (bits,) = struct.unpack("<I", struct.pack("<f", abs(number)))
    below, above = ((abs(number) + _float_of(bits + step)) / 2 for step in (-1, 1))
    exact = Decimal(number)
    for digits in range(2, 10):
        # A power of two is closer to the float below it than to the one above: the closest decimal
        # may be too far below it where the next one, further away above it, reads back.
        for rounding in (ROUND_HALF_EVEN, ROUND_UP):
            found = Context(digits, rounding).create_decimal(exact)
            if below < abs(found) < above or (bits % 2 == 0 and abs(found) in (below, above)):
                return found
    raise AssertionError(f"{number!r} needs more than nine digits")


def _float_of(bits: int) -> float:
    number: float = struct.unpack("<f", struct.pack("<I", bits))[0]
    return min(number, _BEYOND_FLOATS)


def _digits(number: Decimal) -> str:
    return "".join(map(str, number.as_tuple().digits)).rstrip("0")


def _laid_out(number: Decimal) -> str:
    sign, digits = "-" if number < 0 else "", _digits(number)
    point = number.adjusted() + 1  # so many digits stand before it
    if 0 < point < 8:
        return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"
    if -3 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"
