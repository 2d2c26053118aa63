"""Read whole rows of data files, by their places, as Arrow columns that a load can write."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.table_schema import StructField, arrow_type
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.planning.files import ScanFile
from variantlake.scan.files.file_rows import FileReader, partition_column
from variantlake.scan.table_names import partition_types


def rows_schema(snapshot: Snapshot) -> pa.Schema:
    """Return the table's columns; VARIANT ones are struct<metadata: binary, value: binary>."""
    return pa.schema([_arrow(field, field.name) for field in snapshot.schema.fields])


def rows_at(snapshot: Snapshot, file: ScanFile, places: Int64s) -> Iterator[pa.Table]:
    """Read the rows at these places of a file (from 0, ascending), in the `rows_schema`.

    Raises MalformedFile and MalformedVariant with file and row.
    """
    schema = rows_schema(snapshot)
    parted = snapshot.partition_columns
    stored = [field for field in snapshot.schema.fields if field.name not in parted]
    wanted = pa.schema([_arrow(field, field.physical_name) for field in stored])
    for table in columns_at(snapshot, file, wanted, places):
        yield _whole(snapshot, file, table, schema)


def columns_at(
    snapshot: Snapshot, file: ScanFile, wanted: pa.Schema, places: Int64s
) -> Iterator[pa.Table]:
    """Read the `wanted` columns, by their names in files, of the rows at these places.

    Raises as `rows_at`.
    """
    with FileReader(snapshot, file, (), partition_types(snapshot)) as reader:
        start = 0
        for number, group in enumerate(reader.footer.row_groups):
            low, high = np.searchsorted(places, (start, start + group.num_rows))
            if low < high:
                yield from reader.columns(number, wanted, places[low:high] - start)
            start += group.num_rows


def _whole(snapshot: Snapshot, file: ScanFile, table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Add the partition columns, with the file's partition values."""
    arrays = [
        partition_column(field, file.partition.get(field.physical_name), table.num_rows).array.cast(
            schema.field(field.name).type
        )
        if field.name in snapshot.partition_columns
        else table.column(field.physical_name)
        for field in snapshot.schema.fields
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _arrow(field: StructField, name: str) -> pa.Field[pa.DataType]:
    return pa.field(name, arrow_type(field.type))
