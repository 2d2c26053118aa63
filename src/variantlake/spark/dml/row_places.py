"""A table with two more columns for the place of each row: its file's number, and its row in it.

The number is a partition column that the log does not have, so every way of reading a table returns
it. The place in the file is Spark's row index.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.row_tracking import RowIdColumns
from variantlake.delta.schema.table_schema import StructType as TableSchema
from variantlake.delta.stats.columns.log_facts import LogFacts
from variantlake.errors import MalformedLog, UnsupportedFeature
from variantlake.parquet.stats.fact_columns import FactColumns, Int64s
from variantlake.planning.files import PartitionColumn, ScanFile
from variantlake.planning.log_files import LogFiles
from variantlake.spark.scan.tables import Tables, TableVersion
from variantlake.spark.session.classic_files import ROW_INDEX

FILE = "__vl_at_file"
"""The column with the file's row in `Snapshot.files`."""

ROW = ROW_INDEX
"""The column with the row's place in its file, from 0, deleted rows included."""

ROW_ID = "__vl_row_id"
"""The column with the row id that a file stores for a row, in a table with row tracking."""

BASE = "__vl_base_row_id"
"""The column with the row id of the file's first row, from the log."""

LOCATION = "variantlake:placed"
"""The location under which `PlacedTables` opens the table with places."""


class PlacedTables(Tables):
    """The tables of a session, and one of them also with places."""

    def __init__(self, tables: Tables, table: TableVersion) -> None:
        super().__init__()
        self._others = tables
        self._footers = tables._footers  # noqa: SLF001 - both share what is known of files
        self._placed = placed(table)

    def open(
        self, location: str, version: int | None = None, *, before: int | None = None
    ) -> TableVersion:
        """See Tables."""
        if location == LOCATION:
            return self._placed
        return self._others.open(location, version, before=before)


def placed(table: TableVersion) -> TableVersion:
    """Return the table with the columns FILE and ROW, and those of row ids if it tracks them.

    Raises UnsupportedFeature for a table that has columns of these names, or of Spark's column of
    metadata.
    """
    taken = {name.lower() for name in (*table.schema.names, *table.stored.names)}
    for name in sorted(taken & {FILE, ROW, "_metadata"}):
        raise UnsupportedFeature(
            f"the table has a column {name}, a name that changes of rows on Spark need",
            file=table.snapshot.store.uri,
            hint="rename the column; Table.delete and Table.update need no such name",
            cli_hint="rename the column",
        )
    more = [StructField(FILE, IntegerType()), StructField(ROW, LongType())]
    table, ids = _with_ids(table)
    return replace(
        table,
        schema=StructType([*table.schema.fields, *more]),
        stored=StructType([*table.stored.fields, *more]),
        partition_types={**table.partition_types, FILE: "int", **ids},
        files=PlacedFiles(table.snapshot),
        # So that plans do not name it; other reads of the table are named.
        chosen=True,
        row_place=ROW,
        # So that a change can find rows that violate NOT NULL.
        required=frozenset(),
    )


def row_id_in(alias: str) -> str:
    """Return the expression for the row id, over the table with places under this alias."""
    return f"coalesce({alias}.{ROW_ID}, {alias}.{BASE} + {alias}.{ROW})"


def _with_ids(table: TableVersion) -> tuple[TableVersion, dict[str, str]]:
    """Add ROW_ID and BASE to a table with row tracking; also returns the Spark type of BASE.

    Raises MalformedLog for a file without a base row id.
    """
    snapshot = table.snapshot
    columns = RowIdColumns.of(snapshot.properties)
    if columns is None:
        return table, {}
    if snapshot.files["base_row_id"].null_count:
        raise MalformedLog(
            "the table tracks its rows, and a file has no baseRowId", file=snapshot.store.uri
        )
    schema = TableSchema((*snapshot.schema.fields, columns.fields()[0]))
    base = StructField(BASE, LongType())
    own, stored = (StructField(name, LongType()) for name in (ROW_ID, columns.row_id))
    placed = replace(
        table,
        snapshot=replace(snapshot, schema=schema),
        schema=StructType([*table.schema.fields, own, base]),
        stored=StructType([*table.stored.fields, stored, base]),
    )
    return placed, {BASE: "bigint"}


class PlacedFiles(LogFiles):
    """The files of a snapshot, each with its number as the value of the partition column FILE.

    With row tracking, BASE is another partition column.
    """

    def __init__(self, snapshot: Snapshot, *, facts: LogFacts | None = None) -> None:
        super().__init__(snapshot, facts=facts)
        self._of = snapshot
        self._has_ids = RowIdColumns.of(snapshot.properties) is not None

    def partition(self, column: str) -> PartitionColumn | None:
        """See FileColumns."""
        if column not in (FILE, BASE):
            return super().partition(column)
        return None

    def files(self, rows: Int64s) -> Iterator[ScanFile]:
        """See FileColumns."""
        bases = self._of.files["base_row_id"].take(rows).to_pylist()
        for number, base, file in zip(rows.tolist(), bases, super().files(rows), strict=True):
            places = {FILE: str(number)} | ({BASE: str(base)} if self._has_ids else {})
            yield replace(file, partition={**file.partition, **places})

    def with_facts(self, rows: Int64s, facts: FactColumns) -> LogFiles:
        """See LogFiles."""
        patched = PlacedFiles(self._of, facts=self.of_log)
        patched.facts = super().with_facts(rows, facts).facts
        return patched
