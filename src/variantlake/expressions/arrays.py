"""Values of expressions in many rows, as Arrow arrays.

Where possible, functions evaluate a dictionary array once per entry instead of once per row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import arrow_array, numpy_array
from variantlake.kernels.columns.entries import (
    COPIED,
    bytes_of,
    combine_entries,
    copy_texts,
    place_texts,
)
from variantlake.kernels.columns.places import gather_codes, gather_longs
from variantlake.parquet.stats.fact_columns import Bools, Int64s
from variantlake.shredding.arrays import AnyArray

_Bytes = npt.NDArray[np.uint8]
_SIGN = np.int64(2**63 - 1)
_NO_BITS: _Bytes = np.empty(0, np.uint8)


@dataclass(frozen=True, slots=True)
class Values:
    """The values of one operand. `failed` marks the rows for which Spark raises an error.

    The value of such a row in `array` means nothing.
    """

    array: AnyArray
    failed: Bools | None = None

    def take(self, places: Int64s) -> Values:
        """Take some rows by their places. Arrow takes rows faster than it filters them."""
        return Values(
            at_places(self.array, places),
            None if self.failed is None else self.failed[places],
        )


def either(values: Sequence[Values]) -> Bools | None:
    """The rows in which some operand fails; None if no operand marks any."""
    failed = [each.failed for each in values if each.failed is not None]
    return np.logical_or.reduce(failed) if failed else None


def in_turn(values: Sequence[Values]) -> Bools | None:
    """The rows in which an operand fails and none before it is NULL; None if no operand fails.

    Spark computes no operand after a NULL: `NULL + error` is NULL, and `error + NULL` fails.
    """
    failed: Bools | None = None
    there: Bools | None = None
    for each in values:
        if each.failed is not None:
            own = each.failed if there is None else each.failed & there
            failed = own if failed is None else failed | own
        there = valid(each.array) if there is None else there & valid(each.array)
    return failed


def failing(array: Any, failed: Bools | None, more: Bools | None) -> Values:
    """Return a result whose failed rows, those of `failed` and of `more`, are NULL."""
    both = failed if more is None else more if failed is None else failed | more
    if both is None or not both.any():
        return Values(array)
    nothing = pa.scalar(None, array.type)
    return Values(pc.if_else(arrow_array(both), nothing, array), both)


def repeated(values: Values, times: Int64s) -> Values:
    """Repeat each row as often as `times` says for it."""
    array: Any = values.array
    if not isinstance(array, pa.DictionaryArray) or values.failed is not None:
        return values.take(np.repeat(np.arange(len(times)), times))
    codes: Any = np.repeat(numpy_array(array.indices).astype(np.int32), times)
    there = None
    if array.null_count:
        packed: Any = np.packbits(np.repeat(valid(array), times), bitorder="little")
        there = pa.py_buffer(packed)
    indices = pa.Array.from_buffers(pa.int32(), len(codes), [there, pa.py_buffer(codes)])
    return Values(pa.DictionaryArray.from_arrays(indices, array.dictionary, safe=False))


def joined_values(parts: Sequence[Values]) -> Values:
    """Concatenate the parts, without dictionaries."""
    arrays = [plain(part.array) for part in parts]
    failed = [
        np.zeros(len(array), np.bool_) if part.failed is None else part.failed
        for part, array in zip(parts, arrays, strict=True)
    ]
    wrong = np.concatenate(failed)
    return Values(pa.concat_arrays(arrays), wrong if wrong.any() else None)


def plain(array: Any) -> Any:
    """The array without a dictionary."""
    if not isinstance(array, pa.DictionaryArray):
        return array
    texts = _texts(array) if array.type.value_type == pa.string() else None
    return array.dictionary_decode() if texts is None else texts


def texts_as(array: Any, wanted: Any) -> Any:
    """Convert strings, with or without a dictionary, to views or a dictionary of 32-bit codes."""
    if array.type == wanted:
        return array
    if not pa.types.is_dictionary(wanted):
        return _views(array) if isinstance(array, pa.DictionaryArray) else array.cast(wanted)
    array = plain(array)  # each row becomes an entry: no texts are compared
    codes = arrow_array(np.arange(len(array), dtype=np.int32))
    return pa.DictionaryArray.from_arrays(codes, array, safe=False)


def _views(array: Any) -> Any:
    """String views of the entries' texts, which are not copied."""
    entries: Any = array.dictionary.cast(pa.string_view())
    if not len(entries) or entries.null_count or entries.offset:
        return plain(array).cast(pa.string_view())
    codes = numpy_array(array.indices)
    _, words, *data = entries.buffers()
    memory: Any = pa.allocate_buffer(len(array) * _VIEW.itemsize)
    of_entries = np.frombuffer(words, _VIEW, len(entries))
    # Without `mode`, NumPy would gather into a buffer of its own first.
    np.take(of_entries, codes, out=np.frombuffer(memory, _VIEW), mode="clip")
    there: Any = None
    if array.null_count:
        bits: Any = np.packbits(valid(array), bitorder="little")
        there = pa.py_buffer(bits)
    return pa.Array.from_buffers(pa.string_view(), len(array), [there, memory, *data])


_VIEW = np.dtype(np.complex128)
"""A dtype as wide as a string view."""


def _texts(array: Any) -> Any:
    """Decode a dictionary of strings in half of Arrow's time; None where Arrow has to do it."""
    indices, entries = array.indices, array.dictionary
    if indices.type != pa.int32() or (indices.null_count and indices.offset):
        return None
    rows, (_, words, data) = len(indices), entries.buffers()
    codes, *_ = _indices(array)
    if words is None or data is None or entries.null_count or not rows:
        return None
    ends = np.frombuffer(words, np.int32)[entries.offset : entries.offset + len(entries) + 1]
    offsets: Any = pa.allocate_buffer(4 * (rows + 1))
    places = np.frombuffer(offsets, np.int32)
    size = place_texts(codes, ends, places)
    if size < 0:
        return None
    text: Any = pa.allocate_buffer(size + COPIED)
    checked(
        copy_texts(
            codes, ends, np.frombuffer(data, np.uint8), places, np.frombuffer(text, np.uint8)
        )
    )
    bits = indices.buffers()[0] if indices.null_count else None
    return pa.Array.from_buffers(pa.string(), rows, [bits, offsets, text.slice(0, size)])


def at_places(array: Any, places: Int64s) -> Any:
    """Take rows like Arrow's `take`; codes, integers and timestamps in half of its time."""
    rows: Any = array.indices if isinstance(array, pa.DictionaryArray) else array
    gather = _GATHERS.get(rows.type)
    if gather is None or len(places) < _FEW:
        return array.take(arrow_array(places, pa.int64()))
    kernel, dtype = gather
    bits, words = rows.buffers()
    own = np.frombuffer(words, dtype)[rows.offset : rows.offset + len(rows)]
    bitmap = np.frombuffer(bits, np.uint8) if rows.null_count else _NO_BITS
    memory: Any = pa.allocate_buffer(len(places) * dtype.itemsize)
    valid: _Bytes = np.empty(len(places) if len(bitmap) else 0, np.uint8)
    found = kernel(own, bitmap, rows.offset, places, np.frombuffer(memory, dtype), valid)
    checked(found)
    there: Any = None
    if found < len(places):
        packed: Any = np.packbits(valid, bitorder="little")
        there = pa.py_buffer(packed)
    made = pa.Array.from_buffers(rows.type, len(places), [there, memory])
    if rows is array:
        return made
    return pa.DictionaryArray.from_arrays(made, array.dictionary, safe=False)


_FEW = 64
"""For fewer rows, Arrow's `take` is faster than the start of a kernel."""
_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)
_GATHERS: dict[Any, tuple[Any, np.dtype[Any]]] = {
    pa.int32(): (gather_codes, _INT32),
    pa.date32(): (gather_codes, _INT32),
    pa.int64(): (gather_longs, _INT64),
    pa.timestamp("us"): (gather_longs, _INT64),
    pa.timestamp("us", "UTC"): (gather_longs, _INT64),
}
"""The kernels for types of fixed width."""

_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)


def numbers(array: Any) -> npt.NDArray[Any]:
    """The values as a NumPy array; arbitrary where NULL."""
    is_number = any(is_(array.type) for is_ in _NUMBERS)
    return numpy_array(array if is_number or not array.null_count else pc.fill_null(array, 0))


def valid(array: Any) -> Bools:
    """The rows that are not NULL."""
    return numpy_array(array.is_valid())


def ordered(array: Any, *, zeros_alike: bool = True) -> Int64s:
    """Map doubles to integers in Spark's order, NaN the greatest; arbitrary where NULL.

    -0.0 equals 0.0 if `zeros_alike`, else it is just below it.
    """
    values = numbers(array.cast(pa.float64()))
    values = np.where(np.isnan(values), np.nan, values + 0.0 if zeros_alike else values)
    bits: Int64s = values.view(np.int64)
    return bits ^ ((bits >> 63) & _SIGN)


def entry_codes(array: Any) -> Int64s:
    """The dictionary code of each row; for NULL, the code after the last entry's."""
    codes = np.zeros(len(array), np.int32)
    add_entries(array, codes)
    return codes.astype(np.int64)


def of_rows(values: _Bytes, array: Any) -> _Bytes:
    """Look up the byte of each row's entry; `values` has one per entry, then one for NULL."""
    found: _Bytes = np.empty(len(array), np.uint8)
    checked(bytes_of(*_indices(array), values, found))
    return found


def add_entries(array: Any, numbers: npt.NDArray[np.int32]) -> None:
    """Replace each row's number by one for its pair with the row's entry in the array."""
    checked(combine_entries(*_indices(array), len(array.dictionary), numbers))


def with_null(entries: Any) -> Any:
    """The entries, followed by NULL."""
    return pa.concat_arrays([entries, pa.nulls(1, entries.type)])


def column_at(table: pa.Table, path: Sequence[str]) -> Any:
    """A column of a table, or a struct's field, as one array; NULL where the struct is."""
    column: Any = table.column(path[0]).combine_chunks()
    return pc.struct_field(column, list(path[1:])) if path[1:] else column


def one_array(parts: Sequence[Any]) -> Any:
    """Concatenate parts of one type; dictionary arrays get one common dictionary."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], pa.DictionaryArray):
        return pa.chunked_array(parts).unify_dictionaries().combine_chunks()
    return pa.concat_arrays(parts)


def of_entries(array: Any, function: Callable[[Any], Any]) -> Any:
    """Apply a function to an array's values, or once to each entry of a dictionary."""
    if isinstance(array, pa.DictionaryArray):
        return function(array.dictionary).take(array.indices)
    return function(array)


def _indices(array: Any) -> tuple[npt.NDArray[np.int32], _Bytes, int]:
    """The indices, their validity bitmap (empty if none is NULL), and its first bit."""
    indices: Any = array.indices
    if indices.type != pa.int32():
        indices = indices.cast(pa.int32())
    bits, words = indices.buffers()
    start = indices.offset
    own = np.frombuffer(words, np.int32)[start : start + len(indices)]
    return own, np.frombuffer(bits, np.uint8) if indices.null_count else _NO_BITS, start


def checked(result: int) -> None:
    """Raise IndexError if a kernel reports a code beyond its dictionary."""
    if result < 0:
        raise IndexError("internal error, please report it: a code beyond its dictionary")
