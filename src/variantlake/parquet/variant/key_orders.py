"""Sort the keys of Variant objects as Spark does, which differs from the specification.

Spark needs its own order to find the fields of wide objects, so all values that we pass to it have
that. Files have the specification's order, and a note where the two may differ (EXACTNESS, rule
40).
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import numpy as np
import pyarrow as pa

from variantlake.encoding.key_order import in_utf16_order, orders_may_differ
from variantlake.shredding.arrays import AnyArray, bytes_of, map_leaves, struct_of
from variantlake.shredding.layout import METADATA, VALUE, is_list, is_struct, is_variant_type


def may_differ(metadata: AnyArray) -> bool:
    """Whether the two orders may differ in a row with one of these metadata."""
    values: Any = metadata.dictionary if isinstance(metadata, pa.DictionaryArray) else metadata
    data = values.buffers()[-1]
    # Most metadata have no key above U+FFFF. The buffer holds all rows, and perhaps others.
    if data is None or not data.size or np.frombuffer(cast("bytes", data), np.uint8).max() < 0xF0:
        return False
    return any(map(orders_may_differ, filter(None, bytes_of(values.unique()))))


def in_spark_order(array: AnyArray) -> AnyArray:
    """Put the objects of all Variants in Spark's order; keeps the array's type."""
    # A column without Variants is a leaf as a whole.
    whole = lambda arrow: is_variant_type(arrow) or not _has_variants(arrow)
    return map_leaves(array, _ordered, whole)


def _ordered(array: AnyArray) -> AnyArray:
    if not is_variant_type(array.type):
        return array
    group = struct_of(array)
    metadata = group.field(METADATA)
    if not may_differ(metadata):
        return array
    differ = cache(orders_may_differ)
    values = [
        in_utf16_order(own, value) if own and value and differ(own) else value
        for own, value in zip(bytes_of(metadata), bytes_of(group.field(VALUE)), strict=True)
    ]
    fields = [group.type.field(place) for place in range(group.type.num_fields)]
    parts = {METADATA: metadata, VALUE: pa.array(values, group.type.field(VALUE).type)}
    arrays = [parts[field.name] for field in fields]
    nulls = group.is_null() if group.null_count else None
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=nulls)


@cache
def _has_variants(arrow: pa.DataType) -> bool:
    if is_variant_type(arrow):
        return True
    inner: Any = arrow
    nested = is_struct(arrow) or is_list(arrow) or isinstance(arrow, pa.MapType)
    return nested and any(_has_variants(inner.field(at).type) for at in range(inner.num_fields))
