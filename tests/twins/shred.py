"""Shred Variants into the Arrow arrays of a shredded column, in plain Python.

This is the reference for the compiled shredder. Spec: VariantShredding.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import pyarrow as pa

from variantlake.encoding.metadata import VariantMetadata
from variantlake.encoding.scalar import decode_scalar
from variantlake.encoding.value import Children, basic_type, check_value_size, read_children
from variantlake.encoding.variant import Variant
from variantlake.errors import UnknownVariantType, VariantLakeError
from variantlake.shredding.arrays import AnyArray, element_field, list_array, members
from variantlake.shredding.dictionary import RowDictionary
from variantlake.shredding.error_paths import below
from variantlake.shredding.fit import Raw, fit, raw_array
from variantlake.shredding.layout import arrow_type, typed_value_type
from variantlake.shredding.legacy.form import join, to_legacy
from variantlake.shredding.schema import Array, Leaf, Node, Object, ShreddingSchema, Untyped
from variantlake.types import BasicType, ShreddedType


def shred(values: Iterable[Variant | None], schema: ShreddingSchema) -> pa.StructArray:
    """Shred Variants; None is SQL NULL.

    Returns an array of `layout.arrow_type(schema)`. Every row keeps its metadata, to whose
    dictionary the residual `value`s refer. A null row has empty bytes in the members that are not
    nullable. Values that stay whole are copied without decoding, so a type of a later version
    passes through.

    Raises MalformedVariant, with row and path, if the bytes on the way to a column are not a
    Variant; InvalidSchema for a schema that must not be written.
    """
    column_type = arrow_type(schema)
    root = _GroupBuilder(schema.root, required=True)
    metadata: list[bytes] = []
    nulls: list[bool] = []
    for row, variant in enumerate(values):
        nulls.append(variant is None)
        if variant is None:
            metadata.append(b"")
            root.add_nothing()
            continue
        metadata.append(variant.metadata)
        try:
            check_value_size(variant.value)
            root.add(Encoded(RowDictionary(variant.metadata), variant.value))
        except VariantLakeError as error:
            error.row = row
            raise
    return pa.StructArray.from_arrays(
        [pa.array(metadata, pa.binary()), *root.finish()],
        fields=list(column_type),
        mask=pa.array(nulls, pa.bool_()),
    )


def shred_legacy(values: Iterable[Variant | None], schema: ShreddingSchema) -> pa.StructArray:
    """Shred Variants into an array of `legacy_type(schema)`; None is SQL NULL.

    This is the reference for the compiled shredder. Raises as `shred` does.
    """
    return to_legacy(shred(values, schema), schema, join)


class Encoded:
    """One encoded value with the dictionary that its field ids refer to."""

    __slots__ = ("data", "dictionary")

    def __init__(self, dictionary: RowDictionary, data: bytes) -> None:
        self.dictionary = dictionary
        self.data = data

    def children(self, basic: BasicType) -> Children | None:
        """Return the fields or elements of a value of this type, OBJECT or ARRAY; else None."""
        if basic_type(self.data) is not basic:
            return None
        decoded: VariantMetadata = self.dictionary.decoded
        return read_children(decoded, self.data, 0, len(self.data))

    def part(self, children: Children, i: int) -> Encoded:
        """Return one of the children."""
        return Encoded(self.dictionary, self.data[children.starts[i] : children.ends[i]])


class _TypedBuilder(Protocol):
    """The builder of one `typed_value`."""

    def add(self, value: Encoded) -> tuple[bool, bytes | None]:
        """Add a value if it fits. Returns whether it did, and the residual, if any."""

    def add_null(self) -> None:
        """Add a row without a typed_value."""

    def finish(self) -> AnyArray:
        """Return the column."""


class _GroupBuilder:
    """The builder of a `value` with its `typed_value`. `required` groups are never missing."""

    def __init__(self, node: Node, *, required: bool) -> None:
        self._values: list[bytes | None] = []
        self._typed = _typed_builder(node)
        # Only a required group without typed_value has a required value (see layout).
        self._nothing = b"" if required and self._typed is None else None

    def add(self, value: Encoded) -> None:
        """Add a value."""
        residual: bytes | None = value.data
        if self._typed is not None:
            is_set, residual = self._typed.add(value)
            if not is_set:
                self._typed.add_null()
        self._values.append(residual)

    def add_nothing(self) -> None:
        """Add a missing field, or a slot below a null."""
        self._values.append(self._nothing)
        if self._typed is not None:
            self._typed.add_null()

    def finish(self) -> list[AnyArray]:
        """Return `value` and, unless untyped, `typed_value`."""
        values = pa.array(self._values, pa.binary())
        return [values] if self._typed is None else [values, self._typed.finish()]


class _LeafBuilder:
    def __init__(self, column: ShreddedType) -> None:
        self._column = column
        self._raws: list[Raw | None] = []

    def add(self, value: Encoded) -> tuple[bool, bytes | None]:
        raw: Raw | None = None
        if basic_type(value.data) in (BasicType.PRIMITIVE, BasicType.SHORT_STRING):
            try:
                raw = fit(decode_scalar(value.data, 0, len(value.data)), self._column)
            except UnknownVariantType:
                return False, value.data
        if raw is None:
            return False, value.data
        self._raws.append(raw)
        return True, None

    def add_null(self) -> None:
        self._raws.append(None)

    def finish(self) -> AnyArray:
        return raw_array(self._raws, self._column)


class _ObjectBuilder:
    def __init__(self, node: Object) -> None:
        self._type = typed_value_type(node)
        self._nulls: list[bool] = []
        self._groups = {name: _GroupBuilder(child, required=False) for name, child in node.fields}

    def add(self, value: Encoded) -> tuple[bool, bytes | None]:
        children = value.children(BasicType.OBJECT)
        if children is None:
            return False, value.data
        self._nulls.append(False)
        parts = {name: value.part(children, i) for i, name in enumerate(children.names or ())}
        for name, group in self._groups.items():
            part = parts.pop(name, None)
            with below(name):
                if part is None:
                    group.add_nothing()
                else:
                    group.add(part)
        residual = {name: part.data for name, part in parts.items()}
        return True, value.dictionary.object_of(residual) if residual else None

    def add_null(self) -> None:
        self._nulls.append(True)
        for group in self._groups.values():
            group.add_nothing()

    def finish(self) -> AnyArray:
        fields = members(self._type)
        groups = [
            pa.StructArray.from_arrays(group.finish(), fields=members(field.type))
            for field, group in zip(fields, self._groups.values(), strict=True)
        ]
        return pa.StructArray.from_arrays(
            groups, fields=fields, mask=pa.array(self._nulls, pa.bool_())
        )


class _ArrayBuilder:
    def __init__(self, node: Array) -> None:
        self._type = typed_value_type(node)
        self._nulls: list[bool] = []
        self._offsets = [0]
        self._element = _GroupBuilder(node.element, required=True)

    def add(self, value: Encoded) -> tuple[bool, bytes | None]:
        children = value.children(BasicType.ARRAY)
        if children is None:
            return False, value.data
        for i in range(len(children.starts)):
            with below(i):
                self._element.add(value.part(children, i))
        self._nulls.append(False)
        self._offsets.append(self._offsets[-1] + len(children.starts))
        return True, None

    def add_null(self) -> None:
        self._nulls.append(True)
        self._offsets.append(self._offsets[-1])

    def finish(self) -> AnyArray:
        element_type = element_field(self._type).type
        elements = pa.StructArray.from_arrays(self._element.finish(), fields=members(element_type))
        return list_array(self._type, self._offsets, elements, pa.array(self._nulls, pa.bool_()))


def _typed_builder(node: Node) -> _TypedBuilder | None:
    match node:
        case Untyped():
            return None
        case Leaf(type=column):
            return _LeafBuilder(column)
        case Object():
            return _ObjectBuilder(node)
        case Array():
            return _ArrayBuilder(node)
