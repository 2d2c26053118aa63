"""What a shredded column holds beyond its layout, as its writer notes it in the file and the log.

Two things that neither a layout nor counts tell, and that decide who may read a Variant as a whole:
types in residuals that Spark lacks (EXACTNESS, rule 31), and integers that stand in columns of
decimals (rule 33).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from variantlake.paths import Path
from variantlake.types import Primitive

LACKING = (Primitive.TIME, Primitive.TIMESTAMP_NANOS, Primitive.TIMESTAMP_NTZ_NANOS)
"""Types of values at which Spark 4.2's Variant reader fails. Of UUID it fails at columns alone."""


@dataclass(frozen=True, slots=True)
class ValueNotes:
    """What was seen of the values of one column; `merge` joins those of its parts.

    `lacking` is true where a residual may hold one of LACKING. `integers` are the DECIMAL columns
    in which integers stand, `padded` those in which decimals stand that another form is shorter
    of: with a zero at the end of their fraction, or without one and in the range of an integer. In
    a path the step 0 stands for all elements of an array.
    """

    lacking: bool = False
    integers: frozenset[Path] = frozenset()
    padded: frozenset[Path] = frozenset()

    @property
    def told_apart(self) -> frozenset[Path]:
        """The columns in which an integer is a value whose fraction is zero, and no other is."""
        return self.integers - self.padded

    def merge(self, other: ValueNotes) -> ValueNotes:
        """What holds for the rows of both."""
        if other == self:
            return self
        return ValueNotes(
            self.lacking or other.lacking,
            self.integers | other.integers,
            self.padded | other.padded,
        )

    def encode(self) -> list[Any]:
        """For JSON: `[lacking, integers, padded]`, of `padded` only what tells something."""
        return [int(self.lacking), *map(_encoded, (self.integers, self.padded & self.integers))]


def _encoded(paths: frozenset[Path]) -> list[list[str | int]]:
    return sorted((list(path.steps) for path in paths), key=repr)


def decode_notes(given: Any) -> ValueNotes | None:
    """The notes of what `encode` gave; None for what makes no sense, which counts as absent."""
    match given:
        case [0 | 1 as lacking, list(integers), list(padded)]:
            found = [_paths(texts) for texts in (integers, padded)]
            if found[0] is not None and found[1] is not None:
                return ValueNotes(bool(lacking), found[0], found[1])
    return None


def _paths(given: Sequence[Any]) -> frozenset[Path] | None:
    if all(
        isinstance(steps, list) and all(type(step) in (str, int) for step in steps)
        for steps in given
    ):
        return frozenset(Path(tuple(steps)) for steps in given)
    return None


def parse_notes(text: str | None) -> ValueNotes | None:
    """The same of a text of JSON."""
    try:
        return None if text is None else decode_notes(orjson.loads(text))
    except orjson.JSONDecodeError:
        return None
