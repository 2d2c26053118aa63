"""Table properties that are durations: `interval 30 days`, `interval 1 week 12 hours`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from variantlake.errors import InvalidValue

DAY_MILLIS = 86_400_000

_UNIT_MILLIS = {
    "week": 7 * DAY_MILLIS,
    "day": DAY_MILLIS,
    "hour": 3_600_000,
    "minute": 60_000,
    "second": 1000,
    "millisecond": 1,
    "microsecond": 0,
}
_FOREVER = 1 << 62

LOG_RETENTION = "delta.logRetentionDuration"
DEFAULT_LOG_RETENTION = "interval 30 days"
FILE_RETENTION = "delta.deletedFileRetentionDuration"
DEFAULT_FILE_RETENTION = "interval 1 week"
_TEXT = re.compile(r"(?:interval\s+)?((?:\d{1,18}\s+[a-z]+\s*)+)")


def property_millis(properties: Mapping[str, str], name: str, default: str) -> int:
    """Return a duration in milliseconds. For safety, a text that does not parse means forever."""
    match = _TEXT.fullmatch(properties.get(name, default).strip().lower())
    parts = re.findall(r"(\d+)\s+([a-z]+)", match[1]) if match else []
    units = [_UNIT_MILLIS.get(unit.removesuffix("s")) for _, unit in parts]
    if not parts or None in units:
        return _FOREVER
    return sum(int(number) * (unit or 0) for (number, _), unit in zip(parts, units, strict=True))


def check_retentions(configuration: Mapping[str, str], given: Collection[str]) -> None:
    """Raise InvalidValue if log retention is shorter than the retention of removed files.

    As in Delta Spark, checks only if one of the two properties is among those `given`.
    """
    if not {LOG_RETENTION, FILE_RETENTION}.intersection(given):
        return
    log = property_millis(configuration, LOG_RETENTION, DEFAULT_LOG_RETENTION)
    files = property_millis(configuration, FILE_RETENTION, DEFAULT_FILE_RETENTION)
    if log < files:
        texts = (
            configuration.get(LOG_RETENTION, DEFAULT_LOG_RETENTION),
            configuration.get(FILE_RETENTION, DEFAULT_FILE_RETENTION),
        )
        raise InvalidValue(
            f"{LOG_RETENTION} ({texts[0]}) is shorter than {FILE_RETENTION} ({texts[1]})",
            hint="the log must know of removed files for as long as these are kept: set both",
        )
