"""Parse JSON text to a Variant, with the types of Spark 4.2's `parse_json`.

Spark tolerates some text that is not JSON: it ignores anything after the document, and replaces
bytes that are not UTF-8. This parser refuses it, so that nothing is dropped silently.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Literal, NoReturn, TypeAlias, get_args

from variantlake.encoding.limits import MAX_DEPTH, MAX_NUMBER_DIGITS
from variantlake.encoding.scalar import FALSE, NULL, TRUE, Scalar, exact_decimal, integer
from variantlake.encoding.tree import Tree
from variantlake.encoding.variant import Variant
from variantlake.errors import InvalidJson, InvalidValue, LimitExceeded, VariantLakeError
from variantlake.paths import Path
from variantlake.types import MAX_PRECISION, Primitive

Buffer: TypeAlias = bytes | bytearray | memoryview
DuplicateKeys: TypeAlias = Literal["error", "last"]

_WHITE_SPACE = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_WHOLE = re.compile(r'"([^"\\\x00-\x1f]*+)"')
"""A string without escapes."""
_FIELD = re.compile(rf"[ \t\n\r]*{_WHOLE.pattern}[ \t\n\r]*:[ \t\n\r]*")
_NEXT_FIELD = re.compile(rf"[ \t\n\r]*,{_FIELD.pattern}")
"""The usual text up to a field's value."""
_NUMBER = re.compile(r"(-?)(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_NUMBER_GOES_ON = tuple("0123456789.eE+-")
_SURROGATE = re.compile("[\ud800-\udfff]")
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_HEX_START = re.compile(r"[0-9a-fA-F]{0,3}")
_WORDS = {"t": ("true", TRUE), "f": ("false", FALSE), "n": ("null", NULL)}
MARK_HINT = "remove it: JSON has none"
CONTROL_HINT = "JSON escapes it"
LAST_KEY_HINT = "duplicate_keys='last' keeps the last one"
"""The hint of `parse_json`; loads do not have this option."""
OPEN_STRING = "text ends inside of a string"
"""The message for a string without end; its position is that of the opening quote."""

_ESCAPES = {
    '"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
}  # fmt: skip


def parse_json(text: str | Buffer, *, duplicate_keys: DuplicateKeys = "error") -> Variant:
    """Parse one JSON document to a Variant.

    Integers take the narrowest of int8 to int64, then a decimal of up to 38 digits, then double.
    Numbers with a point are decimals with their scale if 38 digits and scale 38 hold them, else
    double; numbers with an exponent are double (infinite when out of range, as in Spark).

    Args:
        text: the document; bytes (bytearray, memoryview) are UTF-8 without a byte order mark.
        duplicate_keys: for a key that occurs twice in one object: raise, or take the last value.

    Raises:
        InvalidValue: arguments of other types or values than these.
        InvalidJson: text that is not one JSON document, or not UTF-8, or holds a lone surrogate.
        LimitExceeded: beyond the limits of `encoding.limits`. Both have `offset` (bytes), `line`
            and `column` (characters, from 1) in the text, and `path` in the document.

    Examples:
        >>> vl.parse_json('{"a": [1, 2.5]}').get("$.a[1]").to_json()
        '2.5'
    """
    return Variant.of_tree(parse_json_tree(text, duplicate_keys=duplicate_keys))


def parse_json_tree(text: str | Buffer, *, duplicate_keys: DuplicateKeys = "error") -> Tree:
    """Parse as `parse_json` does, but return the tree."""
    if duplicate_keys not in get_args(DuplicateKeys):
        raise InvalidValue(
            f"duplicate_keys is {duplicate_keys!r}", hint="one of 'error' and 'last'"
        )
    parser = _JsonParser(_decoded(text), duplicate_keys)
    try:
        return parser.document()
    except VariantLakeError as error:
        error.path = parser.path()
        raise


def unescaped(quoted: str) -> str:
    """Return the text of a well-formed JSON string; `quoted` has its quotes."""
    return _JsonParser(quoted, "error").string() if "\\" in quoted else quoted[1:-1]


def _decoded(text: str | Buffer) -> str:
    """Return the text as a str that UTF-8 can encode. Raises InvalidValue, InvalidJson."""
    if not isinstance(text, str):
        try:
            data = bytes(memoryview(text))
        except TypeError:
            kind = type(text).__name__
            raise InvalidValue(f"the JSON text is {kind}, not text or bytes") from None
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            before = data[: error.start].decode("utf-8")
            raise _at(InvalidJson("text is not UTF-8"), before, len(before)) from None
    if lone := _SURROGATE.search(text):
        raise _at(InvalidJson("text holds a lone surrogate"), text, lone.start())
    return text


def _at(error: VariantLakeError, text: str, position: int) -> VariantLakeError:
    """Add its place in the text to an error; `position` counts characters from 0."""
    before = text[:position]
    error.offset = len(before.encode("utf-8"))
    error.line = before.count("\n") + 1
    error.column = position - (before.rfind("\n") + 1) + 1
    return error


class _JsonParser:
    """Reads one document from left to right, with its own stack of open containers."""

    def __init__(self, text: str, duplicate_keys: DuplicateKeys) -> None:
        self.text = text
        self.position = 0
        self.quote = 0  # position of the last opening quote
        self.duplicate_keys = duplicate_keys
        self.open: list[dict[str, Tree] | list[Tree]] = []
        self.steps: list[str | int | None] = []  # one per container; None before its first child

    def document(self) -> Tree:
        """Read the document: a value, and nothing but white space after it."""
        if self.text.startswith("\ufeff"):
            self.fail("text starts with a byte order mark", hint=MARK_HINT)
        self.skip()
        root = self.value()
        self.rest()
        return root

    def rest(self) -> None:
        """Read the rest of the open containers, and nothing but white space after them."""
        while self.open:
            self.member()
        self.skip()
        if self.position < len(self.text):
            self.fail(f"unexpected {self.describe_next()} after the end of the document")

    def member(self) -> None:
        """Read the next child of the innermost container, or its end."""
        container, step = self.open[-1], self.steps[-1]
        if isinstance(container, dict):
            field = (_FIELD if step is None else _NEXT_FIELD).match(self.text, self.position)
            if field is not None and (key := field[1]) not in container:
                self.steps[-1] = key
                self.position = field.end()
                container[key] = self.value()
                return
        self.skip()
        closing = "}" if isinstance(container, dict) else "]"
        if self.text.startswith(closing, self.position):
            self.position += 1
            self.open.pop()
            self.steps.pop()
            return
        if step is not None:
            self.expect(",", f"',' or {closing!r}")
        if isinstance(container, dict):
            key = self.key(container)
            self.steps[-1] = key
            self.expect(":")
            container[key] = self.value()
        else:
            self.steps[-1] = len(container)
            container.append(self.value())

    def value(self) -> Tree:
        """Read a scalar, or open an empty container, which `member` fills later."""
        start = self.text[self.position : self.position + 1]
        if start == '"':
            return Scalar(Primitive.STRING, self.string())
        if start == "{":
            return self.descend({})
        if start == "[":
            return self.descend([])
        if start and start in "-0123456789":
            return self.number()
        word, scalar = _WORDS.get(start, ("", NULL))
        if not word or not self.text.startswith(word, self.position):
            self.fail(f"expected a value, found {self.describe_next()}")
        self.position += len(word)
        return scalar

    def descend(self, container: dict[str, Tree] | list[Tree]) -> Tree:
        """Open a container."""
        if len(self.open) >= MAX_DEPTH:
            self.exceed(f"more than {MAX_DEPTH} containers around one another", self.position)
        self.position += 1
        self.open.append(container)
        self.steps.append(None)
        return container

    def key(self, container: dict[str, Tree]) -> str:
        """Read the name of the next field."""
        start = self.position
        if not self.text.startswith('"', start):
            self.fail(f"expected a key in double quotes, found {self.describe_next()}")
        key = self.string()
        if key in container and self.duplicate_keys == "error":
            self.fail(
                f"key {key[:100]!r} occurs twice in one object",
                start,
                hint=LAST_KEY_HINT,
            )
        return key

    def string(self) -> str:
        """Read a string; the position is at its opening quote."""
        whole = _WHOLE.match(self.text, self.position)
        if whole is not None:
            self.position = whole.end()
            return whole[1]
        self.quote = self.position
        self.position += 1
        parts: list[str] = []
        while True:
            end = _end_of(_PLAIN, self.text, self.position)
            parts.append(self.text[self.position : end])
            self.position = end
            char = self.text[end : end + 1]
            if char == '"':
                self.position += 1
                return "".join(parts)
            if char == "\\":
                parts.append(self.escape())
            else:
                self.check_end(end)
                self.fail(f"control character {char!r} in a string", hint=CONTROL_HINT)

    def check_end(self, position: int) -> None:
        """Raise for the open string if only white space follows: lines are read without it."""
        if _end_of(_WHITE_SPACE, self.text, position) == len(self.text):
            self.fail(OPEN_STRING, self.quote)

    def escape(self) -> str:
        """Read an escaped character; the position is at its backslash."""
        start = self.position
        code = self.text[start + 1 : start + 2]
        if code != "u":
            if code not in _ESCAPES:
                self.check_end(start + 1)
                self.fail(f"unknown escape {self.text[start : start + 2]!r}")
            self.position += 2
            return _ESCAPES[code]
        unit = self.hex4()
        if not 0xD800 <= unit <= 0xDFFF:
            return chr(unit)
        low = self.hex4() if self.text.startswith("\\u", self.position) else 0
        if unit > 0xDBFF or not 0xDC00 <= low <= 0xDFFF:
            self.fail(f"\\u{unit:04x} is a lone surrogate", start)
        return chr(0x10000 + (unit - 0xD800 << 10) + (low - 0xDC00))

    def hex4(self) -> int:
        """Read a code unit of four hexadecimal digits; the position is at the backslash."""
        digits = self.text[self.position + 2 : self.position + 6]
        if _HEX.fullmatch(digits) is None:
            self.check_end(_end_of(_HEX_START, self.text, self.position + 2))
            self.fail(f"expected four hexadecimal digits, found {digits!r}")
        self.position += 6
        return int(digits, 16)

    def number(self) -> Scalar:
        """Read a number, by the rules of `parse_json`."""
        start = self.position
        match = _NUMBER.match(self.text, start)
        if match is None:
            self.fail(f"expected digits after {self.describe_next()}", start)
        self.position = match.end()
        if self.text[self.position : self.position + 1] in _NUMBER_GOES_ON:
            self.fail(f"number is cut off or has a leading zero before {self.describe_next()}")
        text, whole, fraction, exponent = match[0], match[2], match[3] or "", match[4] or ""
        # Count as Jackson does: a whole part of 0 has no digits.
        digits = len(whole.lstrip("0")) + len(fraction[1:]) + len(exponent.lstrip("eE+-"))
        if digits > MAX_NUMBER_DIGITS:
            self.exceed(f"number of more than {MAX_NUMBER_DIGITS} digits", start)
        if exponent:
            return Scalar(Primitive.DOUBLE, float(text))
        significant = (whole + fraction[1:]).lstrip("0")
        if len(significant) > MAX_PRECISION or len(fraction[1:]) > MAX_PRECISION:
            return Scalar(Primitive.DOUBLE, float(text))
        return exact_decimal(Decimal(text)) if fraction else integer(int(text))

    def skip(self) -> None:
        """Skip white space, which is only the four characters of the JSON grammar."""
        if self.text[self.position : self.position + 1] <= " ":
            self.position = _end_of(_WHITE_SPACE, self.text, self.position)

    def expect(self, char: str, what: str = "") -> None:
        """Read exactly this character, with white space on both sides."""
        self.skip()
        if not self.text.startswith(char, self.position):
            self.fail(f"expected {what or repr(char)}, found {self.describe_next()}")
        self.position += 1
        self.skip()

    def describe_next(self) -> str:
        """Describe the next character for messages."""
        if self.position >= len(self.text):
            return "the end of the text"
        return repr(self.text[self.position])

    def path(self) -> str:
        """Return the parser's path in the document."""
        return Path(tuple(step for step in self.steps if step is not None)).normalized()

    def fail(self, message: str, position: int | None = None, *, hint: str = "") -> NoReturn:
        """Raise InvalidJson at a position, by default the current one.

        White space at the end does not count as text: lines are read without it.
        """
        where = self.position if position is None else position
        if where >= len(self.text):
            where = len(self.text.rstrip(" \t\n\r"))
        raise _at(InvalidJson(message, hint=hint), self.text, where)

    def exceed(self, message: str, position: int) -> NoReturn:
        """Raise LimitExceeded at a position."""
        raise _at(LimitExceeded(message), self.text, position)


def _end_of(pattern: re.Pattern[str], text: str, position: int) -> int:
    """Return the end of a match; the pattern also matches the empty text."""
    match = pattern.match(text, position)
    return position if match is None else match.end()
