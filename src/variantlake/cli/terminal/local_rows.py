"""Write rows of the local engine as text and JSON, in the form of Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from variantlake.batches import first_rows
from variantlake.export.row_texts import json_lines, texts
from variantlake.scan.arrow_stream import ArrowStream
from variantlake.shredding.layout import VARIANT_TYPE

_PIECE_ROWS = 1024

Rows = Iterator[tuple[str | None, ...]]


class CutRows(ArrowStream):
    """The first rows of some batches, read once."""

    def __init__(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch], limit: int) -> None:
        self._schema, self._batches, self._limit = schema, batches, limit

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches."""
        return self._schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Return the batches, and cut the last one."""
        return first_rows(self._batches, self._limit)


class LocalRows:
    """The result of a query or a scan. `names` are those of Spark."""

    def __init__(self, scan: ArrowStream) -> None:
        self.scan = scan
        self.names = scan.schema.names

    def text(self) -> Rows:
        """Yield the rows, each value as text; None for NULL."""
        for batch in self._pieces():
            columns = [
                texts(name, column).to_pylist()
                for name, column in zip(self.names, batch.columns, strict=True)
            ]
            yield from zip(*columns, strict=True)

    def arrow(self) -> pa.RecordBatchReader:
        """Return all rows. Raises as the scan."""
        return self.scan.to_reader()

    def json(self) -> Iterator[str]:
        """Yield every row as a JSON object, with NULLs."""
        for batch in self._pieces():
            yield from json_lines(batch).to_pylist()

    def _pieces(self) -> Iterator[pa.RecordBatch]:
        """Yield few rows at a time, so that the first ones are printed at once."""
        for batch in self.scan.to_batches():
            for start in range(0, batch.num_rows, _PIECE_ROWS):
                yield batch.slice(start, _PIECE_ROWS)


def shows(type_: pa.DataType) -> bool:
    """Whether a column's text is the same here and in Spark in any time zone."""
    nested = pa.types.is_nested(type_) and type_ != VARIANT_TYPE
    return not nested and not pa.types.is_timestamp(type_)
