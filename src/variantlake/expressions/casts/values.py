"""Spark's casts of values, one by one: `variant_get`, and CAST of texts.

This module has only casts whose results are known to be Spark's. A value that needs another cast
(by the session's time zone, of an odd text of a number) is refused by name, never guessed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import MAXYEAR, date
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from variantlake.encoding.java_numbers import double_text, float_text
from variantlake.encoding.json_text import decimal_text
from variantlake.encoding.scalar import decode_string
from variantlake.errors import UnsupportedFeature
from variantlake.expressions.casts.monotone import Beyond, monotone_cast
from variantlake.expressions.typing import INT_LIMITS
from variantlake.shredding.arrays import AnyArray
from variantlake.shredding.fit import Raw, raw_array, raws_of
from variantlake.types import Kind, ShreddedType


def cast_values(array: AnyArray, stored: ShreddedType, requested: ShreddedType) -> AnyArray:
    """Cast each value once as `cast_raw`; NULL where the cast fails."""
    encoded = array if isinstance(array, pa.DictionaryArray) else array.dictionary_encode()
    found = [
        None if raw is None else cast_raw(_decoded(raw, stored), stored, requested)
        for raw in raws_of(encoded.dictionary)
    ]
    return raw_array(found, requested).take(encoded.indices)


def _decoded(raw: Raw, stored: ShreddedType) -> Raw:
    """Decode a string of a column, which is bytes until here."""
    if isinstance(raw, bytes) and stored.kind is Kind.STRING:
        return decode_string(raw, 0, len(raw))
    return raw


def cast_raw(value: Raw, stored: ShreddedType, requested: ShreddedType) -> Raw | None:
    """Cast one value as Spark does; None if the cast fails.

    Raises UnsupportedFeature for casts that are left to Spark.
    """
    if stored == requested:
        return value
    monotone = None if not stored.info.spark else monotone_cast(stored, requested)
    if monotone is not None and not isinstance(value, bytes):
        found = monotone(value)  # type: ignore[arg-type]  # no UUID gets here: Spark has none
        return None if isinstance(found, Beyond) else found
    plain = _CASTS.get((stored.kind, requested.kind))
    if plain is None:
        raise UnsupportedFeature(f"casting {stored.ddl} to {requested.ddl} is left to Spark")
    return plain(value, requested)


def _date_text(value: Any, _requested: ShreddedType) -> str:
    day = np.datetime64(int(value), "D")
    if not np.datetime64("0001-01-01") <= day <= np.datetime64("9999-12-31"):
        raise UnsupportedFeature("a date beyond the years 1 to 9999 as a string is left to Spark")
    return str(day)


def _binary_text(value: Any, _requested: ShreddedType) -> str:
    try:
        return bytes(value).decode()
    except UnicodeDecodeError:
        raise UnsupportedFeature("binary that is not UTF-8 as a string is left to Spark") from None


def _truth(value: Any, _requested: ShreddedType) -> bool:
    return bool(value != 0)


def _number_of_truth(value: Any, requested: ShreddedType) -> Raw | None:
    return cast_raw(int(value), ShreddedType(Kind.INT8), requested)


def _float_to_integer(value: Any, requested: ShreddedType) -> int | None:
    limit = INT_LIMITS[requested.kind]
    if math.isnan(value) or math.isinf(value):
        return None
    if not (math.floor(value) <= float(limit - 1) and math.ceil(value) >= float(-limit)):
        return None
    return min(int(value), limit - 1)


def _float_to_decimal(value: Any, requested: ShreddedType) -> Decimal | None:
    """Round the shortest text of a double.

    Java before 19 has longer texts for some doubles. So the result is certain only if all texts of
    the double round alike, or if the shortest has few digits.
    """
    size = abs(value)
    if not size < 10.0 ** (requested.precision - requested.scale + 1):  # nor NaN
        return None
    shortest = Decimal(repr(size))
    ends = [(Fraction(size) + Fraction(math.nextafter(size, to))) / 2 for to in (0.0, math.inf)]
    units = 10**requested.scale
    found = {math.floor(each * units + _HALF) for each in ends}
    if len(found) > 1:
        if len(shortest.as_tuple().digits) > _SURE_DIGITS or not 1e-12 <= size < 1e16:
            raise UnsupportedFeature(f"{value!r} as {requested.ddl} is left to Spark")
        found = {math.floor(Fraction(shortest) * units + _HALF)}
    (number,) = found
    if number >= 10**requested.precision:
        return None
    return Decimal(-number if value < 0 else number).scaleb(-requested.scale, _WIDE)


def _narrow_float(value: Any, _requested: ShreddedType) -> float:
    with np.errstate(over="ignore"):
        # Convert an integer directly: through a double it would be rounded twice.
        return float(np.float32(np.int64(value) if isinstance(value, int) else value))


_HALF = Fraction(1, 2)
_SURE_DIGITS = 15
"""Doubles of 1e-12 to 1e16 with no more have the same text in Java 17 (tried on 17 million)."""
_BLANKS = "".join(map(chr, range(33)))
"""The characters that Spark trims from a text before it parses it: all up to the space."""
_CONTROLS = _BLANKS + "\x7f"
"""Those that it trims from integers and booleans."""
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_LONG_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[\x00-\x2f\x3a-\x7f]*")
"""ASCII without a digit. Java's decimals accept digits of other scripts."""
_SPECIAL_DOUBLES = {
    "nan": math.nan,
    **dict.fromkeys(("inf", "+inf", "infinity", "+infinity"), math.inf),
    **dict.fromkeys(("-inf", "-infinity"), -math.inf),
}
_TRUE, _FALSE = frozenset({"t", "true", "y", "yes", "1"}), frozenset({"f", "false", "n", "no", "0"})
_DATE = re.compile(r"([+-]?[0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
"""A year, a month and a day; text that follows a whole date and a space or a T is ignored."""
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[ T]([0-9]{2}):([0-9]{2})"
    r":([0-9]{2})(?:\.([0-9]{1,9}))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))?"
)
"""ISO 8601, as in JSON; Spark accepts more forms."""
_MOST_OFFSET = 18 * 60
"""The most minutes between a zone and UTC in Java."""
_WIDE = Context(prec=100, rounding=ROUND_HALF_UP)


def _unsure(text: str, requested: ShreddedType) -> UnsupportedFeature:
    return UnsupportedFeature(f"the string {text!r} as {requested.ddl} is left to Spark")


def _string_to_integer(value: Any, requested: ShreddedType) -> int | None:
    text = value.strip(_CONTROLS)
    if not _INTEGER.fullmatch(text) or len(text) > 100:
        return None
    number, limit = int(text), INT_LIMITS[requested.kind]
    return number if -limit <= number < limit else None


def _string_to_double(value: Any, requested: ShreddedType) -> float | None:
    text = value.strip(_BLANKS)
    if _DECIMAL.fullmatch(text):
        return float(text)
    if text.lower() in _SPECIAL_DOUBLES:
        return _SPECIAL_DOUBLES[text.lower()]
    if _NO_NUMBER.fullmatch(text) or not text.isascii():
        return None
    raise _unsure(value, requested)


def _string_to_decimal(value: Any, requested: ShreddedType) -> Decimal | None:
    text = value.strip(_BLANKS)
    if not _DECIMAL.fullmatch(text) or len(text) > 60:
        # Java also accepts digits of other scripts and long exponents; the rest is the same.
        if text.isascii() and "\x7f" not in text and not _LONG_DECIMAL.fullmatch(text):
            return None
        raise _unsure(value, requested)
    number = Decimal(text)
    if number and number.adjusted() >= requested.precision - requested.scale:
        return None
    rounded = _WIDE.quantize(number, Decimal((0, (1,), -requested.scale)))
    return (
        rounded if abs(rounded) < Decimal(10) ** (requested.precision - requested.scale) else None
    )


def _string_to_boolean(value: Any, _requested: ShreddedType) -> bool | None:
    text = value.strip(_CONTROLS).lower()
    return True if text in _TRUE else False if text in _FALSE else None


def _string_to_date(value: Any, requested: ShreddedType) -> Raw | None:
    text = value.strip(_BLANKS)
    match = _DATE.fullmatch(text)
    if match is None:
        if "\x7f" in text:
            raise _unsure(value, requested)
        return None
    year, month, day = (int(part or 1) for part in match.groups())
    if not 1 <= year <= MAXYEAR:
        raise _unsure(value, requested)
    try:
        return date(year, month, day).toordinal() - _EPOCH_DAY
    except ValueError:
        return None


def _string_to_timestamp(value: Any, requested: ShreddedType) -> int | None:
    """Parse a TIMESTAMP, or a TIMESTAMP_NTZ, which ignores the text's zone.

    Raises UnsupportedFeature for a TIMESTAMP without a zone: Spark uses the session's.
    """
    text = value.strip(_BLANKS)
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        if _NO_NUMBER.fullmatch(text):
            return None
        raise _unsure(value, requested)
    *numbers, fraction, sign, hours, minutes = match.groups()
    year, month, day, hour, minute, second = map(int, numbers)
    try:
        days = date(year, month, day).toordinal() - _EPOCH_DAY
    except ValueError:
        days = None
    offset = int(hours or 0) * 60 + int(minutes or 0)
    if year == 0 or int(minutes or 0) > 59 or offset > _MOST_OFFSET:
        raise _unsure(value, requested)
    if days is None or hour > 23 or minute > 59 or second > 59:
        return None
    micros = int((fraction or "").ljust(6, "0")[:6])
    found = (((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000 + micros
    if requested.kind is Kind.TIMESTAMP_NTZ:
        return found
    if sign is None and not text.endswith("Z"):
        error = _unsure(value, requested)
        error.hint = error.cli_hint = "it has no zone: ::timestamp_ntz reads it as it is written"
        raise error
    return found - (-offset if sign == "-" else offset) * 60_000_000


_Cast = Callable[[Any, ShreddedType], "Raw | None"]
_INTEGERS = tuple(INT_LIMITS)
_FLOATS = (Kind.FLOAT, Kind.DOUBLE)
_TEXTUAL = (Kind.STRING, Kind.DECIMAL)

_CASTS: dict[tuple[Kind, Kind], _Cast] = {
    **{(kind, Kind.STRING): lambda value, _: str(value) for kind in _INTEGERS},
    (Kind.BOOLEAN, Kind.STRING): lambda value, _: "true" if value else "false",
    (Kind.DOUBLE, Kind.STRING): lambda value, _: double_text(value),
    (Kind.FLOAT, Kind.STRING): lambda value, _: float_text(value),
    (Kind.DECIMAL, Kind.STRING): lambda value, _: decimal_text(value),
    (Kind.DATE, Kind.STRING): _date_text,
    (Kind.BINARY, Kind.STRING): _binary_text,
    (Kind.UUID, Kind.STRING): lambda value, _: str(value),
    **{(kind, Kind.BOOLEAN): _truth for kind in (*_INTEGERS, *_FLOATS, Kind.DECIMAL)},
    **{(Kind.BOOLEAN, kind): _number_of_truth for kind in (*_INTEGERS, Kind.DECIMAL, Kind.DOUBLE)},
    **{(stored, Kind.DECIMAL): _float_to_decimal for stored in _FLOATS},
    **{(stored, requested): _float_to_integer for stored in _FLOATS for requested in _INTEGERS},
    (Kind.DOUBLE, Kind.FLOAT): _narrow_float,
    (Kind.INT64, Kind.FLOAT): _narrow_float,
    **{(Kind.STRING, kind): _string_to_integer for kind in _INTEGERS},
    (Kind.STRING, Kind.DOUBLE): _string_to_double,
    (Kind.STRING, Kind.DECIMAL): _string_to_decimal,
    (Kind.STRING, Kind.BOOLEAN): _string_to_boolean,
    (Kind.STRING, Kind.DATE): _string_to_date,
    (Kind.STRING, Kind.TIMESTAMP): _string_to_timestamp,
    (Kind.STRING, Kind.TIMESTAMP_NTZ): _string_to_timestamp,
    **{
        (kind, Kind.DATE): lambda *_: None  # ANSI has no such casts
        for kind in (*_INTEGERS, *_FLOATS, Kind.DECIMAL, Kind.BOOLEAN, Kind.BINARY)
    },
}
"""Casts that are not among the monotone ones; a test compares each with Spark."""

BY_VALUE = frozenset(
    (stored, requested)
    for stored, requested in _CASTS
    if stored in (Kind.STRING, Kind.BINARY) or (stored in _FLOATS and requested in _TEXTUAL)
)
"""Casts of columns that Spark makes as those of Variants' values. Decimals keep their zeros."""
