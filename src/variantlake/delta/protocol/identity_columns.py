"""Columns that give out numbers: their next ones, and how far they have got.

Spec: PROTOCOL, "Identity Columns".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from variantlake.delta.schema.table_schema import StructField, StructType
from variantlake.errors import LimitExceeded, MalformedLog

PREFIX = "delta.identity."
HIGH_WATER_MARK = f"{PREFIX}highWaterMark"
_LIMIT = 1 << 63


@dataclass(frozen=True, slots=True)
class IdentityColumn:
    """One column. `mark` is the last number that it gave out, None for none.

    `explicit` says that rows may have numbers of their own (BY DEFAULT).
    """

    name: str
    physical_name: str
    start: int
    step: int
    explicit: bool
    mark: int | None

    @classmethod
    def of(cls, field: StructField) -> IdentityColumn:
        """An identity column of a schema. Raises MalformedLog for one without whole numbers."""
        start, step = (field.metadata.get(f"{PREFIX}{name}") for name in ("start", "step"))
        mark = field.metadata.get(HIGH_WATER_MARK)
        if type(start) is not int or type(step) is not int or not step:
            raise MalformedLog(f"the identity of column {field.name!r} is not in whole numbers")
        if mark is not None and type(mark) is not int:
            raise MalformedLog(f"the identity of column {field.name!r} is not in whole numbers")
        explicit = field.metadata.get(f"{PREFIX}allowExplicitInsert") is True
        return cls(field.name, field.physical_name, start, step, explicit, mark)

    @property
    def next(self) -> int:
        """The first number that it has not given out."""
        if self.mark is None or (self.mark - self.start) * self.step < 0:
            return self.start
        return self.start + ((self.mark - self.start) // self.step + 1) * self.step

    def number(self, place: int) -> int:
        """The number at a place behind those that are given out, from 0 on.

        Raises LimitExceeded for one that no BIGINT holds.
        """
        found = self.next + place * self.step
        if not -_LIMIT <= found < _LIMIT:
            raise LimitExceeded(f"the identity column {self.name!r} has no numbers left")
        return found


def is_identity(field: StructField) -> bool:
    """Whether a column gives out numbers."""
    return any(key.startswith(PREFIX) for key in field.metadata)


def identity_columns(schema: StructType) -> tuple[IdentityColumn, ...]:
    """The identity columns of a table. Raises MalformedLog."""
    return tuple(IdentityColumn.of(field) for field in schema.fields if is_identity(field))


def without_marks(schema: StructType) -> StructType:
    """The schema without what its identity columns have given out."""

    def unmarked(field: StructField) -> StructField:
        kept = {name: each for name, each in field.metadata.items() if name != HIGH_WATER_MARK}
        return replace(field, metadata=kept)

    return StructType(tuple(map(unmarked, schema.fields)))


def with_marks(schema: StructType, marks: Mapping[str, int]) -> StructType:
    """The schema after numbers were given out: the last ones by physical names."""

    def marked(field: StructField) -> StructField:
        given = marks.get(field.physical_name)
        if given is None or not is_identity(field):
            return field
        column = IdentityColumn.of(field)
        before = column.start if column.mark is None else column.mark
        if (given - before) * column.step < 0 or given == column.mark:
            return field  # also one before its start, which tells nothing of it
        # A row may have brought a number that the column itself does not have: the next one then.
        mark = column.start - (column.start - given) // column.step * column.step
        return replace(field, metadata={**field.metadata, HIGH_WATER_MARK: mark})

    return StructType(tuple(map(marked, schema.fields)))
