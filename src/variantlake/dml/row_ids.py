"""Row ids of rows that are updated or move to another file, in a table with row tracking.

Spec: PROTOCOL, "Row Tracking".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from variantlake.delta.actions.actions import AddFile
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.row_tracking import RowIdColumns
from variantlake.delta.schema.table_schema import StructType
from variantlake.dml.read_rows import columns_at
from variantlake.errors import in_file
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.planning.files import ScanFile


@dataclass(frozen=True, slots=True)
class RowIds:
    """The row ids of a version; `columns` is None for a table without row tracking.

    The schema of `snapshot` includes the materialized id columns, so that they are read from files.
    """

    snapshot: Snapshot
    columns: RowIdColumns | None

    @classmethod
    def of(cls, snapshot: Snapshot) -> RowIds:
        """Raises MalformedLog for a table with row tracking whose properties name no columns."""
        columns = RowIdColumns.of(snapshot.properties)
        if columns is not None:
            fields = (*snapshot.schema.fields, *columns.fields())
            snapshot = replace(snapshot, schema=StructType(fields))
        return cls(snapshot, columns)

    def updated(
        self, tables: Iterable[pa.Table], add: AddFile, file: ScanFile, places: Int64s
    ) -> Iterator[pa.Table]:
        """Add the row ids at these places of a file to `tables`, the new forms of its rows.

        Their row commit version is that of the commit. Raises MalformedLog, MalformedFile.
        """
        return self._joined(tables, add, file, places, 1)

    def moved(
        self, tables: Iterable[pa.Table], add: AddFile, file: ScanFile, places: Int64s
    ) -> Iterator[pa.Table]:
        """Add the row ids and row commit versions at these places of a file to its rows.

        Raises as `updated`.
        """
        return self._joined(tables, add, file, places, 2)

    def inserted(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Add a column of NULL ids to new rows that share files with updated ones."""
        for table in tables:
            if self.columns is None or self.columns.row_id in table.column_names:
                yield table
            else:
                yield table.append_column(self.columns.row_id, pa.nulls(table.num_rows, pa.int64()))

    def without(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Drop the id columns, which the change feed does not have."""
        names = () if self.columns is None else self.columns.names
        for table in tables:
            yield table.drop_columns([name for name in names if name in table.column_names])

    def _joined(
        self,
        tables: Iterable[pa.Table],
        add: AddFile,
        file: ScanFile,
        places: Int64s,
        count: int,
    ) -> Iterator[pa.Table]:
        if self.columns is None:
            yield from tables
            return
        start = 0
        names = self.columns.names[:count]
        ids = self._ids(self.columns, add, file, places)
        for table in tables:
            joined = table
            for name, values in zip(names, ids, strict=False):
                joined = joined.append_column(name, values.slice(start, table.num_rows))
            start += table.num_rows
            yield joined

    def _ids(
        self, columns: RowIdColumns, add: AddFile, file: ScanFile, places: Int64s
    ) -> list[Any]:
        """Return the row ids and the row commit versions at these places."""
        wanted = pa.schema([pa.field(name, pa.int64()) for name in columns.names])
        parts = pa.concat_tables(
            [wanted.empty_table(), *columns_at(self.snapshot, file, wanted, places)]
        )
        stored = {name: parts[name].combine_chunks() for name in columns.names}
        base, version = add.base_row_id, add.default_row_commit_version
        with in_file(file.path):
            return columns.values(base, version, places, stored)
