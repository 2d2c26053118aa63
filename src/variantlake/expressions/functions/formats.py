"""`date_format`: dates and timestamps as texts, by Java's patterns, in UTC."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from variantlake.expressions.arrays import Values
from variantlake.expressions.functions.times import check_years
from variantlake.expressions.tree import Call
from variantlake.expressions.typing import refused

_TOKEN = re.compile(
    r"(?P<letters>([a-zA-Z])\2*)|'(?P<quoted>(?:[^']|'')*)'|(?P<literal>[^\[\]{}#'])"
)
_DIGITS = {
    "yyyy": (0, 4), "yy": (2, 4), "MM": (5, 7), "dd": (8, 10),
    "HH": (11, 13), "mm": (14, 16), "ss": (17, 19),
}  # fmt: skip
"""Letters that stand for a part of the text that Arrow gives a timestamp."""
_TEXT = "????-??-?? ??:??:??"
"""What is the same in all those texts, at its place."""
_compute: Any = pc
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("", "January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def _named(
    names: Sequence[str], part: Callable[[Any], Any], length: int | None = None
) -> Callable[[Any], Any]:
    shown = [name[:length] for name in names]
    return lambda array: pa.array(shown).take(part(array))


def _half_day(array: Any) -> Any:
    """The hour from 1 to 12."""
    hours: Any = pc.add(pc.hour(array), 11)
    return pc.add(pc.subtract(hours, pc.multiply(pc.divide(hours, 12), 12)), 1)


def _number(part: Callable[[Any], Any], digits: int = 1) -> Callable[[Any], Any]:
    return lambda array: _compute.utf8_lpad(part(array).cast(pa.string()), digits, "0")


_LETTERS: dict[str, Callable[[Any], Any]] = {
    "y": _number(pc.year),
    "M": _number(pc.month),
    "MMM": _named(_MONTHS, pc.month, 3),
    "MMMM": _named(_MONTHS, pc.month),
    "d": _number(pc.day),
    "H": _number(pc.hour),
    "h": _number(_half_day),
    "hh": _number(_half_day, 2),
    "m": _number(pc.minute),
    "s": _number(pc.second),
    "a": _named(("AM", "PM"), lambda array: pc.divide(pc.hour(array), 12)),
    "D": _number(pc.day_of_year),
    "DDD": _number(pc.day_of_year, 3),
    "Q": _number(pc.quarter),
    "EEEE": _named(_DAYS, pc.day_of_week),
    **dict.fromkeys(("E", "EE", "EEE"), _named(_DAYS, pc.day_of_week, 3)),
}


@dataclass(frozen=True, slots=True)
class _Slice:
    """A part of the text that Arrow gives a timestamp."""

    start: int
    stop: int


@lru_cache(maxsize=256)
def read_format(pattern: str) -> tuple[_Slice | str, ...]:
    """The pieces of a pattern: slices, letters, and texts, which have a quote before them.

    Raises UnsupportedFeature for letters whose texts may differ from Spark's.
    """
    pieces, place = list[_Slice | str](), 0
    while place < len(pattern):
        token = _TOKEN.match(pattern, place)
        if token is None:
            raise refused(f"the format {pattern!r}")
        place = token.end()
        letters = token["letters"]
        if letters is None:
            quoted = token["quoted"]
            text = token["literal"] if quoted is None else quoted.replace("''", "'") or "'"
            _add_text(pieces, text)
        elif letters in _DIGITS:
            _add_slice(pieces, _Slice(*_DIGITS[letters]))
        elif letters in _LETTERS or (set(letters) == {"S"} and len(letters) <= 9):
            pieces.append(letters)
        else:
            raise refused(f"{letters} in the format {pattern!r}")
    return tuple(pieces)


def _add_text(pieces: list[_Slice | str], text: str) -> None:
    last = pieces[-1] if pieces else None
    if isinstance(last, _Slice) and _TEXT[last.stop : last.stop + len(text)] == text:
        pieces[-1] = _Slice(last.start, last.stop + len(text))
    else:
        pieces.append(f"'{text}")


def _add_slice(pieces: list[_Slice | str], piece: _Slice) -> None:
    last = pieces[-1] if pieces else None
    if isinstance(last, _Slice) and last.stop == piece.start:
        pieces[-1] = _Slice(last.start, piece.stop)
    else:
        pieces.append(piece)


def format_times(expression: Call, values: Sequence[Values]) -> Values:
    """Evaluate `date_format`, for timestamps and a constant pattern."""
    given, (pattern,) = values[0], expression.constants
    array: Any = given.array
    check_years(array)
    # Arrow takes ten times as long for timestamps with a zone.
    shown = array.cast(pa.timestamp("us")).cast(pa.string())
    pieces = [_shown(array, shown, piece) for piece in read_format(pattern)]
    # A NULL in any piece makes the result NULL; a pattern of texts alone has no such piece.
    pieces.append(pc.if_else(pc.is_null(array), None, ""))
    return Values(_compute.binary_join_element_wise(*pieces, ""), given.failed)


def _shown(array: Any, shown: Any, piece: _Slice | str) -> Any:
    if isinstance(piece, _Slice):
        return pc.utf8_slice_codeunits(shown, piece.start, piece.stop)
    if piece.startswith("'"):
        return piece.removeprefix("'")
    if piece.startswith("S"):
        micros: Any = pc.add(pc.multiply(pc.millisecond(array), 1000), pc.microsecond(array))
        digits = _compute.utf8_lpad(micros.cast(pa.string()), 6, "0")
        count = len(piece)
        return _compute.utf8_rpad(pc.utf8_slice_codeunits(digits, 0, count), count, "0")
    return _LETTERS[piece](array)
