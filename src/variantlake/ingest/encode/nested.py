"""Encode structs, arrays and maps, with or without Variants, for a table's files.

Variants inside them stay unshredded, which the protocol allows everywhere.
Spec: PROTOCOL, "Variant Data Type".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.delta.schema.char_types import declared_type, with_declaration
from variantlake.delta.schema.table_schema import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    VariantType,
    arrow_type,
)
from variantlake.errors import InvalidSchema, InvalidValue, VariantLakeError
from variantlake.ingest.encode.encode import (
    ColumnEncoder,
    PlainColumn,
    VariantColumn,
    check_not_null,
)
from variantlake.parquet.metadata.annotate import ColumnPath
from variantlake.parquet.metadata.value_notes import NO_NOTES
from variantlake.shredding.arrays import (
    AnyArray,
    element_field,
    list_array,
    list_of,
    map_array,
    offsets_of,
    struct_of,
)
from variantlake.shredding.layout import is_list, is_struct, map_type, struct_storage
from variantlake.shredding.values import ValueNotes
from variantlake.writing.table_write import UNSHREDDED


def column_encoder(field: StructField, given: pa.DataType) -> ColumnEncoder:
    """Return the encoder of a column that is not a VARIANT, but may contain some.

    Raises InvalidSchema for data of another shape.
    """
    if isinstance(field.type, PrimitiveType):
        return PlainColumn(field, given)
    return NestedColumn(field, given)


class NestedColumn:
    """Encodes a struct, array or map of the same shape; fields of structs are found by name.

    A field that a struct lacks becomes NULL; one that the table lacks is refused.
    """

    notes: Mapping[ColumnPath, ValueNotes] = NO_NOTES  # its Variants are not shredded

    def __init__(self, field: StructField, given: pa.DataType) -> None:
        self.name = field.physical_name
        self.variants = tuple(variant_paths(field.type, (self.name,)))
        self._field = field
        self._inner = _encoder(field, given)

    def encode(self, array: AnyArray) -> AnyArray:
        """See ColumnEncoder."""
        check_not_null(array, self._field)
        return self._inner.encode(array)


class _Encoder(Protocol):
    def encode(self, array: AnyArray) -> AnyArray:
        """Encode values for storage. Raises with `row` counted from the array's start."""


class _Struct:
    def __init__(
        self, where: StructField, kind: StructType, declared: StructType, given: pa.DataType
    ) -> None:
        types = {item.name: item.type for item in struct_storage(given)} if is_struct(given) else {}
        self._names = list(types)
        self._fields: list[tuple[StructField, Any]] = [
            (item, arrow_type(item.type)) for item in kind.fields
        ]
        fits = len(types) == _width(given) and set(types) <= {item.name for item in kind.fields}
        if not fits:
            raise _misfit(where, given)
        self._where = where.name
        self._encoders = {
            item.name: _encoder(
                _below(where, item.name, item, limited.type), types.get(item.name, arrow)
            )
            for (item, arrow), limited in zip(self._fields, declared.fields, strict=True)
        }

    def encode(self, array: AnyArray) -> AnyArray:
        given = dict(zip(self._names, struct_of(array).flatten(), strict=True))
        children = []
        for item, arrow in self._fields:
            found: Any = given[item.name] if item.name in given else pa.nulls(len(array), arrow)
            if not item.nullable:
                _refuse(pc.and_(found.is_null(), array.is_valid()), f"{self._where}.{item.name}")
            children.append(self._encoders[item.name].encode(found))
        fields = [
            pa.field(item.physical_name, child.type, item.nullable)
            for (item, _), child in zip(self._fields, children, strict=True)
        ]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())


class _ArrayEncoder:
    def __init__(
        self, where: StructField, kind: ArrayType, declared: ArrayType, given: pa.DataType
    ) -> None:
        if not is_list(given):
            raise _misfit(where, given)
        element = StructField("element", kind.element, kind.contains_null)
        self._where, self._nullable = where.name, kind.contains_null
        below = _below(where, "element", element, declared.element)
        self._element = _encoder(below, element_field(given).type)

    def encode(self, array: AnyArray) -> AnyArray:
        offsets, elements = offsets_of(list_of(array))
        if not self._nullable:
            _refuse(elements.is_null(), f"{self._where}.element", offsets)
        elements = _inside(offsets, self._element, elements)
        field: Any = pa.field("element", elements.type, self._nullable)
        return list_array(pa.list_(field), offsets, elements, array.is_null())


class _Map:
    def __init__(
        self, where: StructField, kind: MapType, declared: MapType, given: pa.DataType
    ) -> None:
        if not isinstance(given, pa.MapType):
            raise _misfit(where, given)
        key = StructField("key", kind.key, nullable=False)
        value = StructField("value", kind.value, kind.value_contains_null)
        self._where, self._nullable = where.name, kind.value_contains_null
        self._key = _encoder(_below(where, "key", key, declared.key), given.key_type)
        self._value = _encoder(_below(where, "value", value, declared.value), given.item_type)

    def encode(self, array: AnyArray) -> AnyArray:
        offsets, entries = offsets_of(array)
        keys, values = struct_of(entries).flatten()
        if not self._nullable:
            _refuse(values.is_null(), f"{self._where}.value", offsets)
        keys, values = _inside(offsets, self._key, keys), _inside(offsets, self._value, values)
        key: Any = pa.field("key", keys.type, nullable=False)
        value: Any = pa.field("value", values.type, self._nullable)
        return map_array(map_type(key, value), offsets, [keys, values], array.is_null())


def _encoder(where: StructField, given: pa.DataType) -> _Encoder:
    """Return an encoder for the type of `where`, whose name errors show."""
    kind = where.type
    declared = declared_type(where)
    inside = StructType((replace(where, nullable=True),))
    # Below a NULL struct, Spark returns NULLs for fields that are NOT NULL, as Arrow allows.
    plain = not inside.holds_variant() and all(item.nullable for item in inside.walk())
    if given == arrow_type(kind) and declared == kind and plain:
        return PlainColumn(replace(where, nullable=True), given)
    if isinstance(kind, VariantType):
        # The writer checks for NULLs, because it knows which structs above are NULL.
        return VariantColumn(
            replace(where, nullable=True), given, lambda _: UNSHREDDED, from_json=False
        )
    if isinstance(kind, StructType) and isinstance(declared, StructType):
        return _Struct(where, kind, declared, given)
    if isinstance(kind, ArrayType) and isinstance(declared, ArrayType):
        return _ArrayEncoder(where, kind, declared, given)
    if isinstance(kind, MapType) and isinstance(declared, MapType):
        return _Map(where, kind, declared, given)
    return PlainColumn(replace(where, nullable=True), given)


def _below(where: StructField, step: str, item: StructField, declared: DataType) -> StructField:
    """Return a field inside `where`, with its name for errors and its declared type."""
    return replace(with_declaration(item, declared), name=f"{where.name}.{step}")


def _width(given: pa.DataType) -> int:
    return struct_storage(given).num_fields if is_struct(given) else -1


def _misfit(where: StructField, given: pa.DataType) -> InvalidSchema:
    return InvalidSchema(
        f"column {where.name!r} is {where.type}; {given} cannot be stored in it",
        hint="a Variant is given as struct<metadata: binary, value: binary>",
    )


def _refuse(missing: Any, where: str, offsets: npt.NDArray[np.int64] | None = None) -> None:
    """Raise InvalidValue for the first null; `offsets` as for `_inside`."""
    rows = np.flatnonzero(missing.to_numpy(zero_copy_only=False))
    if rows.size:
        row = int(rows[0]) if offsets is None else _list_of_element(offsets, int(rows[0]))
        raise InvalidValue(f"column {where!r} is NOT NULL", row=row)


def _list_of_element(offsets: npt.NDArray[np.int64], element: int) -> int:
    return int(np.searchsorted(offsets, element, "right")) - 1


def _inside(offsets: npt.NDArray[np.int64], encoder: _Encoder, elements: AnyArray) -> AnyArray:
    """Encode the elements of lists; an error has the row of the element's list."""
    try:
        return encoder.encode(elements)
    except VariantLakeError as error:
        if error.row is not None:
            error.row = _list_of_element(offsets, error.row)
        raise


def variant_paths(kind: DataType, path: ColumnPath) -> Iterator[ColumnPath]:
    """Yield the paths of the Variants in a type, in names of the Parquet schema."""
    if isinstance(kind, VariantType):
        yield path
    elif isinstance(kind, StructType):
        for item in kind.fields:
            yield from variant_paths(item.type, (*path, item.physical_name))
    elif isinstance(kind, ArrayType):
        yield from variant_paths(kind.element, (*path, "list", "element"))
    elif isinstance(kind, MapType):
        yield from variant_paths(kind.key, (*path, "key_value", "key"))
        yield from variant_paths(kind.value, (*path, "key_value", "value"))
