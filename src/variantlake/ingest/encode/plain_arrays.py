"""Convert Arrow data of other libraries to plain types: views, dictionaries, and extension types.

Polars stores strings and binaries as views, and categories as dictionaries of them. DuckDB and
pyarrow may mark JSON text as an extension type, and programs Variants. Few compute functions
support these types.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from variantlake.shredding.arrays import AnyArray, map_leaves, map_types
from variantlake.shredding.layout import VARIANT_EXTENSION

_PLAIN: dict[pa.DataType, pa.DataType] = {
    pa.string_view(): pa.large_string(),
    pa.binary_view(): pa.large_binary(),
}


def plain_schema(given: pa.Schema) -> pa.Schema:
    """Return the schema with plain types."""
    return pa.schema([field.with_type(plain_type(field.type)) for field in given])


_SIGNED: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}
"""Delta has no unsigned integers, but Polars uses them for counts."""


def signed_schema(given: pa.Schema) -> pa.Schema:
    """Return the schema with plain types, and the next wider type for unsigned integers."""
    return pa.schema(
        [field.with_type(map_types(field.type, _signed)) for field in plain_schema(given)]
    )


def _signed(given: pa.DataType) -> pa.DataType:
    return _SIGNED.get(given, given)


def plain_type(given: pa.DataType) -> pa.DataType:
    """Return the type of `plain_array` for arrays of a type."""
    return map_types(given, _leaf_type)


def _leaf_type(given: Any) -> pa.DataType:
    if isinstance(given, pa.DictionaryType):
        return plain_type(given.value_type)
    if _is_marked(given):
        return plain_type(given.storage_type)
    found: pa.DataType = _PLAIN.get(given, given)
    return found


def _is_marked(given: Any) -> bool:
    """Whether a type is an extension type that we read as its storage type."""
    return isinstance(given, pa.JsonType) or (
        isinstance(given, pa.BaseExtensionType) and given.extension_name == VARIANT_EXTENSION
    )


def plain_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert rows to `schema`, which is the plain one of theirs."""
    columns = [plain_array(each) for each in batch.columns]
    return pa.record_batch(columns, schema=schema)


def plain_array(given: AnyArray) -> AnyArray:
    """Convert values to their plain type."""
    return given if plain_type(given.type) == given.type else map_leaves(given, _leaf)


def _leaf(given: AnyArray) -> AnyArray:
    array: Any = given  # the stubs lack some of these types
    if isinstance(array, pa.DictionaryArray):
        return plain_array(array.dictionary).take(array.indices)
    if _is_marked(array.type):
        return plain_array(array.storage)
    found: AnyArray = array.cast(_leaf_type(array.type)) if array.type in _PLAIN else array
    return found
