"""Vectorized functions of strings, as in Spark's ANSI mode."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from variantlake.expressions.arrays import Values, either, of_entries, plain
from variantlake.expressions.functions.java_patterns import re2_pattern
from variantlake.expressions.functions.patterns import PATTERN_FUNCTIONS, part_at
from variantlake.expressions.tree import Call
from variantlake.expressions.typing import refused

_compute: Any = pc


def _is_ascii(texts: Any) -> bool:
    return bool(pc.all(pc.string_is_ascii(texts), min_count=0).as_py())


def _letters(function: Any, texts: Any) -> Any:
    if not _is_ascii(texts):
        # Java and Arrow have different versions of Unicode's tables of letters.
        raise refused(f"{function.__name__.removeprefix('ascii_')} of other than ASCII")
    return function(texts)


def _substring(texts: Any, start: int, length: int | None = None) -> Any:
    """Take the characters from `start`, counted from 1, or from the end if it is negative."""
    first = start - 1 if start > 0 else start
    if length is None:
        return pc.utf8_slice_codeunits(texts, first)
    stop = first + max(length, 0)
    if first < 0 <= stop:
        return pc.utf8_slice_codeunits(texts, first if length > 0 else 0, None if length > 0 else 0)
    return pc.utf8_slice_codeunits(texts, first, stop)


def _locate(texts: Any, part: str) -> Any:
    """The position of `part` in each text, from 1; 0 if the text does not contain it."""
    if _is_ascii(texts):
        return pc.add(pc.find_substring(texts, part), 1).cast(pa.int32())
    found = [None if text is None else text.find(part) + 1 for text in texts.to_pylist()]
    return pa.array(found, pa.int32())


def _each(function: Callable[[str], str], texts: Any) -> Any:
    return pa.array([None if text is None else function(text) for text in texts.to_pylist()])


def _split_part(texts: Any, delimiter: str, number: int) -> Any:
    def part(text: str) -> str:
        parts = text.split(delimiter) if delimiter else [text]
        at = number - 1 if number > 0 else len(parts) + number
        return parts[at] if 0 <= at < len(parts) else ""

    return _each(part, texts)


def _padded(texts: Any, length: int, fill: str = " ", *, left: bool) -> Any:
    """Fill texts up to `length` characters, and cut longer ones."""
    if length > _MOST_TIMES:
        raise refused(f"texts filled up to more than {_MOST_TIMES:,} characters")

    def padded(text: str) -> str:
        more = (fill * max(length, 0))[: max(length - len(text), 0)]
        cut = text[: max(length, 0)]
        return more + cut if left else cut + more

    return _each(padded, texts)


def _substring_index(texts: Any, delimiter: str, count: int) -> Any:
    """The text before the `count`-th delimiter, or after it, counted from the end.

    Delimiters may overlap.
    """

    def part(text: str) -> str:
        at = -1 if count > 0 else len(text) - len(delimiter) + 1
        for _ in range(abs(count)):
            if count > 0:
                at = text.find(delimiter, at + 1)
            else:
                at = text.rfind(delimiter, 0, max(at - 1 + len(delimiter), 0))
            if at < 0:
                return text
        return text[:at] if count > 0 else text[at + len(delimiter) :]

    return _each(part if delimiter and count else lambda _: "", texts)


def _digest(name: str, texts: Any) -> Any:
    function = partial(getattr(hashlib, name), usedforsecurity=False)
    return _each(lambda text: function(text.encode()).hexdigest(), texts)


def _sha2(texts: Any, bits: int) -> Any:
    return _digest(f"sha{bits or 256}", texts)


def _crc32(texts: Any) -> Any:
    found = [None if text is None else zlib.crc32(text.encode()) for text in texts.to_pylist()]
    return pa.array(found, pa.int64())


def _hex(values: Any) -> Any:
    if pa.types.is_integer(values.type):
        return pa.array([None if n is None else f"{n % 2**64:X}" for n in values.to_pylist()])
    return _each(lambda text: text.encode().hex().upper(), values)


def _trimmed(side: str) -> Callable[..., Any]:
    """Like Spark's, it trims spaces and no other white space unless characters are given."""
    function = getattr(_compute, f"utf8_{side}")
    return lambda texts, characters=" ": function(texts, characters) if characters else texts


def _translate(texts: Any, characters: str, others: str) -> Any:
    """Replace each of `characters` by that at its place in `others`, or delete it."""
    table = dict.fromkeys(map(ord, characters), "")
    table |= dict(reversed([*zip(map(ord, characters), others, strict=False)]))
    return _each(lambda text: text.translate(table), texts)


def _replace(texts: Any, part: str, replacement: str) -> Any:
    return pc.replace_substring(texts, part, replacement) if part else texts


def _repeat(texts: Any, times: int) -> Any:
    if times > _MOST_TIMES:
        raise refused(f"repeat of more than {_MOST_TIMES:,} times")
    return _compute.binary_repeat(texts, max(times, 0))


def _rlike(texts: Any, pattern: str) -> Any:
    if "$" in pattern and pc.any(pc.match_substring(texts, "\r\n"), min_count=0).as_py():
        raise refused(f"the end of lines in {pattern!r}, of texts with line ends of Windows")
    return pc.match_substring_regex(texts, re2_pattern(pattern))


_MOST_TIMES = 1000
_OF_TEXTS: dict[str, Callable[..., Any]] = {
    "length": pc.utf8_length,
    "octet_length": pc.binary_length,
    "upper": partial(_letters, pc.ascii_upper),
    "lower": partial(_letters, pc.ascii_lower),
    **{side: _trimmed(side) for side in ("trim", "ltrim", "rtrim")},
    "bit_length": lambda texts: _compute.multiply(pc.binary_length(texts), 8),
    "substring_index": _substring_index,
    "md5": partial(_digest, "md5"),
    "sha1": partial(_digest, "sha1"),
    "sha2": _sha2,
    "crc32": _crc32,
    "hex": _hex,
    "like": pc.match_like,
    "rlike": _rlike,
    "contains": pc.match_substring,
    "endswith": pc.ends_with,
    "substring": _substring,
    "locate": _locate,
    "replace": _replace,
    "reverse": pc.utf8_reverse,
    "repeat": _repeat,
    "split_part": _split_part,
    "lpad": partial(_padded, left=True),
    "rpad": partial(_padded, left=False),
    "translate": _translate,
    **PATTERN_FUNCTIONS,
}
"""Functions of one column of texts; the other arguments are constants."""


def _of_texts(expression: Call, values: Sequence[Values]) -> Values:
    text, function = values[0], _OF_TEXTS[expression.function]
    constants = expression.constants
    return Values(of_entries(text.array, lambda each: function(each, *constants)), text.failed)


def _concat(_expression: Call, values: Sequence[Values]) -> Values:
    arrays = [plain(each.array) for each in values]
    return Values(pc.binary_join_element_wise(*arrays, ""), either(values))


def _concat_ws(_expression: Call, values: Sequence[Values]) -> Values:
    """Join texts with a separator, without NULLs."""
    separator, *arrays = (plain(each.array) for each in values)
    # Arrow gives no row at all for a row of NULLs.
    empty = pc.is_null(_compute.coalesce(*arrays))
    arrays[0] = _compute.if_else(empty, "", arrays[0])
    joined = _compute.binary_join_element_wise(*arrays, separator, null_handling="skip")
    return Values(joined, either(values))


STRING_FUNCTIONS: dict[str, Callable[[Call, Sequence[Values]], Values]] = {
    **dict.fromkeys(_OF_TEXTS, _of_texts),
    "split_at": part_at,
    "concat": _concat,
    "concat_ws": _concat_ws,
}
