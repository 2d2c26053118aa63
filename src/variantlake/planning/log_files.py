"""The files of a snapshot as planning takes them."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping

import numpy as np
import pyarrow.compute as pc

from variantlake.delta.actions.actions import DeletionVectorDescriptor
from variantlake.delta.log.file_paths import located
from variantlake.delta.log.logical_files import take_of_batches, values
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.stats.columnar_facts import LogFacts
from variantlake.parquet.stats.fact_columns import ColumnPath, FactColumns, Int64s, PatchedColumns
from variantlake.parquet.stats.facts import UNKNOWN
from variantlake.planning.files import PartitionColumn, ScanFile


class LogFiles:
    """Columns of all files of one snapshot; what nobody asks for is never decoded.

    Facts come from the log alone unless `with_facts` brings others. `previous` are those of an
    older version of the table: what it has decoded already is not decoded again.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        previous: LogFiles | None = None,
        *,
        facts: FactColumns | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._files = snapshot.files
        self._physical = {
            item.physical_name
            for item in snapshot.schema.fields
            if item.name in snapshot.partition_columns
        }
        self.rows: int = snapshot.files.num_rows
        self.sizes: Int64s = self._files["size"].to_numpy()
        if facts is None:
            older = None if previous is None else previous.of_log
            known = older if isinstance(older, LogFacts) else None
            facts = LogFacts(snapshot.files, snapshot.schema, known)
        self.of_log: FactColumns = facts
        self.facts: FactColumns = self.of_log
        self.memo: MutableMapping[object, object] = {}

    @property
    def deleted(self) -> Int64s:
        """See FileColumns."""
        counts = pc.struct_field(self._files["deletion_vector"], "cardinality")
        found: Int64s = pc.fill_null(counts, 0).to_numpy()
        return found

    @property
    def row_count(self) -> int | None:
        """The rows that are not deleted; None if the log does not tell for all files."""
        records = self.of_log.num_records
        if (records == UNKNOWN).any():
            return None
        return int(records.sum() - self.deleted.sum())

    def partition(self, column: str) -> PartitionColumn | None:
        """See FileColumns."""
        if column not in self._physical:
            return None
        maps = self._files["partition_values"]
        has = pc.map_lookup(maps, column, "all")
        encoded = pc.map_lookup(maps, column, "first").combine_chunks().dictionary_encode("encode")
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        codes[pc.is_null(has).to_numpy()] = -1
        return PartitionColumn(tuple(encoded.dictionary.to_pylist()), codes)

    def files(self, rows: Int64s) -> Iterator[ScanFile]:
        """See FileColumns."""
        wanted = ["path", "size", "modification_time", "partition_values", "deletion_vector"]
        found = take_of_batches(self._files.listed.select(wanted), rows)
        paths = located(found["path"], self._snapshot.store.uri)
        columns = (values(found[name]) for name in wanted[1:])
        for path, size, modified, partition, vector in zip(paths, *columns, strict=True):
            descriptor = None if vector is None else DeletionVectorDescriptor(**vector)
            yield ScanFile(path, size, None, partition or {}, modified, descriptor)

    def lacking(self, columns: set[ColumnPath]) -> Int64s:
        """The rows in which the layout of one of these Variant columns is not known."""
        known = np.ones(self.rows, np.bool_)
        for column in columns:
            variants = self.facts.variant(column)
            known &= False if variants is None else variants.layout >= 0
        return np.flatnonzero(~known)

    def with_facts(self, rows: Int64s, facts: FactColumns) -> LogFiles:
        """The same files, with other facts for these."""
        patched = LogFiles(self._snapshot, facts=self.of_log)
        patched.facts = PatchedColumns(self.facts, rows, facts)
        return patched
