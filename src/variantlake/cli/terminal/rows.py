"""Rows of Arrow data as JSON lines, Variants in Spark's own form of JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from variantlake.cli.terminal.output import plain
from variantlake.encoding.json_text import to_json
from variantlake.errors import MalformedFile, VariantLakeError
from variantlake.ingest.encode.time_texts import with_time_texts
from variantlake.parquet.read.json_column import to_json as to_json_column
from variantlake.shredding.layout import METADATA, VALUE, is_variant_type


def json_lines(batch: pa.RecordBatch, *, bare: bool = False) -> Iterator[str]:
    """One JSON object a row, by column name; with `bare` the value of the only column itself.

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
    """The rows of a column as JSON. Raises as `json_lines`."""
    values = _values(name, column)
    if is_variant_type(column.type):
        return [text or "null" for text in values]
    if pa.types.is_integer(column.type):
        return ["null" if value is None else str(value) for value in values]
    texts = []
    for row, value in enumerate(values):
        try:
            texts.append(_text(value, column.type))
        except VariantLakeError as error:
            error.row = row
            raise
    return texts


def _values(name: str, column: pa.Array[Any]) -> list[Any]:
    """The values of a column, of Variants their JSON text, which a kernel writes.

    Arrow does not look whether strings are UTF-8, and times in range.
    """
    if is_variant_type(column.type):
        return to_json_column(column).to_pylist()
    try:
        values: list[Any] = column.to_pylist()
    except (ValueError, OverflowError):
        column = with_time_texts(column)
        for row in range(len(column)):
            try:
                column[row].as_py()
            except (ValueError, OverflowError) as error:
                raise MalformedFile(
                    f"column {name!r} holds what has no Python value: {error}", row=row
                ) from error
        values = column.to_pylist()
    return values


def _text(value: Any, kind: pa.DataType) -> str:
    if value is None:
        return "null"
    if isinstance(kind, pa.StructType):
        if {field.name for field in kind} == {METADATA, VALUE}:
            return to_json(value[METADATA], value[VALUE])
        members = (
            f"{json.dumps(field.name, ensure_ascii=False)}: {_text(value[field.name], field.type)}"
            for field in kind
        )
        return "{" + ", ".join(members) + "}"
    if isinstance(kind, pa.ListType | pa.LargeListType):
        return "[" + ", ".join(_text(item, kind.value_type) for item in value) + "]"
    if isinstance(kind, pa.MapType):
        pairs = (f"[{_text(k, kind.key_type)}, {_text(v, kind.item_type)}]" for k, v in value)
        return "[" + ", ".join(pairs) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        value = {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    return json.dumps(value, ensure_ascii=False, default=plain)
