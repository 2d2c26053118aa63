"""Find the rows of a tape that break a rule, path by path, for all rows of a batch at once.

Twin: the `jsonschema` library, document by document (tests/contracts/test_check.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.contracts.numbers import DECIMALS, INTEGERS, are_whole, signs
from variantlake.contracts.places import MISSING, path_of, shown_value, text_of
from variantlake.contracts.rules import BOUNDS, LENGTHS, TYPES, Rule, Scalar
from variantlake.kernels.native.declared import Int64s
from variantlake.kernels.tape.arrow_arrays import buffer_of
from variantlake.kernels.tape.nodes import (
    ARRAY,
    DOUBLE,
    FALSE,
    FLOAT,
    NULL,
    OBJECT,
    OPAQUE,
    STRING,
    TRUE,
)
from variantlake.kernels.tape.tape import Tape

_NULL, _BOOLEAN, _INTEGER, _NUMBER, _STRING, _OBJECT, _ARRAY = range(len(TYPES))

_NUMBERS = (*INTEGERS, *DECIMALS, DOUBLE, FLOAT)

Mask = npt.NDArray[np.bool_]


def _type_of_tags() -> npt.NDArray[np.uint8]:
    """The JSON type by a node's tag; values that JSON writes as text (dates, …) are strings."""
    types = np.full(256, _STRING, np.uint8)
    types[NULL], types[OBJECT], types[ARRAY] = _NULL, _OBJECT, _ARRAY
    types[[TRUE, FALSE]] = _BOOLEAN
    types[list(_NUMBERS)] = _NUMBER  # `_is_of` checks for whole numbers where that matters
    types[list(INTEGERS)] = _INTEGER
    types[OPAQUE] = len(TYPES)
    return types


_TYPES = _type_of_tags()


@dataclass(frozen=True, slots=True)
class Breach:
    """How one row breaks the schema: the keyword, what it requires, the path, and the value."""

    keyword: str
    says: str
    path: str
    value: str

    @property
    def reason(self) -> str:
        """The breach as one sentence."""
        if self.value == MISSING:
            return f"{self.path} is missing, and the contract says {self.says}"
        return f"{self.path} is {self.value}, and the contract says {self.says}"


class Breaches:
    """The rows of a tape that break a rule, in ascending order."""

    def __init__(self, tape: Tape, failures: list[_Failure]) -> None:
        self._tape, self._failures = tape, failures
        parts = [np.searchsorted(tape.first, each.nodes, "right") - 1 for each in failures]
        rows = np.concatenate([*parts, np.zeros(0, np.int64)])
        # `first` are the first failures of each row, by the order of checks in `_Check.failures`.
        self.rows, first = np.unique(rows, return_index=True)
        self._first = first
        self._starts = np.cumsum([0, *(len(each.nodes) for each in failures)])

    def breach(self, place: int) -> Breach:
        """The first breach of the row `rows[place]`."""
        at = int(self._first[place])
        which = int(np.searchsorted(self._starts, at, "right")) - 1
        failure = self._failures[which]
        node = int(failure.nodes[at - self._starts[which]])
        row = int(self.rows[place])
        path = path_of(self._tape, row, node, failure.missing)
        value = MISSING if failure.missing is not None else shown_value(self._tape, node)
        return Breach(failure.keyword, failure.says, path, value)

    def mask(self) -> Mask:
        """True for each row that breaks nothing, or is no document."""
        good = np.ones(self._tape.rows, np.bool_)
        good[self.rows] = False
        return good


@dataclass(frozen=True, slots=True)
class _Failure:
    """Nodes that break one keyword; `missing` is a required key that these objects lack."""

    nodes: Int64s
    keyword: str
    says: str
    missing: str | None = None


def find_breaches(rule: Rule, tape: Tape) -> Breaches | None:
    """The rows that break the rule; None if none does. Rows without nodes are not checked."""
    starts = np.asarray(tape.first[:-1], np.int64)
    starts = starts[(tape.first[1:] > starts) & (tape.status == 0)]
    failures = [each for each in _Check(tape, rule).failures(rule, starts) if len(each.nodes)]
    return Breaches(tape, failures) if failures else None


class _Check:
    """Checks one tape. Nodes in `at` are ascending, and none is inside another."""

    def __init__(self, tape: Tape, rule: Rule) -> None:
        self._tape = tape
        nodes: Any = tape.nodes
        self._tags = nodes["tag"]
        self._spans = nodes["span"]
        self._counts = nodes["extra"]
        self._keys = nodes["key"]
        wanted = {name.encode("utf-8", "surrogatepass") for name in rule.names()}
        names = tape.keys.names()[: tape.key_count] if wanted else []
        self._ids = {name: number for number, name in enumerate(names) if name in wanted}

    def failures(self, rule: Rule, at: Int64s) -> Iterator[_Failure]:
        """The failures of these nodes and of those inside them."""
        if not len(at):
            return
        types = _TYPES[self._tags[at]]
        if rule.types:
            yield _Failure(at[~self._is_of(rule.types, at, types)], "type", _types_text(rule))
        if rule.constants is not None:
            equal = self._equals(rule.constants, at, types)
            yield _Failure(at[~equal], "enum", f"enum {_constants_text(rule.constants)}")
        yield from self._of_numbers(rule, at[(types == _INTEGER) | (types == _NUMBER)])
        yield from self._of_strings(rule, at[types == _STRING])
        yield from self._of_objects(rule, at[types == _OBJECT])
        yield from self._of_arrays(rule, at[types == _ARRAY])
        if rule.any_of:
            failed = np.ones(len(at), np.bool_)
            for each in rule.any_of:
                failed &= self._failed(each, at)
            yield _Failure(at[failed], "anyOf", f"anyOf {len(rule.any_of)} schemas")

    def _failed(self, rule: Rule, at: Int64s) -> Mask:
        found = np.zeros(len(at), np.bool_)
        for failure in self.failures(rule, at):
            found[np.searchsorted(at, failure.nodes, "right") - 1] = True
        return found

    def _is_of(self, wanted: tuple[str, ...], at: Int64s, types: npt.NDArray[np.uint8]) -> Mask:
        allowed = np.zeros(len(TYPES) + 1, np.bool_)
        allowed[[TYPES.index(name) for name in wanted]] = True
        allowed[_INTEGER] |= allowed[_NUMBER]
        found: Mask = allowed[types]
        if allowed[_INTEGER] and not allowed[_NUMBER]:
            numbers = np.flatnonzero(types == _NUMBER)
            if len(numbers):
                found[numbers] = are_whole(self._tape, at[numbers])
        return found

    def _equals(
        self, constants: tuple[Scalar, ...], at: Int64s, types: npt.NDArray[np.uint8]
    ) -> Mask:
        found = np.zeros(len(at), np.bool_)
        tags = self._tags[at]
        numbers = np.flatnonzero((types == _INTEGER) | (types == _NUMBER))
        for constant in constants:
            if constant is None:
                found |= tags == NULL
            elif isinstance(constant, bool):
                found |= tags == (TRUE if constant else FALSE)
            elif not isinstance(constant, str) and len(numbers):
                found[numbers] |= signs(self._tape, at[numbers], constant) == 0
        strings = np.flatnonzero(types == _STRING)
        wanted = [each for each in constants if isinstance(each, str)]
        if len(strings) and wanted:
            known = pc.is_in(self._strings(at[strings]), pa.array(wanted, pa.large_string()))
            found[strings] |= _mask(known)
        return found

    def _of_numbers(self, rule: Rule, at: Int64s) -> Iterator[_Failure]:
        if not len(at):
            return
        for keyword, bound in rule.bounds:
            good = np.isin(signs(self._tape, at, bound), BOUNDS[keyword])
            yield _Failure(at[~good], keyword, f"{keyword} {_number_text(bound)}")

    def _of_strings(self, rule: Rule, at: Int64s) -> Iterator[_Failure]:
        lengths = [each for each in rule.lengths if LENGTHS[each[0]] == "string"]
        if not len(at) or not (lengths or rule.pattern is not None):
            return
        texts = self._strings(at)
        if lengths:
            found = np.asarray(pc.utf8_length(texts))
            yield from _of_lengths(lengths, at, found)
        if rule.pattern is not None:
            good = _mask(pc.match_substring_regex(texts, rule.pattern))
            yield _Failure(at[~good], "pattern", f"pattern {_json_text(rule.pattern)}")

    def _of_objects(self, rule: Rule, at: Int64s) -> Iterator[_Failure]:
        if not len(at) or not (rule.properties or rule.required or rule.closed):
            return
        parents, children = self._children(at)
        keys = self._keys[children]
        for name in rule.required:
            lacks = np.ones(len(at), np.bool_)
            lacks[parents[keys == self._id(name)]] = False
            yield _Failure(at[lacks], "required", f"required {_json_text(name)}", name)
        is_other = np.ones(len(children) if rule.closed else 0, np.bool_)
        for name, each in rule.properties:
            chosen = keys == self._id(name)
            yield from self.failures(each, np.sort(children[chosen]))
            if rule.closed:
                is_other &= ~chosen
        if rule.closed:
            others = np.sort(children[is_other])
            yield _Failure(others, "additionalProperties", "additionalProperties false")

    def _of_arrays(self, rule: Rule, at: Int64s) -> Iterator[_Failure]:
        if not len(at):
            return
        lengths = [each for each in rule.lengths if LENGTHS[each[0]] == "array"]
        yield from _of_lengths(lengths, at, self._counts[at])
        if rule.items is not None:
            _, children = self._children(at)
            yield from self.failures(rule.items, np.sort(children))

    def _children(self, at: Int64s) -> tuple[Int64s, Int64s]:
        """The children of these containers, each with its container's place in `at`."""
        places = np.arange(len(at))
        left = np.asarray(self._counts[at], np.int64)
        cursor = at + 1
        parents, children = [places[:0]], [cursor[:0]]
        while True:
            more = left > 0
            if not more.all():
                places, left, cursor = places[more], left[more], cursor[more]
            if not len(places):
                return np.concatenate(parents), np.concatenate(children)
            parents.append(places)
            children.append(cursor)
            cursor = cursor + self._spans[cursor]
            left = left - 1

    def _id(self, name: str) -> int:
        return self._ids.get(name.encode("utf-8", "surrogatepass"), -1)

    def _strings(self, at: Int64s) -> Any:
        """The strings as an Arrow array; other values as the text that JSON writes."""
        nodes: Any = self._tape.nodes[at]
        if (nodes["tag"] != STRING).any():
            return pa.array([text_of(self._tape, int(node)) for node in at], pa.large_string())
        sizes = np.asarray(nodes["extra"], np.int64)
        offsets = np.zeros(len(at) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        starts = np.asarray(nodes["value"], np.int64)
        in_arena = starts < 0
        starts = np.where(in_arena, ~starts, starts)
        bytes_at = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)
        if not in_arena.any():
            data = self._tape.text[bytes_at]
        else:
            is_arena = np.repeat(in_arena, sizes)
            data = np.empty(len(bytes_at), np.uint8)
            data[is_arena] = self._tape.arena[bytes_at[is_arena]]
            data[~is_arena] = self._tape.text[bytes_at[~is_arena]]
        buffers = [None, buffer_of(offsets), buffer_of(data)]
        return pa.Array.from_buffers(pa.large_string(), len(at), buffers)


def _of_lengths(
    lengths: list[tuple[str, int]], at: Int64s, found: npt.NDArray[Any]
) -> Iterator[_Failure]:
    for keyword, limit in lengths:
        good = found >= limit if keyword.startswith("min") else found <= limit
        yield _Failure(at[~good], keyword, f"{keyword} {limit}")


def _mask(array: Any) -> Mask:
    return np.asarray(array.to_numpy(zero_copy_only=False), np.bool_)


def _types_text(rule: Rule) -> str:
    return f"type {rule.types[0] if len(rule.types) == 1 else list(rule.types)}"


_SHOWN_CONSTANTS = 10


def _constants_text(constants: tuple[Scalar, ...]) -> str:
    shown = [
        _json_text(each) if each is None or isinstance(each, bool | str) else _number_text(each)
        for each in constants[:_SHOWN_CONSTANTS]
    ]
    more = ["…"] if len(constants) > _SHOWN_CONSTANTS else []
    return f"[{', '.join(shown + more)}]"


def _json_text(value: Any) -> str:
    return orjson.dumps(value).decode()


def _number_text(number: Any) -> str:
    return str(number.numerator) if number.denominator == 1 else repr(float(number))
