"""Read configuration files: names of tables, and options to access buckets.

They are `variantlake.toml` in the working folder and in the user's settings folder, or the one file
that `VARIANTLAKE_CONFIG` names:

    [tables]
    events = "s3://lake/events"

    [storage."s3://lake"]
    AWS_PROFILE = "lake"
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import typer

from variantlake.errors import InvalidValue
from variantlake.storage.options import reach_with, set_storage_options

VARIABLE = "VARIANTLAKE_CONFIG"
FILE = "variantlake.toml"


@dataclass(frozen=True, slots=True)
class _Settings:
    """The settings of the files: locations by name, and storage options by bucket."""

    tables: dict[str, str] = field(default_factory=dict)
    buckets: dict[str, dict[str, str]] = field(default_factory=dict)


def located(text: str | None) -> str | None:
    """Return the location of a table with this name; returns any other text as the location."""
    return None if text is None else named_tables().get(text, text)


def complete_name(incomplete: str) -> list[str]:
    """Return the names that start with a text, for completion in the shell."""
    return [name for name in named_tables() if name.startswith(incomplete)]


def named_tables() -> dict[str, str]:
    """Return locations by name. Raises InvalidValue for a malformed file, OSError."""
    return _settings_of(tuple(_files())).tables


def reach_buckets(pairs: Iterable[str]) -> None:
    """Set the options of buckets from the files, and from `--storage-option`, which wins.

    A pair is `NAME=VALUE`, for all buckets, or `s3://bucket:NAME=VALUE`. Raises InvalidValue,
    BadParameter.
    """
    buckets = {
        name: dict(options) for name, options in _settings_of(tuple(_files())).buckets.items()
    }
    everywhere: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        bucket, _, name = name.rpartition(":")
        if not equals or not name:
            # Do not repeat the text, which may contain a secret.
            raise typer.BadParameter(
                "a storage option is NAME=VALUE, or s3://bucket:NAME=VALUE for one bucket"
            )
        (buckets.setdefault(bucket, {}) if bucket else everywhere)[name] = value
    if everywhere:
        set_storage_options(everywhere)
    for bucket, options in buckets.items():
        reach_with(bucket, options)


def _files() -> list[Path]:
    """Return the existing files, the user's before the working folder's."""
    if chosen := os.environ.get(VARIABLE):
        return [Path(chosen)]
    files = [Path(typer.get_app_dir("variantlake"), FILE), Path.cwd() / FILE]
    return [file for file in files if file.is_file()]


@cache
def _settings_of(files: tuple[Path, ...]) -> _Settings:
    found = _Settings()
    for file in files:
        try:
            settings = tomllib.loads(file.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidValue(f"it is not TOML: {error}", file=str(file)) from None
        tables, storage = settings.pop("tables", {}), settings.pop("storage", {})
        sections = {"tables": tables, "storage": storage}
        wrong = [name for name, section in sections.items() if not isinstance(section, dict)]
        if other := [*settings, *wrong]:
            raise InvalidValue(
                f"{other[0]!r} is not a section of it",
                file=str(file),
                hint='[tables] has names of tables, events = "s3://lake/events"; '
                '[storage."s3://lake"] has options of a bucket',
            )
        for name, location in tables.items():
            if not isinstance(location, str):
                raise InvalidValue(f"the location of {name!r} is not text", file=str(file))
            here = "://" not in location and not Path(location).expanduser().is_absolute()
            found.tables[name] = str(file.parent / location) if here else location
        for bucket, options in storage.items():
            found.buckets[bucket] = _options(options, bucket, file)
    return found


def _options(given: Any, bucket: str, file: Path) -> dict[str, str]:
    """Check the options of a bucket, and return them. Raises InvalidValue."""
    if "://" not in bucket or not isinstance(given, dict):
        raise InvalidValue(
            f"[storage] names {bucket!r}, which is not a bucket",
            file=str(file),
            hint='[storage."s3://lake"] has options of the bucket s3://lake',
        )
    if wrong := [name for name, value in given.items() if not isinstance(value, str)]:
        raise InvalidValue(f"the storage option {wrong[0]!r} is not text", file=str(file))
    return given
