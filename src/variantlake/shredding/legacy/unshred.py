"""`ConstructVariant`: rebuild Variants from the older layout, and check the rules for its rows.

This is the reference for the compiled reader, in the specification's order. The specification's
text passes a field's whole group on as `object`; here a group always means its four members. A
group with nothing set is SQL NULL at the top, a missing field in an object, and a Variant null in
an array, where no element can be missing.

| untyped_value | object | array | typed_value | meaning                                          |
|---------------|--------|-------|-------------|--------------------------------------------------|
| null          | null   | null  | null        | nothing                                          |
| set           | null   | null  | null        | the untyped value, of any type                   |
| null          | set    | null  | null        | an object of the fields that are not missing     |
| an object     | set    | null  | null        | an object of both; a column wins over a leftover |
| null          | null   | set   | null        | the array                                        |
| null          | null   | null  | set         | the typed value                                  |
| Variant null  | null   | null  | set         | a Variant null                                   |

Everything else is refused. If a field's group is null or has nothing set, the field of the untyped
value counts, if any. Spec: spark-legacy-shredding.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa

from variantlake.encoding.metadata import check_sorted, decode_metadata
from variantlake.encoding.scalar import NULL, Scalar, encode_scalar
from variantlake.encoding.tree import Tree, decode, encode
from variantlake.encoding.value import check_value_size, validate
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
from variantlake.shredding.fit import encoded_type, raws_of, scalar_of
from variantlake.shredding.layout import TYPED_VALUE
from variantlake.shredding.legacy.layout import (
    ARRAY,
    OBJECT,
    UNTYPED_VALUE,
    legacy_group_of,
    split_untyped,
)
from variantlake.shredding.rules import DAY_MICROS, Problem
from variantlake.types import Primitive


class LegacyRule(enum.Enum):
    """The rules, in a few words."""

    UNTYPED = "`untyped_value` is valid Variant metadata and a valid value of it"
    ONE_FORM = "at most one of `object`, `array` and `typed_value` is set"
    ALONE = "`untyped_value` is set only alone or with `object`, or is a Variant null"
    LEFTOVERS = "with `object`, `untyped_value` is an object of the fields without a column"
    SHREDDED = "a field or an array that has columns is not in `untyped_value`"
    ELEMENT = "an element of an array is not missing"
    TYPED_VALUE = "`typed_value` is a value of its type"


def unshred_legacy_plain(array: pa.StructArray) -> pa.StructArray:
    """Rebuild every row of a legacy column.

    Returns struct<metadata: binary not null, value: binary not null>. SQL NULL, which is a group
    that is null or has nothing set, is a null struct with empty bytes below it.

    Raises MalformedFile, with row and path, for everything that the specification marks invalid;
    MalformedVariant for bytes that are not Variant; InvalidSchema for a type that no Variant has.
    """
    legacy_group_of(array.type)
    group = _LegacyGroupReader(struct_of(array))
    rows: list[tuple[bytes, bytes] | None] = []
    for row in range(len(array)):
        try:
            tree = group.unshred(row, Path(), _LegacyReading())
            rows.append(None if tree is None else encode(tree))
        except VariantLakeError as error:
            error.row = row
            raise
    return variants_of(rows)


def legacy_problems(array: pa.StructArray) -> Iterator[Problem]:
    """Yield every broken rule in the rows of a legacy column, also those that reading tolerates.

    Raises MalformedFile or InvalidSchema when the column is not a legacy column.
    """
    legacy_group_of(array.type)
    group = _LegacyGroupReader(struct_of(array))
    for row in range(len(array)):
        check = _Checking(row)
        group.unshred(row, Path(), check)
        yield from check.problems


class _Judge(Protocol):
    """Raises or collects broken rules."""

    def refuse(self, path: Path, rule: LegacyRule, message: str) -> None:
        """Report a broken rule that leaves the row without a meaning."""

    def note(self, path: Path, rule: LegacyRule, message: str) -> None:
        """Report a broken rule that leaves the meaning of the row clear."""

    def untyped(self, path: Path, data: bytes) -> Tree:
        """Decode the Variant in an `untyped_value`."""


class _LegacyReading:
    """Raises refused rows, and tolerates the rest."""

    def refuse(self, path: Path, rule: LegacyRule, message: str) -> None:
        raise MalformedFile(message, path=str(path), hint=f"the rule is: {rule.value}")

    def note(self, path: Path, rule: LegacyRule, message: str) -> None:
        pass

    def untyped(self, path: Path, data: bytes) -> Tree:
        try:
            metadata, value = split_untyped(data)
            check_value_size(value)
            return decode(metadata, value)
        except VariantLakeError as error:
            error.path = str(path) + error.path.removeprefix("$")
            raise


class _Checking:
    """Collects the problems of one row."""

    def __init__(self, row: int) -> None:
        self.problems: list[Problem] = []
        self._row = row

    def refuse(self, path: Path, rule: LegacyRule, message: str) -> None:
        self.problems.append(Problem(self._row, str(path), rule, message))

    note = refuse

    def untyped(self, path: Path, data: bytes) -> Tree:
        try:
            metadata, value = split_untyped(data)
            check_sorted(decode_metadata(metadata))
            validate(metadata, value)
            return decode(metadata, value)
        except VariantLakeError as error:
            where = str(path) + error.path.removeprefix("$")
            at = "" if error.offset is None else f" (byte {error.offset})"
            self.problems.append(
                Problem(self._row, where, LegacyRule.UNTYPED, f"{error.message}{at}")
            )
            return {}  # not null, and allowed both alone and with an object


class _LegacyGroupReader:
    """The reader of one group with its four members, each of which may be absent."""

    def __init__(self, group: pa.StructArray) -> None:
        # Flattened, so that values below a null group are null.
        names = [field.name for field in members(group.type)]
        parts: dict[str, AnyArray] = dict(zip(names, group.flatten(), strict=True))
        untyped = parts.get(UNTYPED_VALUE)
        self._untyped = [None] * len(group) if untyped is None else bytes_of(untyped)
        self._object = _Object(struct_of(parts[OBJECT])) if OBJECT in parts else None
        self._array = _LegacyArrayReader(parts[ARRAY]) if ARRAY in parts else None
        self._leaf = _Leaf(parts[TYPED_VALUE]) if TYPED_VALUE in parts else None
        forms = ((OBJECT, self._object), (ARRAY, self._array), (TYPED_VALUE, self._leaf))
        self._forms = [(name, form) for name, form in forms if form is not None]

    def unshred(self, i: int, path: Path, judge: _Judge) -> Tree | None:
        """Run `ConstructVariant` for slot `i`; None is its null."""
        data = self._untyped[i]
        untyped = None if data is None else judge.untyped(path, data)
        set_forms = [name for name, form in self._forms if form.is_set(i)]
        if len(set_forms) > 1:
            judge.refuse(path, LegacyRule.ONE_FORM, f"{' and '.join(set_forms)} are set")
        if not set_forms:
            if untyped is not None:
                self._note_misplaced(path, judge, untyped)
            return untyped
        if OBJECT in set_forms and self._object is not None:
            return self._object.unshred(i, path, judge, untyped)
        is_null_beside_leaf = untyped == NULL and set_forms == [TYPED_VALUE]
        if untyped is not None and not is_null_beside_leaf:
            message = f"{UNTYPED_VALUE} and {set_forms[0]} are both set"
            judge.refuse(path, LegacyRule.ALONE, message)
        if ARRAY in set_forms and self._array is not None:
            return self._array.unshred(i, path, judge)
        typed = None if self._leaf is None else self._leaf.unshred(i, path, judge)
        return typed if untyped is None else untyped

    def _note_misplaced(self, path: Path, judge: _Judge, untyped: Tree) -> None:
        if isinstance(untyped, dict) and self._object is not None:
            self._object.note_shredded(path, judge, untyped)
        elif isinstance(untyped, list) and self._array is not None:
            judge.note(path, LegacyRule.SHREDDED, f"an array is in {UNTYPED_VALUE}")


class _Object:
    def __init__(self, group: pa.StructArray) -> None:
        self._valid = validity(group)
        self._fields = {
            field.name: _LegacyGroupReader(struct_of(child))
            for field, child in zip(members(group.type), group.flatten(), strict=True)
        }

    def is_set(self, i: int) -> bool:
        return self._valid[i]

    def unshred(self, i: int, path: Path, judge: _Judge, untyped: Tree | None) -> Tree:
        """Run `ConstructObject`."""
        fields: dict[str, Tree] = {}
        if isinstance(untyped, dict):
            fields.update(untyped)
            self.note_shredded(path, judge, untyped)
        elif untyped is not None:
            judge.refuse(path, LegacyRule.LEFTOVERS, f"{UNTYPED_VALUE} is not an object")
        for name, group in self._fields.items():
            tree = group.unshred(i, path.child(name), judge)
            if tree is not None:
                fields[name] = tree
        return fields

    def note_shredded(self, path: Path, judge: _Judge, untyped: dict[str, Tree]) -> None:
        for name in untyped:
            if name in self._fields:
                message = f"field {name!r} has a column and is in {UNTYPED_VALUE}"
                judge.note(path.child(name), LegacyRule.SHREDDED, message)


class _LegacyArrayReader:
    def __init__(self, array: AnyArray) -> None:
        lists = list_of(array)
        self._valid = validity(lists)
        self._offsets, elements = offsets_of(lists)
        self._element = _LegacyGroupReader(struct_of(elements))

    def is_set(self, i: int) -> bool:
        return self._valid[i]

    def unshred(self, i: int, path: Path, judge: _Judge) -> Tree:
        """Run `ConstructArray`."""
        elements: list[Tree] = []
        for index, slot in enumerate(range(self._offsets[i], self._offsets[i + 1])):
            element = self._element.unshred(slot, path.child(index), judge)
            if element is None:
                judge.note(path.child(index), LegacyRule.ELEMENT, "nothing is set")
            elements.append(NULL if element is None else element)
        return elements


class _Leaf:
    def __init__(self, array: AnyArray) -> None:
        self._primitive = encoded_type(array.type)
        self._raws = raws_of(array)

    def is_set(self, i: int) -> bool:
        return self._raws[i] is not None

    def unshred(self, i: int, path: Path, judge: _Judge) -> Scalar | None:
        raw = self._raws[i]
        if raw is None:
            return None
        try:
            scalar = scalar_of(raw, self._primitive)
            encode_scalar(scalar)
        except (InvalidValue, MalformedVariant) as error:
            judge.refuse(path, LegacyRule.TYPED_VALUE, f"typed_value: {error.message}")
            return None
        time = raw if self._primitive is Primitive.TIME and isinstance(raw, int) else 0
        if not 0 <= time < DAY_MICROS:
            judge.note(path, LegacyRule.TYPED_VALUE, f"{time} microseconds are not a time of day")
        return scalar
