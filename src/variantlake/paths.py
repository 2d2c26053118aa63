"""Paths into a Variant: one parsed form for every notation.

Parses `$.a['b'][0]` (what Spark's `variant_get` takes), RFC 9535 normalized paths
(`$['a']['b'][0]`, the keys of Delta's Variant statistics) and the column form
`event:a.b['c'][0]::type` that Spark SQL and Databricks use.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from variantlake.errors import InvalidPath
from variantlake.quoting import PLAIN_NAME

MAX_STEPS = 1000
"""Our limit on the steps of one path; documents nest no deeper (limits in `encoding`)."""

_ESCAPES = {
    "'": "\\'",
    "\\": "\\\\",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
}
_SPECIAL = re.compile(r"['\\\x00-\x1f]")
_UNESCAPES = {escape[1]: char for char, escape in _ESCAPES.items()} | {'"': '"', "/": "/"}


@dataclass(frozen=True, slots=True)
class Path:
    """Steps from the root of a Variant: a `str` enters an object, an `int` (>= 0) an array."""

    steps: tuple[str | int, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Path:
        """Parse `$.a['b'][0]` or a normalized path. Raises InvalidPath with the offset."""
        _check_root(text)
        steps, end = _parse_steps(text, 1)
        if end != len(text):
            raise InvalidPath(f"unexpected {text[end]!r} in path {text!r}", offset=end)
        return cls(steps)

    @classmethod
    def parse_spark(cls, text: str) -> Path:
        """Parse a path that Spark 4.2's `variant_get` accepts, as Spark does.

        `$`, then any of `.key` (any characters up to the next `.` or `[`), `['key']`, `["key"]` (up
        to the next quote of that kind: there are no escapes) and `[0]` (up to 2^31 - 1).
        Raises InvalidPath with the offset where Spark raises an error.
        """
        _check_root(text)
        steps: list[str | int] = []
        position = 1
        while position < len(text):
            match = _SPARK_STEP.match(text, position)
            if match is None or len(steps) >= MAX_STEPS:
                raise InvalidPath(f"Spark does not understand the path {text!r}", offset=position)
            steps.append(_spark_step(match, text))
            position = match.end()
        return cls(tuple(steps))

    @classmethod
    def of(cls, *steps: str | int) -> Path:
        """Make a path of steps."""
        return cls(steps)

    def normalized(self) -> str:
        """Write the RFC 9535 normalized path (section 2.7): `$['a'][0]`, single quotes, escapes."""
        return "$" + "".join(
            f"[{step}]" if isinstance(step, int) else f"['{_escape(step)}']" for step in self.steps
        )

    def spark(self) -> str:
        """Write the path for Spark's `variant_get`.

        Raises InvalidPath for a key that Spark's path grammar cannot write (both kinds of quotes).
        """
        parts = ["$"]
        for step in self.steps:
            if isinstance(step, int):
                parts.append(f"[{step}]")
            elif "'" not in step:
                parts.append(f"['{step}']")
            elif '"' not in step:
                parts.append(f'["{step}"]')
            else:
                raise InvalidPath(f"Spark has no way to write the key {step!r} in a path")
        return "".join(parts)

    def child(self, step: str | int) -> Path:
        """Return this path with one more step."""
        return Path((*self.steps, step))

    @property
    def parent(self) -> Path:
        """This path without its last step; the root is its own parent."""
        return Path(self.steps[:-1])

    def plain(self) -> str:
        """Write the path as people do: `$.commit.record['odd key'][0]`."""
        parts = ["$"]
        for step in self.steps:
            is_plain = isinstance(step, str) and PLAIN_NAME.fullmatch(step)
            parts.append(f".{step}" if is_plain else Path((step,)).normalized()[1:])
        return "".join(parts)

    def __str__(self) -> str:
        return self.normalized()


@dataclass(frozen=True, slots=True)
class ColumnPath:
    """The parts of `column:path::type`. `type` is the text after `::`, empty if there is none."""

    column: str
    path: Path
    type: str = ""

    @classmethod
    def parse(cls, text: str) -> ColumnPath:
        """Parse `event:a.b['c'][0]::bigint`; the path may be empty (`event::string`).

        Raises InvalidPath with the offset of the first character that does not parse.
        """
        column, position = leading_column(text)
        steps: tuple[str | int, ...] = ()
        if text[position : position + 1] == ":" and text[position + 1 : position + 2] != ":":
            # `:a` parses as `.a` does; before a bracket the colon is skipped.
            start = position + 1 if text[position + 1 : position + 2] == "[" else position
            steps, position = _parse_steps(text, start)
        position += len(text[position:]) - len(text[position:].lstrip())
        if text.startswith("::", position):
            return cls(column, Path(steps), text[position + 2 :].strip())
        if position < len(text):
            raise InvalidPath(f"unexpected {text[position]!r} in {text!r}", offset=position)
        return cls(column, Path(steps))


def leading_column(text: str) -> tuple[str, int]:
    """Return the column name at the start of a text such as `event:a.b`, and the offset after it.

    Raises InvalidPath for a text that does not start with a name.
    """
    match = _IDENTIFIER.match(text)
    if match is None:
        raise InvalidPath(f"{text!r} does not start with a column name", offset=0)
    return _unquote_identifier(match[0]), match.end()


def _check_root(text: str) -> None:
    if not text.startswith("$"):
        raise InvalidPath(f"path {text!r} does not start with $", offset=0, hint="write $.a.b[0]")


_IDENTIFIER = re.compile(r"`(?:[^`]|``)+`|[^\W\d]\w*")
_DOT_KEY = re.compile(r"[^.\[\s'\"`:]+")
_INDEX = re.compile(r"\[\s*([0-9]+)\s*\]")
_INDEX_DIGITS = 18
"""The most digits of an index: no array has more elements than 18 digits can count."""


_SPARK_STEP = re.compile(
    r"""\.(?P<key>[^.\[]+)|\['(?P<single>[^']*)'\]|\["(?P<double>[^"]*)"\]|\[(?P<index>[0-9]+)\]"""
)
_SPARK_LAST_INDEX = (1 << 31) - 1


def _spark_step(match: re.Match[str], text: str) -> str | int:
    if match.lastgroup != "index":
        return str(match[match.lastgroup or 0])
    digits = match["index"].lstrip("0") or "0"
    if len(digits) > 10 or int(digits) > _SPARK_LAST_INDEX:
        raise InvalidPath(f"array index is over 2^31 - 1 in {text!r}", offset=match.start())
    return int(digits)


def _unquote_identifier(text: str) -> str:
    return text[1:-1].replace("``", "`") if text.startswith("`") else text


def _parse_steps(text: str, position: int) -> tuple[tuple[str | int, ...], int]:
    """Parse the steps from `position` to the end, `::` or white space; returns the offset, too."""
    steps: list[str | int] = []
    while position < len(text) and not text.startswith("::", position):
        if text[position].isspace():
            break
        if len(steps) >= MAX_STEPS:
            raise InvalidPath(f"path has more than {MAX_STEPS} steps", offset=position)
        step, position = _parse_step(text, position)
        steps.append(step)
    return tuple(steps), position


def _parse_step(text: str, position: int) -> tuple[str | int, int]:
    char = text[position]
    if char in ".:":
        if text[position + 1 : position + 2] == "`":
            match = _IDENTIFIER.match(text, position + 1)
            if match is not None:
                return _unquote_identifier(match[0]), match.end()
        match = _DOT_KEY.match(text, position + 1)
        if match is None:
            raise InvalidPath(f"expected a key after {char!r} in {text!r}", offset=position + 1)
        return match[0], match.end()
    if char != "[":
        raise InvalidPath(f"unexpected {char!r} in path {text!r}", offset=position)
    if match := _INDEX.match(text, position):
        if len(match[1]) > _INDEX_DIGITS:
            raise InvalidPath(f"array index is too long in {text!r}", offset=position)
        return int(match[1]), match.end()
    quote = text[position + 1 : position + 2]
    if quote not in ("'", '"'):
        raise InvalidPath(
            f"expected an index or a quoted key after '[' in {text!r}", offset=position + 1
        )
    key, end = _parse_quoted(text, position + 2, quote)
    if text[end : end + 1] != "]":
        raise InvalidPath(f"expected ']' in {text!r}", offset=end)
    return key, end + 1


def _parse_quoted(text: str, position: int, quote: str) -> tuple[str, int]:
    """Parse a key up to the closing `quote`; returns the position after it, too."""
    parts: list[str] = []
    while position < len(text):
        char = text[position]
        if char == quote:
            return "".join(parts), position + 1
        if char == "\\":
            char, position = _parse_escape(text, position)
            parts.append(char)
        else:
            parts.append(char)
            position += 1
    raise InvalidPath(f"quote is not closed in {text!r}", offset=len(text))


def _parse_escape(text: str, position: int) -> tuple[str, int]:
    code = text[position + 1 : position + 2]
    if code == "u":
        unit = _code_unit(text, position)
        if not 0xD800 <= unit <= 0xDFFF:
            return chr(unit), position + 6
        low = _code_unit(text, position + 6) if text.startswith("\\u", position + 6) else 0
        if unit > 0xDBFF or not 0xDC00 <= low <= 0xDFFF:
            raise InvalidPath(f"lone surrogate in {text!r}", offset=position)
        return chr(0x10000 + (unit - 0xD800 << 10) + (low - 0xDC00)), position + 12
    if code not in _UNESCAPES or not code:
        raise InvalidPath(f"unknown escape \\{code} in {text!r}", offset=position)
    return _UNESCAPES[code], position + 2


def _code_unit(text: str, position: int) -> int:
    digits = text[position + 2 : position + 6]
    if re.fullmatch(r"[0-9a-fA-F]{4}", digits) is None:
        raise InvalidPath(f"bad \\u escape in {text!r}", offset=position)
    return int(digits, 16)


def _escape(key: str) -> str:
    if _SPECIAL.search(key) is None:
        return key
    return "".join(
        _ESCAPES.get(char) or (f"\\u{ord(char):04x}" if char < " " else char) for char in key
    )
