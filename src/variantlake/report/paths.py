"""Count the paths of a Variant column, over all files whose facts the log holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import VariantLakeError
from variantlake.ingest.learning.sample import spread
from variantlake.parquet.metadata.footer import Footer, read_footer
from variantlake.parquet.stats.bounds import Raw
from variantlake.parquet.stats.fact_columns import (
    BoundColumns,
    ColumnPath,
    Int64s,
    NodeCounts,
    VariantColumns,
)
from variantlake.parquet.variant.variant_group import VariantGroup, variant_groups
from variantlake.paths import Path
from variantlake.shredding.schema import Array, Leaf, Node, type_name
from variantlake.types import ShreddedType

MAX_CELLS = 2_000_000
"""The most nodes to count, over all files; beyond them, an even sample of the files is counted."""

SIZED_FILES = 8
"""The files whose footers are read for the bytes of single paths."""


@dataclass(slots=True)
class PathTotals:
    """One path with one type, over the files that have it. `typed` to `residuals` count rows.

    `clean` counts files in which no row holds the path in a residual, `bounded` those with bounds.
    `minimum` and `maximum` enclose the values of all bounded files.
    """

    path: Path
    node: Node
    files: int = 0
    clean: int = 0
    bounded: int = 0
    typed: int = 0
    nulls: int = 0
    residuals: int = 0
    minimum: Raw | None = None
    maximum: Raw | None = None
    stored_bytes: int = 0

    @property
    def type(self) -> ShreddedType | None:
        """The type of a leaf; None for objects, arrays and nodes without `typed_value`."""
        return self.node.type if isinstance(self.node, Leaf) else None

    @property
    def type_name(self) -> str:
        """The name of the type in DDL."""
        return type_name(self.node)

    def count(self, counts: NodeCounts, bounds: BoundColumns | None) -> None:
        """Add files that have the path with this type."""
        self.files += len(counts.typed)
        self.clean += int(counts.clean.sum())
        self.typed += _sum(counts.typed)
        self.nulls += _sum(counts.nulls)
        self.residuals += _sum(counts.residuals)
        if bounds is None:
            return
        known = bounds.minimum.valid & bounds.maximum.valid
        self.bounded += int(known.sum())
        if known.any():
            low: Any = min(bounds.minimum.values[known].tolist())
            high: Any = max(bounds.maximum.values[known].tolist())
            self.minimum = low if self.minimum is None else min(self.minimum, low)
            self.maximum = high if self.maximum is None else max(self.maximum, high)


@dataclass(slots=True)
class VariantPaths:
    """The paths of a column. Of the `described` files, whose layout is in the log, `counted` count.

    `sized_bytes` are all bytes of the files whose footers were read for the bytes of paths.
    """

    described: int
    counted: int
    layouts: int
    paths: list[PathTotals] = field(default_factory=list)
    sized_bytes: int = 0


def paths_of(variant: VariantColumns | None, most_cells: int | None = None) -> VariantPaths:
    """Count the nodes of every layout of a column, with their bounds; samples if files are many.

    `most_cells` is the most nodes over all files; None means MAX_CELLS.
    """
    if variant is None:
        return VariantPaths(0, 0, 0)
    layout = variant.layout
    known = np.flatnonzero(layout >= 0)
    used = np.unique(layout[known])
    most = max((len(list(variant.schemas[code].nodes())) for code in used.tolist()), default=1)
    chosen = _evenly(known, max((MAX_CELLS if most_cells is None else most_cells) // most, 1))
    found: dict[tuple[Path, str], PathTotals] = {}
    for code in used.tolist():
        rows = chosen[layout[chosen] == code]
        if not len(rows):
            continue
        for number, (path, node) in enumerate(variant.schemas[code].nodes()):
            facts = PathTotals(path, node)
            facts = found.setdefault((path, facts.type_name), facts)
            nodes = np.full(len(rows), number, np.int64)
            bounds = variant.bounds(rows, nodes, node.type) if isinstance(node, Leaf) else None
            facts.count(variant.counts(rows, nodes), bounds)
    return VariantPaths(len(known), len(chosen), len(used), list(found.values()))


def _evenly(rows: Int64s, most: int) -> Int64s:
    """Choose at most `most` of the rows, evenly and in order."""
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]


def _sum(counts: Int64s) -> int:
    return int(np.maximum(counts, 0).sum())


def add_sizes(paths: VariantPaths, snapshot: Snapshot, column: ColumnPath) -> None:
    """Add the bytes that paths take in a few files; ignores files whose footer cannot be read."""
    by_path: dict[Path, list[PathTotals]] = {}
    for facts in paths.paths:
        by_path.setdefault(facts.path, []).append(facts)
    for footer, groups in _footers(snapshot, column):
        paths.sized_bytes += sum(_size(footer, leaf) for leaf in range(len(footer.leaves)))
        for group in groups:
            if group.column != column:
                continue
            for path, node in group.nodes():
                own = [leaf for leaf in (node.value, node.typed_value) if leaf is not None]
                if isinstance(node.node, Array):
                    own = list(node.leaves())
                for facts in by_path.get(path, ())[:1]:
                    facts.stored_bytes += sum(_size(footer, leaf) for leaf in own)


def _footers(
    snapshot: Snapshot, column: ColumnPath
) -> Iterator[tuple[Footer, tuple[VariantGroup, ...]]]:
    for name in spread(snapshot.files["path"], SIZED_FILES):
        try:
            footer = read_footer(snapshot.location(str(name.as_py())))
            yield footer, variant_groups(footer, (column,))
        except VariantLakeError:
            continue


def _size(footer: Footer, leaf: int) -> int:
    return sum(group.columns[leaf].compressed_size for group in footer.row_groups)


def most_used(paths: Sequence[PathTotals], most: int) -> list[PathTotals]:
    """Return the paths that most rows hold, in the order of the tree."""
    if len(paths) <= most:
        return list(paths)
    ranked = sorted(range(len(paths)), key=lambda i: -(paths[i].typed + paths[i].residuals))
    return [paths[i] for i in sorted(ranked[:most])]
