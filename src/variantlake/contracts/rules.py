"""Parse a JSON Schema into rules. Spec: JSON Schema 2020-12, of which we check KEYWORDS.

Annotations (`title`, `format`, …) are ignored, as the specification says. Any other keyword is
refused by name, so that nobody relies on a check that does not happen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from variantlake.errors import InvalidSchema, did_you_mean

TYPES = ("null", "boolean", "integer", "number", "string", "object", "array")

BOUNDS = {
    "minimum": (0, 1),
    "exclusiveMinimum": (1,),
    "maximum": (-1, 0),
    "exclusiveMaximum": (-1,),
}
"""The signs of value - bound that each keyword allows."""

LENGTHS = {"minLength": "string", "maxLength": "string", "minItems": "array", "maxItems": "array"}

ANNOTATIONS = frozenset({
    "$schema", "$id", "$comment", "title", "description", "default", "examples", "deprecated",
    "readOnly", "writeOnly", "format", "contentEncoding", "contentMediaType",
})  # fmt: skip
"""Keywords that do not restrict documents."""

KEYWORDS = (
    "type", "enum", "const", *BOUNDS, *LENGTHS, "pattern", "properties", "required",
    "additionalProperties", "items", "anyOf",
)  # fmt: skip

MAX_DEPTH = 100
"""Our limit on the nesting of schemas."""

Scalar: TypeAlias = bool | Fraction | str | None
"""A constant of a schema; numbers are equal if their values are, as the specification says."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a schema requires of the values at one path; None and empty require nothing.

    `closed` forbids keys that are not in `properties`.
    """

    types: tuple[str, ...] = ()
    constants: tuple[Scalar, ...] | None = None
    bounds: tuple[tuple[str, Fraction], ...] = ()
    lengths: tuple[tuple[str, int], ...] = ()
    pattern: str | None = None
    properties: tuple[tuple[str, Rule], ...] = ()
    required: tuple[str, ...] = ()
    closed: bool = False
    items: Rule | None = None
    any_of: tuple[Rule, ...] = ()

    def names(self) -> Iterator[str]:
        """The keys that this rule and the rules within it name."""
        yield from self.required
        for name, rule in self.properties:
            yield name
            yield from rule.names()
        for rule in (*self.any_of, *(() if self.items is None else (self.items,))):
            yield from rule.names()


def parse_rule(schema: Any, at: str = "#", depth: int = 0) -> Rule:
    """Parse a schema; `at` is its place within the whole schema.

    Raises InvalidSchema for a keyword that is not checked, and for an invalid value of one.
    """
    if schema is True:
        return Rule()
    if not isinstance(schema, Mapping):
        raise InvalidSchema(f"a schema is an object or true, not {schema!r:.60}", path=at)
    if depth > MAX_DEPTH:
        raise InvalidSchema(f"there are more than {MAX_DEPTH} schemas in each other")
    for keyword in schema:
        if keyword not in KEYWORDS and keyword not in ANNOTATIONS:
            raise InvalidSchema(
                f"the contract has the keyword {keyword!r} at {at}, which is not checked",
                hint=did_you_mean(str(keyword), KEYWORDS) or f"keywords: {', '.join(KEYWORDS)}",
            )
    keywords = _Keywords(schema, at, depth)
    return Rule(
        types=keywords.types(),
        constants=keywords.constants(),
        bounds=tuple((name, _fraction(keywords.number(name))) for name in BOUNDS if name in schema),
        lengths=tuple((name, keywords.count(name)) for name in LENGTHS if name in schema),
        pattern=keywords.pattern(),
        properties=keywords.properties(),
        required=keywords.required(),
        closed=keywords.closed(),
        items=keywords.rule("items") if "items" in schema else None,
        any_of=keywords.any_of(),
    )


@dataclass(frozen=True, slots=True)
class _Keywords:
    schema: Mapping[str, Any]
    at: str
    depth: int

    def types(self) -> tuple[str, ...]:
        given = self.schema.get("type", ())
        types = (given,) if isinstance(given, str) else given
        if not isinstance(types, list | tuple) or not all(each in TYPES for each in types):
            raise self._wrong("type", f"one of {', '.join(TYPES)}, or a list of them")
        if "type" in self.schema and not types:
            raise self._wrong("type", "one type at least")
        return tuple(types)

    def constants(self) -> tuple[Scalar, ...] | None:
        if "enum" not in self.schema and "const" not in self.schema:
            return None
        values = self.schema.get("enum", [])
        if not isinstance(values, list | tuple):
            raise self._wrong("enum", "a list")
        if "const" in self.schema:
            if "enum" in self.schema:
                raise self._wrong("const", "no enum beside it")
            values = [self.schema["const"]]
        return tuple(map(self._constant, values))

    def _constant(self, value: Any) -> Scalar:
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int | float | Decimal):
            return _fraction(value)
        raise self._wrong("enum" if "enum" in self.schema else "const", "texts, numbers and null")

    def number(self, name: str) -> int | float | Decimal:
        value = self.schema[name]
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise self._wrong(name, "a number")
        if not Decimal(value).is_finite():
            raise self._wrong(name, "a finite number")
        return value

    def count(self, name: str) -> int:
        value = self.number(name)
        if value != int(value) or value < 0:
            raise self._wrong(name, "a whole number from 0 on")
        return int(value)

    def pattern(self) -> str | None:
        pattern = self.schema.get("pattern")
        if "pattern" in self.schema and not isinstance(pattern, str):
            raise self._wrong("pattern", "text")
        if pattern is not None:
            try:
                pc.match_substring_regex(pa.array([""]), pattern)
            except (pa.ArrowInvalid, UnicodeEncodeError) as error:
                raise InvalidSchema(
                    f"the pattern {pattern!r:.200} at {self.at} is no regular expression of RE2:"
                    f" {error}",
                    hint="RE2 has neither look-around nor back references, and so needs no limit",
                ) from None
        return pattern

    def properties(self) -> tuple[tuple[str, Rule], ...]:
        given = self.schema.get("properties", {})
        if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
            raise self._wrong("properties", "an object of schemas")
        return tuple(
            (name, parse_rule(each, f"{self.at}/properties/{name}", self.depth + 1))
            for name, each in given.items()
        )

    def required(self) -> tuple[str, ...]:
        given = self.schema.get("required", ())
        if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
            raise self._wrong("required", "a list of keys")
        return tuple(given)

    def closed(self) -> bool:
        given = self.schema.get("additionalProperties", True)
        if not isinstance(given, bool):
            raise self._wrong("additionalProperties", "true or false")
        return not given

    def rule(self, name: str) -> Rule:
        return parse_rule(self.schema[name], f"{self.at}/{name}", self.depth + 1)

    def any_of(self) -> tuple[Rule, ...]:
        given = self.schema.get("anyOf", ())
        if not isinstance(given, list | tuple) or ("anyOf" in self.schema and not given):
            raise self._wrong("anyOf", "a list of schemas")
        return tuple(
            parse_rule(each, f"{self.at}/anyOf/{place}", self.depth + 1)
            for place, each in enumerate(given)
        )

    def _wrong(self, keyword: str, wanted: str) -> InvalidSchema:
        value = self.schema.get(keyword)
        return InvalidSchema(
            f"the contract's keyword {keyword!r} at {self.at} is {value!r:.60}, expected {wanted}"
        )


def _fraction(number: float | Decimal) -> Fraction:
    """The number as written: 0.1 is one tenth, not the nearest double."""
    return Fraction(Decimal(repr(number)) if isinstance(number, float) else number)
