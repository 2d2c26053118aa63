"""Lay out a batch of a shredded column for unshred_rows: one block of bytes and a table.

The table has a record for each group, parents before children and fields in the order of their
names. The parts that depend on the type alone are computed once; a batch adds its buffers.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast

import numpy as np
import pyarrow as pa

from variantlake.kernels.native.declared import Bytes, KernelArray, Records
from variantlake.kernels.shredded.shredded_arrays import LeftToTwin, elements_of
from variantlake.kernels.tape.arrow_arrays import AnyArray, new_buffer, slots_of
from variantlake.kernels.tape.words import PADDING
from variantlake.paths import Path
from variantlake.shredding.arrays import list_of, members, struct_of
from variantlake.shredding.fit import encoded_type
from variantlake.shredding.layout import (
    TYPED_VALUE,
    VALUE,
    element_type,
    is_list,
    is_struct,
    plain_type,
)
from variantlake.shredding.values import ALL_AS_STORED, NumberForms
from variantlake.types import PRIMITIVES, Family, Primitive

NOTHING, FIXED, DECIMAL, BOOLEAN, BINARY, STRING, OBJECT, ARRAY = range(8)
"""What a group's typed_value holds."""

GROUP = np.dtype(
    [
        ("kind", "i8"),
        ("after", "i8"),
        ("name", "i8"),
        ("children", "i8"),
        ("head", "i8"),
        ("width", "i8"),
        ("stride", "i8"),
        ("limit", "i8"),
        ("form", "i8"),
        ("is_there", "i8"),
        ("value_set", "i8"),
        ("value", "i8"),
        ("value_ends", "i8"),
        ("value_low", "i8"),
        ("value_high", "i8"),
        ("typed_set", "i8"),
        ("typed", "i8"),
        ("typed_ends", "i8"),
        ("typed_low", "i8"),
        ("typed_high", "i8"),
        ("gap", "i8"),
    ]
)
"""One group, of places in the block of bytes.

kind      one of those above
after     the record behind those of its fields or its element
name      which one of the column's names it is the field of
children  its fields
head      the header byte of its values; of a decimal, the scale byte in the next eight bits
width     bytes of a value behind that
stride    bytes of a slot of the typed_value
limit     what a decimal, or with 16 bytes its upper half, stays below
form      of a decimal, how it comes back: see values.NumberForms
is_there, value_set, typed_set   the bit of slot 0; -1 when all are set; -2 when none is
value, typed            where the offset 0 of a variable length points to, else where slot 0 is
value_ends, typed_ends  the int32 offsets, those of arrays in elements
value_low, value_high   where these bytes start and end
typed_low, typed_high   the same; of an array 0 and the number of elements
gap       bytes left free for a container's header: what the last one took
"""

Groups = Annotated[Any, KernelArray(GROUP)]

ALL_SET, NONE_SET = -1, -2

_FIELDS = len(GROUP.names or ())
_HEADER_GAP = 8


@dataclass(frozen=True, slots=True)
class _GroupType:
    """The part of a group that depends on its type: `static`, the first fields of its record."""

    static: list[int]
    value: int | None
    typed: int | None
    below: tuple[tuple[int, _GroupType], ...] = ()

    @property
    def kind(self) -> int:
        return self.static[0]


@dataclass(frozen=True, slots=True)
class UnshredLayout:
    """The part of the layout that all batches of a type share.

    names: of the shredded fields, each once; depth: containers in each other.
    """

    root: _GroupType
    names: tuple[str, ...]
    depth: int


@functools.lru_cache(maxsize=64)
def layout_of(arrow: pa.DataType, forms: NumberForms = ALL_AS_STORED) -> UnshredLayout:
    """The layout of struct<metadata, value, typed_value>; `forms` as for `unshred`.

    Raises InvalidSchema.
    """
    names: dict[str, int] = {}
    root, _, depth = _layout(arrow, -1, 0, names, Path(), forms)
    return UnshredLayout(root, tuple(names), depth)


def _layout(
    arrow: pa.DataType,
    name: int,
    at: int,
    names: dict[str, int],
    path: Path,
    forms: NumberForms,
) -> tuple[_GroupType, int, int]:
    """The group, the record behind its own, and the containers in each other."""
    places = {field.name: place for place, field in enumerate(members(arrow))}
    value, typed = places.get(VALUE), places.get(TYPED_VALUE)
    below: list[tuple[int, _GroupType]] = []
    kind, after, depth = NOTHING, at + 1, 0
    leaf = [0, 0, 0, 0]
    if typed is not None:
        inner = members(arrow)[typed].type
        if is_struct(inner):
            kind = OBJECT
            fields = members(inner)
            for place in sorted(range(len(fields)), key=lambda place: fields[place].name):
                number = names.setdefault(fields[place].name, len(names))
                below_it = path.child(fields[place].name)
                group, after, more = _layout(
                    fields[place].type, number, after, names, below_it, forms
                )
                below.append((place, group))
                depth = max(depth, more)
            depth += 1
        elif is_list(inner):
            kind = ARRAY
            element = element_type(inner)
            group, after, depth = _layout(element, -1, after, names, path.child(0), forms)
            below.append((0, group))
            depth += 1
        else:
            kind, leaf = _leaf(inner)
    static = [kind, after, name, len(below), *leaf, forms.of(path)]
    return _GroupType(static, value, typed, tuple(below)), after, depth


def _leaf(arrow: pa.DataType) -> tuple[int, list[int]]:
    """The kind of a leaf, and head, width, stride and limit."""
    primitive = encoded_type(arrow)
    head = primitive << 2
    if primitive is Primitive.TRUE:
        return BOOLEAN, [head, 0, 0, 0]
    if primitive in (Primitive.STRING, Primitive.BINARY):
        return (STRING if primitive is Primitive.STRING else BINARY), [head, 0, 0, 0]
    plain = plain_type(arrow)
    if isinstance(plain, pa.BaseExtensionType):
        plain = plain.storage_type
    stride, width = cast("Any", plain).bit_width // 8, PRIMITIVES[primitive].width
    if PRIMITIVES[primitive].family is Family.EXACT_NUMERIC and pa.types.is_decimal(plain):
        width -= 1
        kind = DECIMAL
        head |= plain.scale << 8
        limit = 10**plain.precision >> (0 if width <= 8 else 64)
    else:
        kind, limit = FIXED, 0
    if stride < width or stride > 16:
        raise LeftToTwin
    return kind, [head, width, stride, limit]


def plan_of(storage: pa.StructArray, layout: UnshredLayout) -> tuple[Bytes, Records]:
    """A batch of a column of that layout for unshred_rows: uint8, padded; GROUP records.

    Raises LeftToTwin, or ArrowNotImplementedError, for arrays that are better left to the twin.
    """
    block = _Block()
    block.add(storage, layout.root)
    size = block.size
    _, data = new_buffer(size + PADDING)
    if size > 0:
        np.concatenate(block.parts, out=data[:size])
    data[size:] = 0
    groups = np.array(block.records, np.int64).reshape(-1, _FIELDS)
    return data, groups.view(GROUP).reshape(-1).view(np.recarray)


class _Block:
    """Concatenated buffers, and the records that describe them."""

    def __init__(self) -> None:
        self.parts: list[Bytes] = []
        self.size = 0
        self.records: list[list[int]] = []

    def add(self, array: AnyArray, group: _GroupType) -> None:
        """Append the records of a group and of those below."""
        struct = struct_of(array)
        record = [*group.static, self._bits(struct)]
        self.records.append(record)
        if group.value is None:
            record += (NONE_SET, 0, 0, 0, 0)
        else:
            record += self._binary(struct.field(group.value))
        if group.typed is None:
            record += (NONE_SET, 0, 0, 0, 0, 0)
            return
        typed: Any = struct.field(group.typed)
        if isinstance(typed, pa.DictionaryArray):
            typed = typed.dictionary_decode()
        if group.kind in (STRING, BINARY):
            record += self._binary(typed)
        elif group.kind == OBJECT:
            below = struct_of(typed)
            record += (self._bits(below), 0, 0, 0, 0)
            for place, child in group.below:
                self.add(below.field(place), child)
        elif group.kind == ARRAY:
            lists = list_of(typed)
            offsets, elements = elements_of(lists)
            ends = self._put(offsets.view(np.uint8))
            record += (self._bits(lists), 0, ends, 0, int(offsets[-1]))
            self.add(elements, group.below[0][1])
        else:
            record += (self._bits(typed), self._fixed(typed, group), 0, 0, 0)
        record.append(_HEADER_GAP)

    def _put(self, part: Bytes) -> int:
        place = self.size
        self.parts.append(part)
        self.size += len(part)
        return place

    def _bits(self, array: AnyArray) -> int:
        """The bit that says whether slot 0 is set."""
        if array.null_count == 0:
            return ALL_SET
        if array.null_count == len(array):
            return NONE_SET
        return self._bitmap(array, 0)

    def _bitmap(self, array: AnyArray, which: int) -> int:
        start, end = array.offset, array.offset + len(array)
        data = np.frombuffer(cast("bytes", array.buffers()[which] or b""), np.uint8)
        if len(data) * 8 < end:
            raise LeftToTwin
        return 8 * self._put(data[start // 8 : (end + 7) // 8]) + start % 8

    def _fixed(self, array: Any, group: _GroupType) -> int:
        """The place of slot 0, for booleans the bit."""
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        if array.null_count == len(array):
            return 0
        if group.kind == BOOLEAN:
            return self._bitmap(array, 1)
        stride = group.static[6]
        data = np.frombuffer(cast("bytes", array.buffers()[1] or b""), np.uint8)
        start, end = array.offset * stride, (array.offset + len(array)) * stride
        if len(data) < end:
            raise LeftToTwin
        return self._put(data[start:end])

    def _binary(self, array: AnyArray) -> Sequence[int]:
        """Bit, place, offsets, and where the bytes start and end."""
        if isinstance(array, pa.DictionaryArray):
            array = array.dictionary_decode()
        bits = self._bits(array)
        if bits == NONE_SET:
            return NONE_SET, 0, 0, 0, 0
        if not pa.types.is_binary(array.type) and not pa.types.is_string(array.type):
            array = array.cast(pa.large_binary())
            if array.nbytes > (1 << 31) - 1:
                raise LeftToTwin
            array = array.cast(pa.binary())
        data, offsets = slots_of(array)
        start, end = int(offsets[0]), int(offsets[-1])
        if start < 0 or end < start or end > len(data):
            raise LeftToTwin
        ends = self._put(offsets.view(np.uint8))
        place = self._put(data[start:end])
        return bits, place - start, ends, place, place + end - start
