"""Measure how well bounds skip files: for each path, how many files a filter on it would read.

The page itself tries filters, without an engine: it gets the bounds of each file as positions in a
sorted list of all bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from variantlake.parquet.read.inspect import bound_text
from variantlake.parquet.stats.fact_columns import BoundColumns, Int64s, VariantColumns
from variantlake.paths import Path
from variantlake.report.paths import PathTotals
from variantlake.shown import shortened
from variantlake.types import Kind, ShreddedType

MAX_PATHS = 24
"""The most paths whose bounds the report holds."""

MAX_BOUNDS = 400_000
"""The most bounds of all paths together: a table with many files shows fewer paths."""

MAX_LABEL = 60
"""The most characters of a bound's text."""


@dataclass(frozen=True, slots=True)
class SkipPower:
    """The bounds of one path in all files.

    `labels` are the distinct bounds in ascending order, as JSON; `low` and `high` are each file's
    positions among them, -1 for a file that every filter must read. `read` is the average number of
    files that a filter for one of the bounds reads.
    """

    path: Path
    type: ShreddedType
    labels: tuple[str, ...]
    low: Int64s
    high: Int64s
    read: float

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "type": self.type.ddl,
            "numeric": self.type.kind in _NUMERIC,
            "labels": [shortened(label, MAX_LABEL) for label in self.labels],
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "read": self.read,
        }


_NUMERIC = {
    Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64, Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL,
}  # fmt: skip


def skip_powers(
    variant: VariantColumns | None, files: int, paths: Sequence[PathTotals]
) -> list[SkipPower]:
    """Measure the leaves that have bounds in some file; returns those that skip best first."""
    if variant is None or not files:
        return []
    most = max(1, min(MAX_PATHS, MAX_BOUNDS // files))
    wanted = [each for each in paths if each.type is not None and each.bounded]
    wanted.sort(key=lambda each: -each.bounded)
    found = [
        power
        for each in wanted[: 2 * most]
        if each.type is not None and (power := _power(variant, files, each.path, each.type))
    ]
    found.sort(key=lambda power: power.read)
    return found[:most]


def _power(
    variant: VariantColumns, files: int, path: Path, type_: ShreddedType
) -> SkipPower | None:
    bounds = _bounds(variant, files, path, type_)
    known = bounds.minimum.valid & bounds.maximum.valid
    low, high = bounds.minimum.values[known], bounds.maximum.values[known]
    values, places = np.unique(np.concatenate([low, high]), return_inverse=True)
    if not len(values):
        return None
    ends = np.full((2, files), -1, np.int64)
    ends[:, known] = places.reshape(2, -1)
    read = _average(ends[0][known], ends[1][known], len(values)) + float((~known).sum())
    labels = tuple(bound_text(type_, value) for value in values.tolist())
    return SkipPower(path, type_, labels, ends[0], ends[1], read)


def _bounds(variant: VariantColumns, files: int, path: Path, type_: ShreddedType) -> BoundColumns:
    """Return the bounds of a path in each file, unknown if it is not a leaf of this type."""
    found = BoundColumns.unknown(files, type_)
    for code, schema in enumerate(variant.schemas):
        rows = np.flatnonzero(variant.layout == code).astype(np.int64)
        for number, (own, node) in enumerate(schema.nodes()):
            if own == path and getattr(node, "type", None) == type_ and len(rows):
                nodes = np.full(len(rows), number, np.int64)
                counts = variant.counts(rows, nodes)
                bounds = variant.bounds(rows, nodes, type_)
                # Bounds do not cover values in residuals: such a file must always be read.
                bounds.minimum.valid[:] &= counts.clean
                found.put(rows, bounds)
    return found


def _average(low: Int64s, high: Int64s, values: int) -> float:
    """Return the average number of files whose bounds hold a value, over all values."""
    change = np.zeros(values + 1, np.int64)
    np.add.at(change, low, 1)
    np.add.at(change, high + 1, -1)
    return float(np.cumsum(change)[:-1].mean())
