"""Variant metadata that rows have in common, as Arrow dictionaries on its way into a file.

Rows shredded together mostly have one and the same metadata: a third of their bytes in Arrow if
the keys of an event take 0.3 KB. A dictionary takes an index a row instead, and pyarrow writes it
as the dictionary page that it would otherwise find by hashing and comparing every row's bytes.

That is for columns without nulls alone: of a dictionary pyarrow 26 counts as null what its indices
say, and not the rows whose Variant is null, and a footer with that count misleads its readers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np
import pyarrow as pa

from variantlake.parquet.metadata.annotate import ColumnPath
from variantlake.parquet.write.encodings import DICTIONARY_BYTES
from variantlake.shredding.arrays import AnyArray
from variantlake.shredding.layout import METADATA

_SHARED = pa.dictionary(pa.int32(), pa.binary())


class SharedMetadata:
    """The metadata of one file's Variant columns, in the form that suits its first batch.

    Dictionaries only in columns themselves that are not nullable: Variants in structs, lists and
    maps stay as they are.
    """

    def __init__(
        self, schema: pa.Schema, first: pa.RecordBatch, variants: Iterable[ColumnPath]
    ) -> None:
        """Choose the form of columns of `schema`, the file's; `variants` as `FileWriter` has them.

        A batch's own schema may lack what the file's says of its fields: their ids.
        """
        self.schema = schema
        self._columns: list[int] = []
        for path in variants:
            index = schema.get_field_index(path[0])
            group: Any = first.column(index)
            field = schema.field(index)
            if len(path) > 1 or field.nullable:
                continue
            if _repeated(group.field(METADATA)) is not None:
                self._columns.append(index)
                self.schema = self.schema.set(index, field.with_type(_shared(field.type)))

    def share(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The same rows in `schema`; `RequiredFields` has refused any that miss something."""
        if not self._columns:
            return batch
        columns: list[Any] = list(batch.columns)
        for index in self._columns:
            group, fields = columns[index], list(self.schema.field(index).type)
            members = [group.field(place) for place in range(len(fields))]
            place = group.type.get_field_index(METADATA)
            shared = _repeated(members[place])
            members[place] = members[place].dictionary_encode() if shared is None else shared
            columns[index] = pa.StructArray.from_arrays(members, fields=fields)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def unify(self, table: pa.Table) -> pa.Table:
        """Rows in `schema` with one dictionary for all batches.

        Not if it would be large: pyarrow writes plain values from where a dictionary differs.
        """
        groups: list[Any] = [chunk for i in self._columns for chunk in table.column(i).chunks]
        size = sum(group.field(METADATA).dictionary.nbytes for group in groups)
        return table.unify_dictionaries() if 0 < size <= DICTIONARY_BYTES else table


def _shared(kind: pa.DataType) -> pa.StructType:
    """The type of a Variant column with its metadata as a dictionary."""
    return pa.struct(
        [
            field.with_type(_SHARED) if field.name == METADATA else field
            for field in map(kind.field, range(kind.num_fields))
        ]
    )


def _repeated(metadata: AnyArray) -> AnyArray | None:
    """The bytes that all rows have as a dictionary; None if they differ."""
    _, places, data = metadata.buffers()
    if metadata.type != pa.binary() or not len(metadata) or data is None:
        return None
    begin = metadata.offset
    offsets = np.frombuffer(cast("bytes", places), np.int32)[begin : begin + len(metadata) + 1]
    sizes = np.diff(offsets)
    size = int(sizes[0])
    if not np.all(sizes == size):
        return None
    start, total = int(offsets[0]), int(offsets[-1] - offsets[0])
    if total > size and not data.slice(start, total - size).equals(
        data.slice(start + size, total - size)
    ):
        return None
    return pa.DictionaryArray.from_arrays(
        np.zeros(len(metadata), np.int32),
        pa.array([data.slice(start, size).to_pybytes()], pa.binary()),
    )
