"""Translate Java's regular expressions to RE2, where both engines match the same texts.

Only the existence of a match counts, so greedy and reluctant quantifiers are equivalent. Other
constructs that the engines read differently are refused: word boundaries, flags, look-around, back
references, possessive quantifiers, Unicode classes, and nested classes.
"""

from __future__ import annotations

import re
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from variantlake.errors import UnsupportedFeature
from variantlake.expressions.typing import refused

_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
"""The line terminators of Java; RE2 has only `\\n`."""
_CLASSES = {"d": "0-9", "w": "a-zA-Z0-9_", "s": r" \t\n\x0b\f\r"}
_TOKEN = re.compile(
    r"(?P<class>\[\^?(?:\\[dwstnrf]|\\[!-/:-@\[-`{-~]|[^\[\]\\&^])+\])"
    r"|(?P<escape>\\[dDwWsStnrf]|\\[!-/:-@\[-`{-~])"
    r"|(?P<quantifier>(?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})\??(?![*+?{]))"
    r"|(?P<end>\$(?=$|[|)]))"
    r"|(?P<group>\((?:\?:)?(?!\?)|\)|\||\^)"
    r"|(?P<any>\.)"
    r"|(?P<literal>[^\\\[\](){}*+?.^$|])",
    re.ASCII | re.DOTALL,
)
_NOTHING_BEFORE = frozenset({"", "(", "(?:", "|", "^"})
"""Tokens after which there is nothing for a quantifier to repeat."""


@lru_cache(maxsize=256)
def re2_pattern(pattern: str) -> str:
    """Return an RE2 pattern that matches the same texts. Raises UnsupportedFeature if unsure."""
    parts, place, before = list[str](), 0, ""
    while place < len(pattern):
        token = _TOKEN.match(pattern, place)
        if token is None or (token.lastgroup == "quantifier" and before in _NOTHING_BEFORE):
            raise _refused_pattern(pattern)
        before = token.group()
        parts.append(_as_re2(str(token.lastgroup), before))
        place = token.end()
    translated = "".join(parts)
    try:
        pc.match_substring_regex(pa.array([""]), translated)
    except pa.ArrowInvalid:
        raise _refused_pattern(pattern) from None
    return translated


def _refused_pattern(pattern: str) -> UnsupportedFeature:
    return refused(f"the regular expression {pattern!r}")


def _as_re2(kind: str, text: str) -> str:
    match kind:
        case "any":
            return f"[^{_ENDS}]"
        case "end":
            return rf"(?:\r\n|[{_ENDS}])?\z"
        case "group":
            return r"\A" if text == "^" else text
        case "class":
            return _of_class(text)
        case "escape" if text[1].lower() in _CLASSES:
            return f"[{'^' if text[1].isupper() else ''}{_CLASSES[text[1].lower()]}]"
        case "literal":
            return re.escape(text) if text.isascii() else text
    return text


_ITEM = re.compile(r"\\.|.", re.DOTALL)


def _of_class(text: str) -> str:
    r"""Translate a class, `[a-z\d_-]`: a hyphen between two characters is a range, else literal."""
    opened = "[^" if text.startswith("[^") else "["
    items = _ITEM.findall(text[len(opened) : -1])
    parts = [opened]
    while items:
        item = items.pop(0)
        if item[0] == "\\" and item[1] in _CLASSES:
            parts.append(_CLASSES[item[1]])
        elif len(items) > 1 and items[0] == "-":
            if items[1][0] == "\\" and items[1][1] in _CLASSES:
                raise _refused_pattern(text)
            parts.append(f"{_escaped(item)}-{_escaped(items[1])}")
            del items[:2]
        else:
            parts.append(_escaped(item))
    return "".join(parts) + "]"


def _escaped(item: str) -> str:
    return re.escape(item) if len(item) == 1 and item.isascii() else item
