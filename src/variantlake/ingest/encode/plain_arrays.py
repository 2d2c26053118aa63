"""Convert Arrow data of other libraries to plain types: views, dictionaries, and extension types.

Polars stores strings and binaries as views, and categories as dictionaries of them. DuckDB and
pyarrow may mark JSON text as an extension type, and programs Variants. Few compute functions
support these types.
"""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa
import pyarrow.compute

from variantlake.errors import InvalidValue
from variantlake.shredding.arrays import AnyArray, map_leaves, map_types
from variantlake.shredding.layout import VARIANT_EXTENSION

compute = cast("Any", pyarrow.compute)
"""Arrow's functions, untyped: their stubs do not cover arrays of any type."""

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


def exact_cast(array: AnyArray, wanted: Any) -> AnyArray:
    """Cast values that lose nothing.

    A double becomes the nearest FLOAT, and a decimal if that has all digits which it is shown with.
    Raises InvalidValue with its row for a value, else pyarrow's errors.
    """
    given: Any = array.type
    types = pa.types
    if types.is_integer(given) and types.is_decimal(wanted):
        array = array.cast(pa.decimal128(20))  # Arrow needs digits for every number of the type
    elif types.is_floating(given) and types.is_decimal(wanted):
        array = array.cast(pa.string())
    elif types.is_integer(given) and types.is_timestamp(wanted):
        raise pa.ArrowInvalid("a number does not say its unit")
    elif types.is_timestamp(given) and types.is_timestamp(wanted) and given.tz and not wanted.tz:
        raise pa.ArrowInvalid("their time zone would be lost")
    found: AnyArray = array.cast(wanted)
    if types.is_timestamp(given) and types.is_date(wanted):
        _check_kept(compute.equal(found.cast(given), array), "the time of day would be lost")
    elif types.is_integer(given) and types.is_boolean(wanted):
        _check_kept(compute.equal(found.cast(given), array), "it is neither 0 nor 1")
    elif types.is_floating(given) and types.is_float32(wanted):
        _check_kept(compute.equal(compute.is_inf(array), compute.is_inf(found)), "it is too large")
    return found


def _check_kept(kept: Any, said: str) -> None:
    if kept.false_count:
        raise InvalidValue(said, row=kept.index(pa.scalar(value=False)).as_py())
