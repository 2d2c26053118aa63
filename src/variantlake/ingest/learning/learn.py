"""Infer a schema from rows of a table, and keep the columns of hints and clustering."""

from __future__ import annotations

import contextlib

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.cluster_paths import PROPERTY as CLUSTER_BY
from variantlake.delta.protocol.cluster_paths import ClusterPath, cluster_paths, column_path
from variantlake.delta.protocol.properties import hints
from variantlake.errors import InvalidSchema
from variantlake.ingest.learning.sample import ColumnSample
from variantlake.paths import Path
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.inference.hints import with_leaf
from variantlake.shredding.inference.infer import InferenceOptions
from variantlake.shredding.layout import check_writable
from variantlake.shredding.schema import Leaf, ShreddingSchema


def learned_schema(
    snapshot: Snapshot, sample: ColumnSample, known: ShreddingSchema | None
) -> ShreddingSchema:
    """Infer a schema from a sample, with columns for the table's hints and clustering paths.

    `known` is the column's current schema.

    Raises InvalidSchema for malformed hints of another writer.
    """
    options = InferenceOptions(hints=hints(snapshot.properties, sample.column))
    schema = sample.infer(options).schema
    text = snapshot.properties.get(CLUSTER_BY)
    if text is None:
        return schema
    for each in cluster_paths(text, snapshot.schema, snapshot.partition_columns):
        if each.column == sample.column and each.path is not None:
            leaf = (
                _leaf(known, each.path) or _leaf(schema, each.path) or _named_leaf(snapshot, each)
            )
            if leaf is not None:
                schema = ShreddingSchema(with_leaf(schema.root, each.path.steps, leaf))
    return schema


def _leaf(schema: ShreddingSchema | None, path: Path) -> Leaf | None:
    if schema is None:
        return None
    node, where = schema.find(path)
    return node if where == path and isinstance(node, Leaf) else None


def _named_leaf(snapshot: Snapshot, clustered: ClusterPath) -> Leaf | None:
    """Return a column for a path that no row has, if the property names its type."""
    named = column_path(clustered.text, snapshot.schema, "cluster").type
    with contextlib.suppress(InvalidSchema):  # the type may not be one of Variants
        schema = parse_ddl(f"x {named}")
        check_writable(schema)
        return _leaf(schema, Path(("x",)))
    return None
