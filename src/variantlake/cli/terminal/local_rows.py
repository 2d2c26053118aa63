"""Rows of the local engine as Spark would write them: as text, and as JSON."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from variantlake import Variant
from variantlake.cli.terminal.rows import json_texts
from variantlake.encoding.java_numbers import double_text, float_text
from variantlake.ingest.encode.time_texts import is_time, time_texts, with_time_texts
from variantlake.scan.arrow_stream import ArrowStream
from variantlake.shredding.fit import raws_of
from variantlake.shredding.layout import VARIANT_TYPE

Rows = Iterator[tuple[str | None, ...]]


class CutRows(ArrowStream):
    """The first rows of some batches, read once."""

    def __init__(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch], limit: int) -> None:
        self._schema, self._batches, self._limit = schema, batches, limit

    @property
    def schema(self) -> pa.Schema:
        """That of the batches."""
        return self._schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The batches, the last one cut."""
        left = self._limit
        for batch in self._batches if left else ():
            yield batch.slice(0, left)
            left -= batch.num_rows
            if left <= 0:
                return


class LocalRows:
    """The result of a query or a scan. `names` are those that Spark gives."""

    def __init__(self, scan: ArrowStream) -> None:
        self.scan = scan
        self.names = scan.schema.names

    def text(self) -> Rows:
        """The rows, each value as text; None for NULL."""
        return self._rows(_text)

    def arrow(self) -> pa.Table:
        """All rows. Raises as the scan."""
        return self.scan.to_arrow()

    def json(self) -> Iterator[str]:
        """Every row as a JSON object, NULLs included."""
        names = [json.dumps(name, ensure_ascii=False) for name in self.names]
        for row in self._rows(_json):
            pairs = (f"{name}:{value or 'null'}" for name, value in zip(names, row, strict=True))
            yield "{" + ",".join(pairs) + "}"

    def _rows(self, form: Callable[[Any], Iterator[str | None]]) -> Rows:
        for batch in self.scan.to_batches():
            yield from zip(*(form(column) for column in batch.columns), strict=True)


def shows(type_: pa.DataType) -> bool:
    """Whether a column's text is the same here and in Spark, whatever the time zone is."""
    nested = pa.types.is_nested(type_) and type_ != VARIANT_TYPE
    return not nested and not pa.types.is_timestamp(type_)


def _text(column: Any) -> Iterator[str | None]:
    for value in _values(column):
        if value is None or isinstance(value, str):
            yield value
        elif isinstance(value, bytes):
            yield value.hex().upper()
        elif isinstance(value, bool):
            yield "true" if value else "false"
        elif isinstance(value, Variant):
            yield value.to_json()
        elif isinstance(value, float):
            yield float_text(value) if pa.types.is_float32(column.type) else double_text(value)
        else:
            yield str(value)


def _json(column: Any) -> Iterator[str | None]:
    if pa.types.is_nested(column.type) and column.type != VARIANT_TYPE:
        yield from json_texts("", column)
        return
    quoted = pa.types.is_string(column.type) or is_time(column.type)
    for value, text in zip(_values(column), _text(column), strict=True):
        if isinstance(value, bytes):
            yield json.dumps(base64.b64encode(value).decode())
        elif text is not None and (
            quoted or (isinstance(value, float) and not math.isfinite(value))
        ):
            yield json.dumps(text, ensure_ascii=False)
        else:
            yield text


def _values(column: Any) -> Iterator[Any]:
    if column.type == VARIANT_TYPE:
        for row in column.to_pylist():
            yield None if row is None else Variant(row["metadata"], row["value"])
    elif is_time(column.type):
        yield from time_texts(column)
    elif pa.types.is_binary(column.type):
        yield from raws_of(column)
    else:
        yield from with_time_texts(column).to_pylist()
