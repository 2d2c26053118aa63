"""Read facts about a file from the log alone, in the form that its footer would give."""

from __future__ import annotations

from collections.abc import Mapping

from variantlake.delta.actions.actions import AddFile
from variantlake.delta.schema.table_schema import StructType
from variantlake.delta.stats.stats_reader import FileStats, StatsReader
from variantlake.delta.stats.tags import (
    CLEAN_INSIDE_SHIFT,
    MAXIMUM_EXACT,
    MINIMUM_EXACT,
    PLAIN_FLOATS,
    NodeFacts,
    TaggedColumn,
    read_tags,
)
from variantlake.delta.stats.variant_bounds import raw_of
from variantlake.encoding.scalar import Scalar
from variantlake.parquet.stats.bounds import Bounds
from variantlake.parquet.stats.facts import UNKNOWN, FileFacts, PathFacts, VariantFacts
from variantlake.paths import Path
from variantlake.shredding.schema import Leaf, Node
from variantlake.types import Kind


class FactsReader:
    """Reads the facts of one table's files. Bound to the table's schema, keeps no file state."""

    def __init__(self, schema: StructType) -> None:
        self._stats = StatsReader(schema)
        self._variants = schema.variant_columns(physical=True)

    def read_facts(self, add: AddFile) -> FileFacts | None:
        """Read the facts of a file from our tags and its statistics.

        Returns None if the statistics hold no row count, or if a Variant column that is reached
        through structs lacks tags of this version and file: then only the footer can tell.
        `row_groups` is -1, because it is not in the log.
        """
        stats = self._stats.read(add.stats)
        if stats.num_records == UNKNOWN:
            return None
        variants = []
        for column in self._variants:
            tagged = read_tags(add.tags, add.size, stats.num_records, column)
            if tagged is None:
                return None
            variants.append(_variant(column, tagged, stats, whole=add.deletion_vector is None))
        return FileFacts(add.size, stats.num_records, UNKNOWN, tuple(variants), stats.columns)


def _variant(
    column: tuple[str, ...], tagged: TaggedColumn, stats: FileStats, *, whole: bool
) -> VariantFacts:
    lows = {**tagged.minimums, **stats.minimums.get(column, {})}
    highs = {**tagged.maximums, **stats.maximums.get(column, {})}
    whole = whole and stats.tight
    paths = tuple(
        _path(path, node, facts, lows, highs, whole=whole)
        for (path, node), facts in zip(tagged.nodes, tagged.facts, strict=True)
    )
    nulls = stats.variant_nulls.get(column, UNKNOWN)
    return VariantFacts(column, tagged.schema, nulls, paths, notes=tagged.notes)


def _path(
    path: Path,
    node: Node,
    facts: NodeFacts,
    lows: Mapping[Path, Scalar],
    highs: Mapping[Path, Scalar],
    *,
    whole: bool,
) -> PathFacts:
    """Return the facts of one node. If rows were deleted (not `whole`), no bound is exact."""
    typed, nulls, residuals, flags = facts
    low = high = None
    exact = False
    if isinstance(node, Leaf):
        low_scalar, high_scalar = lows.get(path), highs.get(path)
        low = None if low_scalar is None else raw_of(node.type, low_scalar)
        high = None if high_scalar is None else raw_of(node.type, high_scalar)
        # The writer of the statistics may have truncated strings.
        exact = whole and node.type.kind is not Kind.STRING
    return PathFacts(
        path,
        node,
        typed,
        nulls,
        residuals,
        Bounds(
            low,
            high,
            exact and low is not None and bool(flags & MINIMUM_EXACT),
            exact and high is not None and bool(flags & MAXIMUM_EXACT),
        ),
        bool(flags & PLAIN_FLOATS),
        max(flags, 0) >> CLEAN_INSIDE_SHIFT,
    )
