"""What a shredded column holds beyond its layout, as its writer notes it in the file and the log.

Three things that neither a layout nor counts tell, and that decide who may read a Variant as a
whole: types in residuals that Spark lacks (EXACTNESS, rule 31), integers that stand in columns of
decimals (rule 33), and objects whose fields Spark has in another order (rule 40).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from variantlake.paths import Path
from variantlake.types import Primitive

AS_STORED, SHORTEST, INTEGERS = 0, 1, 2
"""Forms of the numbers in a DECIMAL column: all have its scale; none has a zero at the end of its
fraction, and without a fraction it is an integer; integers have none, all others its scale."""

LACKING = (Primitive.TIME, Primitive.TIMESTAMP_NANOS, Primitive.TIMESTAMP_NTZ_NANOS)
"""Types of values at which Spark 4.2's Variant reader fails. Of UUID it fails at columns alone."""


@dataclass(frozen=True, slots=True)
class NumberForms:
    """The columns whose numbers come back as SHORTEST or INTEGERS; of all others AS_STORED."""

    shortest: frozenset[Path] = frozenset()
    integers: frozenset[Path] = frozenset()

    def of(self, path: Path) -> int:
        """The form of a column."""
        if path in self.shortest:
            return SHORTEST
        return INTEGERS if path in self.integers else AS_STORED

    def below(self, steps: tuple[str | int, ...]) -> NumberForms:
        """The same of the columns below a path, by their paths from there."""
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
    """What was seen of the values of one column; `merge` joins those of its parts.

    `lacking` is true if a residual may hold one of LACKING. The others are DECIMAL columns:
    `integers` those in which integers stand; `whole` those in which decimals stand that look like
    integers (their fraction is zero, or they have none and are in the range of an integer);
    `padded` those in which decimals stand whose fraction ends in a zero, but is not zero. In a path
    the step 0 stands for all elements of an array. `reordered` is true if an object may have
    keys that stand in another order for Spark.
    """

    lacking: bool = False
    integers: frozenset[Path] = frozenset()
    whole: frozenset[Path] = frozenset()
    padded: frozenset[Path] = frozenset()
    reordered: bool = False

    @property
    def told_apart(self) -> frozenset[Path]:
        """The columns in which an integer is a value whose fraction is zero, and no other is."""
        return self.integers - self.whole

    @property
    def forms(self) -> NumberForms:
        """How the numbers of DECIMAL columns come back."""
        return NumberForms(self.told_apart - self.padded, self.told_apart & self.padded)

    def merge(self, other: ValueNotes) -> ValueNotes:
        """What holds for the rows of both."""
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
        """For JSON: `[flags, integers, whole, padded]`, of the last two what tells something.

        The flags are 1 for `lacking` and 2 for `reordered`.
        """
        sets = (self.integers, self.whole & self.integers, self.padded & self.told_apart)
        return [self.lacking + 2 * self.reordered, *map(_encoded, sets)]


def _encoded(paths: frozenset[Path]) -> list[list[str | int]]:
    return sorted((list(path.steps) for path in paths), key=repr)


def decode_notes(given: Any) -> ValueNotes | None:
    """The notes of what `encode` gave; None for what makes no sense, which counts as absent."""
    match given:
        case [int(flags), *given_sets] if 0 <= flags <= 3 and len(given_sets) in (2, 3):
            # Of two sets the second holds what is `whole` or `padded`, and does not say which.
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
    """The same of a text of JSON."""
    try:
        return None if text is None else decode_notes(orjson.loads(text))
    except orjson.JSONDecodeError:
        return None
