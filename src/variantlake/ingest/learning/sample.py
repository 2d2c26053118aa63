"""Sample the Variants of a table, and write samples as files to measure layouts."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import InvalidPath
from variantlake.kernels.variant.profiler import profile
from variantlake.kernels.variant.variant_reader import VariantReader
from variantlake.parquet.metadata.footer import Footer, read_footer
from variantlake.parquet.read.reader import iter_batches
from variantlake.parquet.stats.facts import VariantSizes, sizes_of
from variantlake.parquet.variant.variant_group import VariantGroup, variant_groups
from variantlake.parquet.write.table_writer import write_table
from variantlake.progress import OnProgress, Progress
from variantlake.shredding.arrays import struct_of
from variantlake.shredding.inference.infer import Inference, InferenceOptions, infer
from variantlake.shredding.inference.profile import Profile
from variantlake.shredding.layout import VARIANT_TYPE
from variantlake.shredding.schema import ShreddingSchema

SAMPLE_FILES = 32
SAMPLE_ROWS = 10_000
"""The rows of all files together."""


@dataclass(frozen=True, slots=True)
class ColumnSample:
    """Rows of one top-level Variant column: the only one of `table`, as struct<metadata, value>."""

    column: str
    table: pa.Table

    def __add__(self, other: ColumnSample) -> ColumnSample:
        """Concatenate samples of the same column."""
        return ColumnSample(self.column, pa.concat_tables([self.table, other.table]))

    def infer(self, options: InferenceOptions | None = None) -> Inference:
        """Infer a schema from the rows. Raises MalformedVariant for bytes that are not Variant."""
        found, reader = Profile(), VariantReader()
        for batch in self.table.to_batches():
            found.merge(profile(reader.read(struct_of(batch.column(0)))))
        return infer(found, options)


@dataclass(frozen=True, slots=True)
class Trial:
    """A sample, written as a file of one layout."""

    footer: Footer
    group: VariantGroup
    sizes: VariantSizes

    @classmethod
    def of(cls, sample: ColumnSample, schema: ShreddingSchema) -> Trial:
        """Write the sample with this schema."""
        with tempfile.TemporaryDirectory(prefix="variantlake-") as folder:
            file = f"{folder}/sample.parquet"
            write_table(sample.table, file, shredding=schema)
            footer = read_footer(file)
        (group,) = variant_groups(footer, {(sample.column,)})
        return cls(footer, group, sizes_of(group.root, footer.row_groups))


def spread(items: Any, count: int) -> list[Any]:
    """Choose at most `count` of the items, evenly from the first on."""
    if len(items) <= count:
        return list(items)
    return [items[i * len(items) // count] for i in range(count)]


def sample_column(
    snapshot: Snapshot,
    paths: Sequence[str],
    column: str,
    *,
    rows: int = SAMPLE_ROWS,
    progress: OnProgress | None = None,
) -> ColumnSample:
    """Sample a top-level Variant column (physical name) of these files, as many rows of each.

    Rows come from the middle of a file, because the first rows of a sorted file are similar.
    `progress` is called with the number of files done and of all. Deleted rows count too.

    Raises MalformedFile and MissingSource naming a file that cannot be read.
    """
    batches: list[pa.RecordBatch] = []
    each = max(1, -(-rows // max(len(paths), 1)))
    for number, path in enumerate(paths, start=1):
        batches += _rows(snapshot.location(path), column, each)
        if progress is not None:
            progress(Progress(number, len(paths), "files", "sampled"))
    schema = pa.schema([pa.field(column, VARIANT_TYPE)])
    return ColumnSample(column, pa.Table.from_batches(batches, schema))


def _rows(location: str, column: str, rows: int) -> Iterator[pa.RecordBatch]:
    footer = read_footer(location)
    left = rows
    try:
        for batch in iter_batches(
            location, rows, [column], row_groups=_middle(footer), variant_columns=[column]
        ):
            if batch.schema.field(0).type != VARIANT_TYPE or not left:
                return
            part = batch.slice(0, left)
            left -= part.num_rows
            yield pa.RecordBatch.from_arrays([part.column(0)], names=[column])
    except InvalidPath:  # the file is older than the column, or has it under another name
        return


def _middle(footer: Footer) -> list[int]:
    groups = len(footer.row_groups)
    return [groups // 2] if groups else []
