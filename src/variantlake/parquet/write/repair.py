"""Make batches safe for pyarrow's Parquet writer, which trusts fields that are not nullable.

In Arrow, a required leaf may be null below a null struct; the writer refuses that, although it
would not store the leaf. And it silently stores a null in a required struct or list, with nothing
null above it, as a value (NULL becomes zero). This module fills the former and refuses the latter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.errors import InvalidValue
from variantlake.shredding.arrays import (
    AnyArray,
    AnyField,
    list_array,
    map_array,
    offsets_of,
    struct_of,
)


class RequiredFields:
    """The required fields of a schema, found once: few of hundreds of leaves are required.

    The schema's types are those that `plain_types` returns.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._places = [_places(field) for field in schema]

    def fill(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Fill the nulls of required leaves below null structs; returns `batch` if there are none.

        Raises InvalidValue, naming column and row, if a required value is null although nothing
        above it is null.
        """
        arrays: list[Any] = batch.columns
        holes = [
            index
            for index, (array, places) in enumerate(zip(arrays, self._places, strict=True))
            if places is not None and _has_holes(array, places)
        ]
        for index in holes:
            field = batch.schema.field(index)
            try:
                arrays[index] = _repair(arrays[index], field, None)
            except InvalidValue as error:
                error.say_first(f"column {field.name!r}")
                raise
        return pa.RecordBatch.from_arrays(arrays, schema=batch.schema) if holes else batch


@dataclass(frozen=True, slots=True)
class _Places:
    """The required parts of a field: itself, fields of a struct by their number, and elements."""

    required: bool
    fields: tuple[tuple[int, _Places], ...]
    elements: _Places | None


def _places(field: AnyField) -> _Places | None:
    """Find the required parts of a field; None if there are none."""
    kind: Any = field.type
    fields: tuple[tuple[int, _Places], ...] = ()
    elements = None
    if isinstance(kind, pa.StructType):
        inner = [_places(child) for child in kind]
        fields = tuple((index, one) for index, one in enumerate(inner) if one is not None)
    elif isinstance(kind, pa.ListType | pa.MapType):
        elements = _places(_element_field(kind))
    if field.nullable and not fields and elements is None:
        return None
    return _Places(not field.nullable, fields, elements)


def _element_field(kind: Any) -> AnyField:
    """Return the field of a list's elements or a map's entries."""
    if isinstance(kind, pa.MapType):
        return pa.field("key_value", pa.struct([kind.key_field, kind.item_field]), nullable=False)
    field: AnyField = kind.value_field
    return field


def _has_holes(array: Any, places: _Places) -> bool:
    """Whether anything required is null, also below a null struct. Nearly always a quick False."""
    if places.required and array.null_count:
        return True
    for index, inner in places.fields:
        if _has_holes(array.field(index), inner):
            return True
    return places.elements is not None and _has_holes(array.values, places.elements)


def _repair(
    array: AnyArray, field: pa.Field[pa.DataType], above: pa.BooleanArray | None
) -> AnyArray:
    """Fill required nulls of `array`; `above` is true where nothing above is null (None: all)."""
    if not field.nullable and array.null_count:
        missing = array.is_null() if above is None else pc.and_(array.is_null(), above)
        if pc.any(missing).as_py():
            raise InvalidValue(
                f"field {field.name!r} is required and has a null",
                row=pc.index(missing, True).as_py(),
            )
    if isinstance(array, pa.StructArray):
        return _repair_struct(array, above)
    if isinstance(array, pa.ListArray):  # and maps
        return _repair_list(array)  # type: ignore[no-any-return]  # stubs lack lists
    return _without_nulls(array) if not field.nullable and array.null_count else array


def _repair_struct(array: pa.StructArray, above: pa.BooleanArray | None) -> pa.StructArray:
    if array.null_count:
        above = array.is_valid() if above is None else pc.and_(array.is_valid(), above)
    fields = list(array.type)
    children = [array.field(index) for index in range(len(fields))]
    repaired = [_repair(c, f, above) for c, f in zip(children, fields, strict=True)]
    if all(new is old for new, old in zip(repaired, children, strict=True)):
        return array
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(repaired, fields=fields, mask=mask)


def _repair_list(array: Any) -> Any:
    offsets, elements = offsets_of(array)
    try:
        repaired = _repair(elements, _element_field(array.type), None)
    except InvalidValue as error:
        error.row = int(np.searchsorted(offsets[1:], error.row or 0, side="right"))
        raise
    if repaired is elements and len(elements) == len(array.values):
        return array
    nulls = array.is_null()
    if isinstance(array, pa.MapArray):
        return map_array(array.type, offsets, struct_of(repaired).flatten(), nulls)
    return list_array(array.type, offsets, repaired, nulls)


def _without_nulls(array: AnyArray) -> AnyArray:
    """Drop the validity of an array. The values of its nulls are arbitrary; they are not stored."""
    if isinstance(array, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(array.type, _without_nulls(array.storage))
    if isinstance(array, pa.DictionaryArray):
        codes: Any = _without_nulls(array.indices)
        return pa.DictionaryArray.from_arrays(codes, array.dictionary)
    buffers = array.buffers()
    return pa.Array.from_buffers(array.type, len(array), [None, *buffers[1:]], 0, array.offset)
