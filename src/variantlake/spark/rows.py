"""The rows of a result as text, cast by Spark itself: its text for a value is the one to show."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType, StructField, VariantType


def text_rows(frame: DataFrame, limit: int) -> Iterator[tuple[str | None, ...]]:
    """The first `limit` rows, each value as text; None for NULL."""
    named = _numbered(frame)
    columns = [_text(sf.col(name), field.dataType) for name, field in _columns(frame)]
    return (tuple(row) for row in named.limit(limit).select(*columns).collect())


def json_rows(frame: DataFrame) -> Iterator[str]:
    """Every row as a JSON object, NULLs included; memory follows a partition of the result."""
    columns = [sf.col(name).alias(field.name) for name, field in _columns(frame)]
    document = sf.to_json(sf.struct(*columns), {"ignoreNullFields": "false"})
    for row in _numbered(frame).select(document).toLocalIterator():
        yield row[0]


def _numbered(frame: DataFrame) -> DataFrame:
    """The frame under names that are unique, as a result's own need not be."""
    return frame.toDF(*(name for name, _ in _columns(frame)))


def _columns(frame: DataFrame) -> list[tuple[str, StructField]]:
    return [(f"c{number}", field) for number, field in enumerate(frame.schema.fields)]


def _text(column: Column, kind: object) -> Column:
    if isinstance(kind, VariantType):
        return sf.to_json(column)
    if isinstance(kind, BinaryType):
        return sf.hex(column)
    return column.cast("string")
