"""Show public objects at a prompt: one line, and completion with public names only."""

from __future__ import annotations

import datetime as dt
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from typing import Any

MAX_LINE = 120
"""The most characters of a repr."""

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 48


class Shown:
    """Base of public dataclasses: `repr` is one line, `dir` lists public names only.

    The line leaves out fields with their default value and fields with `repr=False`, shows large
    collections by their size, and is cut at MAX_LINE.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        parts = [f"{name}={_text(value)}" for name, value in _shown_fields(self)]
        line = f"{type(self).__name__}({', '.join(parts)})"
        return line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 2]}…)"

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.startswith("_")]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Result(Shown):
    """Base of the results of writes.

    `version` is the version that the write committed, or the current one if there was nothing to
    do; None for a dry run. With `dry_run` nothing was done, and the other fields say what a run
    would do. Names of counts begin with what they count: rows, files or bytes. `seconds` is
    wall-clock time.
    """

    version: int | None = None
    dry_run: bool = False
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, for JSON; times as text, dataclasses as dicts."""
        return {item.name: _plain(getattr(self, item.name)) for item in fields(self)}

    def _repr_html_(self) -> str:
        """Show a line for each field that differs from its default in a notebook."""
        rows = [(name, _text(value)) for name, value in _shown_fields(self)]
        return f"<p>{type(self).__name__}</p>{html_table((), rows)}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CommitResult(Result):
    """Result of a change of the table's properties, columns or log."""

    version: int


def html_table(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write an HTML table for a notebook, with a header if there are names; None is empty."""
    import html  # loads slowly; only notebooks need it

    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    lines = [f"<tr>{head}</tr>"] if names else []
    for row in rows:
        cells = ("" if each is None else html.escape(str(each)) for each in row)
        lines.append(f"<tr>{''.join(f'<td>{each}</td>' for each in cells)}</tr>")
    return f"<table>{''.join(lines)}</table>"


def json_default(value: Any) -> str:
    """Convert a value that JSON cannot represent to text."""
    return value.hex() if isinstance(value, bytes) else str(value)


def shortened(text: str, length: int) -> str:
    """Cut a text to `length` characters, with an ellipsis at the end if it is longer."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def utf8_text(text: str) -> str:
    r"""Escape bytes that are not UTF-8, as a file name may have them, as `\xff`."""
    try:
        data = text.encode(errors="surrogateescape")
    except UnicodeEncodeError:  # a lone surrogate that stands for no byte
        data = text.encode(errors="backslashreplace")
    return data.decode(errors="backslashreplace")


def counted(number: int, noun: str) -> str:
    """Write a number with its noun: `1 file`, `2,000 files`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size(count: int) -> str:
    """Write a number of bytes for people: `1.5 MB`, in powers of ten."""
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return counted(count, "byte")


def _shown_fields(shown: Any) -> list[tuple[str, Any]]:
    """Return the fields that differ from their default, `seconds` last."""
    shown_fields = []
    for item in sorted(fields(shown), key=lambda item: item.name == "seconds"):
        value = getattr(shown, item.name, None)
        default = item.default
        if default is MISSING and item.default_factory is not MISSING:
            default = item.default_factory()
        if item.repr and (default is MISSING or value != default):
            shown_fields.append((item.name, value))
    return shown_fields


def _plain(value: Any) -> Any:
    """Convert a field's value for JSON."""
    if isinstance(value, dt.datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


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
