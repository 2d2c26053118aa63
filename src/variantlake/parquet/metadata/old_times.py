"""Dates and timestamps of older writers: INT96, and the calendar before 1582.

INT96 holds a Julian day and its nanoseconds. We read it as microseconds, as Spark does: further
digits are cut off, and a timestamp beyond microseconds is an error. Spark before 3.0, and later
versions in their legacy mode, wrote days before October 15, 1582 in the Julian calendar and marked
their files. We read those days as the same dates in today's calendar, as Spark does.
Spec: Parquet, "Types" (INT96); Spark, `DataSourceUtils`, `RebaseDateTime`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.errors import LimitExceeded, MalformedFile, UnsupportedFeature, VariantLakeError
from variantlake.parquet.metadata.column_chunks import Int64s
from variantlake.parquet.metadata.footer import Footer
from variantlake.parquet.metadata.schema_tree import SchemaNode
from variantlake.shredding.arrays import (
    AnyArray,
    elements_of,
    list_of,
    map_leaves,
    offsets_of,
    struct_of,
)
from variantlake.shredding.layout import is_list, is_struct

_VERSION, _ZONE = "org.apache.spark.version", "org.apache.spark.timeZone"
_LEGACY_INT96, _LEGACY = "org.apache.spark.legacyINT96", "org.apache.spark.legacyDateTime"
_UTC = frozenset({"UTC", "Etc/UTC", "GMT", "Z", "+00:00", "Etc/GMT"})

_DAY = 86_400_000_000
_GREGORIAN = -141_427
"""The day 1582-10-15, from which both calendars agree."""
_NEGATIVE_DAYS = ((1 << 31) - 2_440_588) * 86_400
"""Seconds from which the Julian day, 32 bits that pyarrow takes for unsigned, is negative."""
_SAME_ZONES = -25_567 * _DAY
"""1900-01-01: from then on, Spark does not shift an instant in any time zone."""


@dataclass(frozen=True, slots=True)
class OldTimes:
    """The leaves of a file that are INT96, and those in the Julian calendar."""

    int96: frozenset[int]
    julian: frozenset[int]
    zone: str | None

    @classmethod
    def of(cls, footer: Footer) -> OldTimes:
        """Find the old leaves by the footer."""
        known = dict(footer.key_value_metadata)
        version = known.get(_VERSION)
        nodes = [leaf.node for leaf in footer.leaves]
        int96 = frozenset(at for at, node in enumerate(nodes) if node.physical == "INT96")
        julian: frozenset[int] = frozenset()
        if version is not None and (version < "3.1.0" or _LEGACY_INT96 in known):
            julian |= int96
        if version is not None and (version < "3.0.0" or _LEGACY in known):
            julian |= {at for at, node in enumerate(nodes) if _is_time(node)}
        return cls(int96, julian, known.get(_ZONE))

    def concern(self, leaves: Sequence[int]) -> bool:
        """Whether one of these leaves is old."""
        return not (self.int96 | self.julian).isdisjoint(leaves)

    def settled(
        self, batch: pa.RecordBatch, leaves: Sequence[int], seconds: pa.Table | None
    ) -> pa.RecordBatch:
        """Check the rows, and move their Julian dates to today's calendar.

        `leaves` are the leaves of the batch, `seconds` its INT96 columns read as seconds. Raises
        LimitExceeded for a timestamp beyond microseconds, MalformedFile for a negative Julian day,
        and UnsupportedFeature for a timestamp whose calendar is uncertain. Each error has the row's
        number in the batch.
        """
        leaves = sorted(leaves)
        try:
            self._check(batch, leaves, seconds)
        except VariantLakeError as error:
            error.row = self._first(batch, leaves, seconds)
            raise
        if self.julian.isdisjoint(leaves):
            return batch
        left = iter(leaves)

        def today(array: AnyArray) -> AnyArray:
            return _today(array) if next(left) in self.julian else array

        arrays = [map_leaves(array, today) for array in batch.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)

    def _first(self, batch: pa.RecordBatch, leaves: Sequence[int], seconds: pa.Table | None) -> int:
        """Return the first row whose check fails."""

        def fails(start: int, rows: int) -> bool:
            part = None if seconds is None else seconds.slice(start, rows)
            try:
                self._check(batch.slice(start, rows), leaves, part)
            except VariantLakeError:
                return True
            return False

        return first_row(batch.num_rows, fails)

    def _check(
        self, batch: pa.RecordBatch, leaves: Sequence[int], seconds: pa.Table | None
    ) -> None:
        found = {
            leaf: array
            for leaf, array in zip(leaves, flat(batch), strict=True)
            if leaf in self.int96 or leaf in self.julian
        }
        if seconds is not None:
            timestamps = [leaf for leaf in leaves if leaf in self.int96]
            for leaf, array in zip(timestamps, flat(seconds), strict=True):
                micros, whole = integers(found[leaf]), integers(array)
                wrong = micros // 1_000_000 != whole
                if (whole[wrong] >= _NEGATIVE_DAYS).any():
                    raise MalformedFile(
                        "a timestamp of INT96 has a negative Julian day",
                        hint="its writer made a mistake: Spark's own arithmetic overflows for"
                        " years "
                        "beyond 287,000, though microseconds hold them",
                    )
                if wrong.any():
                    raise LimitExceeded(
                        "a timestamp of INT96 is beyond the years of microseconds (294,247)"
                    )
        for leaf, array in found.items():
            if leaf not in self.julian or self.zone in _UTC or pa.types.is_date(array.type):
                continue
            if (integers(array) < _SAME_ZONES).any():
                raise UnsupportedFeature(
                    "a timestamp before 1900 was written in the calendar before 1582, in the time "
                    f"zone {self.zone or 'that the file does not name'}",
                    hint="Spark can read it: rewrite the rows with Spark",
                )


def _is_time(node: SchemaNode) -> bool:
    """Whether Spark may use the older calendar for it: a date, or a time with a zone."""
    logical = node.logical
    return logical is not None and (logical.kind == "DATE" or logical.utc)


def first_row(rows: int, holds: Callable[[int, int], bool]) -> int:
    """Find the first row for which something holds, by bisection.

    `holds` takes a start and a number of rows. It must be true of all rows together.
    """
    start = 0
    while rows > 1:
        half = rows // 2
        if holds(start, half):
            rows = half
        else:
            start, rows = start + half, rows - half
    return start


def flat(rows: pa.RecordBatch | pa.Table) -> Iterator[AnyArray]:
    """Yield the leaf arrays of rows in the order of the file, with lists flattened."""
    for column in rows.columns:
        whole: Any = column
        yield from _leaves(whole.combine_chunks() if isinstance(rows, pa.Table) else whole)


def _leaves(array: AnyArray) -> Iterator[AnyArray]:
    if is_struct(array.type):
        for child in struct_of(array).flatten():
            yield from _leaves(child)
    elif isinstance(array, pa.MapArray):
        yield from _leaves(offsets_of(array)[1])
    elif is_list(array.type):
        yield from _leaves(elements_of(list_of(array)))
    else:
        yield array


def integers(array: Any) -> Int64s:
    """Return the integers that store the values, without nulls."""
    kept = array.drop_null()
    width: Any = pa.int32() if pa.types.is_date32(kept.type) else pa.int64()
    found: Int64s = kept.cast(width).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _today(array: Any) -> AnyArray:
    """Move dates, or instants in UTC, from the older calendar to the same dates in today's."""
    if pa.types.is_date(array.type):
        days = array.cast(pa.int32()).fill_null(0).to_numpy(zero_copy_only=False)
        moved: Any = pa.array(_moved(days.astype(np.int64)).astype(np.int32))
    else:
        per_day = {"ms": _DAY // 1000, "us": _DAY, "ns": _DAY * 1000}[array.type.unit]
        counts = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        days, rest = np.divmod(counts, per_day)
        moved = pa.array(_moved(days) * per_day + rest)
    found: AnyArray = pc.if_else(
        array.is_null(), pa.nulls(len(array), array.type), moved.cast(array.type)
    )
    return found


def _moved(days: Int64s) -> Int64s:
    """Move days since 1970 that are before 1582-10-15 to the same date in today's calendar.

    A date that only the Julian calendar has, such as 29 February 1500, becomes the next day.
    """
    # The usual formulas for day numbers, with floor division throughout.
    count = days + 2_440_588 + 32_082
    four = (4 * count + 3) // 1461
    of_year = count - 1461 * four // 4
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    year = four - 4800 + month // 10
    month = month + 3 - 12 * (month // 10)
    year = year - (month <= 2)
    era = year // 400
    since = year - era * 400
    first = (153 * ((month + 9) % 12) + 2) // 5
    gregorian = era * 146_097 + since * 365 + since // 4 - since // 100 + first - 719_468
    return np.where(days < _GREGORIAN, gregorian + day - 1, days)
