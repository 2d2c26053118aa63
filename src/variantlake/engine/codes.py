"""Encode values as codes, which tell groups apart, and as integers in Spark's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import arrow_array, numpy_array
from variantlake.expressions.arrays import (
    checked,
    entry_codes,
    numbers,
    one_array,
    ordered,
    valid,
    with_null,
)
from variantlake.kernels.columns.groups import (
    CHOSEN,
    FULL,
    number_codes,
    number_texts,
    number_values,
)
from variantlake.kernels.columns.pairs import list_pairs, mark_numbered_pairs, mark_pairs
from variantlake.kernels.tape.keys import new_seed
from variantlake.parquet.stats.fact_columns import Bools, Int64s
from variantlake.types import Kind, ShreddedType

_FLOATS = (Kind.FLOAT, Kind.DOUBLE)
_DIGITS = 18
"""Decimal digits that always fit an integer of 64 bits."""

_SMALL = 1 << 16

_SLOTS = 1 << 17
"""Slots of the first hash table for texts, which fits a processor's cache."""

_SIGN = np.int64(2**63 - 1)


def rank(array: Any, type_: ShreddedType) -> Int64s | None:
    """Map values to integers in the same order, which `ranked` maps back; None if none do."""
    if type_.kind in _FLOATS:
        return ordered(array, zeros_alike=False)
    if type_.kind is Kind.DECIMAL:
        return unscaled(array) if type_.precision <= _DIGITS else None
    if type_.kind is Kind.BOOLEAN:
        return numbers(array.cast(pa.uint8())).astype(np.int64)
    if type_.kind is Kind.DATE:
        return numbers(array.cast(pa.int32())).astype(np.int64)
    if type_.kind in (Kind.STRING, Kind.BINARY, Kind.UUID):
        return None
    return numbers(array.cast(pa.int64()))


def ranked(ranks: Int64s, type_: ShreddedType, there: Bools) -> Any:
    """Map ranks back to values, NULL if not `there`."""
    if type_.kind in _FLOATS:
        bits = ranks ^ ((ranks >> 63) & _SIGN)
        return arrow_array(bits.view(np.float64), mask=~there).cast(type_.arrow, safe=False)
    if type_.kind is Kind.DECIMAL:
        return decimals(ranks, type_, there)
    if type_.kind is Kind.BOOLEAN:
        return arrow_array(ranks != 0, mask=~there)
    if type_.kind is Kind.DATE:
        return arrow_array(ranks.astype(np.int32), mask=~there).cast(type_.arrow)
    return arrow_array(np.where(there, ranks, 0), mask=~there).cast(type_.arrow)


def unscaled(array: Any) -> npt.NDArray[Any]:
    """The unscaled integers of decimals: int64 if they always fit, else Python's integers."""
    words = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)
    words = words[array.offset : array.offset + len(array)]
    low = np.where(valid(array), words[:, 0], 0)
    if array.type.precision <= _DIGITS:
        return low
    high = np.where(valid(array), words[:, 1], 0).astype(object)
    found: npt.NDArray[Any] = high * 2**64 + low.view(np.uint64).astype(object)
    return found


def decimals(values: npt.NDArray[Any], type_: ShreddedType, there: Bools) -> Any:
    """Make decimals from integers as `unscaled` returns them."""
    words = np.zeros((len(values), 2), np.int64)
    if values.dtype == object:
        whole = [int(value) if known else 0 for value, known in zip(values, there, strict=True)]
        words[:, 0] = np.array([value & (2**64 - 1) for value in whole], np.uint64).view(np.int64)
        words[:, 1] = [value >> 64 for value in whole]
    else:
        words[:, 0] = np.where(there, values, 0)
        words[:, 1] = words[:, 0] >> 63
    bits = arrow_array(there).buffers()[1]
    return pa.Array.from_buffers(type_.arrow, len(values), [bits, pa.py_buffer(words.tobytes())])


# --- Groups ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Coded:
    """A column as `values[codes]`; a code may mean NULL, and two codes the same value.

    `first` is the first row of each code, if codes are numbered by first appearance; else None.
    """

    codes: Int64s
    values: Any
    first: Int64s | None = None

    @property
    def size(self) -> int:
        """Number of codes."""
        return len(self.values)

    def of_rows(self, rows: Int64s) -> Any:
        """The values in some rows."""
        if rows is self.first:
            return self.values
        return self.values.take(arrow_array(self.codes[rows]))

    def keys_of(self, rows: Int64s) -> Any:
        """The values in some rows; a dictionary array, which copies no text, unless few."""
        is_text = pa.types.is_string(self.values.type)
        if not is_text or rows is self.first or 2 * len(rows) < len(self.values):
            return self.of_rows(rows)
        codes = arrow_array(self.codes[rows].astype(np.int32))
        return pa.DictionaryArray.from_arrays(codes, self.values, safe=False)


@dataclass(frozen=True, slots=True)
class Grouping:
    """The group of each row: `ids` from 0 to `count` - 1; `first` has one row of each group."""

    ids: Int64s
    count: int
    first: Int64s


def coded(array: Any) -> Coded:
    """Encode a column by its values; a dictionary keeps its entries.

    All NaN are one value, and both zeros are one, as Spark groups doubles.
    """
    if not isinstance(array, pa.DictionaryArray):
        if pa.types.is_floating(array.type):
            values = numbers(array) + 0.0
            values = np.where(np.isnan(values), np.nan, values).astype(values.dtype)
            array = arrow_array(values, array.type, mask=~valid(array))
        elif pa.types.is_string(array.type):
            if (texts := _texts(array)) is not None:
                return texts
        elif (near := _near(array)) is not None:
            return near
        array = array.dictionary_encode("encode")
    values = array.dictionary
    return Coded(entry_codes(array), with_null(values) if array.indices.null_count else values)


def coded_parts(parts: Sequence[Any]) -> Coded:
    """Encode the keys of several parts, one after the other: see `Coded.keys_of`."""
    if not any(isinstance(part, pa.DictionaryArray) for part in parts):
        return coded(one_array(parts))
    entries = [part.dictionary if isinstance(part, pa.DictionaryArray) else part for part in parts]
    every, codes, start = coded(one_array(entries)), [], 0
    for part, own in zip(parts, entries, strict=True):
        numbers = every.codes[start : start + len(own)]
        start += len(own)
        codes.append(numbers if part is own else numbers[numpy_array(part.indices)])
    return Coded(np.concatenate(codes), every.values)


def _near(array: Any) -> Coded | None:
    """Encode integers as distances from the least; None if these may be too many."""
    if not pa.types.is_integer(array.type) or array.null_count == len(array):
        return None
    ends: Any = pc.min_max(array).as_py()
    span = ends["max"] - ends["min"] + 1
    if span > max(_SMALL, len(array)):
        return None
    codes = numbers(array).astype(np.int64) - ends["min"]
    values = arrow_array(np.arange(span) + ends["min"], array.type)
    if not array.null_count:
        return Coded(codes, values)
    return Coded(np.where(valid(array), codes, span), with_null(values))


def _texts(array: Any) -> Coded | None:
    """Encode texts by their bytes; None if they were chosen to make hashing slow."""
    rows = len(array)
    _, words, data = array.buffers()
    offsets: Any = np.frombuffer(words, np.int32)[array.offset : array.offset + rows + 1]
    text = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    codes, first = np.empty(rows, np.int64), np.empty(rows, np.int64)
    slots, count = min(_SLOTS, 1 << (2 * rows).bit_length()), FULL
    while count == FULL:
        count = number_texts(text, offsets, new_seed(), np.full(slots, -1), codes, first)
        slots *= 8
    if count == CHOSEN:
        return None
    if count < 0:
        raise IndexError("internal error, please report it: a text beyond its bytes")
    # The bytes of a row that is NULL are a text like any other here.
    every = pa.Array.from_buffers(array.type, rows, [None, words, data], offset=array.offset)
    places: Any = arrow_array(first[:count])
    values = every.take(places)
    if not array.null_count:
        return Coded(codes, values, first[:count])
    return Coded(np.where(valid(array), codes, count), with_null(values))


def group(columns: Sequence[Coded], rows: int) -> Grouping:
    """Group rows by their codes in all columns; without columns all rows are one group."""
    if not columns or (rows and all(column.size == 1 for column in columns)):
        return Grouping(np.zeros(rows, np.int64), 1, np.zeros(min(rows, 1), np.int64))
    codes, size, first = columns[0].codes, columns[0].size, columns[0].first
    if len(columns) == 1 and first is not None:
        return Grouping(codes, size, first)
    for column in columns[1:]:
        if size * column.size >= 2**62:
            found = _numbered(codes, size)
            codes, size = found.ids, found.count
        codes, size = codes * column.size + column.codes, size * column.size
    return _numbered(codes, size)


def different(ids: Int64s, count: int, column: Coded) -> tuple[Int64s, Int64s]:
    """The distinct pairs of a group and a code: the groups, and the codes."""
    if count * column.size <= _table_size(len(ids)):
        there = np.zeros(count * column.size, np.uint8)
        if column.size:
            checked(mark_pairs(ids, column.codes, column.size, there))
        return _listed(there, column.size)
    pairs = ids * column.size + column.codes
    found = pairs[_numbered(pairs, count * column.size).first]
    return found // column.size, found % column.size


@dataclass(frozen=True, slots=True)
class NumberedPairs:
    """Pairs of numbers[groups] and entries[codes]."""

    groups: Int64s
    numbers: Int64s
    codes: Int64s
    entries: Int64s


def different_of_parts(
    parts: Sequence[NumberedPairs], count: int, values: Any
) -> tuple[Int64s, Int64s]:
    """As `different`, for several parts, whose entries are codes of the same values."""
    rows, size = sum(len(part.codes) for part in parts), len(values)
    if count * size > _table_size(rows):
        groups = np.concatenate([part.numbers[part.groups] for part in parts])
        codes = np.concatenate([part.entries[part.codes] for part in parts])
        return different(groups, count, Coded(codes, values))
    there = np.zeros(count * size, np.uint8)
    for part in parts if size else ():
        checked(
            mark_numbered_pairs(part.groups, part.numbers, part.codes, part.entries, size, there)
        )
    return _listed(there, size)


def _listed(there: npt.NDArray[np.uint8], size: int) -> tuple[Int64s, Int64s]:
    """List the pairs that are marked in a table."""
    # Allocate room for these alone: counting them takes less time than new memory.
    pairs = int(np.count_nonzero(there.view(np.bool_)))
    groups, codes = (np.empty(pairs, np.int64) for _ in range(2))
    found = list_pairs(there, max(size, 1), groups, codes)
    checked(found)
    return groups[:found], codes[:found]


def _table_size(rows: int) -> int:
    """The most codes for which a table is faster than a hash table."""
    return max(_SMALL, 4 * rows)


def _numbered(codes: Int64s, size: int) -> Grouping:
    """Group rows by one code below `size`."""
    rows = len(codes)
    ids, first = np.empty(rows, np.int64), np.empty(rows, np.int64)
    if size <= _table_size(rows):
        count = number_codes(codes, np.full(size, -1), ids, first)
    else:
        table = np.full(1 << (2 * rows).bit_length(), -1)
        count = number_values(codes, table, ids, first)
    if count < 0:
        encoded: Any = arrow_array(codes).dictionary_encode()
        ids, count = numpy_array(encoded.indices).astype(np.int64), len(encoded.dictionary)
        first[ids[::-1]] = np.arange(rows - 1, -1, -1)
    return Grouping(ids, count, first[:count])
