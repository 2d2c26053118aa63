"""Shredded columns back to Variants, one column at a time. Twin: shredding.reconstruct.

From the leaves up, every group becomes one encoded value a slot; an object or array copies those of
its children. What is wrong or rare is not decided here: such rows are marked, and the twin reads
them. Spec: VariantShredding, "Reconstructing a Shredded Variant".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.encoding.limits import MAX_VALUE_BYTES
from variantlake.encoding.metadata import decode_metadata
from variantlake.errors import VariantLakeError
from variantlake.kernels._jit import Bytes, Int32s, Int64s
from variantlake.kernels.arrow_arrays import AnyArray, array_of, buffer_of
from variantlake.kernels.shredded_arrays import (
    LeftToTwin,
    are_decimals,
    binary_of,
    bytes_of,
    collect_names,
    fixed_of,
    names_of,
    padded,
    valid_of,
)
from variantlake.kernels.unshred_slots import write_arrays, write_bytes, write_objects, write_rows
from variantlake.kernels.words import PADDING
from variantlake.shredding.arrays import list_of, members, struct_of
from variantlake.shredding.fit import encoded_type
from variantlake.shredding.layout import (
    METADATA,
    TYPED_VALUE,
    VALUE,
    VARIANT_TYPE,
    is_list,
    is_struct,
    schema_of,
)
from variantlake.shredding.reconstruct import reconstruct
from variantlake.types import PRIMITIVES, BasicType, Family, Primitive

_TWIN_SHARE = 16
"""With more than one row in so many marked, the twin reads the whole batch: that is faster."""

_LARGEST_ARRAY = (1 << 31) - 1
_TRUE, _FALSE = Primitive.TRUE << 2, Primitive.FALSE << 2


def unshred(array: pa.StructArray) -> pa.StructArray:
    """Rebuild every row of a Variant column, as `reconstruct` does: same bytes, same errors.

    Returns struct<metadata: binary not null, value: binary not null>; SQL NULL is a null struct.

    Raises MalformedFile, MalformedVariant, InvalidSchema as `reconstruct` does.
    """
    schema_of(array.type)
    storage = struct_of(array)
    if len(storage) == 0 or TYPED_VALUE not in {field.name for field in members(storage.type)}:
        return reconstruct(array)
    try:
        return rebuild(storage, reconstruct=lambda row: reconstruct(storage.slice(row, 1)))
    except (LeftToTwin, pa.ArrowNotImplementedError):
        return reconstruct(array)


def rebuild(
    storage: pa.StructArray,
    *,
    reconstruct: Callable[[int], pa.StructArray],
    marked: Bytes | None = None,
) -> pa.StructArray:
    """Rebuild the rows of struct<metadata, value, typed_value>, one row at least.

    `reconstruct` gives one row by the plain reader, which decides about all that is wrong or rare;
    `marked` (uint8, one a row, changed in place) are rows to leave to it from the beginning.

    Raises what `reconstruct` raises; LeftToTwin, or ArrowNotImplementedError, when all rows are
    better left to it.
    """
    return _Batch(storage, reconstruct, marked).rebuild()


@dataclass(frozen=True, slots=True)
class _Slots:
    """Encoded values: that of slot i is data[starts[i]:][:lengths[i]], missing when empty.

    data: uint8, padded; starts, lengths: int64, shape (slots,).
    """

    data: Bytes
    starts: Int64s
    lengths: Int64s

    @property
    def used(self) -> int:
        """Bytes of data before the padding."""
        return len(self.data) - PADDING


@dataclass(frozen=True, slots=True)
class _Dictionaries:
    """The different key dictionaries of a batch.

    of_row: int64, shape (rows,), which one; -1 for one that the twin has to look at.
    ids: int64, shape (dictionaries, names); the id of each shredded name, -1 when it has none.
    ranks: int32, all dictionaries' ids after one another: the places of their keys in UTF-8 order.
    starts: int64, shape (dictionaries + 1,), into ranks.
    """

    of_row: Int64s
    ids: np.ndarray[tuple[int, int], np.dtype[np.int64]]
    ranks: Int32s
    starts: Int64s


class _Batch:
    """One batch on its way."""

    def __init__(
        self,
        array: pa.StructArray,
        reconstruct: Callable[[int], pa.StructArray],
        marked: Bytes | None,
    ) -> None:
        self._array = array
        self._reconstruct = reconstruct
        self._marked = np.zeros(len(array), np.uint8) if marked is None else marked
        children = dict(zip(names_of(array), array.flatten(), strict=True))
        self._metadata = binary_of(children[METADATA])
        names: dict[str, int] = {}
        collect_names(array.type, names)
        self._columns = names
        self._dictionaries = _dictionaries(self._metadata, list(names))

    def rebuild(self) -> pa.StructArray:
        """The rows as Variants."""
        rows = len(self._array)
        slots = self._group(self._array, np.arange(rows, dtype=np.int64))
        valid = valid_of(self._array)
        missing = valid & (slots.lengths == 0)
        typed = np.zeros(rows, np.bool_)
        if TYPED_VALUE in names_of(self._array):
            typed = valid_of(self._array.field(TYPED_VALUE))
        # Only a value that stands there as a whole does without the dictionary.
        unknown = (missing | typed) & (self._dictionaries.of_row < 0)
        self._mark(valid & (unknown | ~valid_of(self._metadata)), None)
        self._mark(slots.lengths > MAX_VALUE_BYTES, None)
        # A missing value reads as Variant null.
        null = _Slots(np.zeros(1 + PADDING, np.uint8), np.zeros(rows, np.int64), missing * 1)
        slots = _either(missing, null, slots)
        marked = np.flatnonzero(self._marked)
        if len(marked) * _TWIN_SHARE > rows:
            raise LeftToTwin
        metadata: AnyArray = self._metadata.cast(pa.binary()).fill_null(b"")
        if len(marked) > 0:
            twins = [self._row_of_twin(int(row)) for row in marked]
            metadata = _replaced(metadata, self._marked, [pair[0] for pair in twins])
            slots = _patched(slots, marked, [pair[1] for pair in twins])
        total = int(slots.lengths.sum())
        if total > _LARGEST_ARRAY:
            raise LeftToTwin
        offsets = np.zeros(rows + 1, np.int32)
        np.cumsum(slots.lengths, out=offsets[1:])
        out = np.empty(total + PADDING, np.uint8)
        write_rows(slots.data, slots.starts, slots.lengths, out)
        value = array_of(pa.binary(), rows, [None, buffer_of(offsets), buffer_of(out)])
        return pa.StructArray.from_arrays(
            [metadata, value], fields=list(VARIANT_TYPE), mask=pa.array(~valid)
        )

    def _row_of_twin(self, row: int) -> tuple[bytes, bytes]:
        try:
            one: Any = self._reconstruct(row)[0].as_py()
        except VariantLakeError as error:
            error.row = row
            raise
        return (b"", b"") if one is None else (one[METADATA], one[VALUE])

    def _mark(self, which: Any, rows: Int64s | None) -> None:
        """Leave rows to the twin: those of the slots that are set in `which`."""
        self._marked[which if rows is None else rows[which]] = 1

    def _group(self, group: pa.StructArray, rows: Int64s) -> _Slots:
        """The slots of a `value` with its `typed_value`; `rows` has the row of each slot."""
        # Flattened: what stands below a null group is missing.
        parts = dict(zip(names_of(group), group.flatten(), strict=True))
        value = self._values(parts[VALUE], rows) if VALUE in parts else None
        if TYPED_VALUE not in parts:
            return _none(len(rows)) if value is None else value
        array = parts[TYPED_VALUE]
        is_set = valid_of(array)
        typed = self._typed(array, is_set, value, rows)
        return typed if value is None else _either(is_set, typed, value)

    def _typed(self, array: AnyArray, is_set: Any, value: _Slots | None, rows: Int64s) -> _Slots:
        rest = _none(len(rows)) if value is None else value
        basic = None
        if is_struct(array.type):
            basic = BasicType.OBJECT
            typed = self._objects(struct_of(array), is_set, rest, rows)
        else:
            self._mark(is_set & (rest.lengths > 0), rows)
            if is_list(array.type):
                basic = BasicType.ARRAY
                typed = self._arrays(array, is_set, rows)
            else:
                typed = self._leaves(array, is_set, rows)
        if basic is not None:
            alone = ~is_set & (rest.lengths > 0)
            self._mark(alone & (rest.data[rest.starts] & 3 == basic), rows)
        return typed

    def _values(self, array: AnyArray, rows: Int64s) -> _Slots:
        data, offsets = bytes_of(binary_of(array))
        lengths = np.diff(offsets)
        # Not even a Variant null is empty.
        self._mark(valid_of(array) & (lengths == 0), rows)
        lengths[~valid_of(array)] = 0
        return _Slots(data, np.ascontiguousarray(offsets[:-1]), lengths)

    def _leaves(self, array: AnyArray, is_set: Any, rows: Int64s) -> _Slots:
        plain: Any = array
        if isinstance(plain, pa.DictionaryArray):
            plain = plain.dictionary_decode()
        primitive = encoded_type(plain.type)
        if primitive in (Primitive.STRING, Primitive.BINARY):
            return self._strings(plain, is_set, rows, is_text=primitive is Primitive.STRING)
        if isinstance(plain, pa.ExtensionArray):
            plain = plain.storage
        lengths = is_set.astype(np.int64)
        if primitive is Primitive.TRUE:
            bits = plain.fill_null(False).to_numpy(zero_copy_only=False)
            headers = np.where(bits, np.uint8(_TRUE), np.uint8(_FALSE))
            return _Slots(padded(headers), np.arange(len(rows), dtype=np.int64), lengths)
        raw = fixed_of(plain)
        width = PRIMITIVES[primitive].width
        head = bytes([primitive << 2])
        if PRIMITIVES[primitive].family is Family.EXACT_NUMERIC and pa.types.is_decimal(plain.type):
            width -= 1
            head += bytes([plain.type.scale])
            self._mark(is_set & ~are_decimals(raw, width, plain.type.precision), rows)
        if raw.shape[1] < width:
            raise LeftToTwin
        size = len(head) + width
        out = np.empty((len(rows), size), np.uint8)
        out[:, : len(head)] = np.frombuffer(head, np.uint8)
        out[:, len(head) :] = raw[:, :width]
        starts = np.arange(len(rows), dtype=np.int64) * size
        return _Slots(padded(out.reshape(-1)), starts, lengths * size)

    def _strings(self, array: AnyArray, is_set: Any, rows: Int64s, *, is_text: bool) -> _Slots:
        data, offsets = bytes_of(array.cast(pa.large_binary()))
        out = np.empty(int(offsets[-1] - offsets[0]) + 5 * len(rows) + PADDING, np.uint8)
        starts, lengths = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        write_bytes(
            data, offsets, is_set.astype(np.uint8), int(is_text), rows, self._marked,
            out, starts, lengths,
        )  # fmt: skip
        return _Slots(out, starts, lengths)

    def _objects(self, array: pa.StructArray, is_set: Any, rest: _Slots, rows: Int64s) -> _Slots:
        # In the order of the result, which then seldom needs sorting.
        parts = sorted(zip(names_of(array), array.flatten(), strict=True), key=lambda part: part[0])
        fields = _joined([self._group(struct_of(child), rows) for _, child in parts])
        known = self._dictionaries
        ids = np.ascontiguousarray(known.ids[:, [self._columns[name] for name, _ in parts]])
        rest_bytes = int(rest.lengths[is_set].sum())
        # A residual has three bytes or more a field, an object of ours eight besides the value's.
        size = int(fields.lengths.sum()) + 8 * int(np.count_nonzero(fields.lengths))
        out = np.empty(size + 4 * rest_bytes + 9 * len(rows) + PADDING, np.uint8)
        starts, lengths = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        most = len(parts) + int(rest.lengths[is_set].max(initial=0)) // 3 + 1
        write_objects(
            fields.data, fields.starts, fields.lengths, len(parts), rest.data, rest.starts,
            rest.lengths, is_set.astype(np.uint8), known.of_row, ids.reshape(-1), known.ranks,
            known.starts, rows, self._marked, np.empty(4 * most, np.int64),
            np.empty(2 * most, np.int64), out, starts, lengths,
        )  # fmt: skip
        return _Slots(out, starts, lengths)

    def _arrays(self, array: AnyArray, is_set: Any, rows: Int64s) -> _Slots:
        lists = list_of(array)
        places = np.zeros(len(lists) + 1, np.int64)
        if len(lists) > 0:  # an empty array may come without offsets
            places[:] = lists.offsets.to_numpy()
        values = lists.values.slice(places[0], places[-1] - places[0])
        elements = self._group(struct_of(values), np.repeat(rows, np.diff(places)))
        size = int(elements.lengths.sum()) + 5 * len(values) + 9 * len(rows)
        out = np.empty(size + PADDING, np.uint8)
        starts, lengths = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        write_arrays(
            elements.data, elements.starts, elements.lengths, places - places[0],
            is_set.astype(np.uint8), rows, self._marked, out, starts, lengths,
        )  # fmt: skip
        return _Slots(out, starts, lengths)


def _dictionaries(metadata: AnyArray, names: Sequence[str]) -> _Dictionaries:
    encoded = cast("Any", metadata.dictionary_encode())
    different = encoded.dictionary.to_pylist()
    places = np.full(len(different) + 1, -1, np.int64)
    ids: list[list[int]] = []
    ranks: list[Int32s] = []
    starts = [0]
    for index, each in enumerate(different):
        try:
            keys = decode_metadata(each).keys
        except VariantLakeError:
            continue
        found = {key: place for place, key in enumerate(keys)}
        if len(found) != len(keys):
            continue
        places[index] = len(ids)
        ids.append([found.get(name, -1) for name in names])
        order = np.empty(len(keys), np.int32)
        order[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
        ranks.append(order)
        starts.append(starts[-1] + len(keys))
    of_row = encoded.indices.fill_null(len(different)).to_numpy(zero_copy_only=False)
    return _Dictionaries(
        places[of_row],
        np.array(ids, np.int64).reshape(len(ids), len(names)),
        np.concatenate([np.empty(0, np.int32), *ranks]),
        np.array(starts, np.int64),
    )


def _none(slots: int) -> _Slots:
    empty = np.zeros(slots, np.int64)
    return _Slots(np.zeros(PADDING, np.uint8), empty, empty)


def _joined(parts: Sequence[_Slots]) -> _Slots:
    """All slots of the first part, then those of the next."""
    starts, base = [], 0
    for part in parts:
        starts.append(part.starts + base)
        base += part.used
    data = [part.data[: part.used] for part in parts]
    nothing = np.empty(0, np.int64)
    return _Slots(
        np.concatenate([*data, np.zeros(PADDING, np.uint8)]),
        np.concatenate([nothing, *starts]),
        np.concatenate([nothing, *(part.lengths for part in parts)]),
    )


def _either(first: Any, one: _Slots, other: _Slots) -> _Slots:
    """The slots of `one` where `first` is set, of `other` elsewhere."""
    if not other.lengths.any():
        return _Slots(one.data, one.starts, np.where(first, one.lengths, 0))
    if not first.any():
        return other
    if first.all():
        return one
    both = _joined([one, other])
    half = len(first)
    return _Slots(
        both.data,
        np.where(first, both.starts[:half], both.starts[half:]),
        np.where(first, one.lengths, other.lengths),
    )


def _patched(slots: _Slots, rows: Any, values: list[bytes]) -> _Slots:
    """The slots with others' values in some rows."""
    lengths = np.array([len(value) for value in values], np.int64)
    base = slots.used
    starts, sizes = slots.starts.copy(), slots.lengths.copy()
    starts[rows] = base + np.cumsum(lengths) - lengths
    sizes[rows] = lengths
    added = np.frombuffer(b"".join(values), np.uint8)
    return _Slots(padded(np.concatenate([slots.data[:base], added])), starts, sizes)


def _replaced(array: AnyArray, marked: Bytes, values: list[bytes]) -> AnyArray:
    mask = pa.array(marked.astype(np.bool_))
    replaced: AnyArray = pc.replace_with_mask(array, mask, pa.array(values, pa.binary()))
    return replaced
