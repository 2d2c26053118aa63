"""Finds the table that a caller of a Lake names, in one way for queries, loads and all else.

A name is what a query's FROM takes: a registered name, a table or view of the session's catalogs,
or ``delta.`path` ``. A path has a slash or starts with a dot or a tilde, and a URL has a scheme.
A bare word is a name. Anything else is an error, and never creates a folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from variantlake.errors import (
    InvalidQuery,
    InvalidValue,
    NotADeltaTable,
    UnsupportedFeature,
    describe_type,
)
from variantlake.quoting import Parts, quote_identifier
from variantlake.spark.query.names import CatalogTable, delta_name
from variantlake.spark.scan.source_options import VERSION_IN_PATH
from variantlake.storage.schemes import check_location

Location = str | os.PathLike[str]
"""A name of a table, its path, or its URL."""

Find = Callable[[Parts], CatalogTable | None]
"""Looks up a name in the session's catalogs."""

_PART = r"`(?:[^`]|``)+`|\w+"
_NAME = re.compile(rf"\s*(?:{_PART})(?:\s*\.\s*(?:{_PART}))*\s*")
_EACH_PART = re.compile(_PART)
_PATH = re.compile(r"[.~]|.*[/\\]|[A-Za-z][A-Za-z0-9+.-]*:", re.DOTALL)
_UNQUOTED = re.compile(r"\s*delta\s*\.\s*/", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class NamedLocation:
    """The table or view that a caller named; `source` is its name in a query's FROM.

    `location` is a path or a URL. It is None for a view or a table that is not Delta's; `what` then
    says which of them it is.
    """

    source: str
    location: str | None
    what: str = ""


def find_place(table: Location, registered: Mapping[str, str], find: Find) -> NamedLocation:
    """Return the table or view that `table` names.

    `registered` are locations by names in lower case.

    Raises NotADeltaTable for an unknown name, StoreFailed for a URL of an unsupported store,
    InvalidValue for a `table` that is neither a string nor a path.
    """
    if not isinstance(table, str | os.PathLike) or not isinstance(os.fspath(table), str):
        raise InvalidValue(
            f"a table is named by its name, path or URL, not by {describe_type(table)}",
            hint="the table comes first: its name or its location, as a string or a path",
            cli_hint="give its name or its location as a string or a path",
        )
    text = os.fspath(table)
    if not isinstance(table, str):
        return _at(text)
    if text.lower() in registered:
        return _at(registered[text.lower()])
    parts = name_parts(text)
    if parts is None or (_PATH.match(text) and "`" not in text):
        return _path(text)
    if len(parts) == 2 and parts[0].lower() == "delta":
        return _at(parts[1])
    if (location := registered.get(".".join(parts).lower())) is not None:
        return _at(location)
    found = find(parts)
    if found is None:
        raise NotADeltaTable(f"there is no table {text!r}", hint=_what_to_write(text))
    if found.is_delta:
        return _at(found.location)
    what = "a view" if found.is_view else "no Delta table"
    return NamedLocation(".".join(map(quote_identifier, parts)), None, what)


def writable(place: NamedLocation, table: Location) -> str:
    """Return the location of a table, for a write.

    Raises UnsupportedFeature for a view or a table of another kind, InvalidQuery for a version.
    """
    if place.location is None:
        raise UnsupportedFeature(
            f"{os.fspath(table)!r} is {place.what}: it cannot be written to",
            hint="name a Delta table, or the path of a folder",
        )
    if VERSION_IN_PATH.fullmatch(place.location):
        raise InvalidQuery(
            f"{place.location!r} names a version of a table: it can only be read",
            hint="leave out what follows the @",
        )
    return place.location


def name_parts(text: str) -> Parts | None:
    """Return the parts of a name in SQL; None if the text is not a name."""
    if not _NAME.fullmatch(text):
        return None
    return tuple(
        part[1:-1].replace("``", "`") if part.startswith("`") else part
        for part in _EACH_PART.findall(text)
    )


def _path(text: str) -> NamedLocation:
    if not text or not _PATH.match(text):
        raise NotADeltaTable(
            f"{text!r} is neither the name of a table nor a path", hint=_what_to_write(text)
        )
    if _UNQUOTED.match(text):
        path = text[text.index("/") :]
        raise NotADeltaTable(f"{text!r} is not a name", hint=f"write delta.`{path}`, or {path}")
    return _at(text)


def _at(location: str) -> NamedLocation:
    location = check_location(location)
    return NamedLocation(delta_name(location), location)


def _what_to_write(text: str) -> str:
    return (
        f"write './{text}' for a folder; lake.register({text!r}, path) gives a path this name, "
        "CREATE TABLE ... USING delta makes a table of the catalog"
    )
