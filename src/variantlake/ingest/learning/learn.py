"""The schema that rows of a table speak for, with what must stay a column of it."""

from __future__ import annotations

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.cluster_paths import PROPERTY as CLUSTER_BY
from variantlake.delta.protocol.cluster_paths import cluster_paths
from variantlake.delta.protocol.properties import hints
from variantlake.ingest.learning.sample import Sample
from variantlake.shredding.inference.hints import with_leaf
from variantlake.shredding.inference.infer import InferenceOptions
from variantlake.shredding.schema import Leaf, ShreddingSchema


def learned_schema(
    snapshot: Snapshot, sample: Sample, known: ShreddingSchema | None
) -> ShreddingSchema:
    """What a sample speaks for, with the table's hints and the paths that it is clustered by.

    `known` is the schema that the column has.

    Raises InvalidSchema for hints of another writer that cannot be understood.
    """
    options = InferenceOptions(hints=hints(snapshot.properties, sample.column))
    schema = sample.infer(options).schema
    if known is None:
        return schema
    text = snapshot.properties.get(CLUSTER_BY)
    if text is None:
        return schema
    for each in cluster_paths(text, snapshot.schema, snapshot.partition_columns):
        if each.column == sample.column and each.path is not None:
            node, where = known.find(each.path)
            if where == each.path and isinstance(node, Leaf):
                schema = ShreddingSchema(with_leaf(schema.root, each.path.steps, node))
    return schema
