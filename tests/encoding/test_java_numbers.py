"""Doubles and floats as Java 19+ prints them; Spark's own answers are in `test_against_spark`."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given

from tests.strategies import doubles, floats32
from variantlake.encoding.java_numbers import double_text, float_text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1.0"),
        (-2.5, "-2.5"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (100000.0, "100000.0"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (123456789.125, "1.23456789125E8"),
        (1e21, "1.0E21"),
        (5e-324, "4.9E-324"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (1e-323, "9.9E-324"),
        (1.5e-323, "1.5E-323"),
        (9.007199254740991e15, "9.007199254740991E15"),
        (9.007199254740993e15, "9.007199254740992E15"),
        # The closest of 16 digits is another double's, the next one up is not.
        (2.0**-44, "5.684341886080802E-14"),
        # Java 17 prints more digits than these need (JDK-4511638), or one that is not the closest.
        (2e23, "2.0E23"),
        (2.2250738585072014e-308, "2.2250738585072014E-308"),
        (1.603574281e19, "1.603574281E19"),
        (-5.235408221000001e18, "-5.235408221000001E18"),
        (2e-3, "0.002"),
        (-1.6130484589462314e17, "-1.6130484589462314E17"),
        (6.36746e20, "6.36746E20"),
        (-2.1841653731006846e25, "-2.1841653731006846E25"),
        (0.0029712566931560415, "0.0029712566931560415"),
        (5.12e25, "5.12E25"),
    ],
)
def test_doubles(number: float, text: str) -> None:
    assert double_text(number) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.5, "1.5"),
        (0.1, "0.1"),
        (1e10, "1.0E10"),
        (16777216.0, "1.6777216E7"),
        (1.17549435e-38, "1.1754944E-38"),
        (1e-45, "1.4E-45"),
        (3.4028234663852886e38, "3.4028235E38"),
        (-0.0, "-0.0"),
        (1e-44, "9.8E-45"),
        (1.1e-44, "1.1E-44"),
        (2.0**-96, "1.2621775E-29"),
        (2.0**87, "1.5474251E26"),
        (-4.801333e8, "-4.801333E8"),
        (-5.1843282947075535e25, "-5.1843283E25"),
        (-7.623776687090678e-16, "-7.6237767E-16"),
    ],
)
def test_floats(number: float, text: str) -> None:
    exact = struct.unpack("<f", struct.pack("<f", number))[0]
    assert float_text(exact) == text


def significant(text: str) -> str:
    """The digits of a number that its layout does not ask for."""
    return text.lower().split("e")[0].replace(".", "").strip("-0")


@given(doubles)
def test_doubles_have_as_few_digits_as_python_gives(number: float) -> None:
    if math.isfinite(number) and len(significant(repr(number))) > 1:
        assert significant(double_text(number)) == significant(repr(number))


@given(floats32)
def test_floats_have_as_few_digits_as_numpy_gives(number: float) -> None:
    expected = significant(f"{np.format_float_scientific(np.float32(number))}")
    if math.isfinite(number) and len(expected) > 1:
        assert significant(float_text(number)) == expected


@given(doubles)
def test_doubles_read_back(number: float) -> None:
    found = float(double_text(number))
    assert struct.pack("<d", found) == struct.pack("<d", number) or number != number


@given(floats32)
def test_floats_read_back(number: float) -> None:
    if number == number and abs(number) != float("inf"):
        found = float(float_text(number))
        assert struct.pack("<f", found) == struct.pack("<f", number)
