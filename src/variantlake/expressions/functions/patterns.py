"""Vectorized functions that find, replace or split by a regular expression."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import arrow_array
from variantlake.expressions.arrays import Values, failing, plain, valid
from variantlake.expressions.functions.java_patterns import (
    literal_of,
    re2_of_group,
    re2_of_matches,
    re2_of_pieces,
)
from variantlake.expressions.tree import Call
from variantlake.expressions.typing import refused

_ANY_END = "[\n\r\x85\u2028\u2029]"
_GROUP = re.compile(r"\$([0-9])(?![0-9])")


def _check_ends(texts: Any, pattern: str) -> None:
    """RE2 takes the last end of a line for a part of what `$` matches; Java does not."""
    if "$" in pattern and pc.any(pc.match_substring_regex(texts, _ANY_END), min_count=0).as_py():
        raise refused(f"the end of lines in {pattern!r}, of texts with several lines")


def _extracted(texts: Any, pattern: str, group: int) -> Any:
    """The first match, or a group of it; an empty text if there is none."""
    _check_ends(texts, pattern)
    found: Any = pc.extract_regex(texts, re2_of_group(pattern, group))
    none = pa.scalar("", pa.string())
    return pc.if_else(pc.is_null(texts), None, pc.fill_null(found.field(0), none))


def _counted(texts: Any, pattern: str) -> Any:
    _check_ends(texts, pattern)
    return pc.count_substring_regex(texts, re2_of_pieces(pattern)).cast(pa.int32())


def _replaced(texts: Any, pattern: str, replacement: str) -> Any:
    _check_ends(texts, pattern)
    return pc.replace_substring_regex(texts, re2_of_matches(pattern), _re2_text(replacement))


def _re2_text(replacement: str) -> str:
    """Translate a replacement, in which Java writes groups as `$1`. Raises if unsure."""
    if "\\" in replacement or "$" in _GROUP.sub("", replacement):
        raise refused(f"the replacement {replacement!r}")
    return _GROUP.sub(r"\\\1", replacement)


def check_replacement(pattern: str, replacement: str) -> None:
    """Raise UnsupportedFeature for what only Spark replaces, or for a group that is not there."""
    translated = re2_of_matches(pattern)
    try:
        pc.replace_substring_regex(pa.array([""]), translated, _re2_text(replacement))
    except pa.ArrowInvalid:
        raise refused(f"the replacement {replacement!r} of {pattern!r}") from None


def _parts(texts: Any, pattern: str) -> Any:
    literal = literal_of(pattern)
    if literal is not None:
        return _compute.split_pattern(texts, literal)
    _check_ends(texts, pattern)
    return _compute.split_pattern_regex(texts, re2_of_pieces(pattern))


def _part_count(texts: Any, pattern: str) -> Any:
    return pc.list_value_length(_parts(texts, pattern))


def _has_part(texts: Any, pattern: str, wanted: str) -> Any:
    """Whether one of the parts is `wanted`."""
    parts = _parts(texts, pattern)
    same = _compute.equal(parts.flatten(), wanted)
    rows = pc.list_parent_indices(parts).filter(same).to_numpy()
    found = np.zeros(len(parts), np.bool_)
    found[rows] = True
    return arrow_array(found, pa.bool_(), mask=~valid(parts))


def part_at(expression: Call, values: Sequence[Values]) -> Values:
    """One part by its place, from 0 or from the end; beyond the parts NULL, or an error."""
    pattern, place, is_error = expression.constants
    texts: Any = plain(values[0].array)
    parts = _parts(texts, pattern)
    count = pc.fill_null(pc.list_value_length(parts), 0).to_numpy()
    at = np.full(len(count), place) + (count if place < 0 else 0)
    there = (at >= 0) & (at < count)
    starts = np.cumsum(count) - count
    places = arrow_array((starts + at).astype(np.int64), pa.int64(), mask=~there)
    beyond = ~there & valid(texts) if is_error else None
    return failing(parts.flatten().take(places), values[0].failed, beyond)


_compute: Any = pc
PATTERN_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "regexp_extract": _extracted,
    "regexp_replace": _replaced,
    "regexp_count": _counted,
    "split_size": _part_count,
    "split_contains": _has_part,
}
"""Functions of one column of texts; the other arguments are constants."""
