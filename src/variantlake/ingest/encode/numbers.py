"""Number new rows for identity columns. Spec: PROTOCOL, "Identity Columns"."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import pyarrow as pa

from variantlake.delta.protocol.identity_columns import (
    IdentityColumn,
    identity_columns,
    is_identity,
)
from variantlake.delta.schema.table_schema import StructField, StructType
from variantlake.errors import InvalidQuery, InvalidSchema


def unnumbered_columns(schema: StructType, names: Collection[str]) -> tuple[IdentityColumn, ...]:
    """Return the identity columns that rows with columns of these names lack.

    Raises InvalidSchema for a named column that is GENERATED ALWAYS.
    """
    columns = identity_columns(schema)
    for column in columns:
        if column.name in names:
            _check_explicit(column)
    return tuple(column for column in columns if column.name not in names)


def check_assigned(field: StructField, *, inserts: bool, is_default: bool = False) -> None:
    """Raise unless a statement may set this column; it may set all but identity columns.

    Raises InvalidQuery for an UPDATE and for DEFAULT, as Delta Spark does; InvalidSchema for a
    column that is GENERATED ALWAYS.
    """
    if not is_identity(field):
        return
    if not inserts:
        raise InvalidQuery(
            f"the identity column {field.name!r} cannot be updated",
            hint="leave it out: every row keeps its number",
        )
    if is_default:
        raise InvalidQuery(
            f"the identity column {field.name!r} has no DEFAULT",
            hint="leave it out: new rows get its next numbers",
        )
    _check_explicit(IdentityColumn.of(field))


def _check_explicit(column: IdentityColumn) -> None:
    if not column.explicit:
        raise InvalidSchema(
            f"the column {column.name!r} gives out its numbers itself (GENERATED ALWAYS)",
            hint="leave the column out of the rows",
        )


def with_numbers_from(table: pa.Table, columns: Sequence[IdentityColumn], place: int) -> pa.Table:
    """Set the numbers of these columns; `place` is the count of rows numbered before."""
    for column in columns:
        at = table.schema.get_field_index(column.name)
        numbers = numbers_from(column, place, table.num_rows)
        table = table.set_column(at, table.schema.field(at), numbers)
    return table


def numbered_rows(reader: pa.RecordBatchReader, schema: StructType) -> pa.RecordBatchReader:
    """Add the numbers of identity columns that the rows lack.

    Raises InvalidSchema as `unnumbered_columns`; LimitExceeded if a column has no numbers left.
    """
    columns = unnumbered_columns(schema, reader.schema.names)
    if not columns:
        return reader
    fields = [pa.field(column.name, pa.int64()) for column in columns]
    whole = pa.schema([*reader.schema, *fields])
    return pa.RecordBatchReader.from_batches(whole, _numbered(reader, columns, whole))


def _numbered(
    batches: Iterator[pa.RecordBatch] | pa.RecordBatchReader,
    columns: Sequence[IdentityColumn],
    whole: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    place = 0
    for batch in batches:
        arrays = [*batch.columns, *(numbers_from(each, place, batch.num_rows) for each in columns)]
        yield pa.RecordBatch.from_arrays(arrays, schema=whole)
        place += batch.num_rows


def numbers_from(column: IdentityColumn, place: int, count: int) -> pa.Array[pa.Int64Scalar]:
    """Return `count` numbers of a column, from the one at `place` on. Raises LimitExceeded."""
    if not count:
        return pa.array([], pa.int64())
    first, _last = column.number(place), column.number(place + count - 1)
    return pa.array(first + np.arange(count, dtype=np.int64) * column.step, pa.int64())
