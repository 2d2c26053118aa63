"""The options of `spark.read.format("variantlake")`, by Delta's names and by ours."""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from variantlake.errors import InvalidQuery, InvalidValue, UnsupportedFeature, did_you_mean

VERSION_IN_PATH = re.compile(r"(.+)@[vV](\d{1,18})", re.DOTALL)
"""How a path names a version, as in Delta."""

_VERSION = re.compile(r"\+?\d{1,18}")
_TIME_IN_PATH = re.compile(r"(.+)@(\d{17})", re.DOTALL)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

_OF_CATALOG = "owner"
"""A property of every table in Spark's catalog, which Spark passes to the source as an option."""

_NOT_IN_CATALOG = (
    "a catalog of Spark does not tell a data source in Python where its tables are: write by "
    "vl.spark.connect(spark).append(path, frame), and give the path a name by CREATE TABLE name "
    "USING delta LOCATION 'path' (with Delta Spark), or by CREATE TEMPORARY VIEW name USING "
    "variantlake OPTIONS (path 'path')"
)

_TIME_TRAVEL = ("versionAsOf", "timestampAsOf", "version", "timestamp")


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """A table, the requested version or time (milliseconds since the epoch), and columns."""

    location: str
    version: int | None
    timestamp: int | None
    columns: tuple[str, ...] | None

    @classmethod
    def of(cls, options: Mapping[str, str], zone: str) -> Self:
        """Parse Spark's options; `zone` is the time zone of a `timestampAsOf` without one.

        `path@v3` and `path@20260131120000000` name a version and a time, as in Delta.

        Raises InvalidQuery for an unknown option or an invalid value.
        """
        given = given_options(options, (*_TIME_TRAVEL, "columns"), "the data source")
        location = given["path"]
        requested = [name for name in _TIME_TRAVEL if name in given]
        if match := VERSION_IN_PATH.fullmatch(location) or _TIME_IN_PATH.fullmatch(location):
            location = match[1]
            requested.append("@" + match[2])
        if len(requested) > 1:
            raise InvalidQuery(f"a version or a time is given twice: {', '.join(requested)}")
        version = given.get("versionAsOf", given.get("version"))
        timestamp: dt.datetime | None = None
        if match is not None and match.re is VERSION_IN_PATH:
            version = match[2]
        elif match is not None:
            timestamp = _moment_in_path(match[2], zone)
        elif "timestampAsOf" in given:
            timestamp = _moment(given["timestampAsOf"], zone)
        elif "timestamp" in given:
            timestamp = _moment(given["timestamp"], "UTC")
        columns = given.get("columns")
        return cls(
            location,
            None if version is None else version_number(version),
            None if timestamp is None else _since_epoch(timestamp),
            None if columns is None else tuple(name.strip() for name in columns.split(",")),
        )


def given_options(
    options: Mapping[str, str],
    names: Sequence[str],
    what: str,
    *,
    begin: str = "load",
    also: Sequence[str] = (),
) -> dict[str, str]:
    """Return the options by their names as we spell them; Spark's names are in any case.

    `path` and the names in `also` are valid besides `names`, but no hint lists them. Raises
    InvalidQuery for an option that `what` does not have, and without a path, which the method
    `begin` takes; UnsupportedFeature for a table of Spark's catalog.
    """
    if any(name.lower() == _OF_CATALOG for name in options):
        message = "a table of Spark's catalog cannot be of the format variantlake"
        raise UnsupportedFeature(message, hint=_NOT_IN_CATALOG, cli_hint="")
    known = {name.lower(): name for name in (*names, *also, "path")}
    given: dict[str, str] = {}
    for name, value in options.items():
        if name.lower() not in known:
            hint = did_you_mean(name, names) or f"it has {', '.join(names)}"
            raise InvalidQuery(f"{what} has no option {name!r}", hint=hint)
        given[known[name.lower()]] = value
    if not given.get("path"):
        hint = f"{begin}(path) takes its location; {_NOT_IN_CATALOG}"
        raise InvalidQuery("no table is named", hint=hint, cli_hint="")
    return given


def version_number(text: str) -> int:
    """Parse the version in an option's text. Raises InvalidQuery."""
    if not _VERSION.fullmatch(text):
        raise InvalidQuery(f"{text!r} is not a version", hint="a number from 0 on")
    return int(text)


def milliseconds(text: str, zone: str) -> int:
    """Parse the time in an option's text, in milliseconds since the epoch. Raises InvalidQuery."""
    return _since_epoch(_moment(text, zone))


def _since_epoch(moment: dt.datetime) -> int:
    return (moment - _EPOCH) // dt.timedelta(milliseconds=1)


def _moment(text: str, zone: str) -> dt.datetime:
    try:
        return _zoned(dt.datetime.fromisoformat(text), zone)
    except (ValueError, OverflowError):
        raise InvalidQuery(f"{text!r} is not a timestamp", hint="2026-01-31T12:00:00Z") from None


def _moment_in_path(digits: str, zone: str) -> dt.datetime:
    """Parse the time in digits of the form `yyyyMMddHHmmssSSS`."""
    try:
        return _zoned(dt.datetime.strptime(digits + "000", "%Y%m%d%H%M%S%f"), zone)  # noqa: DTZ007 - has none
    except ValueError:
        raise InvalidQuery(f"@{digits} is not a timestamp", hint="@yyyyMMddHHmmssSSS") from None


def _zoned(moment: dt.datetime, zone: str) -> dt.datetime:
    """Return the moment, in `zone` unless it has a time zone."""
    if moment.tzinfo is not None:
        return moment
    try:
        return moment.replace(tzinfo=zoneinfo.ZoneInfo(zone))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        raise InvalidQuery(
            f"the session's time zone {zone!r} is not known here",
            hint="write the zone into the time: 2026-01-31T12:00:00Z",
        ) from None


def flag(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Parse an option that is true or false. Raises InvalidValue for anything else."""
    text = given.get(name, str(default)).strip().lower()
    if text not in {"true", "false"}:
        raise InvalidValue(f"the option {name} is {given[name]!r}", hint="true or false")
    return text == "true"


def whole_number(given: Mapping[str, str], name: str, *, least: int = 0) -> int | None:
    """Parse an option that is a number, `least` or more; None without it. Raises InvalidValue."""
    text = given.get(name)
    if text is None:
        return None
    if not (text.isdecimal() and len(text) <= 18 and int(text) >= least):
        hint = f"a whole number from {least} on" if least else "a whole number"
        raise InvalidValue(f"the option {name} is {text!r}", hint=hint)
    return int(text)
