"""Hash rows of Arrow columns, with Variants shredded in any way or not at all.

Shredded columns stay apart: each typed column adds its values to the sums of their rows, and
residuals add theirs through a tape. So two files with the same rows in different
layouts have the same sums, and most of the work is a multiplication or two for each value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
import pyarrow as pa

from variantlake.encoding.limits import MAX_DEPTH
from variantlake.errors import MalformedVariant, UnsupportedFeature
from variantlake.kernels.digest.leaves import (
    BITS,
    DECIMAL,
    FIXED,
    NUMBER,
    WORDS,
    add_bytes,
    add_fixed,
    add_tape,
    add_words,
    close_rows,
    hash_keys,
    paths_below,
    paths_of_elements,
)
from variantlake.kernels.digest.mixing import hash_name
from variantlake.kernels.native.declared import Bytes, Int64s
from variantlake.kernels.tape.arrow_arrays import are_within, plain_binary, slots_of
from variantlake.kernels.tape.keys import KeyTable
from variantlake.kernels.tape.nodes import ARRAY, NULL, OBJECT
from variantlake.kernels.variant.variant_reader import VariantReader, bad_variant
from variantlake.shredding.arrays import list_of, members, offsets_of, parts_of, struct_of, valid_of
from variantlake.shredding.fit import encoded_type
from variantlake.shredding.layout import (
    METADATA,
    TYPED_VALUE,
    VALUE,
    VARIANT_TYPE,
    is_list,
    is_struct,
    is_text,
)
from variantlake.types import EMPTY_METADATA, PRIMITIVES, Family, Primitive

_MASK = (1 << 64) - 1
_NONE: Int64s = np.empty(0, np.int64)
_PASSED = "the offsets of an Arrow array pass its data"
_NO_BYTES: Bytes = np.empty(0, np.uint8)


@dataclass(frozen=True, slots=True)
class Digest:
    """The sum of the hashes of rows, in two halves of 64 bits, and how many rows there are.

    It depends on the rows alone: not on their order, the files that they are in, or how these are
    laid out. Digests of parts add up to that of the whole.
    """

    rows: int = 0
    low: int = 0
    high: int = 0

    def __add__(self, other: Digest) -> Digest:
        return Digest(
            self.rows + other.rows, self.low + other.low & _MASK, self.high + other.high & _MASK
        )

    @property
    def hex(self) -> str:
        """Both halves as 32 hexadecimal digits."""
        return f"{self.high:016x}{self.low:016x}"


@dataclass(frozen=True, slots=True)
class _Slots:
    """The slots of an array: the path of each (or one of all), and its row (empty: the slot)."""

    paths: Int64s
    rows: Int64s

    def below(self, name: str, count: int) -> Self:
        """The slots of a struct's field."""
        paths = np.empty(count if len(self.paths) > 1 else 1, np.int64)
        paths_below(self.paths, hash_name(name), paths)
        return type(self)(paths, self.rows)

    def elements(self, offsets: Int64s) -> Self:
        """The slots of the elements of lists."""
        lengths = np.diff(offsets)
        rows = np.arange(len(lengths), dtype=np.int64) if not len(self.rows) else self.rows
        paths = np.empty(max(int(offsets[-1]), 2), np.int64)
        paths_of_elements(self.paths, offsets, paths)
        return type(self)(paths, np.repeat(rows, lengths))

    def only(self, places: Int64s) -> Self:
        """Some of the slots."""
        paths = self.paths if len(self.paths) == 1 else self.paths[places]
        if len(paths) == 1 and len(self.paths) > 1:
            paths = np.repeat(paths, 2)
        return type(self)(paths, self.rows[places] if len(self.rows) else places)


class RowSums:
    """What the columns of a batch add to the hashes of its rows; used again for the next batch."""

    def __init__(self) -> None:
        self._reader = VariantReader()
        self._keys: tuple[KeyTable | None, Int64s] = (None, _NONE)
        self._stack = np.empty(4 * (MAX_DEPTH + 2), np.int64)
        self._sums = _NONE
        self._is_stored = False

    def start(self, rows: int) -> None:
        """Begin a batch of so many rows."""
        self._sums = np.zeros(rows, np.int64)

    def close(self, kept: np.ndarray[Any, Any] | None = None) -> tuple[Digest, Int64s]:
        """The digest of the rows that are `kept` (bool; all if None), and the hash of every row."""
        rows = len(self._sums)
        flags = np.ones(rows, np.uint8) if kept is None else np.ascontiguousarray(kept, np.uint8)
        hashes, total = np.empty(rows, np.int64), np.zeros(2, np.int64)
        close_rows(self._sums, flags, hashes, total)
        low, high = (int(word) & _MASK for word in total)
        return Digest(int(np.count_nonzero(flags)), low, high), hashes

    def add_constant(self, name: str, text: str | None) -> None:
        """Add a column that has one text, or NULL, in all rows."""
        if text is not None and len(self._sums):
            array: Any = pa.array([text], pa.string())
            column, self._sums = self._sums, np.zeros(1, np.int64)
            self.add_column(name, array)
            self._sums = column + self._sums[0]

    def add_column(self, name: str, array: Any) -> None:
        """Add an ordinary column, a struct<metadata, value> wherever it is being a Variant."""
        self._add(array, _root(name))

    def add_stored(self, name: str, array: Any) -> None:
        """Add a Variant column as it is stored: residuals and metadata by their bytes.

        Twice as fast as `add_variants`, but equal only for the same layout and the same bytes.
        """
        slots = _root(name)
        storage = struct_of(array)
        parts = parts_of(storage)
        metadata = parts[_place(storage, METADATA)]
        self._add(metadata, slots.below(METADATA, len(array)))
        self._is_stored = True
        try:
            self._add_group(storage, slots, metadata, required=False)
        finally:
            self._is_stored = False

    def add_variants(self, name: str, array: Any) -> None:
        """Add a Variant column as a file holds it, shredded in the final layout or not at all.

        Raises MalformedVariant, with the row, for bytes that are not Variant.
        """
        storage = struct_of(array)
        metadata = storage.field(_place(storage, METADATA))
        self._add_group(storage, _root(name), metadata, required=True)

    # --- Ordinary columns -------------------------------------------------------------------------

    def _add(self, array: Any, slots: _Slots) -> None:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        if isinstance(array, pa.DictionaryArray):
            if not len(slots.rows) and len(array.dictionary) * 2 <= len(array):
                self._add_dictionary(array, slots)
                return
            array = array.dictionary_decode()
        kind = array.type
        if not len(array) or pa.types.is_null(kind):
            return
        if kind.equals(VARIANT_TYPE):
            self._add_values(array, slots, array.field(0), array.field(1), None, has_own_keys=True)
        elif is_struct(kind):
            self._words(array, np.zeros(len(array), np.int64), OBJECT, slots)
            for field, child in zip(members(kind), parts_of(array), strict=True):
                self._add(child, slots.below(field.name, len(array)))
        elif is_list(kind) or pa.types.is_map(kind):
            self._add(*self._elements(array, slots))
        else:
            self._leaf(array, _tag_of(kind), slots)

    def _add_dictionary(self, array: Any, slots: _Slots) -> None:
        """Add a top-level column of few values: each of them is hashed once."""
        sums, self._sums = self._sums, np.zeros(len(array.dictionary), np.int64)
        try:
            self._add(array.dictionary, slots)
            words = self._sums
        finally:
            self._sums = sums
        places = array.indices
        if places.null_count:
            valid = valid_of(places)
            sums[valid] += words[places.drop_null().to_numpy()]
        else:
            sums += words[places.to_numpy()]

    def _elements(self, array: Any, slots: _Slots) -> tuple[Any, _Slots]:
        """Add the lengths of lists; their elements and the slots of these."""
        lists = array if pa.types.is_map(array.type) else list_of(array)
        offsets, elements = offsets_of(lists)
        self._words(lists, np.diff(offsets), ARRAY, slots)
        return elements, slots.elements(offsets)

    def _words(self, array: Any, words: Int64s, tag: int, slots: _Slots) -> None:
        bits, at = _bits(array)
        add_words(words, tag, bits, at, slots.paths, slots.rows, self._sums)

    def _leaf(self, array: Any, tag: int, slots: _Slots) -> None:
        """Add the values of an array without children."""
        if array.null_count == len(array):
            return
        kind = array.type
        bits, at = _bits(array)
        if tag in (Primitive.STRING, Primitive.BINARY) and not pa.types.is_fixed_size_binary(kind):
            data, offsets = _bytes_of(array)
            if add_bytes(
                data, offsets.view(np.uint8), offsets.itemsize, tag, bits, at, slots.paths,
                slots.rows, self._sums,
            ):  # fmt: skip
                raise MalformedVariant(_PASSED)
            return
        form, scale = FIXED, 0
        if pa.types.is_boolean(kind):
            form, width = BITS, 1
        else:
            width = kind.bit_width // 8
        if pa.types.is_decimal(kind):
            form, scale = DECIMAL, kind.scale
            if width > 16 or scale < 0:
                raise UnsupportedFeature(f"no digest of {kind}")
        elif pa.types.is_fixed_size_binary(kind):
            form = WORDS
        content = array.buffers()[1]
        data = _NO_BYTES if content is None else np.frombuffer(content, np.uint8)
        add_fixed(
            data, form, width, scale, tag, array.offset, bits, at, len(array),
            slots.paths, slots.rows, self._sums,
        )  # fmt: skip

    # --- Variants ---------------------------------------------------------------------------------

    def _add_group(
        self, group: pa.StructArray, slots: _Slots, metadata: Any, *, required: bool
    ) -> None:
        """Add a `value` with its `typed_value`; a `required` one is null if it is missing."""
        parts = dict(zip([f.name for f in members(group.type)], parts_of(group), strict=True))
        typed, value = parts.get(TYPED_VALUE), parts.get(VALUE)
        beside = None
        if typed is not None and typed.null_count < len(typed):
            if is_struct(typed.type):
                beside = typed
                self._words(typed, np.zeros(len(typed), np.int64), OBJECT, slots)
                for field, child in zip(members(typed.type), parts_of(typed), strict=True):
                    below = slots.below(field.name, len(typed))
                    self._add_group(struct_of(child), below, metadata, required=False)
            elif is_list(typed.type):
                elements, inside = self._elements(typed, slots)
                self._add_group(struct_of(elements), inside, metadata, required=True)
            else:
                self._typed(typed, slots)
        if value is not None and self._is_stored:
            self._add(value, slots)
        elif value is not None and value.null_count < len(value):
            self._add_values(group, slots, metadata, value, beside)
        if required and not self._is_stored:
            self._add_missing(group, value, typed, slots)

    def _add_missing(self, group: Any, value: Any, typed: Any, slots: _Slots) -> None:
        there = [part for part in (value, typed) if part is not None]
        if any(part.null_count == 0 for part in there):
            return
        missing = valid_of(group)
        for part in there:
            missing = missing & part.is_null().to_numpy(zero_copy_only=False)
        places = np.flatnonzero(missing)
        if len(places):
            own = slots.only(places)
            none = np.zeros(len(places), np.int64)
            add_words(none, NULL, _NO_BYTES, 0, own.paths, own.rows, self._sums)

    def _typed(self, typed: Any, slots: _Slots) -> None:
        primitive = encoded_type(typed.type)
        tag = NUMBER if PRIMITIVES[primitive].family is Family.EXACT_NUMERIC else int(primitive)
        if isinstance(typed, pa.ExtensionArray):
            typed = typed.storage
        if isinstance(typed, pa.DictionaryArray):
            typed = typed.dictionary_decode()
        self._leaf(typed, tag, slots)

    def _add_values(
        self,
        group: Any,
        slots: _Slots,
        metadata: Any,
        value: Any,
        beside: Any,
        *,
        has_own_keys: bool = False,
    ) -> None:
        """Add encoded values; next to objects that were added where `beside` is not null.

        `metadata` is that of rows, or of these slots where each of them `has_own_keys`.
        """
        if isinstance(value, pa.DictionaryArray):
            value = value.dictionary_decode()
        present = valid_of(value)
        if group.null_count:
            present = present & valid_of(group)
        if not len(slots.rows) and present.all() and beside is None:
            self._add_tape(metadata, value, None, slots)
            return
        data, offsets = _bytes_of(value)
        places = np.flatnonzero(present)
        if not are_within(offsets, data):
            raise MalformedVariant(_PASSED)
        if (offsets[places] == offsets[places + 1]).any():
            raise MalformedVariant("a residual value of no bytes")
        is_container = (data[offsets[places]] & 2) != 0
        for chosen, has_keys in ((places[is_container], True), (places[~is_container], False)):
            if not len(chosen):
                continue
            own = slots.only(chosen)
            taken = value.take(pa.array(chosen))
            if has_keys:
                keys = metadata.take(pa.array(chosen if has_own_keys else own.rows))
            else:
                keys = pa.repeat(pa.scalar(EMPTY_METADATA, pa.binary()), len(chosen))
            rest = None
            if beside is not None:
                rest = valid_of(beside)[chosen]
            self._add_tape(keys, taken, rest, own)

    def _add_tape(self, metadata: Any, value: Any, beside: Any, slots: _Slots) -> None:
        array = pa.StructArray.from_arrays(
            [plain_binary(metadata), plain_binary(value)], names=[METADATA, VALUE]
        )
        tape = self._reader.read(array)
        bad = np.flatnonzero(tape.bad)
        if len(bad):
            error = bad_variant(array, int(bad[0]))
            error.row = int(slots.rows[bad[0]] if len(slots.rows) else bad[0])
            raise error
        flags = _NO_BYTES if beside is None else np.ascontiguousarray(beside, np.uint8)
        add_tape(
            tape.text, tape.arena, tape.nodes, tape.first, self._key_hashes(tape.keys),
            slots.paths, slots.rows, flags, self._stack, self._sums,
        )  # fmt: skip

    def _key_hashes(self, table: KeyTable) -> Int64s:
        known, hashes = self._keys
        if known is not table or len(hashes) != table.count:
            hashes = np.empty(table.count, np.int64)
            hash_keys(table.keys, table.key_bytes, hashes)
            self._keys = table, hashes
        return hashes


def _root(name: str) -> _Slots:
    paths = np.empty(1, np.int64)
    paths_below(np.zeros(1, np.int64), hash_name(name), paths)
    return _Slots(paths, _NONE)


def _place(storage: Any, name: str) -> int:
    return [field.name for field in members(storage.type)].index(name)


def _bits(array: Any) -> tuple[Bytes, int]:
    """The validity of an array, and the bit of its first slot; nothing if no slot is null."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if not array.null_count:
        return _NO_BYTES, 0
    return cast("Bytes", np.frombuffer(array.buffers()[0], np.uint8)), array.offset


def _bytes_of(array: Any) -> tuple[Any, Any]:
    """The data of strings or bytes, and the offsets of the slots, int32 or int64, not checked."""
    return slots_of(array if is_text(array.type) else array.cast(pa.large_binary()))


def _tag_of(kind: pa.DataType) -> int:
    """The type under which values of an ordinary column are hashed. Raises UnsupportedFeature."""
    if pa.types.is_boolean(kind):
        return int(Primitive.TRUE)
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return NUMBER
    if pa.types.is_float32(kind) or pa.types.is_float16(kind):
        return int(Primitive.FLOAT)
    if pa.types.is_float64(kind):
        return int(Primitive.DOUBLE)
    if pa.types.is_date(kind):
        return int(Primitive.DATE)
    if pa.types.is_timestamp(kind):
        return int(Primitive.TIMESTAMP)
    if pa.types.is_time(kind):
        return int(Primitive.TIME)
    if pa.types.is_fixed_size_binary(kind):
        return int(Primitive.BINARY)
    if is_text(kind) or pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return int(Primitive.STRING)
    raise UnsupportedFeature(f"no digest of columns of {kind}")
