"""Doubles and floats as text, with the very digits that Spark's `to_json` prints on Java 17.

Java 17 prints some numbers beyond 2^53, and many large floats, with a digit or two more than they
need (JDK-4511638, mended in Java 19). The text denotes the same number; but Spark on Java 17 is the
reference of our JSON text, so its digits are ours.
"""

from __future__ import annotations

import math
import struct

_DOUBLE_BITS = 53
_FLOAT_BITS = 24
_POWERS_OF_5 = 27
"""Powers of five below 2^63: Java's tables hold so many."""


def double_text(number: float) -> str:
    """What Java 17's `Double.toString` gives: `1.0`, `1.0E10`, `NaN`, `-Infinity`."""
    special = _special_text(number)
    if special:
        return special
    bits = struct.unpack("<Q", struct.pack("<d", abs(number)))[0]
    text = _positive_text(bits & ((1 << 52) - 1), bits >> 52, 1023, _DOUBLE_BITS)
    return "-" + text if number < 0 else text


def float_text(number: float) -> str:
    """What Java 17's `Float.toString` gives; `number` is exactly a 4-byte float."""
    special = _special_text(number)
    if special:
        return special
    bits = struct.unpack("<I", struct.pack("<f", abs(number)))[0]
    text = _positive_text(bits & ((1 << 23) - 1), bits >> 23, 127, _FLOAT_BITS)
    return "-" + text if number < 0 else text


def _special_text(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    sign = "-" if math.copysign(1.0, number) < 0 else ""
    if math.isinf(number):
        return sign + "Infinity"
    return sign + "0.0" if number == 0 else ""


def _positive_text(fraction: int, biased_exponent: int, bias: int, precision: int) -> str:
    """The text of a finite positive number from the fields of its IEEE form."""
    if biased_exponent:
        significand, exponent = fraction | 1 << (precision - 1), biased_exponent - bias
        significant_bits = precision
    else:  # subnormal: shift its first one to the place where normal numbers have it
        significant_bits = fraction.bit_length()
        significand = fraction << (precision - significant_bits)
        exponent = 1 - bias - (precision - significant_bits)
    digits, point = _digits(significand, precision, exponent, significant_bits)
    if 0 < point < 8:
        return f"{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"
    if -3 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    return f"{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def _digits(
    significand: int, precision: int, exponent: int, significant_bits: int
) -> tuple[str, int]:
    """The decimal digits, and the position of the decimal point among them.

    The number is `significand` * 2^(exponent - precision + 1), its first bit set.
    """
    tail_zeros = (significand & -significand).bit_length() - 1
    fraction_bits = precision - tail_zeros
    bits_after_point = max(0, fraction_bits - exponent - 1)
    if bits_after_point == 0 and exponent <= 62:
        shift = exponent - precision + 1
        whole = significand << shift if shift >= 0 else significand >> -shift
        return _whole_digits(whole, exponent - significant_bits - 1)
    return _fraction_digits(
        significand >> tail_zeros,
        _estimated_exponent(significand, precision, exponent),
        exponent=exponent,
        fraction_bits=fraction_bits,
        significant_bits=significant_bits,
        bits_after_point=bits_after_point,
    )


def _whole_digits(whole: int, spare_bits: int) -> tuple[str, int]:
    """A whole number below 2^63; digits below its precision (`spare_bits`) are rounded off."""
    dropped = len(str(1 << spare_bits)) - 1 if spare_bits > 1 else 0
    if dropped:
        unit = 10**dropped
        whole = whole // unit + (whole % unit >= unit // 2)
    digits = str(whole)
    return digits.rstrip("0"), len(digits) + dropped


def _estimated_exponent(significand: int, precision: int, exponent: int) -> int:
    """The decimal exponent by a linear guess in double arithmetic: right, or one too high."""
    scaled = significand / (1 << (precision - 1))  # exact, in [1, 2)
    guess = (scaled - 1.5) * 0.289529654 + 0.176091259 + exponent * 0.301029995663981
    return math.floor(guess)


def _fraction_digits(
    odd: int,
    decimal_exponent: int,
    *,
    exponent: int,
    fraction_bits: int,
    significant_bits: int,
    bits_after_point: int,
) -> tuple[str, int]:
    """Digits one by one (Steele and White) until what is left is within half a unit.

    `rest / unit` is the number scaled to one digit before the point, `half` half a unit in the
    last place of its binary form.
    """
    rest_5 = max(0, -decimal_exponent)
    unit_5 = max(0, decimal_exponent)
    rest_2 = rest_5 + bits_after_point + exponent
    unit_2 = unit_5 + bits_after_point
    half_2 = rest_2 - significant_bits
    rest_2 -= fraction_bits - 1
    common = min(rest_2, unit_2)
    rest_2, unit_2, half_2 = rest_2 - common, unit_2 - common, half_2 - common
    if fraction_bits == 1:  # below a power of two the next number is only half as far away
        half_2 -= 1
    if half_2 < 0:
        rest_2, unit_2, half_2 = rest_2 - half_2, unit_2 - half_2, 0

    rest = odd * 5**rest_5 << rest_2
    unit = 5**unit_5 << unit_2
    half = 5**rest_5 << half_2
    ten = unit * 10
    # Java works in 32 or 64 bits where its estimate says that they suffice. There it compares with
    # > instead of >=, and sums may overflow.
    bits = max(
        fraction_bits + rest_2 + _bits_of_power(rest_5),
        unit_2 + 1 + _bits_of_power(unit_5 + 1),
    )
    word = 32 if bits < 32 else 64 if bits < 64 else 0
    digits: list[int] = []

    def take() -> tuple[int, bool, bool]:
        nonlocal rest, half
        digit, rest = divmod(rest, unit)
        rest, half = rest * 10, _wrapped(half * 10, word)
        if half <= 0:  # overflowed, and so beyond every rest
            return digit, True, True
        high = _wrapped(rest + half, word) > ten if word else rest + half >= ten
        return digit, rest < half, high

    digit, low, high = take()
    if digit == 0 and not high:
        decimal_exponent -= 1
    else:
        digits.append(digit)
    if not -3 <= decimal_exponent < 8:  # scientific: a digit after the point at the least
        low = high = False
    while not (low or high):
        digit, low, high = take()
        digits.append(digit)
    beyond = _wrapped(rest * 2 - ten, word)  # against half of the last digit's unit
    if high and (not low or beyond > 0 or (beyond == 0 and digits[-1] % 2)):
        return _rounded_up(digits, decimal_exponent)
    return "".join(map(str, digits)), decimal_exponent + 1


def _bits_of_power(power: int) -> int:
    """Bits of 5^power: exact within Java's table, an upper bound beyond."""
    if power == 0:
        return 0
    return (5**power).bit_length() if power < _POWERS_OF_5 else power * 3


def _wrapped(number: int, word: int) -> int:
    """The number as a signed integer of `word` bits; 0 means that it has as many as it needs."""
    if not word:
        return number
    top = 1 << (word - 1)
    return (number + top) % (2 * top) - top


def _rounded_up(digits: list[int], decimal_exponent: int) -> tuple[str, int]:
    number = int("".join(map(str, digits))) + 1
    text = str(number).rjust(len(digits), "0")
    if len(text) > len(digits):  # 99 became 100
        return text[: len(digits)], decimal_exponent + 2
    return text, decimal_exponent + 1
