"""Check that a location leads to a store: a path, or a URL with a supported scheme."""

from __future__ import annotations

import os
import re
from pathlib import Path

from variantlake.errors import StoreFailed, UnsupportedFeature

# A single letter is a drive, not a scheme.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_STORES = (
    "s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss", "http", "https", "memory",
)  # fmt: skip
_NAME_IN_SQL = re.compile(r"\s*delta\s*\.\s*`(.*)`\s*", re.IGNORECASE | re.DOTALL)


def check_location(location: str | os.PathLike[str]) -> str:
    """Return a path or URL as text, with a leading `~` replaced by the home folder.

    Refuses texts that would otherwise be taken for a folder's name: raises StoreFailed for the URL
    of an unknown store, UnsupportedFeature for ``delta.`path` ``.
    """
    text = os.fspath(location)
    if match := _NAME_IN_SQL.fullmatch(text):
        raise UnsupportedFeature(
            f"{text!r} is the name of a table in SQL, expected a path or a URL",
            hint=f"write {match[1]!r}",
        )
    check_scheme(text)
    return str(Path(text).expanduser()) if text == "~" or text.startswith("~/") else text


def check_scheme(location: str) -> None:
    """Raise StoreFailed for a URL that leads to no supported store."""
    match = _SCHEME.match(location)
    if match is None:
        return
    scheme, rest = match[1].lower(), location[match.end() :]
    if scheme == "file":
        if rest.startswith("/") and not re.match(r"//(?!localhost/)[^/]", rest, re.IGNORECASE):
            return
        why, hint = "is not absolute, or names another machine", "write file:///path"
    elif scheme in _STORES:
        if rest.startswith("//"):
            return
        why, hint = "is not complete", f"write {scheme}://bucket/path"
    else:
        why = f"is a URL of {scheme}, which is not known here"
        hint = f"known are file, {', '.join(_STORES[:-1])}; write ./ before a path with a colon"
    raise StoreFailed(f"cannot open this location: {location!r} {why}", hint=hint)
