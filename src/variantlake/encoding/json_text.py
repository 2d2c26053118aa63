"""Write a Variant as JSON text, in the form of Spark's `to_json`.

Types that Spark cannot write (time, nanosecond timestamps, UUID) look like the most similar type.
"""

from __future__ import annotations

import base64
import datetime as dt
import re
from decimal import Decimal

from variantlake.encoding.java_numbers import double_text, float_text
from variantlake.encoding.scalar import Scalar, decimal_parts
from variantlake.encoding.tree import Tree, decode
from variantlake.types import Primitive

MICROS = 1_000_000
NANOS = 1_000_000_000
_DAY = 24 * 60 * 60

_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_SHORT_ESCAPES = {
    '"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
}  # fmt: skip


def to_json(metadata: bytes, value: bytes, *, time_zone: dt.tzinfo = dt.UTC) -> str:
    """Write one Variant as JSON, fields in stored order, without white space.

    Integers and decimals are plain, decimals without trailing zeros. Doubles and floats are as Java
    prints them (`1.0E10`), NaN and infinities are strings. Dates, times and timestamps are strings;
    timestamps adjusted to UTC have the offset of `time_zone`. Binary is base64.

    Raises MalformedVariant, UnknownVariantType, LimitExceeded as `decode`.
    """
    return tree_to_json(decode(metadata, value), time_zone=time_zone)


def tree_to_json(tree: Tree, *, time_zone: dt.tzinfo = dt.UTC) -> str:
    """Write a tree as `to_json` does."""
    parts: list[str] = []
    todo: list[Tree | str] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, str):
            parts.append(node)
        elif isinstance(node, Scalar):
            parts.append(scalar_to_json(node, time_zone))
        elif isinstance(node, dict):
            todo.append("}")
            for i, (name, child) in reversed(list(enumerate(node.items()))):
                todo.append(child)
                todo.append(f"{',' if i else ''}{quote(name)}:")
            todo.append("{")
        else:
            todo.append("]")
            for i, child in reversed(list(enumerate(node))):
                todo.append(child)
                if i:
                    todo.append(",")
            todo.append("[")
    return "".join(parts)


def scalar_to_json(scalar: Scalar, time_zone: dt.tzinfo = dt.UTC) -> str:
    """Write one primitive value as JSON."""
    match scalar:
        case Scalar(Primitive.NULL):
            return "null"
        case Scalar(Primitive.TRUE | Primitive.FALSE, value):
            return "true" if value else "false"
        case Scalar(Primitive.STRING, str() as value):
            return quote(value)
        case Scalar(Primitive.BINARY, bytes() as value):
            return f'"{base64.b64encode(value).decode("ascii")}"'
        case Scalar(Primitive.DOUBLE, float() as value):
            return _finite_or_quoted(double_text(value))
        case Scalar(Primitive.FLOAT, float() as value):
            return _finite_or_quoted(float_text(value))
        case Scalar(_, Decimal() as value):
            return decimal_text(value)
        case Scalar(Primitive.DATE, int() as value):
            return f'"{date_text(value)}"'
        case Scalar(Primitive.TIME, int() as value):
            return f'"{_clock_text(value, MICROS)}"'
        case Scalar(Primitive.TIMESTAMP, int() as value):
            return f'"{timestamp_text(value, MICROS, time_zone)}"'
        case Scalar(Primitive.TIMESTAMP_NANOS, int() as value):
            return f'"{timestamp_text(value, NANOS, time_zone)}"'
        case Scalar(Primitive.TIMESTAMP_NTZ, int() as value):
            return f'"{timestamp_text(value, MICROS, None)}"'
        case Scalar(Primitive.TIMESTAMP_NTZ_NANOS, int() as value):
            return f'"{timestamp_text(value, NANOS, None)}"'
        case Scalar(Primitive.UUID, value):
            return f'"{value!s}"'
        case _:
            return str(scalar.value)


def quote(text: str) -> str:
    """Write a JSON string with only the required escapes; control characters in upper-case hex."""
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    return _SHORT_ESCAPES.get(char) or f"\\u{ord(char):04X}"


def _finite_or_quoted(text: str) -> str:
    return f'"{text}"' if text in ("NaN", "Infinity", "-Infinity") else text


def decimal_text(value: Decimal) -> str:
    """Write a decimal as plain digits without trailing zeros: 1.50 is `1.5`, 100 stays `100`."""
    unscaled, scale = decimal_parts(value)
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    whole, fraction = digits[: len(digits) - scale], digits[len(digits) - scale :].rstrip("0")
    return ("-" if unscaled < 0 else "") + whole + ("." + fraction if fraction else "")


def date_text(days: int) -> str:
    """Write a date: `2025-04-16`; with a plus above the year 9999 and a minus below 0, as Java."""
    # The calendar repeats after 400 years of 146,097 days.
    cycles, day = divmod(days - _DAYS_TO_2000, 146_097)
    date = dt.date(2000, 1, 1) + dt.timedelta(days=day)
    year = date.year + 400 * cycles
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{date.month:02d}-{date.day:02d}"


_DAYS_TO_2000 = (dt.date(2000, 1, 1) - dt.date(1970, 1, 1)).days


def timestamp_text(number: int, unit: int, time_zone: dt.tzinfo | None) -> str:
    """Write a timestamp: `2025-04-16 12:34:56.78+00:00`; without offset if `time_zone` is None.

    `number` counts from the epoch, with `unit` per second.
    """
    offset = 0 if time_zone is None else _offset_seconds(number // unit, time_zone)
    days, within = divmod(number + offset * unit, _DAY * unit)
    text = f"{date_text(days)} {_clock_text(within, unit)}"
    if time_zone is None:
        return text
    hours, minutes = divmod(abs(offset) // 60, 60)
    return f"{text}{'-' if offset < 0 else '+'}{hours:02d}:{minutes:02d}"


def _clock_text(within: int, unit: int) -> str:
    """Write a time of day, its fraction without trailing zeros: `12:34:56.78`."""
    seconds, fraction = divmod(within, unit)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    digits = f"{fraction:0{len(str(unit)) - 1}d}".rstrip("0")
    return f"{hour:02d}:{minute:02d}:{second:02d}" + ("." + digits if digits else "")


def _offset_seconds(seconds: int, time_zone: dt.tzinfo) -> int:
    """Return the zone's offset from UTC at an instant, in seconds.

    For an instant before Python's datetime, it is the offset at the earliest one. For one after it,
    it is that of the same day a multiple of 400 years earlier, when the calendar and so the zone's
    rules are the same.
    """
    cycle = 146_097 * _DAY
    if seconds >= _LATEST:
        seconds = _LATEST - cycle + (seconds - _LATEST) % cycle
    instant = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=max(seconds, _EARLIEST))
    offset = instant.astimezone(time_zone).utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


_EARLIEST = int(dt.datetime(2, 1, 1, tzinfo=dt.UTC).timestamp())
_LATEST = int(dt.datetime(9999, 1, 1, tzinfo=dt.UTC).timestamp())
