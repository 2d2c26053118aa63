"""Describe each file as a box: the ranks of its bounds along each clustering path.

A rank is the place of a bound among all bounds of a partition, so values of any type are compared
only once. A file without known bounds gets the widest box.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from variantlake.delta.protocol.cluster_paths import ClusterPath, order_of
from variantlake.delta.stats.stats_writer import StatsOptions
from variantlake.parquet.stats.fact_columns import BoundColumns, ColumnPath, Int64s
from variantlake.paths import Path
from variantlake.planning.log_files import LogFiles
from variantlake.shredding.schema import Leaf, ShreddingSchema
from variantlake.types import Kind, ShreddedType

Floats = npt.NDArray[np.float64]

_MILLISECOND = 1_000
"""Statistics cut timestamps of ordinary columns to milliseconds, and readers add one."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """Boxes of some files: `low` and `high` are slots, shape (files, paths), both included.

    Each value that is a bound has an odd slot, and the gaps between have even slots. The last slot
    is for rows without a value, which sort after all others.
    """

    low: Int64s
    high: Int64s

    @property
    def files(self) -> int:
        """The number of files."""
        return len(self.low)

    def take(self, rows: Int64s) -> Boxes:
        """Return the boxes of these files."""
        return Boxes(self.low[rows], self.high[rows])


def boxes_of(
    files: LogFiles,
    rows: Int64s,
    paths: Sequence[ClusterPath],
    ordered: npt.NDArray[np.bool_],
    options: StatsOptions,
) -> Boxes:
    """Return the boxes of these files; `ordered` marks those that a run ordered by these paths.

    An ordered file without bounds (some of its values are not of the column's type) counts as
    having no values. The run sorted those rows there, and another run could do no better.
    """
    sides = []
    for path in paths:
        bounds = bounds_of(files, rows, path.stored, path.path, options)
        bounds.empty |= ordered & ~bounds.bounded
        sides.append(_ranks(bounds))
    low, high = (np.stack([each[side] for each in sides], axis=1) for side in (0, 1))
    return Boxes(low, high)


@dataclass(slots=True)
class PathBounds:
    """Bounds of one path, comparable where `bounded`. `empty` marks files without a value."""

    low: npt.NDArray[np.object_]
    high: npt.NDArray[np.object_]
    bounded: npt.NDArray[np.bool_]
    empty: npt.NDArray[np.bool_]

    @classmethod
    def unknown(cls, rows: int) -> PathBounds:
        """Return no bounds for any of this many files."""
        flags = (np.zeros(rows, np.bool_) for _ in range(2))
        return cls(np.empty(rows, object), np.empty(rows, object), *flags)

    def put(self, places: Int64s, bounds: BoundColumns, leaf: ShreddedType, cut: int) -> None:
        """Set the bounds of these files, whose values have this type. `cut` as in `_uncut`."""
        order = order_of(leaf)
        nanos = leaf.kind in (Kind.TIMESTAMP_NANOS, Kind.TIMESTAMP_NTZ_NANOS)
        known = bounds.minimum.valid & bounds.maximum.valid
        lows, highs = bounds.minimum.values.tolist(), bounds.maximum.values.tolist()
        for place, is_known, low, high in zip(
            places.tolist(), known.tolist(), lows, highs, strict=True
        ):
            if not is_known:
                continue
            sides = (low // 1000, high // 1000) if nanos else (low, high)
            least, most = _uncut(*sides, cut)
            self.low[place], self.high[place] = (order, least), (order, most)
            self.bounded[place] = True


def _uncut(low: Any, high: Any, cut: int) -> tuple[Any, Any]:
    """Undo what writers add to a maximum that they cut.

    Without this, files that were sorted against each other would overlap for ever; with it, they at
    most meet. `cut` is the number of characters for strings, and for times the microseconds,
    negative.
    """
    if isinstance(high, str) and len(high) >= cut > 0:
        high = high[: cut - 1]
        return min(low, high), high
    if isinstance(high, int) and cut < 0:
        high += cut
        return min(low, high), high
    return low, high


def bounds_of(
    files: LogFiles, rows: Int64s, column: ColumnPath, path: Path | None, options: StatsOptions
) -> PathBounds:
    """Return the bounds of a path in these files; a `path` of None means the column itself."""
    found = PathBounds.unknown(len(rows))
    if path is None:
        _put_column(found, files, rows, column, options)
        return found
    variants = files.facts.variant(column)
    if variants is None:
        return found
    layout = variants.layout[rows]
    for code in np.unique(layout[layout >= 0]).tolist():
        schema = variants.schemas[code]
        places = np.flatnonzero(layout == code)
        number, leaf = _leaf(schema, path)
        if leaf is None:
            continue
        nodes = np.full(len(places), number, np.int64)
        bounds = variants.bounds(rows[places], nodes, leaf.type)
        found.put(places, bounds, leaf.type, options.string_length)
        found.empty[places] = variants.counts(rows[places], nodes).typed == 0
    return found


def _put_column(
    found: PathBounds, files: LogFiles, rows: Int64s, column: ColumnPath, options: StatsOptions
) -> None:
    facts = files.facts.column(column)
    if facts is None:
        return
    for code, stored in enumerate(facts.types):
        if stored is None:
            continue
        places = np.flatnonzero(facts.type[rows] == code)
        bounds = facts.bounds(rows[places], stored)
        is_time = stored.kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ)
        found.put(places, bounds, stored, -_MILLISECOND if is_time else options.string_length)
        nulls = facts.nulls[rows[places]]
        records = files.facts.num_records[rows[places]]
        found.empty[places] = ~found.bounded[places] & (nulls == records) & (records >= 0)


def _leaf(schema: ShreddingSchema, path: Path) -> tuple[int, Leaf | None]:
    for number, (where, node) in enumerate(schema.nodes()):
        if where == path:
            return number, node if isinstance(node, Leaf) else None
    return -1, None


def _ranks(bounds: PathBounds) -> tuple[Int64s, Int64s]:
    """Return the slots of the low and the high bounds."""
    known = bounds.bounded
    values = sorted({*bounds.low[known].tolist(), *bounds.high[known].tolist()})
    places = {value: 2 * place + 1 for place, value in enumerate(values)}
    last = 2 * len(values) + 2
    rows = len(known)
    low, high = np.zeros(rows, np.int64), np.full(rows, last - 1, np.int64)
    low[known] = [places[value] for value in bounds.low[known].tolist()]
    high[known] = [places[value] for value in bounds.high[known].tolist()]
    low[bounds.empty], high[bounds.empty] = last, last
    # A maximum below its minimum bounds nothing, so the file gets the widest box.
    broken = high < low
    low[broken], high[broken] = 0, last - 1
    return low, high
