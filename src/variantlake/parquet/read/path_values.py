"""Build an Arrow column of one path of a Variant column, from the leaves that were read for it.

A shredded value is in `typed_value`. Any other is in the `value` of the deepest group on the way to
it, which is searched for the rest of the path.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.encoding.scalar import Scalar, decode_scalar
from variantlake.encoding.value import basic_type, type_name
from variantlake.errors import InvalidValue, MalformedFile, VariantLakeError
from variantlake.kernels.shredded.unshred import unshred
from variantlake.kernels.shredded.unshred_legacy import unshred_legacy
from variantlake.paths import Path
from variantlake.shredding.arrays import (
    AnyArray,
    bytes_of,
    element_at,
    members,
    struct_of,
    validity,
    variants_of,
)
from variantlake.shredding.dictionary import value_at
from variantlake.shredding.fit import Raw, encoded_type, fit, raw_array, raws_of, scalar_of
from variantlake.shredding.layout import METADATA, TYPED_VALUE, VALUE, VARIANT_TYPE, plain_type
from variantlake.shredding.legacy.layout import OBJECT
from variantlake.shredding.values import ALL_AS_STORED, NumberForms
from variantlake.types import NULL_VALUE, BasicType, ShreddedType


class Mismatch(enum.Enum):
    """How to treat a value that the requested type cannot hold exactly."""

    ERROR = "error"
    NULL = "null"

    @classmethod
    def _missing_(cls, value: object) -> Mismatch:
        raise InvalidValue(f"on_mismatch is {value!r}", hint="'error' or 'null'")


@dataclass(frozen=True, slots=True)
class PathRequest:
    """One column of the result: the file has columns for the steps `way`; `rest` is searched for.

    `wanted` is the type of the result, None for a Variant. `forms` are those of the columns below
    `way`, as for `unshred`.
    """

    name: str
    column: str
    path: Path
    way: tuple[str | int, ...]
    rest: Path
    wanted: ShreddedType | None
    row_leaf: int
    own_leaves: Collection[int]
    on_mismatch: Mismatch
    forms: NumberForms = ALL_AS_STORED

    @property
    def arrow(self) -> pa.DataType:
        """The type of the result."""
        return VARIANT_TYPE if self.wanted is None else self.wanted.arrow

    @property
    def leaves(self) -> set[int]:
        """The leaves to read. `row_leaf`, the metadata if there is any, counts the rows."""
        return {self.row_leaf, *self.own_leaves}

    def evaluate(self, batch: pa.RecordBatch) -> AnyArray:
        """Compute the column for the rows of a batch."""
        if not self.own_leaves:
            return _nulls(batch.num_rows, self.arrow)
        members = GroupMembers(batch.column(self.column))
        metadata = members.required(METADATA)
        for step in self.way:
            members = members.step(step)
        if self.wanted is None:
            return self._variants(metadata, members)
        return self._typed(self.wanted, metadata, members)

    def _typed(self, wanted: ShreddedType, metadata: AnyArray, members: GroupMembers) -> AnyArray:
        typed = None if self.rest.steps else members.get(TYPED_VALUE)
        values = members.get(VALUE)
        if values is not None:
            # The byte 00 alone is a Variant null, which is null here.
            is_null = pc.equal(values, pa.scalar(NULL_VALUE, values.type))
            values = pc.if_else(is_null, pa.scalar(None, values.type), values)
        is_plain = values is None or values.null_count == len(values)
        if typed is not None and is_plain and _stored(typed) == wanted:
            return typed if typed.type == wanted.arrow else typed.cast(wanted.arrow)
        raws: list[Raw | None] = [None] * len(members)
        if typed is not None:
            self._add_typed(raws, typed, wanted)
        if not is_plain:
            self._add_residuals(raws, self._residuals(metadata, values), wanted)
        return raw_array(raws, wanted)

    def _add_residuals(
        self, raws: list[Raw | None], residuals: Iterator[bytes | None], wanted: ShreddedType
    ) -> None:
        row = 0
        try:
            for row, encoded in enumerate(residuals):
                if encoded is not None and encoded != NULL_VALUE:
                    raws[row] = self._fit(row, _scalar(encoded), type_name(encoded), wanted)
        except VariantLakeError as error:
            self._locate(error, row)
            raise

    def _locate(self, error: VariantLakeError, row: int) -> None:
        """Set the row and path of an error, unless it has them."""
        error.row = row if error.row is None else error.row
        error.path = error.path or str(self.path)

    def _add_typed(self, raws: list[Raw | None], typed: AnyArray, wanted: ShreddedType) -> None:
        stored = _stored(typed)
        if stored is None:
            for row, is_set in enumerate(typed.is_valid().to_pylist()):
                if is_set:
                    noun = "object" if pa.types.is_struct(typed.type) else "array"
                    raws[row] = self._fit(row, None, noun, wanted)
            return
        primitive, row = encoded_type(typed.type), 0
        try:
            for row, raw in enumerate(raws_of(typed)):
                if raw is not None:
                    raws[row] = self._fit(row, scalar_of(raw, primitive), stored.ddl, wanted)
        except VariantLakeError as error:
            self._locate(error, row)
            raise

    def _fit(self, row: int, scalar: Scalar | None, noun: str, wanted: ShreddedType) -> Raw | None:
        raw = None if scalar is None else fit(scalar, wanted)
        if raw is None and self.on_mismatch is Mismatch.ERROR:
            raise InvalidValue(
                f"{noun} does not fit {wanted}",
                row=row,
                path=str(self.path),
                hint="ask for `::variant`, or for null with on_mismatch='null'",
            )
        return raw

    def _residuals(self, metadata: AnyArray, values: AnyArray | None) -> Iterator[bytes | None]:
        """Yield for each row the value at `rest` in `value`, None if it is missing."""
        if values is None:
            return
        rows = zip(bytes_of(metadata), bytes_of(values), strict=True)
        for row, (keys, value) in enumerate(rows):
            try:
                yield None if value is None else value_at(keys, value, self.rest)
            except VariantLakeError as error:
                error.row = row
                error.path = str(self.path)
                raise

    def _variants(self, metadata: AnyArray, members: GroupMembers) -> AnyArray:
        """Build the Variants at the path; null if missing or a Variant null."""
        values = members.get(VALUE)
        typed = None if self.rest.steps else members.get(TYPED_VALUE)
        if self.rest.steps:
            values = pa.array(list(self._residuals(metadata, values)), pa.binary())
        parts = {VALUE: values, TYPED_VALUE: typed}
        known = {name: array for name, array in parts.items() if array is not None}
        missing = np.ones(len(members), dtype=bool)
        for array in known.values():
            missing &= ~np.asarray(validity(array), dtype=bool)
        if values is not None:
            missing |= np.asarray([value == NULL_VALUE for value in bytes_of(values)], dtype=bool)
        group = pa.StructArray.from_arrays(
            [metadata, *known.values()], names=[METADATA, *known], mask=pa.array(missing)
        )
        return unshred(group, self.forms)


@dataclass(frozen=True, slots=True)
class LegacyPathRequest(PathRequest):
    """A column of a legacy file: the leaf at `way`, or `rest` searched in the rebuilt Variants."""

    is_column: bool = False

    def evaluate(self, batch: pa.RecordBatch) -> AnyArray:
        """Compute the column for the rows of a batch."""
        if not self.own_leaves:
            return _nulls(batch.num_rows, self.arrow)
        array = struct_of(batch.column(self.column))
        members = GroupMembers(array if self.is_column else unshred_legacy(array))
        for step in self.way:
            members = members.field(str(step))
        metadata: AnyArray = pa.nulls(len(array), pa.binary())
        if not self.is_column:
            metadata = members.required(METADATA)
        if self.wanted is None:
            return self._variants(metadata, members)
        return self._typed(self.wanted, metadata, members)


def _nulls(length: int, arrow: pa.DataType) -> AnyArray:
    rows = [None] * length
    return variants_of(rows) if arrow == VARIANT_TYPE else pa.array(rows, arrow)


def _scalar(encoded: bytes) -> Scalar | None:
    """Decode a scalar; None for an object or an array."""
    if basic_type(encoded) in (BasicType.OBJECT, BasicType.ARRAY):
        return None
    return decode_scalar(encoded, 0, len(encoded))


def _stored(typed: AnyArray) -> ShreddedType | None:
    """Return the type of a shredded leaf, None for an object or an array."""
    if pa.types.is_struct(typed.type) or hasattr(typed.type, "value_field"):
        return None
    return ShreddedType.from_arrow(plain_type(typed.type))


class GroupMembers:
    """The members of a group that were read, each null wherever a group above it is null."""

    def __init__(self, group: AnyArray) -> None:
        self._group = struct_of(group)

    def __len__(self) -> int:
        return len(self._group)

    def get(self, name: str) -> AnyArray | None:
        """Return the member of that name, None if it was not read or the file lacks it."""
        for index, field in enumerate(members(self._group.type)):
            if field.name == name:
                return self._group.flatten()[index]
        return None

    def required(self, name: str) -> AnyArray:
        """Return a member that was read. Raises MalformedFile if pyarrow returned none."""
        array = self.get(name)
        if array is None:
            raise MalformedFile(f"pyarrow reads no {name!r} in a Variant group")
        return array

    def field(self, name: str) -> GroupMembers:
        """Return the group of an object's field in the legacy layout."""
        return GroupMembers(GroupMembers(self.required(OBJECT)).required(name))

    def step(self, step: str | int) -> GroupMembers:
        """Return the group of an object's field or of an array's element."""
        typed = self.required(TYPED_VALUE)
        if isinstance(step, str):
            return GroupMembers(GroupMembers(typed).required(step))
        return GroupMembers(element_at(typed, step))
