"""Names of tables from configuration files, which commands take in place of locations.

`[tables]` in `variantlake.toml` of the working folder, and of the user's folder of settings, or in
the one file that `VARIANTLAKE_CONFIG` names:

    [tables]
    events = "s3://lake/events"
"""

from __future__ import annotations

import os
import tomllib
from functools import cache
from pathlib import Path

import typer

from variantlake.errors import InvalidValue

VARIABLE = "VARIANTLAKE_CONFIG"
FILE = "variantlake.toml"


def located(text: str | None) -> str | None:
    """The location of a table that has this name; any other text is a location itself."""
    return None if text is None else named_tables().get(text, text)


def complete_name(incomplete: str) -> list[str]:
    """The names that begin so, for the shell."""
    return [name for name in named_tables() if name.startswith(incomplete)]


def named_tables() -> dict[str, str]:
    """Locations by name. Raises InvalidValue for a file that does not read, OSError."""
    return _tables_of(tuple(_files()))


def _files() -> list[Path]:
    """The files that there are, the user's before the working folder's."""
    if chosen := os.environ.get(VARIABLE):
        return [Path(chosen)]
    files = [Path(typer.get_app_dir("variantlake"), FILE), Path.cwd() / FILE]
    return [file for file in files if file.is_file()]


@cache
def _tables_of(files: tuple[Path, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for file in files:
        try:
            settings = tomllib.loads(file.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidValue(f"it is not TOML: {error}", file=str(file)) from None
        tables = settings.pop("tables", {})
        if settings or not isinstance(tables, dict):
            other = next(iter(settings), "tables")
            raise InvalidValue(
                f"{other!r} is not a section of it",
                file=str(file),
                hint='names of tables are in [tables]: events = "s3://lake/events"',
            )
        for name, location in tables.items():
            if not isinstance(location, str):
                raise InvalidValue(f"the location of {name!r} is not text", file=str(file))
            here = "://" not in location and not Path(location).expanduser().is_absolute()
            found[name] = str(file.parent / location) if here else location
    return found
