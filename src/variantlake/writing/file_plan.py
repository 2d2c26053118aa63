"""How the files of one load are written, wherever its tasks run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from variantlake.contracts.contract import Contract
from variantlake.delta.actions.actions import AddFile
from variantlake.delta.protocol.known_properties import check_properties
from variantlake.delta.protocol.properties import compression, page_version
from variantlake.delta.schema.column_mapping import with_field_ids
from variantlake.delta.schema.table_schema import StructField, StructType
from variantlake.delta.stats.partition_values import partition_array
from variantlake.delta.transaction.new_actions import new_add
from variantlake.parquet.stats.facts import FileFacts
from variantlake.parquet.write.file_writer import WriteOptions, WrittenFile
from variantlake.shredding.arrays import AnyArray
from variantlake.storage.opening import open_store
from variantlake.writing.files import FileSet
from variantlake.writing.options.file_sizes import FileLimits
from variantlake.writing.options.max_bad import MaxBad
from variantlake.writing.options.row_policies import BadRows
from variantlake.writing.quarantine import BadRowLog
from variantlake.writing.sort_rows import SortKey, known_sort_keys, sort_keys
from variantlake.writing.void_columns import check_storable


@dataclass(frozen=True, slots=True)
class FilePlan:
    """All that a task needs to write files of one load, here or on another machine; pickles.

    `hidden` are columns that files may have besides those of `schema`: row ids. The rows must
    fulfil `contracts`, by the physical names of columns.
    """

    location: str
    load_id: str
    schema: StructType
    properties: Mapping[str, str]
    partition_columns: tuple[str, ...]
    variant_bounds: bool
    clustering: tuple[tuple[str, ...], ...]
    limits: FileLimits
    mode: BadRows
    order_by: tuple[str, ...]
    cluster_by: tuple[str, ...]
    truncate_timestamps: bool
    materialize_partitions: bool = False
    max_bad: MaxBad | None = None
    hidden: tuple[StructField, ...] = ()
    contracts: Mapping[str, Contract] = field(default_factory=dict)

    def bad_row_log(self, task: int) -> BadRowLog:
        """The log of one task's bad rows."""
        return BadRowLog(
            self.mode, open_store(self.location), self.load_id, task, max_bad=self.max_bad
        )

    def file_set(
        self,
        task: int,
        schema: pa.Schema,
        variant_columns: Sequence[tuple[str, ...]],
        check: Callable[[], None] | None = None,
        *,
        partition_values: Mapping[str, str | None],
    ) -> FileSet:
        """Files for the rows of one task and partition, laid out as the table's properties say.

        Raises InvalidSchema for a table for which no file may be written.
        """
        check_storable(self.schema, self.partition_columns)
        return FileSet(
            store=open_store(self.location),
            load_id=self.load_id,
            task=task,
            schema=with_field_ids(schema, self.schema),
            variant_columns=tuple(variant_columns),
            options=write_options(self.properties),
            limits=self.limits,
            check=check,
            order=self.order(schema),
            constants=self._constants(partition_values),
        )

    def _constants(
        self, partition_values: Mapping[str, str | None]
    ) -> list[tuple[pa.Field[pa.DataType], AnyArray]]:
        """The partition columns that files hold, with their value; empty if files hold none."""
        if not self.materialize_partitions:
            return []
        columns = [each for each in self.schema.fields if each.name in self.partition_columns]
        names = [each.physical_name for each in columns]
        arrays = [
            partition_array(partition_values.get(name), each)
            for name, each in zip(names, columns, strict=True)
        ]
        stored = pa.schema(
            [pa.field(name, array.type) for name, array in zip(names, arrays, strict=True)]
        )
        return list(zip(with_field_ids(stored, self.schema), arrays, strict=True))

    def order(self, stored: pa.Schema) -> tuple[SortKey, ...]:
        """The sort keys of files with these columns: the load's, else the table's.

        Raises InvalidSchema and InvalidPath for an order of the load that files cannot have.
        """
        if self.order_by:
            return sort_keys(self.order_by, self.schema, stored)
        return known_sort_keys(self.cluster_by, self.schema, stored)

    def add(
        self, file: WrittenFile, partition_values: Mapping[str, str | None] | None = None
    ) -> AddFile:
        """The action for a finished file."""
        return self.add_at(Path(file.path).name, file.facts, partition_values)

    def add_at(
        self,
        path: str,
        facts: FileFacts,
        partition_values: Mapping[str, str | None] | None = None,
    ) -> AddFile:
        """The action for a file at a path below the table's root."""
        return new_add(
            path,
            facts,
            schema=self.schema,
            properties=self.properties,
            partition_columns=self.partition_columns,
            partition_values=partition_values,
            variant_bounds=self.variant_bounds,
            always=self.clustering,
        )


def write_options(properties: Mapping[str, str]) -> WriteOptions:
    """The file layout that the table's properties ask for.

    Raises InvalidValue for a property that is not a number, as another engine may set it.
    """
    defaults = WriteOptions()
    names = ("variantlake.rowGroupBytes", "variantlake.rowGroupRows")
    own = check_properties({name: properties[name] for name in names if name in properties})
    return WriteOptions(
        compression=compression(properties),
        page_version=page_version(properties),
        row_group_bytes=int(own.get(names[0], defaults.row_group_bytes)),
        row_group_rows=int(own.get(names[1], defaults.row_group_rows)),
    )
