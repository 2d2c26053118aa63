"""Shred a tape into Arrow columns. Twin: tests.twins.shred."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import pyarrow as pa

from variantlake.kernels.native.declared import Int32s, Int64s, Records
from variantlake.kernels.shredded.shred_rows import (
    ARRAYS,
    BOOLEANS,
    DECIMALS,
    EXACTLY,
    FIELD,
    INTEGER,
    INTEGERS,
    NOTHING,
    OBJECTS,
    SIXTEEN,
    STRINGS,
    PlacedNodes,
    fill_columns,
    list_elements,
    place_rows,
)
from variantlake.kernels.tape.arrow_arrays import (
    AnyArray,
    array_of,
    bitmap_of,
    list_of,
    new_buffer,
    nulls_of,
    struct_of,
)
from variantlake.kernels.tape.dictionary import Dictionary, choose_dictionary, field_ids, nodes_for
from variantlake.kernels.tape.exact import PADDED, WHOLE
from variantlake.kernels.tape.keys import KeyTable
from variantlake.kernels.tape.tape import Tape
from variantlake.kernels.tape.words import PADDING
from variantlake.kernels.variant.variant_writer import write_variant
from variantlake.paths import Path
from variantlake.shredding.layout import arrow_type
from variantlake.shredding.schema import Array, Leaf, Node, Object, ShreddingSchema, Untyped
from variantlake.shredding.values import ValueNotes
from variantlake.types import PRIMITIVES, Kind

_MEMBERS = ("valid", "offsets", "data")
"""The buffers of a column, as FIELD names their places."""
_INTEGER_BYTES = {Kind.INT8: 1, Kind.INT16: 2, Kind.INT32: 4, Kind.INT64: 8}


@dataclass(slots=True)
class _Field:
    """A node of the schema within one level. `element` is the level of an array's elements."""

    node: Node
    path: Path
    children: list[int] = field(default_factory=list)
    element: _Level | None = None


class _Level:
    """The fields with one value a row. The elements of an array are a level of their own."""

    def __init__(self, root: Node, path: Path) -> None:
        self.fields: list[_Field] = []
        self._add(root, path)
        self.records: Records = np.zeros(len(self.fields), FIELD).view(np.recarray)
        for record, described in zip(self.records, self.fields, strict=True):
            _describe(record, described.node)
        self._objects = [i for i, one in enumerate(self.fields) if isinstance(one.node, Object)]
        self.lookup: Int32s = np.empty(0, np.int32)

    def _add(self, node: Node, path: Path) -> int:
        index = len(self.fields)
        added = _Field(node, path)
        self.fields.append(added)
        if isinstance(node, Object):
            added.children = [self._add(child, path.child(name)) for name, child in node.fields]
        elif isinstance(node, Array):
            added.element = _Level(node.element, path.child(0))
        return index

    def bind(self, ids: dict[str, int], key_count: int) -> None:
        """Learn which key ids are fields here."""
        lookup = np.full((max(1, len(self._objects)), key_count), -1, np.int32)
        for row, index in enumerate(self._objects):
            one = self.fields[index]
            self.records[index].lookup = row * key_count
            assert isinstance(one.node, Object)  # noqa: S101 - for mypy; _objects holds no others
            for (name, _), child in zip(one.node.fields, one.children, strict=True):
                key = ids.get(name)
                if key is not None:
                    lookup[row, key] = child
        self.lookup = lookup.reshape(-1)
        for one in self.fields:
            if one.element is not None:
                one.element.bind(ids, key_count)


def _describe(record: Records, node: Node) -> None:
    """Describe for the kernels which values a field's typed_value takes."""
    match node:
        case Untyped():
            record.takes = NOTHING
        case Object():
            record.takes = OBJECTS
        case Array():
            record.takes = ARRAYS
        case Leaf(type=shredded):
            kind = shredded.kind
            record.tag = int(shredded.info.primitives[0])
            if kind in _INTEGER_BYTES:
                width = _INTEGER_BYTES[kind]
                record.takes, record.width = INTEGERS, width
                record.low, record.high = -(1 << 8 * width - 1), (1 << 8 * width - 1) - 1
            elif kind is Kind.DECIMAL:
                record.takes, record.width = DECIMALS, 16
                record.precision, record.scale = shredded.precision, shredded.scale
            elif kind is Kind.BOOLEAN:
                record.takes = BOOLEANS
            elif kind in (Kind.STRING, Kind.BINARY):
                record.takes = STRINGS
            elif kind is Kind.UUID:
                record.takes, record.width = SIXTEEN, 16
            else:
                record.takes, record.width = EXACTLY, PRIMITIVES[shredded.info.primitives[0]].width


class Shredder:
    """Shreds tapes by one schema. One thread at a time.

    `notes` are about the values of the last tape.
    """

    def __init__(self, schema: ShreddingSchema) -> None:
        self.schema = schema
        self.notes = ValueNotes()
        self._type = arrow_type(schema)
        self._level = _Level(schema.root, Path())
        self._bound: tuple[KeyTable, int] | None = None

    def shred(self, tape: Tape) -> pa.StructArray:
        """The rows as an array of exactly layout.arrow_type(schema).

        A bad row is a null struct, with empty bytes as its metadata.
        """
        if isinstance(self.schema.root, Untyped):
            self.notes = ValueNotes(tape.has_lacking)
            return write_variant(tape)
        self._bind(tape)
        good = tape.status == 0
        roots = np.where(good, tape.first[:-1], -1)
        batch = _ShredBatch(tape)
        children = batch.group(self._level, roots, list(self._type)[1:])
        integers, whole, padded = map(frozenset, batch.noted.values())
        self.notes = ValueNotes(tape.has_lacking, integers, whole, padded)
        metadata = batch.dictionary.metadata
        return struct_of(self._type, tape.rows, bitmap_of(good), [metadata, *children])

    def _bind(self, tape: Tape) -> None:
        bound = (tape.keys, tape.key_count)
        if self._bound != bound:
            names = tape.keys.names()[1 : tape.key_count]
            ids = {name.decode(): key for key, name in enumerate(names, start=1)}
            self._level.bind(ids, tape.key_count)
            self._bound = bound


class _ShredBatch:
    """One tape on its way into columns."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.dictionary: Dictionary = choose_dictionary(tape)
        self.noted: dict[int, set[Path]] = {bit: set() for bit in (INTEGER, WHOLE, PADDED)}
        self._nodes = nodes_for(tape, self.dictionary)
        self._ids = field_ids(tape, self.dictionary)
        self._skip = np.zeros(tape.node_count, np.uint8)

    def group(
        self, level: _Level, roots: Int64s, members: Sequence[pa.Field[pa.DataType]]
    ) -> list[AnyArray]:
        """`value`, and `typed_value` if `members` have it, of the values nodes[roots]."""
        tape, rows, count = self.tape, len(roots), len(level.fields)
        records = level.records.copy()
        states = np.zeros(count * rows, np.uint8)
        places = np.empty(count * rows, np.int32)
        placed = PlacedNodes(states, places, self._skip)
        place_rows(
            tape.text, tape.arena, self._nodes, roots, records, level.lookup,
            self.dictionary.id_width, placed, np.empty(6 * count, np.int64), np.empty(16, np.uint8),
        )  # fmt: skip
        columns = _Columns(level, records, rows)
        fill_columns(
            tape.text, tape.arena, self._nodes, records, rows, placed, self._ids, columns.out
        )
        for bit, paths in self.noted.items():
            for index in np.flatnonzero(records["special"] & bit).tolist():
                paths.add(level.fields[index].path)
        for index, one in enumerate(level.fields):
            if one.element is not None:
                elements = np.empty(int(records["typed_bytes"][index]), np.int64)
                part = slice(index * rows, (index + 1) * rows)
                list_elements(self._nodes, states[part], places[part], elements)
                columns.elements[index] = (self, one.element, elements)
        return columns.group(0, members)


class _Columns:
    """The buffers of one level's columns, and the arrays made of them.

    What the records hold is read and written a column at a time: NumPy takes a microsecond for
    each member of a record, and there are many fields.
    """

    def __init__(self, level: _Level, records: Records, rows: int) -> None:
        self.level = level
        self.rows = rows
        self.elements: dict[int, tuple[_ShredBatch, _Level, Int64s]] = {}
        self._size = 0
        self._takes, self._typed_counts, self._value_counts = (
            records[name].tolist() for name in ("takes", "typed_count", "value_count")
        )
        bitmap, offsets = (rows + 63) // 64 * 8, 4 * rows + 4
        sizes = {
            STRINGS: lambda count, _: (offsets, count),
            ARRAYS: lambda *_: (offsets, 0),
            OBJECTS: lambda *_: (0, 0),
            BOOLEANS: lambda *_: (0, bitmap),
        }
        fixed = lambda _, width: (0, width * rows)
        self._typed_places = [
            self._lay_out(bitmap, *sizes.get(takes, fixed)(size, width)) if count else (0, 0, 0)
            for takes, count, size, width in zip(
                self._takes,
                self._typed_counts,
                records["typed_bytes"].tolist(),
                records["width"].tolist(),
                strict=True,
            )
        ]
        self._value_places = [
            self._lay_out(bitmap, offsets, size) if count else (0, 0, 0)
            for count, size in zip(self._value_counts, records["value_bytes"].tolist(), strict=True)
        ]
        for kind, places in (("typed", self._typed_places), ("value", self._value_places)):
            for member, column in zip(_MEMBERS, zip(*places, strict=True), strict=True):
                records[f"{kind}_{member}"] = column
        self._buffer, self.out = new_buffer(self._size + PADDING)
        self._no_values = nulls_of(pa.binary(), rows)

    def _lay_out(self, *sizes: int) -> tuple[int, ...]:
        """Assign places to buffers of these sizes, with room for a whole block after each."""
        places = []
        for size in sizes:
            places.append(self._size)
            self._size += (size + PADDING + 63) // 64 * 64 if size else 0
        return tuple(places)

    def group(self, index: int, members: Sequence[pa.Field[pa.DataType]]) -> list[AnyArray]:
        """Build the members of the group of a field."""
        value = self._value(index)
        if len(members) == 1:
            return [value]
        return [value, self._typed(index, members[1].type)]

    def _slice(self, start: int) -> pa.Buffer:
        return self._buffer.slice(start)

    def _value(self, index: int) -> AnyArray:
        count = self._value_counts[index]
        if count == 0:
            return self._no_values
        valid, offsets, data = map(self._slice, self._value_places[index])
        buffers = [None if count == self.rows else valid, offsets, data]
        return array_of(pa.binary(), self.rows, buffers, nulls=self.rows - count)

    def _typed(self, index: int, arrow: pa.DataType) -> AnyArray:
        one, count = self.level.fields[index], self._typed_counts[index]
        bitmap, offsets, data = map(self._slice, self._typed_places[index])
        valid = None if count == self.rows else bitmap
        if isinstance(one.node, Object):
            children: list[AnyArray] = [
                struct_of(member.type, self.rows, None, self.group(child, list(member.type)))
                for child, member in zip(one.children, cast("pa.StructType", arrow), strict=True)
            ]
            if count == 0:
                valid = pa.py_buffer(bytes((self.rows + 7) // 8))
            return struct_of(arrow, self.rows, valid, children)
        if count == 0:
            return nulls_of(arrow, self.rows)
        if isinstance(one.node, Array):
            batch, level, roots = self.elements[index]
            element = cast("pa.ListType[pa.StructType]", arrow).value_type
            items = struct_of(element, len(roots), None, batch.group(level, roots, list(element)))
            return list_of(arrow, self.rows, valid, offsets, items)
        buffers = [valid, offsets, data] if self._takes[index] == STRINGS else [valid, data]
        return array_of(arrow, self.rows, buffers, nulls=self.rows - count)
