"""The files of a snapshot as FileColumns for planning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from functools import cached_property

import numpy as np
import pyarrow.compute as pc

from variantlake.arrays import numpy_array
from variantlake.delta.actions.actions import DeletionVectorDescriptor
from variantlake.delta.log.files.file_paths import located
from variantlake.delta.log.files.logical_files import LogicalFiles, values
from variantlake.delta.log.files.parted_files import is_unread
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.stats.columns.files_part import FilesPart
from variantlake.delta.stats.columns.log_facts import LogFacts
from variantlake.delta.stats.columns.tag_columns import map_texts
from variantlake.parquet.stats.fact_columns import ColumnPath, FactColumns, Int64s, PatchedColumns
from variantlake.parquet.stats.facts import UNKNOWN
from variantlake.planning.files import LeftOut, PartitionColumn, ScanFile


class LogFiles:
    """Columns of all files of one snapshot, decoded on demand.

    Facts come from the log alone unless `with_facts` adds others. `previous` has the files of an
    older version of the table; what it has already decoded is not decoded again.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        previous: LogFiles | None = None,
        *,
        files: LogicalFiles | None = None,
        facts: LogFacts | None = None,
        left_out: LeftOut | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.left_out = left_out or LeftOut()
        self._files = snapshot.files if files is None else files
        self.partition_names = {
            item.physical_name
            for item in snapshot.schema.fields
            if item.name in snapshot.partition_columns
        }
        self.memo: MutableMapping[object, object] = {}
        self._older: Mapping[FilesPart, LogFiles] = {}
        if is_unread(self._files):
            return  # they stay unread
        if previous is not None and is_unread(previous.snapshot.files):
            previous = None
        if facts is None:
            known = None if previous is None else previous.of_log
            facts = LogFacts(self._files, snapshot.schema, known)
        self.of_log = facts
        if previous is not None and previous.partition_names == self.partition_names:
            self._older = {run.of_log.parts[0]: run for run in previous.runs}
            self.memo = self._memo_of(facts)

    @cached_property
    def rows(self) -> int:
        """See FileColumns."""
        return self._files.num_rows

    @cached_property
    def sizes(self) -> Int64s:
        """See FileColumns."""
        found: Int64s = numpy_array(self._files["size"])
        return found

    @cached_property
    def of_log(self) -> LogFacts:
        """The facts that the log has."""
        return LogFacts(self._files, self.snapshot.schema)

    @cached_property
    def facts(self) -> FactColumns:
        """See FileColumns."""
        return self.of_log

    @property
    def bytes_expected(self) -> int:
        """Bytes of all files of the version; an estimate if they are not in memory."""
        files = self._files
        if is_unread(files):
            return files.bytes_expected
        return int(self.sizes.sum()) + self.left_out.bytes

    @property
    def pieces(self) -> Sequence[LogFiles]:
        """See FileColumns."""
        return self._several if self.facts is self.of_log else ()

    @property
    def runs(self) -> Sequence[LogFiles]:
        """The files as runs, each of which was loaded together."""
        return self._several or ((self,) if self.of_log.parts else ())

    @cached_property
    def _several(self) -> Sequence[LogFiles]:
        """The runs if there are several: an object that held itself would stay in memory."""
        if len(self.of_log.parts) < 2:
            return ()
        runs, start = [], 0
        for facts in self.of_log.pieces():
            files = self._files.slice(start, len(facts))
            runs.append(LogFiles(self.snapshot, files=files, facts=facts))
            runs[-1].memo = self._memo_of(facts)
            start += len(facts)
        self._older = {}
        return runs

    def _memo_of(self, facts: LogFacts) -> MutableMapping[object, object]:
        """The memo that the older version has for these files; else an empty one."""
        older = self._older.get(facts.parts[0]) if len(facts.parts) == 1 else None
        return older.memo if older is not None and facts.is_of(older.of_log) else {}

    @property
    def deleted(self) -> Int64s:
        """See FileColumns."""
        counts = pc.struct_field(self._files["deletion_vector"], "cardinality")
        found: Int64s = numpy_array(counts)
        return found

    @property
    def row_count(self) -> int | None:
        """The number of rows that are not deleted; None if the log lacks it for some file."""
        records = self.of_log.num_records
        if (records == UNKNOWN).any():
            return None
        return int(records.sum() - self.deleted.sum())

    def is_partition(self, column: str) -> bool:
        """See FileColumns."""
        return column in self.partition_names

    def partition(self, column: str) -> PartitionColumn | None:
        """See FileColumns."""
        if not self.is_partition(column):
            return None
        numbers: dict[str | None, int] = {}
        codes = [np.zeros(0, np.int64)]
        for texts, rows in self._files.runs():
            found, of_texts = map_texts(texts.encoded("partition_values"), column)
            own = [numbers.setdefault(text, len(numbers)) for text in found]
            codes.append(np.array([*own, -1], np.int64)[of_texts[rows]])
        return PartitionColumn(tuple(numbers), np.concatenate(codes))

    def files(self, rows: Int64s) -> Iterator[ScanFile]:
        """See FileColumns."""
        wanted = ["path", "size", "modification_time", "partition_values", "deletion_vector"]
        found = self._files.take(rows)
        paths = located(found["path"], self.snapshot.store.uri)
        columns = (values(found[name]) for name in wanted[1:])
        for path, size, modified, partition, vector in zip(paths, *columns, strict=True):
            descriptor = None if vector is None else DeletionVectorDescriptor(**vector)
            yield ScanFile(path, size, None, partition or {}, modified, descriptor)

    def lacking(self, columns: set[ColumnPath]) -> Int64s:
        """The files (as rows) in which the layout of one of these Variant columns is not known."""
        known = np.ones(self.rows, np.bool_)
        for column in columns:
            variants = self.facts.variant(column)
            known &= False if variants is None else variants.layout >= 0
        return np.flatnonzero(~known)

    def with_facts(self, rows: Int64s, facts: FactColumns) -> LogFiles:
        """The same files, with other facts for these rows."""
        patched = LogFiles(self.snapshot, facts=self.of_log, left_out=self.left_out)
        patched.facts = PatchedColumns(self.facts, rows, facts)
        return patched
