"""Notes on the values of a shredded column, which its writer stores in the file and the log.

They tell three things that neither the layout nor counts show, and that decide who may read whole
Variants: types in residuals that Spark lacks (EXACTNESS, rule 31), integers in decimal columns
(rule 33), and objects whose fields Spark orders differently (rule 40).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from variantlake.paths import Path
from variantlake.types import Primitive

AS_STORED, SHORTEST, INTEGERS = 0, 1, 2
"""Forms in which the numbers of a DECIMAL column are rebuilt. AS_STORED: decimals of its scale.
SHORTEST: decimals without trailing zeros; integers if the fraction is zero. INTEGERS: integers if
the fraction is zero, else decimals of its scale."""

LACKING = (Primitive.TIME, Primitive.TIMESTAMP_NANOS, Primitive.TIMESTAMP_NTZ_NANOS)
"""Types of values at which Spark 4.2's Variant reader fails. For UUID it fails only at columns."""


@dataclass(frozen=True, slots=True)
class NumberForms:
    """The columns with the forms SHORTEST and INTEGERS; all others are AS_STORED."""

    shortest: frozenset[Path] = frozenset()
    integers: frozenset[Path] = frozenset()

    def of(self, path: Path) -> int:
        """Return the form of a column."""
        if path in self.shortest:
            return SHORTEST
        return INTEGERS if path in self.integers else AS_STORED

    def below(self, steps: tuple[str | int, ...]) -> NumberForms:
        """Return the forms of the columns below a path, with paths relative to it."""
        found = (
            frozenset(
                Path(path.steps[len(steps) :])
                for path in paths
                if path.steps[: len(steps)] == steps
            )
            for paths in (self.shortest, self.integers)
        )
        return NumberForms(*found)


ALL_AS_STORED = NumberForms()


@dataclass(frozen=True, slots=True)
class ValueNotes:
    """Notes on the values of one column; `merge` joins those of its parts.

    `lacking` is true if a residual may hold one of LACKING. The next three are DECIMAL columns:
    `integers` hold integers; `whole` hold decimals that look like integers (their fraction is zero,
    or they have none and are in the range of an integer); `padded` hold decimals whose fraction
    ends in a zero, but is not zero. In a path, the step 0 means all elements of an array.
    `reordered` is true if Spark may order the keys of an object differently.
    """

    lacking: bool = False
    integers: frozenset[Path] = frozenset()
    whole: frozenset[Path] = frozenset()
    padded: frozenset[Path] = frozenset()
    reordered: bool = False

    @property
    def told_apart(self) -> frozenset[Path]:
        """The columns in which the values whose fraction is zero are exactly the integers."""
        return self.integers - self.whole

    @property
    def forms(self) -> NumberForms:
        """The forms in which the numbers of DECIMAL columns are rebuilt."""
        return NumberForms(self.told_apart - self.padded, self.told_apart & self.padded)

    def merge(self, other: ValueNotes) -> ValueNotes:
        """Return notes that hold for the rows of both."""
        if other == self:
            return self
        return ValueNotes(
            self.lacking or other.lacking,
            self.integers | other.integers,
            self.whole | other.whole,
            self.padded | other.padded,
            self.reordered or other.reordered,
        )

    def encode(self) -> list[Any]:
        """Encode for JSON: `[flags, integers, whole, padded]`.

        The flags are 1 for `lacking` and 2 for `reordered`. The last two sets have only the columns
        that matter for `forms`.
        """
        sets = (self.integers, self.whole & self.integers, self.padded & self.told_apart)
        return [self.lacking + 2 * self.reordered, *map(_encoded, sets)]


def _encoded(paths: frozenset[Path]) -> list[list[str | int]]:
    return sorted((list(path.steps) for path in paths), key=repr)


def decode_notes(given: Any) -> ValueNotes | None:
    """Decode the result of `encode`; None for anything invalid, which counts as no notes."""
    match given:
        case [int(flags), *given_sets] if 0 <= flags <= 3 and len(given_sets) in (2, 3):
            # With two sets, the second mixes `whole` and `padded`; all of it counts as `whole`.
            found = [paths for paths in map(_paths, given_sets) if paths is not None]
            if len(found) == len(given_sets):
                integers, whole, *padded = found
                return ValueNotes(
                    bool(flags & 1), integers, whole, frozenset().union(*padded), bool(flags & 2)
                )
    return None


def _paths(given: Any) -> frozenset[Path] | None:
    if isinstance(given, list) and all(
        isinstance(steps, list) and all(type(step) in (str, int) for step in steps)
        for steps in given
    ):
        return frozenset(Path(tuple(steps)) for steps in given)
    return None


def parse_notes(text: str | None) -> ValueNotes | None:
    """Decode notes from JSON text; None for anything invalid."""
    try:
        return None if text is None else decode_notes(orjson.loads(text))
    except orjson.JSONDecodeError:
        return None
