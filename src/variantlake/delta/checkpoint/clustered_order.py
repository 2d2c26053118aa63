"""Sorts the files of a clustered table by its first clustering column.

A checkpoint then holds the files that a query reads together, so a reader unpacks the texts of few
row groups. The order follows the bounds in the log; files without bounds come last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import arrow_array, numpy_array
from variantlake.delta.actions.actions import DomainMetadata, Metadata
from variantlake.delta.log.files.logical_files import LogicalFiles
from variantlake.delta.protocol.cluster_paths import PROPERTY, ClusterPath, cluster_paths
from variantlake.delta.protocol.clustering import clustering_columns
from variantlake.delta.schema.table_schema import StructType
from variantlake.delta.stats.columns.log_facts import LogFacts
from variantlake.errors import VariantLakeError
from variantlake.parquet.stats.fact_columns import Int64s, RawColumn
from variantlake.shredding.schema import Leaf
from variantlake.types import ShreddedType

_MOST_READ = 4
"""How often, on average, the texts of a file may be unpacked to sort all files."""


def clustered_order(
    files: LogicalFiles, metadata: Metadata, domains: Mapping[str, DomainMetadata], piece: int
) -> LogicalFiles:
    """Return the files by the lower bounds of the first clustering path, then by their paths.

    A writer reads the texts of `piece` files at a time. If it would have to read them too often, as
    for an unsorted table, sorts the files only within pieces. Returns them unchanged if the table
    is not clustered.
    """
    schema = StructType.from_json(metadata.schema_string)
    path = _first_path(schema, metadata, domains)
    if path is None or not files.num_rows:
        return files
    bound = _lower_bounds(LogFacts(files, schema), path)
    if bound is None:
        return files
    rows = np.arange(files.num_rows)
    order = _ordered(files, rows, bound)
    if _times_read(files, order, piece) > _MOST_READ:
        pieces = [rows[start : start + piece] for start in range(0, len(rows), piece)]
        order = np.concatenate([_ordered(files, each, bound) for each in pieces])
    return files if bool((order == rows).all()) else files.take(order)


def _first_path(
    schema: StructType, metadata: Metadata, domains: Mapping[str, DomainMetadata]
) -> ClusterPath | None:
    """Return the first clustering path, by our property or Delta's domain, or None."""
    try:
        text = metadata.configuration.get(PROPERTY, "")
        if text:
            return cluster_paths(text, schema, metadata.partition_columns)[0]
        columns = clustering_columns(domains)
    except VariantLakeError:
        return None  # another writer's invalid value; a checkpoint needs no order
    if not columns:
        return None
    column, *fields = columns[0]
    return ClusterPath(".".join(columns[0]), column, None, tuple(fields))


def _lower_bounds(facts: LogFacts, path: ClusterPath) -> RawColumn | None:
    """Return the lower bound of each file; for a Variant, only those of the first type found."""
    if path.path is None:
        column = facts.column(path.stored)
        stored = None if column is None else column.types[0]
        return (
            None
            if column is None or stored is None
            else column.bounds(_rows(facts), stored).minimum
        )
    variant = facts.variant(path.stored)
    if variant is None:
        return None
    found: RawColumn | None = None
    first: ShreddedType | None = None
    layouts = zip(variant.schemas, facts.layouts.nodes, strict=True)
    for code, (schema, nodes) in enumerate(layouts):
        number = nodes.get(path.path)
        leaf = None if number is None else dict(schema.nodes())[path.path]
        if number is None or not isinstance(leaf, Leaf) or first not in (None, leaf.type):
            continue
        if found is None:
            found, first = RawColumn.unknown(len(facts), leaf.type), leaf.type
        rows = np.flatnonzero(variant.layout == code)
        places = np.full(len(rows), number, np.int64)
        found.put(rows, variant.bounds(rows, places, leaf.type).minimum)
    return found


def _rows(facts: LogFacts) -> Int64s:
    return np.arange(len(facts), dtype=np.int64)


def _ordered(files: LogicalFiles, rows: Int64s, bound: RawColumn) -> Int64s:
    """Return the rows in order. Reads the paths only of files with equal bounds or none."""
    known = rows[bound.valid[rows]]
    values = bound.values[known]
    known = known[np.argsort(values, kind="stable")]
    values = bound.values[known]
    order = np.concatenate([known, rows[~bound.valid[rows]]])
    starts = np.ones(len(order), np.bool_)
    starts[1 : len(known)] = values[1:] != values[:-1]
    starts[len(known) + 1 :] = False
    group = np.cumsum(starts)
    alike = np.zeros(len(order), np.bool_)
    alike[1:] = group[1:] == group[:-1]
    alike[:-1] |= alike[1:].copy()
    places = np.flatnonzero(alike)
    if not len(places):
        return order
    ties: Any = pa.table(
        {"group": arrow_array(group[places]), "path": files.take(order[places])["path"]}
    )
    by_path = pc.sort_indices(ties, sort_keys=[("group", "ascending"), ("path", "ascending")])
    order[places] = order[places][numpy_array(by_path)]
    return order


def _times_read(files: LogicalFiles, order: Int64s, piece: int) -> float:
    """Return how often, on average, a write in this order unpacks the texts of a file."""
    number, sizes = np.zeros(files.num_rows, np.int64), []
    start = 0
    for at, (texts, rows) in enumerate(files.runs()):
        number[start : start + len(rows)] = at
        sizes.append(texts.rows)
        start += len(rows)
    parts = [np.unique(number[order[at : at + piece]]) for at in range(0, len(order), piece)]
    return float(sum(int(np.array(sizes)[each].sum()) for each in parts) / files.num_rows)
