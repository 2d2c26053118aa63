"""Fill in the defaults of columns that rows lack, if the local engine can compute them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from variantlake.delta.schema.table_schema import StructField, StructType, arrow_type
from variantlake.errors import InvalidQuery, InvalidValue, UnsupportedFeature
from variantlake.expressions.arrays import plain
from variantlake.expressions.rows import evaluate
from variantlake.expressions.tree import Literal
from variantlake.scan.assignments import assigned, scalar_of
from variantlake.shredding.arrays import AnyArray


def defaulted_rows(reader: pa.RecordBatchReader, schema: StructType) -> pa.RecordBatchReader:
    """Add the defaults of columns that the rows lack.

    A default that only Spark can compute is ignored.
    """
    constants = {
        field.name: array
        for field in schema.fields
        if field.name not in reader.schema.names and (array := default_of(field)) is not None
    }
    if not constants:
        return reader
    fields = [pa.field(name, array.type) for name, array in constants.items()]
    whole = pa.schema([*reader.schema, *fields])
    return pa.RecordBatchReader.from_batches(whole, _defaulted(reader, constants, whole))


def _defaulted(
    batches: pa.RecordBatchReader, constants: Mapping[str, AnyArray], whole: pa.Schema
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = np.zeros(batch.num_rows, np.int64)
        arrays = [*batch.columns, *(array.take(rows) for array in constants.values())]
        yield pa.RecordBatch.from_arrays(arrays, schema=whole)


def default_of(field: StructField) -> AnyArray | None:
    """Return a column's default as an array of one row; None if only Spark can compute it."""
    if field.default is None:
        return None
    from variantlake.sql.select import QueryText  # parses SQL

    wanted = arrow_type(field.type)
    try:
        value = QueryText(StructType(())).value(field.default)
        if isinstance(value, Literal):
            return pa.array([scalar_of(value, wanted, field.name).as_py()], wanted)
        found = evaluate(value, lambda _: None, 1)
        if found.failed is not None and found.failed.any():
            return None
        array: AnyArray = assigned(plain(found.array), wanted, field.name)
    except (InvalidQuery, InvalidValue, UnsupportedFeature):
        return None
    return array
