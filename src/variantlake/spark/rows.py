"""Convert the rows of a result to text with Spark's own casts."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame
from pyspark.sql.types import BinaryType, StructField, VariantType

from variantlake.quoting import quote_identifier


def text_rows(frame: DataFrame) -> Iterator[tuple[str | None, ...]]:
    """Return an iterator over all rows, each value as text, None for NULL.

    Memory use is that of one partition of the result.
    """
    named = _numbered(frame)
    columns = [_text(name, field.dataType) for name, field in _columns(frame)]
    return (tuple(row) for row in named.selectExpr(*columns).toLocalIterator())


def json_rows(frame: DataFrame) -> Iterator[str]:
    """Yield every row as a JSON object, with NULLs. Memory use is that of one partition."""
    columns = (f"{name} AS {quote_identifier(field.name)}" for name, field in _columns(frame))
    document = f"to_json(struct({', '.join(columns)}), map('ignoreNullFields', 'false'))"
    for row in _numbered(frame).selectExpr(document).toLocalIterator():
        yield row[0]


def _numbered(frame: DataFrame) -> DataFrame:
    """Give the columns unique names, because those of a result need not be unique."""
    return frame.toDF(*(name for name, _ in _columns(frame)))


def _columns(frame: DataFrame) -> list[tuple[str, StructField]]:
    return [(f"c{number}", field) for number, field in enumerate(frame.schema.fields)]


def _text(column: str, kind: object) -> str:
    if isinstance(kind, VariantType):
        return f"to_json({column})"
    if isinstance(kind, BinaryType):
        return f"hex({column})"
    return f"CAST({column} AS STRING)"
