"""What public objects look like at a prompt: one line, and no names but the public ones."""

from __future__ import annotations

import datetime as dt
import reprlib
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import MISSING, asdict, fields
from typing import Any

MAX_LINE = 120
"""Characters of a repr."""

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 48


class Shown:
    """Base of public dataclasses: `repr` fits a line, `dir` has public names only.

    The line leaves out fields that have their default, those without a repr, and ends early where
    it would be too long. Collections are counted.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        parts = [f"{name}={_text(value)}" for name, value in _shown_fields(self)]
        line = f"{type(self).__name__}({', '.join(parts)})"
        return line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 2]}…)"

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.startswith("_")]


class Result(Shown):
    """Base of what functions and methods give back; `seconds` are of wall-clock time."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, for JSON; those that are dataclasses in turn as well."""
        fields_of: Any = self
        return asdict(fields_of)


def shortened(text: str, length: int) -> str:
    """A text of at most `length` characters, the last one an ellipsis where it is cut."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def utf8_text(text: str) -> str:
    r"""A text that may hold a file's name; bytes of it that are no UTF-8 are written as `\xff`."""
    try:
        data = text.encode(errors="surrogateescape")
    except UnicodeEncodeError:  # half a character that stands for no byte
        data = text.encode(errors="backslashreplace")
    return data.decode(errors="backslashreplace")


def counted(number: int, noun: str) -> str:
    """A number of things: `1 file`, `2,000 files`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size(count: int) -> str:
    """Bytes for people: `1.5 MB`, in powers of ten."""
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return counted(count, "byte")


def _shown_fields(shown: Any) -> list[tuple[str, Any]]:
    """The fields that say something."""
    found = []
    for item in fields(shown):
        value = getattr(shown, item.name, None)
        default = item.default
        if default is MISSING and item.default_factory is not MISSING:
            default = item.default_factory()
        if item.repr and (default is MISSING or value != default):
            found.append((item.name, value))
    return found


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dt.datetime):
        return value.isoformat(" ", "seconds")
    if isinstance(value, tuple | list | Mapping | AbstractSet):
        plain = all(isinstance(each, str | int | float) for each in value)
        short = plain and len(value) <= 3 and not isinstance(value, Mapping)
        return _SHORT.repr(value) if short else f"<{len(value):,}>"
    return _SHORT.repr(value)
