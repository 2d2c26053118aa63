"""Keep Variant metadata that rows share as Arrow dictionaries until it is written.

Most rows that are shredded together have the same metadata: a third of their bytes in Arrow if the
keys of an event take 0.3 KB. A dictionary takes one index per row instead, and pyarrow writes it as
the dictionary page, which it would otherwise find by hashing and comparing every row's bytes.

This works only for columns without nulls. For a dictionary, pyarrow 26 counts the nulls of its
indices and not the rows whose Variant is null, so the null count in the footer would be wrong.
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
    """Keeps the metadata of Variant columns as dictionaries if the first batch's rows share it.

    Only top-level columns that are not nullable get dictionaries; Variants in structs, lists and
    maps do not.
    """

    def __init__(
        self, schema: pa.Schema, first: pa.RecordBatch, variants: Iterable[ColumnPath]
    ) -> None:
        """Choose the columns of `schema`, the file's; `variants` are paths as in `FileWriter`.

        The schema of `first` may lack the field ids, which the file's has.
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
        """Convert rows to `schema`. `RequiredFields` has already refused missing values."""
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
        """Give all batches one dictionary, unless it would be large.

        Where the dictionary changes, pyarrow would go on with plain values.
        """
        groups: list[Any] = [chunk for i in self._columns for chunk in table.column(i).chunks]
        size = sum(group.field(METADATA).dictionary.nbytes for group in groups)
        return table.unify_dictionaries() if 0 < size <= DICTIONARY_BYTES else table


def _shared(kind: pa.DataType) -> pa.StructType:
    """Return the type of a Variant column with its metadata as a dictionary."""
    return pa.struct(
        [
            field.with_type(_SHARED) if field.name == METADATA else field
            for field in map(kind.field, range(kind.num_fields))
        ]
    )


def _repeated(metadata: AnyArray) -> AnyArray | None:
    """Return a dictionary array if all rows have the same bytes, else None."""
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
