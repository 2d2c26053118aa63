"""Dictionary arrays by their entries: what is asked of each row is asked of each entry once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from variantlake.kernels.columns.entries import bytes_of, combine_entries
from variantlake.parquet.stats.fact_columns import Int64s

_Bytes = npt.NDArray[np.uint8]
_NO_BITS: _Bytes = np.empty(0, np.uint8)


def entry_codes(array: Any) -> Int64s:
    """Which entry of its dictionary each row has: the one after the last where it is NULL."""
    codes = np.zeros(len(array), np.int32)
    add_entries(array, codes)
    return codes.astype(np.int64)


def of_rows(values: _Bytes, array: Any) -> _Bytes:
    """The byte at the entry of each row; `values` has one for each entry, and one for NULL."""
    found: _Bytes = np.empty(len(array), np.uint8)
    checked(bytes_of(*_indices(array), values, found))
    return found


def add_entries(array: Any, numbers: npt.NDArray[np.int32]) -> None:
    """Make of the number of each row that of its pair with what the array has there."""
    checked(combine_entries(*_indices(array), len(array.dictionary), numbers))


def with_null(entries: Any) -> Any:
    """The entries and NULL behind them."""
    return pa.concat_arrays([entries, pa.nulls(1, entries.type)])


def one_array(parts: Sequence[Any]) -> Any:
    """The values of all parts, of one type; of dictionary arrays one, whose entries are all."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], pa.DictionaryArray):
        return pa.chunked_array(parts).unify_dictionaries().combine_chunks()
    return pa.concat_arrays(parts)


def of_entries(array: Any, function: Callable[[Any], Any]) -> Any:
    """The function of an array's values; of a dictionary's entries once each."""
    if isinstance(array, pa.DictionaryArray):
        return function(array.dictionary).take(array.indices)
    return function(array)


def _indices(array: Any) -> tuple[npt.NDArray[np.int32], _Bytes, int]:
    """The indices, the bitmap of those that are valid, and its first bit."""
    indices: Any = array.indices
    if indices.type != pa.int32():
        indices = indices.cast(pa.int32())
    bits, words = indices.buffers()
    start = indices.offset
    own = np.frombuffer(words, np.int32)[start : start + len(indices)]
    return own, np.frombuffer(bits, np.uint8) if indices.null_count else _NO_BITS, start


def checked(result: int) -> None:
    """Raises where a kernel says that what it got does not fit together."""
    if result < 0:
        raise IndexError("internal error, please report it: a code beyond its dictionary")
