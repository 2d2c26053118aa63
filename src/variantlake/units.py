"""Parse times, durations and sizes that users write, in Python and on the command line."""

from __future__ import annotations

import datetime as dt
import re

from variantlake.errors import InvalidValue, describe_type, wrong_option

Time = dt.datetime | str
"""A datetime, or ISO text such as `2026-01-31 12:30:00.250Z`; UTC unless it has a time zone."""

Duration = float | str | dt.timedelta
"""Text with a unit (`"30s"`, `"5m"`, `"12h"`, `"7d"`, `"2w"`), a timedelta, or a number of seconds
(of hours where the argument says so)."""

Size = int | str
"""Bytes: a whole number, or text with a unit, `"64MB"` or `"1GB"`, in powers of 1024."""

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604_800}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d|w|)", re.ASCII)
_SIZE = re.compile(r"(\d{1,18})\s*([kmgt]?)(?:i?b)?", re.ASCII | re.IGNORECASE)
_SHIFTS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def moment(name: str, given: object) -> dt.datetime:
    """Convert an argument to a datetime with a time zone. Raises InvalidValue."""
    if isinstance(given, str):
        try:
            given = dt.datetime.fromisoformat(given.strip().removesuffix(" UTC"))
        except ValueError:
            raise InvalidValue(
                f"{name} {given!r} is not a time", hint="write 2026-01-31 12:30:00"
            ) from None
    if not isinstance(given, dt.datetime):
        raise InvalidValue(
            f"{name} is {given!r}, {describe_type(given)}",
            hint="a datetime.datetime, as the `time` of a line of history, or text such as "
            "2026-01-31 12:30:00",
        )
    return given.replace(tzinfo=given.tzinfo or dt.UTC)


def milliseconds(name: str, given: object, *, up: bool = False) -> int:
    """Convert a time to milliseconds since 1970, rounded down or up. Raises InvalidValue."""
    since = moment(name, given) - EPOCH
    millisecond = dt.timedelta(milliseconds=1)
    return -(-since // millisecond) if up else since // millisecond


def seconds(name: str, given: object, *, unit: str = "s") -> float:
    """Convert a duration to seconds; a number without a unit is in `unit`. Raises InvalidValue."""
    length = -1.0
    if isinstance(given, dt.timedelta):
        length = given.total_seconds()
    elif isinstance(given, str) and (match := _DURATION.fullmatch(given.strip())):
        length = float(match[1]) * _SECONDS[match[2] or unit]
    elif isinstance(given, int | float) and not isinstance(given, bool):
        length = given * _SECONDS[unit]
    if not 0 <= length < float("inf"):
        raise wrong_option(name, given, "a duration such as 30s, 5m, 1h or 7d, or a timedelta")
    return length


def size_bytes(name: str, given: object) -> int:
    """Convert a size to bytes. Raises InvalidValue."""
    if isinstance(given, str) and (match := _SIZE.fullmatch(given.strip())):
        return int(match[1]) << _SHIFTS[match[2].lower()]
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise wrong_option(name, given, "a size: a number of bytes, 64MB or 1GB")
    return given


def check_limit(limit: int | None) -> None:
    """Raise InvalidValue unless the limit is None or a number of rows."""
    if limit is not None and (type(limit) is not int or limit < 0):
        raise InvalidValue(f"the limit is {limit!r}", hint="a whole number from 0 on; None for all")
