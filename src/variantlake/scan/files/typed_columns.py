"""Read paths that are typed columns of a data file, a row group at a time.

Our kernels decode dictionaries of texts, integers stored as differences, decimals, and runs of
dictionary codes. pyarrow reads the rest, and raises the errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from variantlake.delta.schema.table_schema import StructField
from variantlake.errors import MalformedFile
from variantlake.expressions.arrays import Values, one_array
from variantlake.expressions.tree import Ref
from variantlake.parquet.metadata.schema_tree import SchemaNode
from variantlake.parquet.read.chunk_pages import ChunkPlace
from variantlake.parquet.read.parquet_source import BATCH_ROWS, open_parquet
from variantlake.parquet.read.path_values import GroupMembers
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.parquet.variant.group_parts import list_element
from variantlake.paths import Path
from variantlake.planning.exact.readings import PhysicalColumn, Reading
from variantlake.scan.files.casts import convert
from variantlake.scan.files.file_layouts import FileLayout
from variantlake.scan.files.stretches import Runs
from variantlake.shredding.arrays import element_at
from variantlake.storage.input_file import InputFile
from variantlake.types import Kind, ShreddedType

_BY_KERNELS = frozenset(
    {Kind.STRING, Kind.INT8, Kind.INT16, Kind.INT32, Kind.INT64}
    | {Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ, Kind.DECIMAL}
)
"""Types whose columns are texts, decimals, or integers as Arrow has them."""


class TypedColumns:
    """The typed columns of one open file, which is read as `source`.

    `encoded` reads a whole row group at a time, and strings as dictionaries. Raises as
    `open_parquet`, and MalformedFile if the file lacks a column that the log names.
    """

    def __init__(
        self,
        file: InputFile,
        path: str,
        layout: FileLayout,
        fields: Mapping[str, StructField],
        readings: Mapping[Ref, Reading],
        *,
        encoded: bool,
    ) -> None:
        self._path = path
        self._layout = layout
        self._fields = fields
        self._encoded = encoded
        texts = {
            self._leaf(ref, reading)
            for ref, reading in readings.items()
            if encoded
            and isinstance(reading, PhysicalColumn)
            and reading.stored.kind is Kind.STRING
        }
        leaves = sorted(texts)
        self.source = open_parquet(file, path, layout.footer, leaves, lazily=encoded)

    def decoded(
        self, ref: Ref, reading: PhysicalColumn, row_group: int, places: Int64s | None
    ) -> Any:
        """Decode a column with our kernels; None if pyarrow has to read it.

        With `places`, only the values of these rows mean something.
        """
        if not self._encoded or reading.stored.kind not in _BY_KERNELS:
            return None
        found = self.source.values(row_group, self._leaf(ref, reading), places)
        return as_stored(found, reading.stored)

    def chunk(self, ref: Ref, reading: PhysicalColumn, row_group: int) -> ChunkPlace | None:
        """A column of a row group, for kernels; None if pyarrow has to read it."""
        if not self._encoded or reading.stored.kind not in _BY_KERNELS:
            return None
        return self.source.chunk(row_group, self._leaf(ref, reading))

    def read(self, ref: Ref, reading: PhysicalColumn, row_group: int) -> Any:
        """Read a column with pyarrow."""
        arrays = []
        for batch in self._batches(row_group, self._leaf(ref, reading)):
            array: Any = batch.column(0)
            for step in reading.steps:
                if isinstance(step, str):
                    array = GroupMembers(array).required(step)
                else:
                    array = element_at(array, step)
            arrays.append(array)
        return one_array(arrays)

    def runs(self, ref: Ref, reading: PhysicalColumn, row_group: int) -> Runs | None:
        """Read a column of strings as runs; None if it has too many, or pyarrow has to read it."""
        if not self._encoded or reading.stored.kind is not Kind.STRING:
            return None
        place = row_group, self._leaf(ref, reading)
        if place in self._layout.without_runs:
            return None
        found = self.source.runs(*place)
        if found is None:
            self._layout.without_runs.add(place)
            return None
        return Runs(converted(found.values, ref, reading), found.ends)

    def _batches(self, row_group: int, leaf: int) -> Iterable[pa.RecordBatch]:
        if self._encoded:
            found = self.source.column(row_group, leaf)
            if found is not None:
                return found
        return self.source.batches(row_group, [leaf], BATCH_ROWS)

    def _leaf(self, ref: Ref, reading: PhysicalColumn) -> int:
        known = self._layout.leaves.get(ref)
        if known is not None:
            return known
        node = self._layout.node(self._fields[ref.column[0]])
        for step in reading.steps:
            if node is not None:
                node = _below(node, step)
        if node is None or node.leaf is None:
            raise MalformedFile(
                f"the file lacks the column for {ref} that the log names", file=self._path
            )
        self._layout.leaves[ref] = node.leaf
        return node.leaf


def as_stored(found: Any, stored: ShreddedType) -> Any:
    """Cast what kernels decoded to its column's type; None if it is nothing, or does not fit."""
    if found is None or found.type == stored.arrow:
        return found
    if pa.types.is_integer(found.type) and stored.kind not in (Kind.STRING, Kind.DECIMAL):
        try:
            return found.cast(stored.arrow)
        except pa.ArrowInvalid:
            return None  # beyond the type's limits
    is_text = stored.kind is Kind.STRING and isinstance(found, pa.DictionaryArray)
    return found if is_text else None


def converted(array: Any, ref: Ref, reading: PhysicalColumn) -> Values:
    """Convert a typed column's values to the requested type."""
    if isinstance(array, pa.DictionaryArray) and len(array.dictionary) > 4 * len(array):
        array = array.dictionary_decode()  # few rows: work on all entries would cost more
    return convert(array, reading.stored, ref, reading.conversion)


def _below(node: SchemaNode, step: str | int) -> SchemaNode | None:
    """The child of that name, or the element of a list."""
    if isinstance(step, int):
        return list_element(node, Path())
    return node.named(step)
