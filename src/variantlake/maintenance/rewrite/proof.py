"""Check before the commit that a rewrite kept its rows, by digests of rows read and rows written.

Input rows are hashed as their file holds them, before any conversion. Output rows are hashed as
they go into Parquet's encoder, after all conversions. If the sums differ, the files are read again,
and the error names the first row without a partner.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

import pyarrow as pa

from variantlake.delta.actions.actions import DeletionVectorDescriptor
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.char_types import declared_type
from variantlake.delta.schema.char_values import padded
from variantlake.delta.schema.column_mapping import physical_type
from variantlake.delta.schema.table_schema import (
    VOID,
    StructType,
    VariantType,
    arrow_type,
    types_in,
)
from variantlake.errors import MalformedFile
from variantlake.kernels.digest.rows import Digest, RowSums
from variantlake.maintenance.compare_versions import Side, differences
from variantlake.maintenance.digest import DigestColumns, DigestFile, FileDigester, RowDigester
from variantlake.parquet.metadata.footer import Footer
from variantlake.parquet.read.parquet_source import BATCH_ROWS
from variantlake.parquet.write.file_writer import WrittenFile

Input = tuple[str, DeletionVectorDescriptor | None]
"""An input file: its path as in the log, and its deletion vector."""


class RewriteProof:
    """Digests of the rows of one group of files before and after a rewrite; for many threads.

    `table` is the version that is rewritten, `partition` has the group's partition values by
    physical name. `as_stored` says that the rewrite builds no Variant. Then the stored bytes of
    Variants are hashed, in half the time. If the digests differ, the files are read again.
    """

    def __init__(
        self,
        table: Snapshot,
        partition: Mapping[str, str | None],
        *,
        as_stored: bool = False,
        new: StructType | None = None,
    ) -> None:
        """`new` are the table's columns for new files, if these use other names."""
        self._as_stored = as_stored
        self._table = table
        self._partition = partition
        self._digester = RowDigester(table, as_stored=as_stored)
        columns = zip(table.schema.fields, (new or table.schema).fields, strict=True)
        parts = table.partition_columns
        self._fields = [(old, field) for old, field in columns if old.name not in parts]
        self._before = self._after = Digest()
        self._lock = threading.Lock()
        self._sums = RowSums()

    @property
    def sees_writing(self) -> bool:
        """Whether rows can be hashed on their way into a file; else the files are read at the end.

        False if fields within structs have other names in files than in the table, and if there
        are VOID columns, which no file has.
        """
        return all(
            isinstance(field.type, VariantType)
            or (
                physical_type(field.type) == arrow_type(field.type)
                and not any(type_ == VOID for type_ in types_in(field.type))
            )
            for _, field in self._fields
        )

    def columns_of(self, footer: Footer) -> DigestColumns:
        """Return how to hash the columns of a file. Raises MalformedFile for an invalid Variant."""
        by_id = not self._table.has_stored_names(footer)
        return self._digester.columns_of(footer, by_id=by_id)

    def read(self, columns: DigestColumns, batch: pa.RecordBatch) -> None:
        """Add input rows as files of these columns have them, without deleted rows.

        Raises MalformedVariant and MalformedFile, with the row of the batch.
        """
        digest, _ = self._digester.hashes(columns, batch, self._partition)
        with self._lock:
            self._before += digest

    def written(self, rows: pa.Table) -> None:
        """Add output rows as they go into a file; call it from one thread at a time."""
        for batch in rows.to_batches(max_chunksize=BATCH_ROWS):
            self._sums.start(batch.num_rows)
            self._digester.add_partition(self._sums, self._partition)
            for old, field in self._fields:
                array = batch.column(field.physical_name)
                if isinstance(field.type, VariantType):
                    add = self._sums.add_stored if self._as_stored else self._sums.add_variants
                    add(old.physical_name, array)
                else:
                    array = padded(array, declared_type(field))
                    self._sums.add_column(old.physical_name, array)
            digest, _ = self._sums.close()
            self._after += digest

    def check(self, inputs: Sequence[Input], outputs: Sequence[WrittenFile]) -> None:
        """Raise MalformedFile, with file and row, unless the rows are the same."""
        if self.sees_writing and self._before == self._after:
            return
        digester = FileDigester(self._table)
        old = [self._file(*each) for each in inputs]
        new = [self._file(PurePosixPath(file.path).name, None) for file in outputs]
        before, after = digester.sum(old), digester.sum(new)
        if before == after:
            return
        sides = (Side(0, old, digester), Side(1, new, digester))
        found = differences(sides, max(before.rows, after.rows))
        if found and not found[0].version:
            what = "the rewrite lost or changed this row"
        elif found:
            what = "the rewrite added this row"
        else:
            what = f"{before.rows} rows were read and {after.rows} written"
        raise MalformedFile(
            f"{what}; nothing was committed",
            file=found[0].file if found else old[0].location,
            row=found[0].row if found else None,
            hint="internal error; please report it",
        )

    def _file(self, path: str, vector: DeletionVectorDescriptor | None) -> DigestFile:
        return DigestFile(self._table.location(path), vector, self._partition)
