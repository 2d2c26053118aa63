"""`spark.read.format("variantlake")`: a table as a data source in Python, read by our kernels.

It is for code that can only name a table by a format and a path: other people's code, Spark
Connect. `lake.sql` is faster, because Spark does not tell a data source in Python which columns and
paths a query reads. Options: Delta's `versionAsOf` and `timestampAsOf` (without a zone, in the
session's time zone at the time of `register`), `version`, `timestamp` (ISO 8601, UTC if no zone is
given) and `columns`, their names separated by commas. `path@v3` names a version too. Other options
are errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructField, StructType

from variantlake.delta.log.files.file_paths import AbsolutePaths
from variantlake.delta.log.identity import check_before_read
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.features import SCAN_FEATURES
from variantlake.errors import InvalidQuery
from variantlake.expressions.tree import And, Predicate
from variantlake.planning.choose_files import choose_files
from variantlake.planning.kept_files import without_skipped
from variantlake.scan.scan_task import ScanTask
from variantlake.spark.scan.source_options import SourceOptions
from variantlake.spark.scan.tables import TableVersion, table_version
from variantlake.spark.session.versions import arrow_schema
from variantlake.storage.options import take_options

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter  # from PySpark 4.1

FORMAT = "variantlake"
_TASKS = 32
"""Spark does not tell a data source the number of cores; small tables get fewer tasks."""


class VariantlakeSource(DataSource):
    """A version of a table; `stores` are the options for reaching its store.

    `absolute_paths` says whether the table may name files by absolute paths, `case_sensitive`
    whether Spark distinguishes names of columns by case. `zone` is the session's time zone.
    """

    stores: ClassVar[Mapping[str, str]] = {}
    absolute_paths: ClassVar[AbsolutePaths | None] = None
    case_sensitive: ClassVar[bool] = False
    zone: ClassVar[str] = "UTC"

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the requested columns, VARIANT ones included.

        Raises InvalidQuery for an invalid option; NotADeltaTable.
        """
        columns = self._table.schema
        chosen = self._options.columns
        if chosen is None:
            return columns
        return StructType([self._column(name) for name in chosen])

    def _column(self, name: str) -> StructField:
        """Return a column by its name. Raises InvalidQuery if the table has none."""
        columns = self._table.schema
        alike = [
            column
            for column in columns.fields
            if column.name == name
            or (not self.case_sensitive and column.name.lower() == name.lower())
        ]
        if not alike:
            raise InvalidQuery(
                f"the table has no column {name!r}", hint=f"it has {', '.join(columns.names)}"
            )
        return alike[0]

    def _stored(self, schema: StructType) -> dict[str, str]:
        """Return the names of columns in files, by their names in a reader's schema."""
        stored = self._table.stored_names
        return {field.name: stored[self._column(field.name).name] for field in schema.fields}

    def reader(self, schema: StructType) -> DataSourceReader:
        """Make a reader of the columns of `schema`."""
        return TableReader(self._table, schema, self._stored(schema), self.stores)

    @cached_property
    def _options(self) -> SourceOptions:
        return SourceOptions.of(self.options, self.zone)

    @cached_property
    def _table(self) -> TableVersion:
        options = self._options
        snapshot = self._read(options.location, options.version, options.timestamp)
        return table_version(options.location, snapshot)

    def _read(
        self, location: str, version: int | None = None, timestamp: int | None = None
    ) -> Snapshot:
        reach(self.stores)
        return Snapshot.read(
            location,
            version,
            timestamp=timestamp,
            absolute_paths=self.absolute_paths,
            applies=SCAN_FEATURES,
        )


class FilteringSource(VariantlakeSource):
    """The source for sessions that push filters to data sources in Python."""

    def reader(self, schema: StructType) -> DataSourceReader:
        """Make a reader of the columns of `schema` that accepts filters."""
        return _FilteringReader(self._table, schema, self._stored(schema), self.stores)


class TableReader(DataSourceReader):
    """Divides the files of a table among tasks, and reads them."""

    def __init__(
        self,
        table: TableVersion,
        schema: StructType,
        stored: Mapping[str, str],
        stores: Mapping[str, str],
    ) -> None:
        self._table = table
        self._stored = stored
        self._schema = schema
        self._filters: list[Predicate] = []
        self._stores = stores

    def partitions(self) -> list[InputPartition]:
        """Partitions of files, and of parts of large files, with about equally many bytes."""
        reach(self._stores)
        table = self._table
        check_before_read(table.snapshot)
        predicate = And(tuple(self._filters)) if self._filters else None
        files = without_skipped(table.files, predicate, table.partition_types)
        choice = choose_files(files, predicate, partition_types=table.partition_types)
        stored = self._stored
        columns = [
            StructField(stored[item.name], item.dataType)
            for item in self._schema.fields
            if stored[item.name] not in table.partition_types
        ]
        task = ScanTask.of(
            table.snapshot,
            list(choice.files),
            arrow_schema(StructType(columns)),
            {_text_of(name): name for name in table.partition_types},
            prefilter=self._filters,
            partition_types=table.partition_types,
            tasks=_TASKS,
        )
        wanted = arrow_schema(self._schema)
        return [
            InputPartition((replace(task, parts=(part,)), wanted, stored)) for part in task.parts
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition's files. Raises as `ScanTask`."""
        if partition.value is not None:  # PySpark's partition for a table without files
            reach(self._stores)
            yield from self.rows(partition)

    @staticmethod
    def rows(partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition's files; `reach` must have run in this process."""
        # Loads the kernels.
        from variantlake.scan.files.column_reads import as_type
        from variantlake.scan.files.file_rows import partition_column

        task, wanted, stored = partition.value
        fields = {item.physical_name: item for item in task.table.schema.fields}
        for batch in task(0):
            arrays = []
            for item in wanted:
                name = stored[item.name]
                if name in task.partition_types:
                    (text,) = batch.column(_text_of(name)).slice(0, 1).to_pylist()
                    values = partition_column(fields[name], text, batch.num_rows)
                    arrays.append(as_type(values.array, item.type))
                else:
                    arrays.append(batch.column(name))
            yield pa.RecordBatch.from_arrays(arrays, schema=wanted)


class _FilteringReader(TableReader):
    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 # PySpark's name
        """Use filters on ordinary columns to skip files and rows; Spark evaluates all again."""
        from variantlake.spark.scan.source_filters import predicate_of  # needs PySpark 4.1

        stored = self._table.stored_names
        for each in filters:
            predicate = predicate_of(each, self._table.schema, stored)
            if predicate is not None:
                self._filters.append(predicate)
        return filters


def reach(stores: Mapping[str, str]) -> None:
    """Give a Python process of Spark's the store options of the process that registered."""
    if stores:
        take_options(stores)


def _text_of(partition_column: str) -> str:
    return f"__vl_text_{partition_column}"
