"""Identity columns: their next numbers and high water marks.

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
    """An identity column. `mark` is its high water mark, the last number assigned; None for none.

    If `explicit`, users may insert their own numbers (BY DEFAULT).
    """

    name: str
    physical_name: str
    start: int
    step: int
    explicit: bool
    mark: int | None

    @classmethod
    def of(cls, field: StructField) -> IdentityColumn:
        """Read an identity column from a field. Raises MalformedLog if its numbers are invalid."""
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
        """The next number to assign."""
        if self.mark is None or (self.mark - self.start) * self.step < 0:
            return self.start
        return self.start + ((self.mark - self.start) // self.step + 1) * self.step

    def number(self, place: int) -> int:
        """Return the number `place` steps after `next`.

        Raises LimitExceeded for one that no BIGINT holds.
        """
        found = self.next + place * self.step
        if not -_LIMIT <= found < _LIMIT:
            raise LimitExceeded(f"the identity column {self.name!r} has no numbers left")
        return found


def is_identity(field: StructField) -> bool:
    """Whether a column is an identity column."""
    return any(key.startswith(PREFIX) for key in field.metadata)


def identity_columns(schema: StructType) -> tuple[IdentityColumn, ...]:
    """Return the identity columns of a table. Raises MalformedLog."""
    return tuple(IdentityColumn.of(field) for field in schema.fields if is_identity(field))


def without_marks(schema: StructType) -> StructType:
    """Return the schema without the high water marks of its identity columns."""

    def unmarked(field: StructField) -> StructField:
        kept = {name: each for name, each in field.metadata.items() if name != HIGH_WATER_MARK}
        return replace(field, metadata=kept)

    return StructType(tuple(map(unmarked, schema.fields)))


def with_marks(schema: StructType, marks: Mapping[str, int]) -> StructType:
    """Return the schema with the high water marks advanced to `marks`, by physical names."""

    def marked(field: StructField) -> StructField:
        given = marks.get(field.physical_name)
        if given is None or not is_identity(field):
            return field
        column = IdentityColumn.of(field)
        before = column.start if column.mark is None else column.mark
        if (given - before) * column.step < 0 or given == column.mark:
            return field  # also if the number is before the start
        # A user's number may lie between two of the column's numbers: round it up to the later.
        mark = column.start - (column.start - given) // column.step * column.step
        return replace(field, metadata={**field.metadata, HIGH_WATER_MARK: mark})

    return StructType(tuple(map(marked, schema.fields)))
