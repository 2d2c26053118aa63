"""Doubles and floats as Java 17 prints them; Spark's own answers are in `test_against_spark`."""

from __future__ import annotations

import struct

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
        # Digits that are not needed (JDK-4511638): found by comparing with a Java 17.
        (1.603574281e19, "1.6035742809999999E19"),
        (-5.235408221000001e18, "-5.2354082210000005E18"),
        (2e-3, "0.002"),
        (-1.6130484589462314e17, "-1.61304845894623136E17"),
        (6.36746e20, "6.367459999999999E20"),
        # Sums that overflow 64 bits on the way.
        (-2.1841653731006846e25, "-2.1841653731006845E25"),
        (0.0029712566931560415, "0.0029712566931560415"),
        (5.12e25, "5.1199999999999996E25"),
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
        (1.17549435e-38, "1.17549435E-38"),
        (1e-45, "1.4E-45"),
        (3.4028234663852886e38, "3.4028235E38"),
        (-0.0, "-0.0"),
        (-4.801333e8, "-4.80133312E8"),
        (-5.1843282947075535e25, "-5.1843282E25"),
        (-7.623776687090678e-16, "-7.6237767E-16"),
    ],
)
def test_floats(number: float, text: str) -> None:
    exact = struct.unpack("<f", struct.pack("<f", number))[0]
    assert float_text(exact) == text


@given(doubles)
def test_doubles_read_back(number: float) -> None:
    found = float(double_text(number).replace("E", "e"))
    assert struct.pack("<d", found) == struct.pack("<d", number) or number != number


@given(floats32)
def test_floats_read_back(number: float) -> None:
    if number == number and abs(number) != float("inf"):
        found = float(float_text(number).replace("E", "e"))
        assert struct.pack("<f", found) == struct.pack("<f", number)
