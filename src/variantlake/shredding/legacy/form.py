"""Convert a shredded column of the final layout to Spark's older one.

Both layouts shred alike: the same values fit a column, and the same residuals are left. So a legacy
column is shredded in the final layout first. Then its groups are renamed, and each `value` gets its
own metadata. Spec: spark-legacy-shredding.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from variantlake.encoding.tree import decode, encode
from variantlake.errors import UnknownVariantType
from variantlake.shredding.arrays import (
    AnyArray,
    bytes_of,
    element_field,
    list_array,
    list_of,
    members,
    offsets_of,
    struct_of,
    valid_of,
)
from variantlake.shredding.layout import TYPED_VALUE, VALUE
from variantlake.shredding.legacy.layout import ARRAY, OBJECT, legacy_type
from variantlake.shredding.schema import ShreddingSchema

Join = Callable[[AnyArray, AnyArray], AnyArray]
"""Joins the `metadata` and `value` of Variants, none null, to binaries of both."""


def join(metadata: AnyArray, value: AnyArray) -> AnyArray:
    """Prepend to each `value` a metadata of the keys that it uses."""
    pairs = zip(bytes_of(metadata), bytes_of(value), strict=True)
    return pa.array([_joined(keys or b"", one or b"") for keys, one in pairs], pa.binary())


def _joined(metadata: bytes, value: bytes) -> bytes:
    try:
        return b"".join(encode(decode(metadata, value)))
    except UnknownVariantType:
        return metadata + value


def to_legacy(final: pa.StructArray, schema: ShreddingSchema, join: Join) -> pa.StructArray:
    """Convert an array of `layout.arrow_type(schema)` to one of `legacy_type(schema)`."""
    metadata = final.flatten()[0]
    return _Form(metadata, join).group(final, np.arange(len(final)), legacy_type(schema))


class _Form:
    def __init__(self, metadata: AnyArray, join: Join) -> None:
        self._metadata = metadata
        self._join = join

    def group(self, group: pa.StructArray, rows: np.ndarray, wanted: pa.DataType) -> pa.StructArray:
        """Convert one group; `rows` are the rows of its slots. It is null if nothing is set."""
        names = [field.name for field in members(group.type)]
        # Flattened, so that values below a null group are null.
        parts = dict(zip(names, group.flatten(), strict=True))
        fields = members(wanted)
        children = [self._untyped(parts[VALUE], rows)]
        nothing = ~valid_of(parts[VALUE])
        if len(fields) > 1:
            typed = parts[TYPED_VALUE]
            children.append(self._typed(fields[1], typed, rows))
            nothing &= ~valid_of(typed)
        return pa.StructArray.from_arrays(children, fields=fields, mask=pa.array(nothing))

    def _untyped(self, values: AnyArray, rows: np.ndarray) -> AnyArray:
        valid = valid_of(values)
        if not valid.any():
            return pa.nulls(len(values), pa.binary())
        present = pa.array(np.flatnonzero(valid), pa.int64())
        of_rows = pa.array(rows[valid], pa.int64())
        joined = self._join(self._metadata.take(of_rows), values.take(present))
        places: AnyArray = pa.array(np.cumsum(valid) - 1, pa.int64(), mask=~valid)
        return joined.take(places)

    def _typed(self, field: pa.Field[pa.DataType], typed: AnyArray, rows: np.ndarray) -> AnyArray:
        nulls = pa.array(~valid_of(typed))
        if field.name == OBJECT:
            parts = struct_of(typed).flatten()
            fields = members(field.type)
            groups = [
                self.group(struct_of(part), rows, child.type)
                for part, child in zip(parts, fields, strict=True)
            ]
            return pa.StructArray.from_arrays(groups, fields=fields, mask=nulls)
        if field.name == ARRAY:
            offsets, elements = offsets_of(list_of(typed))
            of_elements = np.repeat(rows, np.diff(offsets))
            element = element_field(field.type)
            items = self.group(struct_of(elements), of_elements, element.type)
            return list_array(field.type, offsets, items, nulls)
        return typed
