"""Write rows of Arrow data as JSON lines, with Variants in Spark's form of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from variantlake.export.row_texts import value_texts
from variantlake.parquet.read.json_column import to_json as to_json_column
from variantlake.shredding.layout import is_variant_type


def json_lines(batch: pa.RecordBatch, *, bare: bool = False) -> Iterator[str]:
    """Yield one JSON object per row, by column name; with `bare`, the value of the only column.

    Raises MalformedVariant, LimitExceeded and MalformedFile, with the row of the batch.
    """
    columns = [
        json_texts(name, column)
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    if bare:
        yield from columns[0]
        return
    names = [json.dumps(name, ensure_ascii=False) for name in batch.schema.names]
    for texts in zip(*columns, strict=True):
        members = map("{}: {}".format, names, texts)
        yield "{" + ", ".join(members) + "}"


def json_texts(name: str, column: pa.Array[Any]) -> list[str]:
    """Write the rows of a column as JSON. Raises as `json_lines`."""
    if is_variant_type(column.type):
        return [text or "null" for text in to_json_column(column).to_pylist()]
    if pa.types.is_integer(column.type):
        return ["null" if value is None else str(value) for value in column.to_pylist()]
    return value_texts(name, column)
