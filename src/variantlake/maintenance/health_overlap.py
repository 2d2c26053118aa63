"""How much files overlap along a path: how many a query of one value has to read.

The bounds are those of the log. Files whose bounds are not known may hold anything, and are counted
apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from variantlake.delta.log.logical_files import values
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.cluster_paths import PROPERTY, ClusterPath, cluster_paths
from variantlake.delta.protocol.clustering import clustering_columns
from variantlake.parquet.stats.fact_columns import BoundColumns, FactColumns, Int64s
from variantlake.shredding.schema import Leaf


@dataclass(frozen=True, slots=True)
class Overlap:
    """Along one path: of the files with `known` bounds, how many meet in one value.

    `mean` is taken over the lower bounds of the files, `most` is the greatest; a file alone counts
    1. Files of different partitions do not meet.
    """

    path: str
    known: int
    unknown: int
    mean: float
    most: int


def overlaps(snapshot: Snapshot, facts: FactColumns) -> Iterator[Overlap]:
    """One for each path or column that the table is clustered by.

    Raises InvalidSchema, InvalidPath and InvalidValue for a property that does not fit the table.
    """
    partitions = _partitions(snapshot)
    text = snapshot.properties.get(PROPERTY)
    if text:
        for path in cluster_paths(text, snapshot.schema, snapshot.partition_columns):
            bounds = _of_column if path.path is None else _of_path
            yield _overlap(path.text, bounds(facts, path), partitions)
    for column in clustering_columns(snapshot.domains):
        found = _of_columns(facts, column)
        yield _overlap(".".join(column), found, partitions)


Bounds = dict[int, tuple[Any, Any]]
"""The least and the greatest value of files, by their rows."""


def _of_column(facts: FactColumns, path: ClusterPath) -> Bounds:
    return _of_columns(facts, (path.column,))


def _of_columns(facts: FactColumns, column: tuple[str, ...]) -> Bounds:
    found: Bounds = {}
    columns = facts.column(column)
    for code, stored in enumerate(columns.types if columns is not None else ()):
        if columns is not None and stored is not None:
            rows = np.flatnonzero(columns.type == code)
            _put(found, rows, columns.bounds(rows, stored), str(stored.kind))
    return found


def _of_path(facts: FactColumns, path: ClusterPath) -> Bounds:
    found: Bounds = {}
    variants = facts.variant((path.column,))
    for code, schema in enumerate(variants.schemas if variants is not None else ()):
        for number, (where, node) in enumerate(schema.nodes()):
            if variants is not None and where == path.path and isinstance(node, Leaf):
                rows = np.flatnonzero(variants.layout == code)
                nodes = np.full(len(rows), number, np.int64)
                _put(found, rows, variants.bounds(rows, nodes, node.type), str(node.type.kind))
    return found


def _put(found: Bounds, rows: Int64s, bounds: BoundColumns, kind: str) -> None:
    known = bounds.minimum.known & bounds.maximum.known
    sides = bounds.minimum.values.tolist(), bounds.maximum.values.tolist()
    for row, is_known, low, high in zip(rows.tolist(), known.tolist(), *sides, strict=True):
        if is_known:
            # Values of different types order by the type first.
            found[row] = (kind, low), (kind, high)


def _partitions(snapshot: Snapshot) -> list[Any]:
    if not snapshot.partition_columns:
        return [()] * snapshot.files.num_rows
    maps = values(snapshot.files["partition_values"])
    return [tuple(sorted((each or {}).items(), key=repr)) for each in maps]


def _overlap(path: str, bounds: Bounds, partitions: list[Any]) -> Overlap:
    groups: dict[Any, list[tuple[Any, Any]]] = defaultdict(list)
    for row, sides in bounds.items():
        groups[partitions[row]].append(sides)
    depths = [depth for group in groups.values() for depth in _depths(group)]
    return Overlap(
        path=path,
        known=len(bounds),
        unknown=len(partitions) - len(bounds),
        mean=sum(depths) / len(depths) if depths else 0.0,
        most=max(depths, default=0),
    )


def _depths(group: list[tuple[Any, Any]]) -> list[int]:
    """For each file how many, itself included, hold its least value between their bounds."""
    ends = sorted({side for sides in group for side in sides})
    rank = {value: place for place, value in enumerate(ends)}
    lows = np.sort([rank[low] for low, _ in group])
    highs = np.sort([rank[high] for _, high in group])
    begun = np.searchsorted(lows, lows, "right")
    ended = np.searchsorted(highs, lows, "left")
    found: list[int] = (begun - ended).tolist()
    return found
