"""Arrow data in their plain forms: other libraries hand over views, dictionaries, and JSON by name.

Polars has strings and bytes as views and categories as dictionaries of them; DuckDB and pyarrow may
mark JSON text as an extension type. Compute functions know few of these.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from variantlake.shredding.arrays import AnyArray, offsets_of


def plain_schema(given: pa.Schema) -> pa.Schema:
    """The same columns in their plain types."""
    return pa.schema(list(map(_plain_field, given)))


def plain_type(given: pa.DataType) -> pa.DataType:
    """The type that `plain_array` gives arrays of a type; most stay as they are."""
    if isinstance(given, pa.DictionaryType):
        return plain_type(given.value_type)
    if isinstance(given, pa.JsonType):
        return plain_type(given.storage_type)
    if given == pa.string_view():
        return pa.large_string()
    if given == pa.binary_view():
        return pa.large_binary()
    if isinstance(given, pa.StructType):
        return pa.struct(list(map(_plain_field, given)))
    if isinstance(given, pa.ListType):
        return pa.list_(_plain_field(given.value_field))
    if isinstance(given, pa.LargeListType):
        return pa.large_list(_plain_field(given.value_field))
    if isinstance(given, pa.MapType):
        return pa.map_(_plain_field(given.key_field), _plain_field(given.item_field))
    return given


def _plain_field(field: Any) -> Any:
    return field.with_type(plain_type(field.type))


def plain_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows as `schema`, which is the plain one of theirs."""
    columns = [plain_array(each) for each in batch.columns]
    return pa.record_batch(columns, schema=schema)


def plain_array(given: AnyArray) -> AnyArray:
    """The values in their plain type."""
    array: Any = given  # the stubs know these forms by halves
    wanted = plain_type(array.type)
    if array.type == wanted:
        return given
    if isinstance(array, pa.DictionaryArray):
        return plain_array(array.dictionary).take(array.indices)
    if isinstance(array, pa.ExtensionArray):
        return plain_array(array.storage)
    if isinstance(array, pa.StructArray):
        struct: Any = wanted
        children = [plain_array(child) for child in array.flatten()]
        return pa.StructArray.from_arrays(children, fields=list(struct), mask=array.is_null())
    if isinstance(array, pa.ListArray | pa.LargeListArray | pa.MapArray):
        return _plain_list(array, wanted)
    found: AnyArray = array.cast(wanted)
    return found


def _plain_list(array: Any, wanted: pa.DataType) -> AnyArray:
    """Elements by themselves, since casts of lists know no dictionaries of views."""
    offsets, elements = offsets_of(array)
    inside: Any = plain_array(elements)
    is_large = isinstance(array, pa.LargeListArray)
    form: Any = pa.LargeListArray if is_large else pa.ListArray
    width = pa.int64() if is_large else pa.int32()
    lists = form.from_arrays(pa.array(offsets, width), inside, mask=array.is_null())
    found: AnyArray = pa.Array.from_buffers(
        wanted, len(lists), lists.buffers()[:2], lists.null_count, children=[inside]
    )
    return found
