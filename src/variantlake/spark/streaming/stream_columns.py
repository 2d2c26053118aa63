"""The columns of a stream: the table's, those of its change feed, or a selection in SQL."""

from __future__ import annotations

from pyspark.sql.types import DataType, StructField, StructType, VariantType

from variantlake.delta.log.snapshot import Snapshot
from variantlake.expressions.tree import Predicate
from variantlake.expressions.typing import spark_type
from variantlake.feed.snapshots import snapshots_of
from variantlake.spark.scan.stored_types import data_type
from variantlake.spark.scan.tables import table_version
from variantlake.spark.streaming.source_options import StreamOptions
from variantlake.sql.select import Item, QueryText


def stream_schema(snapshot: Snapshot, options: StreamOptions) -> StructType:
    """Return the columns of a stream of this table, for Spark.

    Raises InvalidQuery and UnsupportedFeature for SQL text that is invalid, or that only Spark
    evaluates; UnsupportedFeature for a change feed if the table has columns of the same names.
    """
    if options.change_feed:
        (snapshot,) = snapshots_of(snapshot, [])
    columns = table_version(options.location, snapshot).schema
    if not options.selects:
        return columns
    items, _ = selection(snapshot, options)
    return StructType([StructField(item.name, _type_of(item, columns)) for item in items])


def selection(
    snapshot: Snapshot, options: StreamOptions
) -> tuple[tuple[Item, ...], Predicate | None]:
    """Return the selected items and the condition. Raises as `stream_schema`."""
    text = QueryText(snapshot.schema)
    items = text.items(options.select or "*")
    return items, text.condition(options.where) if options.where else None


def _type_of(item: Item, columns: StructType) -> DataType:
    if item.ref.path is None:
        return columns[item.ref.column[0]].dataType
    requested = spark_type(item.ref.type)
    return VariantType() if requested is None else data_type(requested)
