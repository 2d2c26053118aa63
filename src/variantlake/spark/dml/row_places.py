"""A table whose rows know where they are: the file's number and the row's place in it, as columns.

The number is a partition column that the log does not have, so every way of reading a table passes
it on; the place is what Spark calls the row index of a file.
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
"""The file's row in `Snapshot.files`."""

ROW = ROW_INDEX
"""The row's place in its file, from 0, deleted rows counted."""

ROW_ID = "__vl_row_id"
"""The row id that a file itself holds for a row, in a table that tracks its rows."""

BASE = "__vl_base_row_id"
"""The row id of the first row of a file, as the log has it."""

LOCATION = "variantlake:placed"
"""What names the table in the place of its location."""


class PlacedTables(Tables):
    """The tables of a session, and one of them once more, with places."""

    def __init__(self, tables: Tables, table: TableVersion) -> None:
        super().__init__()
        self._others = tables
        self._footers = tables._footers  # noqa: SLF001 - what is known of files is known to both
        self._placed = placed(table)

    def open(
        self, location: str, version: int | None = None, *, before: int | None = None
    ) -> TableVersion:
        """See Tables."""
        if location == LOCATION:
            return self._placed
        return self._others.open(location, version, before=before)


def placed(table: TableVersion) -> TableVersion:
    """The table with two more columns, FILE and ROW.

    Raises UnsupportedFeature for a table that has columns of these names, or of the name by which
    Spark says where a row is.
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
        # So that a plan does not name it: what else reads the table does.
        chosen=True,
        row_place=ROW,
        # So that a change finds the rows that break it.
        required=frozenset(),
    )


def row_id_in(alias: str) -> str:
    """The row id of a row, as an expression over the table with places of this alias."""
    return f"coalesce({alias}.{ROW_ID}, {alias}.{BASE} + {alias}.{ROW})"


def _with_ids(table: TableVersion) -> tuple[TableVersion, dict[str, str]]:
    """The table with ROW_ID and BASE, and the type of the latter; as it is without row ids.

    Raises MalformedLog for a file without one.
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
    """The files of a snapshot, each with its number as the value of a partition column.

    With row ids, BASE is another one.
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
