"""Read the part of Thrift's compact protocol that Parquet uses, without trusting a byte.

Small tables (`Struct`, `ListOf`, `Wire`) that mirror `parquet.thrift` describe what to read; other
fields are skipped. Every size is checked against the remaining bytes, and varints and nesting are
bounded, so time and memory are proportional to the size of the input.
Spec: Thrift, "compact protocol".
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from variantlake.errors import MalformedFile

MAX_NESTING = 32
"""Our limit on nested structs and lists; Parquet's structures nest 6 deep."""

_MAX_VARINT_SHIFT = 63


class Wire(enum.IntEnum):
    """Type codes of the compact protocol."""

    STOP = 0
    TRUE = 1
    FALSE = 2
    I8 = 3
    I16 = 4
    I32 = 5
    I64 = 6
    DOUBLE = 7
    BINARY = 8
    LIST = 9
    SET = 10
    MAP = 11
    STRUCT = 12
    UUID = 13


Fields = dict[int, Any]
"""A decoded struct: by field id, the fields of its table that the bytes have."""


@dataclass(frozen=True, slots=True)
class Struct:
    """The fields of a struct to read, by id, and a function that builds the result.

    `build` gets the decoded fields and the offset of the struct's end in the file. With
    `names_unknown`, unknown fields have the value None, for unions whose members may be newer than
    the table.
    """

    fields: Mapping[int, Spec]
    build: Callable[[Fields, int], Any] = lambda fields, _: fields
    names_unknown: bool = False


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list whose elements all have one type.

    `at_once` may read all elements of a list of structs, faster than one by one: it gets the reader
    at the first one and their number, and leaves the reader after the last one. If it returns None,
    it has not moved the reader.
    """

    element: Spec
    at_once: Callable[[CompactReader, int], Sequence[Any] | None] | None = None


Spec = Wire | Struct | ListOf

_BITS = {int(Wire.I16): 16, int(Wire.I32): 32, int(Wire.I64): 64}
_VARINTS = frozenset(_BITS)
_BINARY, _LIST, _SET, _STRUCT = map(int, (Wire.BINARY, Wire.LIST, Wire.SET, Wire.STRUCT))
"""Plain numbers, since looking up a member of an enumeration is as slow as the rest of a field."""


class CompactReader:
    """A cursor over `data`; errors call it `what`, and `base` is its offset in the file.

    Every method raises MalformedFile, with the offset in the file, if the bytes end too early or
    break the protocol.
    """

    __slots__ = ("base", "data", "position", "what")

    def __init__(self, data: bytes, base: int = 0, what: str = "Parquet footer") -> None:
        self.data = data
        self.base = base
        self.what = what
        self.position = 0

    def fail(self, message: str) -> MalformedFile:
        """Return an error at the cursor."""
        return MalformedFile(message, offset=self.base + self.position)

    def byte(self) -> int:
        """Read a byte."""
        try:
            value = self.data[self.position]
        except IndexError:
            raise self.fail(f"the {self.what} is cut short") from None
        self.position += 1
        return value

    def varint(self) -> int:
        """Read an unsigned LEB128 number below 2**64."""
        result = shift = 0
        while True:
            byte = self.byte()
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > _MAX_VARINT_SHIFT:
                raise self.fail(f"a number in the {self.what} has more than 10 bytes")
        if result >> 64:
            raise self.fail(f"a number in the {self.what} is beyond 64 bits")
        return result

    def integer(self, bits: int) -> int:
        """Read a zigzag number that must fit `bits` bits."""
        number = self.varint()
        value = (number >> 1) ^ -(number & 1)
        if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            raise self.fail(f"number {value} in the {self.what} does not fit {bits} bits")
        return value

    def binary(self) -> bytes:
        """Read a size and that many bytes."""
        size = self.varint()
        start = self.position
        self.advance(size)
        return self.data[start : self.position]

    def advance(self, size: int) -> None:
        """Skip exactly `size` bytes."""
        if size > len(self.data) - self.position:
            raise self.fail(f"the {self.what} ends within a part of {size} bytes")
        self.position += size

    def field_header(self, last: int) -> tuple[int, int]:
        """Read the wire type and id of a struct's next field; `last` is the previous id, or 0."""
        header = self.byte()
        wire = header & 0x0F
        if wire == Wire.STOP:
            return wire, last
        return wire, (last + (header >> 4) if header >> 4 else self.integer(16))

    def list_header(self) -> tuple[int, int]:
        """Read the wire type and number of a list's elements, which each take a byte or more."""
        header = self.byte()
        size = header >> 4
        if size == 15:
            size = self.varint()
        if size > len(self.data) - self.position:
            raise self.fail(f"a list of {size} elements is longer than the {self.what}")
        return header & 0x0F, size

    def read(self, spec: Spec, wire: int, depth: int = 0) -> Any:
        """Read the value of wire type `wire` that `spec` describes."""
        if isinstance(spec, Struct):
            if wire != _STRUCT:
                raise self._unexpected(Wire.STRUCT, wire)
            return self._struct(spec, depth)
        if isinstance(spec, ListOf):
            if wire != _LIST:
                raise self._unexpected(Wire.LIST, wire)
            return self._list(spec, depth)
        if wire != spec and not (spec is Wire.TRUE and wire == Wire.FALSE):
            raise self._unexpected(spec, wire)
        if wire in _VARINTS:
            return self.integer(_BITS[wire])
        if wire == _BINARY:
            return self.binary()
        if wire == Wire.I8:
            return (self.byte() ^ 0x80) - 0x80
        return wire == Wire.TRUE

    def rest(self, spec: Struct, last: int) -> Any:
        """Read the rest of a struct whose field `last` ends at the cursor."""
        return self._struct(spec, 0, last)

    def _unexpected(self, expected: Wire, wire: int) -> MalformedFile:
        return self.fail(f"Thrift type {wire} in the {self.what}, expected {expected.name}")

    def _struct(self, spec: Struct, depth: int, last: int = 0) -> Any:
        if depth > MAX_NESTING:
            raise self.fail(f"the {self.what} nests deeper than {MAX_NESTING}")
        fields: Fields = {}
        specs = spec.fields
        data, size = self.data, len(self.data)
        while True:
            position = self.position
            # In most fields of a footer, header and number take one byte each. Reading them here,
            # without calls, is twice as fast.
            if position + 1 < size and (header := data[position]) > 0x0F:
                wire, last = header & 0x0F, last + (header >> 4)
                self.position = position + 1
                if wire in _VARINTS and (byte := data[position + 1]) < 0x80:
                    wanted = specs.get(last)
                    if wanted is None or wanted == wire:
                        if wanted is not None:
                            fields[last] = (byte >> 1) ^ -(byte & 1)
                        self.position = position + 2
                        continue
            else:
                wire, last = self.field_header(last)
            if wire == 0:  # STOP
                return spec.build(fields, self.base + self.position)
            wanted = specs.get(last)
            if wanted is None:
                self.skip(wire, depth + 1)
                if spec.names_unknown:
                    fields[last] = None
            else:
                fields[last] = self.read(wanted, wire, depth + 1)

    def _list(self, spec: ListOf, depth: int) -> Sequence[Any]:
        wire, size = self.list_header()
        if size and isinstance(spec.element, Wire) and wire != spec.element:
            raise self._unexpected(spec.element, wire)
        if wire == _STRUCT and spec.at_once is not None:
            found = spec.at_once(self, size)
            if found is not None:
                return found
        return [self.read(spec.element, wire, depth + 1) for _ in range(size)]

    def skip(self, wire: int, depth: int = 0) -> None:
        """Skip one value of wire type `wire`."""
        if depth > MAX_NESTING:
            raise self.fail(f"the {self.what} nests deeper than {MAX_NESTING}")
        if wire in _VARINTS:
            self._skip_varints(1)
        elif wire == _BINARY:
            self.advance(self.varint())
        elif wire == _STRUCT:
            self._skip_struct(depth)
        elif wire in (_LIST, _SET):
            element, size = self.list_header()
            if element in _VARINTS:
                self._skip_varints(size)
            elif element == _BINARY and depth < MAX_NESTING:
                self._skip_binaries(size)
            else:
                for _ in range(size):
                    self._skip_element(element, depth)
        elif wire in (Wire.TRUE, Wire.FALSE):
            return  # a struct's booleans are in the field header
        elif wire == Wire.I8:
            self.byte()
        elif wire == Wire.DOUBLE:
            self.advance(8)
        elif wire == Wire.UUID:
            self.advance(16)
        elif wire == Wire.MAP:
            self._skip_map(depth)
        else:
            raise self.fail(f"unknown Thrift type {wire} in the {self.what}")

    def _skip_struct(self, depth: int) -> None:
        data, size = self.data, len(self.data)
        while True:
            position = self.position
            # Fields of two bytes, as in _struct.
            if (
                position + 1 < size
                and data[position] > 0x0F
                and data[position] & 0x0F in _VARINTS
                and data[position + 1] < 0x80
            ):
                self.position = position + 2
                continue
            field, _ = self.field_header(0)
            if field == Wire.STOP:
                return
            self.skip(field, depth + 1)

    def _skip_binaries(self, count: int) -> None:
        """Skip texts: a footer has many, the columns' paths."""
        data, size = self.data, len(self.data)
        for _ in range(count):
            position = self.position
            if position < size and position + 1 + data[position] <= size and data[position] < 0x80:
                self.position = position + 1 + data[position]
            else:
                self.advance(self.varint())

    def _skip_varints(self, count: int) -> None:
        """Skip numbers: those of histograms are most of a footer's bytes."""
        data, size = self.data, len(self.data)
        for _ in range(count):
            # Numbers of one byte, as in _struct.
            if self.position < size and data[self.position] < 0x80:
                self.position += 1
            else:
                self.varint()

    def _skip_element(self, wire: int, depth: int) -> None:
        if wire in (Wire.TRUE, Wire.FALSE):
            self.byte()  # in a list, a boolean takes a byte
        else:
            self.skip(wire, depth + 1)

    def _skip_map(self, depth: int) -> None:
        size = self.varint()
        if not size:
            return
        types = self.byte()
        if size > len(self.data) - self.position:
            raise self.fail(f"a map of {size} entries is longer than the {self.what}")
        for _ in range(size):
            self._skip_element(types >> 4, depth)
            self._skip_element(types & 0x0F, depth)
