"""Translate Java's regular expressions to RE2, where both engines match the same texts.

Constructs that the engines read differently are refused: word boundaries, flags, look-around, back
references, possessive quantifiers, Unicode classes, and nested classes. Both engines prefer the
same one of several matches, but repeat empty ones differently: where the match itself counts and
not only its existence, patterns that repeat a group that may be empty are refused as well.
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
_CHARACTERS = ("literal", "escape")
_NOTHING_BEFORE = frozenset({"", "(", "(?:", "|", "^"})
"""Tokens after which there is nothing for a quantifier to repeat."""


@lru_cache(maxsize=256)
def re2_pattern(pattern: str) -> str:
    """Return an RE2 pattern that matches the same texts. Raises UnsupportedFeature if unsure."""
    translated = "".join(text for _, text in _tokens_of(pattern))
    _matches_empty(translated, pattern)
    return translated


@lru_cache(maxsize=256)
def re2_of_matches(pattern: str) -> str:
    """Return an RE2 pattern with the same matches in each text, one after another.

    Raises UnsupportedFeature if unsure, and if a match may be empty.
    """
    tokens = _tokens_of(pattern)
    translated = "".join(text for _, text in tokens)
    if _matches_empty(translated, pattern):
        raise _refused_pattern(pattern)
    _repeated_groups(tokens, pattern)
    return translated


@lru_cache(maxsize=256)
def re2_of_pieces(pattern: str) -> str:
    """Return an RE2 pattern as `re2_of_matches`, for functions that forget what they passed.

    Raises UnsupportedFeature as well for `^`, which Arrow then finds after each match.
    """
    if ("group", r"\A") in _tokens_of(pattern):
        raise _refused_pattern(pattern)
    return re2_of_matches(pattern)


@lru_cache(maxsize=256)
def re2_of_group(pattern: str, group: int) -> str:
    """Return an RE2 pattern whose only group, which has a name, is this one; 0 is the whole match.

    Raises UnsupportedFeature if unsure, and for a group that is not there or is repeated.
    """
    tokens = _tokens_of(pattern)
    _matches_empty("".join(text for _, text in tokens), pattern)
    repeated = _repeated_groups(tokens, pattern)
    opened = [at for at, (kind, text) in enumerate(tokens) if (kind, text) == ("group", "(")]
    if not 0 <= group <= len(opened) or (group and opened[group - 1] in repeated):
        raise refused(f"group {group} of the regular expression {pattern!r}")
    texts = [text for _, text in tokens]
    for number, at in enumerate(opened, start=1):
        texts[at] = "(?P<found>" if number == group else "(?:"
    found = "".join(texts)
    return found if group else f"(?P<found>{found})"


def literal_of(pattern: str) -> str | None:
    """The one text that a pattern matches, if it has characters alone."""
    tokens = list(_TOKEN.finditer(pattern))
    plain = [token[0].removeprefix("\\") for token in tokens if token.lastgroup in _CHARACTERS]
    is_literal = len(plain) == len(tokens) and not any(token[0][1:].isalpha() for token in tokens)
    return "".join(plain) if plain and is_literal else None


def _tokens_of(pattern: str) -> list[tuple[str, str]]:
    """The tokens of a pattern: their kinds, and their texts for RE2."""
    tokens, place, before = list[tuple[str, str]](), 0, ""
    while place < len(pattern):
        token = _TOKEN.match(pattern, place)
        if token is None or (token.lastgroup == "quantifier" and before in _NOTHING_BEFORE):
            raise _refused_pattern(pattern)
        before = token.group()
        kind = str(token.lastgroup)
        tokens.append((kind, _as_re2(kind, before)))
        place = token.end()
    return tokens


def _matches_empty(translated: str, pattern: str) -> bool:
    """Whether RE2 finds a match in an empty text. Raises UnsupportedFeature if it has none."""
    try:
        return bool(pc.match_substring_regex(pa.array([""]), translated)[0].as_py())
    except pa.ArrowInvalid:
        raise _refused_pattern(pattern) from None


def _repeated_groups(tokens: list[tuple[str, str]], pattern: str) -> set[int]:
    """The places of all groups that are repeated or lie in a repeated one.

    Raises UnsupportedFeature for a repeated group that may be empty.
    """
    repeated, opened = set[int](), list[int]()
    for place, (kind, text) in enumerate(tokens):
        if kind == "group" and text.startswith("("):
            opened.append(place)
        elif kind == "group" and text == ")":
            start = opened.pop()
            if place + 1 < len(tokens) and tokens[place + 1][0] == "quantifier":
                if _matches_empty("".join(each for _, each in tokens[start : place + 1]), pattern):
                    raise _refused_pattern(pattern)
                repeated.update(range(start, place))
    return repeated


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
