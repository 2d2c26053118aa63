"""Write doubles and floats with the shortest digits that read back, in the layout of Java 19+.

For some numbers Java 17, and so Spark on it, prints a digit or two more than needed (JDK-4511638,
fixed in Java 19). The text denotes the same number.
"""

from __future__ import annotations

import math
import struct
from decimal import ROUND_HALF_EVEN, ROUND_UP, Context, Decimal

_BEYOND_FLOATS = 2.0**128
"""The value of the float that would follow the largest one."""


def double_text(number: float) -> str:
    """Write a double as `Double.toString` since Java 19: `1.0`, `1.0E10`, `NaN`, `-Infinity`."""
    return _special_text(number) or _laid_out(_shortest_of_double(number))


def float_text(number: float) -> str:
    """Write a float as `Float.toString` since Java 19; `number` is exactly a 4-byte float."""
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
    return Decimal(f"{number:.1e}")  # Java always writes two digits: take the closest two


def _shortest_of_float(number: float) -> Decimal:
    (bits,) = struct.unpack("<I", struct.pack("<f", abs(number)))
    below, above = ((abs(number) + _float_of(bits + step)) / 2 for step in (-1, 1))
    exact = Decimal(number)
    for digits in range(2, 10):
        # A power of two is closer to the float below it than to the one above. So the closest
        # decimal, below it, may not read back, while the next one, further away above it, does.
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
    point = number.adjusted() + 1  # the number of digits before it
    if 0 < point < 8:
        return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"
    if -3 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"
