"""Find every broken rule in the rows of a Variant column.

Reading stops at the first row that it cannot understand. This module goes on, and also reports what
reading tolerates. Spec: VariantEncoding and VariantShredding.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from variantlake.encoding.metadata import check_sorted
from variantlake.encoding.scalar import encode_scalar
from variantlake.encoding.value import basic_type, read_children, validate_value
from variantlake.errors import InvalidValue, MalformedVariant, VariantLakeError
from variantlake.paths import Path
from variantlake.shredding.arrays import (
    AnyArray,
    bytes_of,
    list_of,
    members,
    offsets_of,
    struct_of,
    validity,
)
from variantlake.shredding.dictionary import RowDictionary
from variantlake.shredding.fit import encoded_type, raws_of, scalar_of
from variantlake.shredding.layout import METADATA, TYPED_VALUE, VALUE, is_list, is_struct, schema_of
from variantlake.types import NULL_VALUE, BasicType, Primitive

DAY_MICROS = 86_400_000_000


class ShreddingRule(enum.Enum):
    """The rules, in a few words."""

    FILE = "the file can be read"
    GROUP = "the group is a Variant by its fields and types"
    ANNOTATION = "a Variant group is annotated with VARIANT(1)"
    REPETITION = "groups and fields are required or optional as specified"
    LIST = "a shredded array is a list of three levels named list and element"
    METADATA = "`metadata` is valid Variant metadata"
    KEYS = "all field names are in the metadata"
    VALUE = "`value` is a valid Variant value"
    REQUIRED = "a required value is there"
    CONFLICT = "`value` and `typed_value` are both set only for an object"
    OBJECT = "an object is in `typed_value` if objects are shredded"
    ARRAY = "an array is in `typed_value` if arrays are shredded"
    DISJOINT = "a shredded field is not in `value` too"
    TYPED_VALUE = "`typed_value` is a value of its type"


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule; `row` counts from the start of the array, `path` is within the Variant."""

    row: int
    path: str
    rule: enum.Enum
    message: str


def problems(array: pa.StructArray) -> Iterator[Problem]:
    """Yield every broken rule in the rows of a Variant column.

    Raises MalformedFile or InvalidSchema when the column is not a Variant.
    """
    schema_of(array.type)
    storage = struct_of(array)
    valid, all_metadata = validity(storage), bytes_of(storage.field(METADATA))
    root = _GroupRules(storage, required=True)
    for row, metadata in enumerate(all_metadata):
        if not valid[row]:
            continue
        path = Path()
        if metadata is None:
            yield Problem(row, str(path), ShreddingRule.METADATA, "`metadata` is null")
            continue
        try:
            dictionary = RowDictionary(metadata)
            check_sorted(dictionary.decoded)
        except VariantLakeError as error:
            yield Problem(row, str(path), ShreddingRule.METADATA, _text(error))
            continue
        for where, rule, message in root.check(row, dictionary, path):
            yield Problem(row, str(where), rule, message)


_Broken = Iterator[tuple[Path, ShreddingRule, str]]


def _text(error: VariantLakeError) -> str:
    where = error.where()
    return f"{error.message} ({where})" if where else error.message


class _TypedRules(Protocol):
    """The checks of one `typed_value`."""

    def is_set(self, i: int) -> bool:
        """Whether the typed_value of slot `i` is not null."""

    def check(self, i: int, row: RowDictionary, path: Path, value: bytes | None) -> _Broken:
        """Yield the broken rules of slot `i`, whose typed_value is set; `row` is its dictionary."""

    @property
    def misplaced(self) -> tuple[BasicType, ShreddingRule] | None:
        """The type that `value` must not hold alone, and the rule for that."""


class _GroupRules:
    """The checks of a `value` and its `typed_value`. `required`: it must not be missing."""

    def __init__(self, group: pa.StructArray, *, required: bool) -> None:
        names = {field.name for field in members(group.type)}
        self._required = required
        self._valid = validity(group)
        self._values = bytes_of(group.field(VALUE)) if VALUE in names else None
        self._typed = _typed_checks(group.field(TYPED_VALUE)) if TYPED_VALUE in names else None

    def is_set(self, i: int) -> bool:
        """Whether slot `i` is not missing."""
        value = None if self._values is None else self._values[i]
        typed = self._typed is not None and self._typed.is_set(i)
        return self._valid[i] and (typed or value is not None)

    def check(self, i: int, row: RowDictionary, path: Path) -> _Broken:
        """Yield the broken rules of slot `i`."""
        if not self.is_set(i):
            if self._required:
                yield path, ShreddingRule.REQUIRED, "value and typed_value are both null"
            return
        value = None if self._values is None else self._values[i]
        if value is not None and value != NULL_VALUE:
            try:
                validate_value(row.decoded, value)
            except VariantLakeError as error:
                inner = Path.parse(error.path) if error.path.startswith("$") else Path()
                error.path = ""
                yield Path(path.steps + inner.steps), ShreddingRule.VALUE, _text(error)
                return
        if self._typed is not None and self._typed.is_set(i):
            yield from self._typed.check(i, row, path, value)
        elif self._typed is not None and value is not None and self._typed.misplaced is not None:
            basic, rule = self._typed.misplaced
            if basic_type(value) is basic:
                noun = basic.name.lower()
                yield path, rule, f"an {noun} is in `value`, and typed_value is null"


class _LeafChecks:
    misplaced = None

    def __init__(self, array: AnyArray) -> None:
        self._primitive = encoded_type(array.type)
        self._raws = raws_of(array)

    def is_set(self, i: int) -> bool:
        return self._raws[i] is not None

    def check(self, i: int, _: RowDictionary, path: Path, value: bytes | None) -> _Broken:
        if value is not None:
            yield path, ShreddingRule.CONFLICT, "both are set, and the typed_value is not an object"
        raw = self._raws[i]
        if raw is None:
            return
        try:
            encode_scalar(scalar_of(raw, self._primitive))
        except (InvalidValue, MalformedVariant) as error:
            yield path, ShreddingRule.TYPED_VALUE, error.message
        time = raw if self._primitive is Primitive.TIME and isinstance(raw, int) else 0
        if not 0 <= time < DAY_MICROS:
            yield path, ShreddingRule.TYPED_VALUE, f"{time} microseconds are not a time of day"


class _ObjectChecks:
    misplaced = (BasicType.OBJECT, ShreddingRule.OBJECT)

    def __init__(self, array: pa.StructArray) -> None:
        self._valid = validity(array)
        self._groups = {
            field.name: _GroupRules(struct_of(array.field(index)), required=False)
            for index, field in enumerate(members(array.type))
        }

    def is_set(self, i: int) -> bool:
        return self._valid[i]

    def check(self, i: int, row: RowDictionary, path: Path, value: bytes | None) -> _Broken:
        if value is not None:
            yield from self._check_residual(row, path, value)
        for name, group in self._groups.items():
            child = path.child(name)
            if group.is_set(i) and not row.has(name):
                yield child, ShreddingRule.KEYS, f"key {name!r} is not in the metadata"
            yield from group.check(i, row, child)

    def _check_residual(self, row: RowDictionary, path: Path, value: bytes) -> _Broken:
        if basic_type(value) is not BasicType.OBJECT:
            yield path, ShreddingRule.CONFLICT, "both are set, and the value is not an object"
            return
        children = read_children(row.decoded, value, 0, len(value))
        for name in children.names or ():
            if name in self._groups:
                yield (
                    path.child(name),
                    ShreddingRule.DISJOINT,
                    f"field {name!r} is a column of its own",
                )


class _ArrayChecks:
    misplaced = (BasicType.ARRAY, ShreddingRule.ARRAY)

    def __init__(self, array: AnyArray) -> None:
        lists = list_of(array)
        self._valid = validity(lists)
        self._offsets, elements = offsets_of(lists)
        self._element = _GroupRules(struct_of(elements), required=True)

    def is_set(self, i: int) -> bool:
        return self._valid[i]

    def check(self, i: int, row: RowDictionary, path: Path, value: bytes | None) -> _Broken:
        if value is not None:
            yield path, ShreddingRule.CONFLICT, "both are set, and the typed_value is an array"
        for index, slot in enumerate(range(self._offsets[i], self._offsets[i + 1])):
            yield from self._element.check(slot, row, path.child(index))


def _typed_checks(array: AnyArray) -> _TypedRules:
    if is_struct(array.type):
        return _ObjectChecks(struct_of(array))
    if is_list(array.type):
        return _ArrayChecks(array)
    return _LeafChecks(array)
