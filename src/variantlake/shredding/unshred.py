"""Rebuild Variants from a shredded column, in plain Python.

This is the reference for the compiled reader. It is strict: everything that the specification marks
invalid is an error with row and path, with the exception that the specification itself makes: a
missing value where one is required reads as Variant null.
Spec: VariantShredding, "Reconstructing a Shredded Variant".

| `value`  | `typed_value` | at the root, in an array | in an object     |
|----------|---------------|--------------------------|------------------|
| null     | null          | Variant null             | field is missing |
| non-null | null          | the value                | the value        |
| null     | non-null      | the typed value          | the typed value  |
| non-null | non-null      | an object of both parts, else an error      ||
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa

from variantlake.encoding.scalar import encode_scalar
from variantlake.encoding.tree import encode_array
from variantlake.encoding.value import basic_type, check_value_size, read_children
from variantlake.errors import InvalidValue, MalformedFile, MalformedVariant, VariantLakeError
from variantlake.paths import Path
from variantlake.shredding.arrays import (
    AnyArray,
    bytes_of,
    list_of,
    members,
    offsets_of,
    struct_of,
    validity,
    variants_of,
)
from variantlake.shredding.dictionary import RowDictionary
from variantlake.shredding.error_paths import below
from variantlake.shredding.fit import encoded_type, number_of, raws_of
from variantlake.shredding.layout import (
    METADATA,
    TYPED_VALUE,
    VALUE,
    VARIANT_TYPE,
    is_list,
    is_struct,
    schema_of,
)
from variantlake.shredding.values import ALL_AS_STORED, NumberForms
from variantlake.types import NULL_VALUE, BasicType


def unshred_plain(array: pa.StructArray, forms: NumberForms = ALL_AS_STORED) -> pa.StructArray:
    """Rebuild every row of a Variant column, shredded or not.

    `forms` are those of numbers in DECIMAL columns; a number beyond 64 bits stays a decimal.

    Returns struct<metadata: binary not null, value: binary not null>; SQL NULL is a null struct
    with empty bytes below it. A row with its whole value in `value` is returned byte for byte. A
    shredded field's key that the row's dictionary lacks is added to it (`check` reports that).

    Raises MalformedFile, with row and path, for everything that the specification marks invalid;
    MalformedVariant for bytes that are not Variant; InvalidSchema for a column of another type.
    """
    whole = _unshredded(array)
    if whole is not None:
        return whole
    schema_of(array.type)
    storage = struct_of(array)
    valid, all_metadata = validity(storage), bytes_of(storage.field(METADATA))
    root = _GroupReader(storage, Path(), forms)
    rows: list[tuple[bytes, bytes] | None] = [None] * len(valid)
    for row in np.flatnonzero(valid).tolist():
        try:
            rows[row] = _read(root, row, all_metadata[row])
        except VariantLakeError as error:
            error.row = row
            error.path = f"${error.path.removeprefix('$')}"
            raise
    return variants_of(rows)


def _read(root: _GroupReader, row: int, metadata: bytes | None) -> tuple[bytes, bytes]:
    """Return the metadata and value of a row that is not SQL NULL."""
    if metadata is None:
        raise MalformedFile("`metadata` is null")
    whole = root.whole_value(row)
    if whole is not None:
        return metadata, whole
    dictionary = RowDictionary(metadata)
    value = root.read(row, dictionary)
    if value is None:
        return metadata, NULL_VALUE
    check_value_size(value)
    return dictionary.encode(), value


def _unshredded(array: pa.StructArray) -> pa.StructArray | None:
    """Return a column without typed_value as it is; None if it has one, or nulls in set rows."""
    storage = struct_of(array)
    names = [field.name for field in members(storage.type)]
    if TYPED_VALUE in names or VALUE not in names or METADATA not in names:
        return None
    schema_of(storage.type)
    columns = storage.flatten()
    parts = [columns[names.index(name)] for name in (METADATA, VALUE)]
    if any(part.null_count != storage.null_count for part in parts):
        return None
    return pa.StructArray.from_arrays(
        [part.cast(pa.binary()).fill_null(b"") for part in parts],
        fields=list(VARIANT_TYPE),
        mask=storage.is_null(),
    )


class _TypedReader(Protocol):
    """The reader of one `typed_value`."""

    @property
    def basic(self) -> BasicType | None:
        """The type that belongs in the typed_value, so `value` must not hold it alone."""

    def is_set(self, i: int) -> bool:
        """Whether the typed_value of slot `i` is not null."""

    def read(self, i: int, dictionary: RowDictionary, value: bytes | None) -> bytes:
        """Encode slot `i`, whose typed_value is set; `value` is that of the same group."""


class _GroupReader:
    """The reader of a `value` with its `typed_value`, each of which may be absent."""

    def __init__(self, group: pa.StructArray, path: Path, forms: NumberForms) -> None:
        names = {field.name for field in members(group.type)}
        self._valid = validity(group)
        self._values = bytes_of(group.field(VALUE)) if VALUE in names else None
        self._typed: _TypedReader | None = None
        if TYPED_VALUE in names:
            self._typed = _typed_reader(group.field(TYPED_VALUE), path, forms)

    def whole_value(self, i: int) -> bytes | None:
        """Return the value of slot `i` if `value` is all of it, None if typed_value is needed too.

        This needs no metadata. Also returns None if both are null.
        """
        value = None if self._values is None else self._values[i]
        if self._typed is None:
            return NULL_VALUE if value is None else value
        if value is None or self._typed.is_set(i):
            return None
        self._check_alone(value)
        return value

    def read(self, i: int, dictionary: RowDictionary) -> bytes | None:
        """Encode slot `i`; None if it is missing."""
        if not self._valid[i]:
            return None
        value = None if self._values is None else self._values[i]
        if self._typed is not None and self._typed.is_set(i):
            return self._typed.read(i, dictionary, value)
        if value is not None:
            self._check_alone(value)
        return value

    def _check_alone(self, value: bytes) -> None:
        """Refuse a `value` that belongs in typed_value, which is null."""
        basic = basic_type(value)
        if self._typed is not None and basic is self._typed.basic:
            noun = "object" if basic is BasicType.OBJECT else "array"
            raise MalformedFile(f"an {noun} is in `value` while typed_value is null")


class _LeafReader:
    basic = None

    def __init__(self, array: AnyArray, *, form: int) -> None:
        self._primitive = encoded_type(array.type)
        self._raws = raws_of(array)
        self._form = form

    def is_set(self, i: int) -> bool:
        return self._raws[i] is not None

    def read(self, i: int, _: RowDictionary, value: bytes | None) -> bytes:
        raw = self._raws[i]
        if value is not None or raw is None:
            raise _conflict("the typed_value is not an object")
        try:
            return encode_scalar(number_of(raw, self._primitive, self._form))
        except (InvalidValue, MalformedVariant) as error:
            raise MalformedFile(f"typed_value: {error.message}") from None


class _ObjectReader:
    basic = BasicType.OBJECT

    def __init__(self, array: pa.StructArray, path: Path, forms: NumberForms) -> None:
        self._valid = validity(array)
        self._groups = {
            field.name: _GroupReader(struct_of(array.field(index)), path.child(field.name), forms)
            for index, field in enumerate(members(array.type))
        }

    def is_set(self, i: int) -> bool:
        return self._valid[i]

    def read(self, i: int, dictionary: RowDictionary, value: bytes | None) -> bytes:
        fields: dict[str, bytes] = {}
        for name, group in self._groups.items():
            with below(name):
                field = group.read(i, dictionary)
            if field is not None:
                fields[name] = field
        if value is not None:
            fields.update(self._residual(dictionary, value))
        return dictionary.object_of(fields)

    def _residual(self, dictionary: RowDictionary, value: bytes) -> dict[str, bytes]:
        if basic_type(value) is not BasicType.OBJECT:
            raise _conflict("the value is not an object")
        children = read_children(dictionary.decoded, value, 0, len(value))
        names = children.names or ()
        for name in names:
            if name in self._groups:
                raise MalformedFile(
                    f"field {name!r} is shredded and is in `value` too",
                    hint="the typed_value would win, if it were read at all",
                )
        return {
            name: value[start:end]
            for name, start, end in zip(names, children.starts, children.ends, strict=True)
        }


class _ArrayReader:
    basic = BasicType.ARRAY

    def __init__(self, array: AnyArray, path: Path, forms: NumberForms) -> None:
        lists = list_of(array)
        self._valid = validity(lists)
        self._offsets, elements = offsets_of(lists)
        self._element = _GroupReader(struct_of(elements), path.child(0), forms)

    def is_set(self, i: int) -> bool:
        return self._valid[i]

    def read(self, i: int, dictionary: RowDictionary, value: bytes | None) -> bytes:
        if value is not None:
            raise _conflict("the typed_value is an array")
        elements: list[bytes] = []
        for index, slot in enumerate(range(self._offsets[i], self._offsets[i + 1])):
            with below(index):
                element = self._element.read(slot, dictionary)
            elements.append(NULL_VALUE if element is None else element)
        return encode_array(elements)


def _conflict(why: str) -> MalformedFile:
    return MalformedFile(
        f"value and typed_value are both set, and {why}",
        hint="both may be set only for an object whose fields are shredded in part",
    )


def _typed_reader(array: AnyArray, path: Path, forms: NumberForms) -> _TypedReader:
    if is_struct(array.type):
        return _ObjectReader(struct_of(array), path, forms)
    if is_list(array.type):
        return _ArrayReader(array, path, forms)
    return _LeafReader(array, form=forms.of(path))
