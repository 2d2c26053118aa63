"""Measure how much files overlap along a path, i.e. how many files a query of one value reads.

The bounds come from the log. Files without known bounds may hold any value and are counted
separately.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.cluster_paths import PROPERTY, cluster_paths
from variantlake.delta.protocol.clustering import clustering_columns
from variantlake.delta.stats.stats_writer import StatsOptions
from variantlake.maintenance.clustering.boxes import bounds_of
from variantlake.maintenance.rewrite.file_groups import by_partition
from variantlake.parquet.stats.fact_columns import ColumnPath
from variantlake.paths import Path
from variantlake.planning.log_files import LogFiles


@dataclass(frozen=True, slots=True)
class Overlap:
    """How many files may hold the same value of one path.

    `bounded` files have bounds in the log, `unknown` files have none. For the lower bound of each
    bounded file, the files of its partition whose bounds include this value are counted, the file
    itself included. `mean` and `most` are the mean and the maximum of these counts.
    """

    path: str
    bounded: int
    unknown: int
    mean: float
    most: int


def overlaps(snapshot: Snapshot, files: LogFiles) -> Iterator[Overlap]:
    """Yield the overlap along each path or column that the table is clustered by.

    Raises InvalidSchema, InvalidPath and InvalidValue for a property that does not fit the table.
    """
    text = snapshot.properties.get(PROPERTY)
    if text:
        for path in cluster_paths(text, snapshot.schema, snapshot.partition_columns):
            yield _overlap(snapshot, files, path.text, path.stored, path.path)
    for column in clustering_columns(snapshot.domains):
        yield _overlap(snapshot, files, ".".join(column), column, None)


def _overlap(
    snapshot: Snapshot, files: LogFiles, text: str, column: ColumnPath, path: Path | None
) -> Overlap:
    options = StatsOptions.from_properties(snapshot.properties)
    depths: list[int] = []
    for rows in by_partition(snapshot, files, np.arange(files.rows)):
        found = bounds_of(files, rows, column, path, options)
        sides = found.low[found.bounded].tolist(), found.high[found.bounded].tolist()
        depths += _depths(list(zip(*sides, strict=True)))
    return Overlap(
        path=text,
        bounded=len(depths),
        unknown=files.rows - len(depths),
        mean=sum(depths) / len(depths) if depths else 0.0,
        most=max(depths, default=0),
    )


def _depths(group: list[tuple[Any, Any]]) -> list[int]:
    """For each file, count the files (itself included) whose bounds include its lower bound."""
    ends = sorted({side for sides in group for side in sides})
    rank = {value: place for place, value in enumerate(ends)}
    lows = np.sort([rank[low] for low, _ in group])
    highs = np.sort([rank[high] for _, high in group])
    begun = np.searchsorted(lows, lows, "right")
    ended = np.searchsorted(highs, lows, "left")
    found: list[int] = (begun - ended).tolist()
    return found
