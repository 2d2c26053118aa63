"""Column chunks as codes and integers, by our kernels: in less time than pyarrow, and page by page.

Only of columns outside of lists whose pages are all codes of one dictionary of texts, texts by what
they add to the one before, integers by their differences, or decimals as bytes, as we and most
others write paths. Of anything else, and of whatever is wrong, nothing is said here: pyarrow reads
it, or words the error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from variantlake.arrays import numpy_array
from variantlake.kernels.columns.pages import (
    ENTRIES,
    FIRST_ENTRY,
    SPAN,
    decode_codes,
    decode_decimals,
    decode_differences,
    find_values,
)
from variantlake.kernels.columns.texts import join_texts, text_lengths
from variantlake.kernels.log.page_headers import COUNT, DICTIONARY_PAGE, ENCODING, KIND
from variantlake.parquet.read.chunk_pages import (
    DIFFERENCES,
    MOST_BYTES,
    PLAIN,
    PREFIXES,
    ChunkPages,
    ChunkPlace,
    Given,
    array_of,
    bits_of,
    joined,
    pages_of,
    text_entries,
)
from variantlake.parquet.stats.fact_columns import Int64s

_REPEATED = 16
"""Rows of an entry from which it pays to find out which entries of dictionaries are the same."""

_INTEGERS = {"INT32": np.dtype(np.int32), "INT64": np.dtype(np.int64)}


def read_values(place: ChunkPlace, places: Int64s | None) -> Any:
    """The values of a chunk of a row group: strings, as a dictionary array or not, or numbers.

    Decimals have their own type if they are bytes in the file, and are integers if they are these.

    With `places`, rows of the row group in order, pages without any of them are not decoded: what
    stands in their rows means nothing. None for what pyarrow has to read.
    """
    found = pages_of(place, places)
    return None if found is None else _values(found)


def read_joined(chunks: Sequence[ChunkPlace], places: Int64s | None = None) -> Any:
    """The values of several chunks, one after the other, as `read_values` gives those of one.

    To decode many short chunks at once takes much less than to decode each. `places` count from the
    first row of all. None if they are not alike, or if pyarrow has to read one.
    """
    pages: list[ChunkPages] = []
    for each in chunks:
        found = pages_of(each, None)
        if found is None or _way(found) is None:
            return None
        pages.append(found)
    every = joined(pages, places)
    return None if every is None else _values(every)


def _values(chunk: ChunkPages) -> Any:
    decode = _way(chunk)
    return None if decode is None else decode(chunk)


def _way(chunk: ChunkPages) -> Callable[[ChunkPages], Any] | None:
    """What decodes the pages of a chunk, if anything does."""
    physical = chunk.leaf.node.physical
    if chunk.has_entries:
        return _codes if chunk.is_coded and physical == "BYTE_ARRAY" else None
    encodings = set(chunk.pages[:, ENCODING].tolist())
    if encodings == {PREFIXES} and physical == "BYTE_ARRAY":
        return _texts
    if encodings == {PLAIN} and physical == "FIXED_LEN_BYTE_ARRAY":
        return _decimals
    return _integers if encodings == {DIFFERENCES} and physical in _INTEGERS else None


def _integers(chunk: ChunkPages) -> Any:
    dtype = _INTEGERS[chunk.leaf.node.physical or ""]
    wanted = chunk.wanted(chunk.pages)
    parts = chunk.bytes.parts(chunk.pages[wanted].tolist())
    if parts is None:
        return None
    numbers = _room(chunk.pages, wanted, np.dtype(np.int64))

    def decode(given: Given) -> int:
        return decode_differences(*given, numbers)

    found = chunk.decoded(chunk.pages, wanted, parts, decode)
    return None if found is None else array_of(numbers.astype(dtype, copy=False), *found)


def _decimals(chunk: ChunkPages) -> Any:
    logical, width = chunk.leaf.node.logical, chunk.leaf.node.type_length
    if logical is None or logical.kind != "DECIMAL" or width > 16:
        return None
    if not 0 <= logical.scale <= logical.precision <= 38 or not logical.precision:
        return None
    wanted = chunk.wanted(chunk.pages)
    parts = chunk.bytes.parts(chunk.pages[wanted].tolist())
    if parts is None:
        return None
    words = _room(chunk.pages, wanted, np.dtype(np.int64), 2)

    def decode(given: Given) -> int:
        return decode_decimals(*given, width, words)

    found = chunk.decoded(chunk.pages, wanted, parts, decode)
    if found is None:
        return None
    return array_of(words, *found, pa.decimal128(logical.precision, logical.scale))


def _codes(chunk: ChunkPages) -> Any:
    is_entries = chunk.pages[:, KIND] == DICTIONARY_PAGE
    own = chunk.pages[~is_entries]
    wanted = chunk.wanted(own)
    # The dictionary and its codes are unpacked in one go.
    at = np.flatnonzero(is_entries)
    parts = chunk.bytes.parts(
        chunk.pages[np.concatenate([at, np.flatnonzero(~is_entries)[wanted]])].tolist()
    )
    if parts is None:
        return None
    counts = chunk.pages[at, COUNT]
    entries = text_entries(parts[: len(at)], counts)
    if entries is None:
        return None
    codes = _room(own, wanted, np.dtype(np.int32))
    # Of several chunks each has pages of its own dictionary.
    number = (np.cumsum(is_entries) - 1)[~is_entries][wanted]
    first = np.cumsum(counts) - counts

    def decode(given: Given) -> int:
        spans = given[1].reshape(-1, SPAN)
        spans[:, FIRST_ENTRY], spans[:, ENTRIES] = first[number], counts[number]
        return decode_codes(*given, codes)

    found = chunk.decoded(own, wanted, parts[len(at) :], decode)
    if found is None:
        return None
    if len(at) > 1 and _REPEATED * len(entries) <= len(codes):
        # Dictionaries of neighbours are alike, and each entry counts for what is done to entries.
        unique: Any = entries.dictionary_encode()
        codes, entries = np.take(numpy_array(unique.indices), codes), unique.dictionary
    return pa.DictionaryArray.from_arrays(array_of(codes, *found), entries, safe=False)


def _texts(chunk: ChunkPages) -> Any:
    """Texts that share their beginnings with those before them."""
    wanted = chunk.wanted(chunk.pages)
    parts = chunk.bytes.parts(chunk.pages[wanted].tolist())
    if parts is None:
        return None
    buffers: list[Any] = []

    def decode(given: Given) -> int:
        data, pages, _, valid, _, words = given
        found = find_values(*given)
        if found < 0:
            return -1
        lengths: Int64s = np.empty(2 * found, np.int64)
        size = text_lengths(data, pages, lengths, words)
        if not 0 <= size <= MOST_BYTES:
            return -1
        buffers.extend(map(pa.allocate_buffer, (4 * len(valid) + 4, size)))
        offsets, text = (
            np.frombuffer(each, dtype)
            for each, dtype in zip(buffers, (np.int32, np.uint8), strict=True)
        )
        return found if join_texts(data, pages, lengths, valid, offsets, text) >= 0 else -1

    decoded = chunk.decoded(chunk.pages, wanted, parts, decode)
    if decoded is None:
        return None
    valid, found = decoded
    if not buffers:
        return pa.nulls(len(valid), pa.string())
    bits = None if found == len(valid) else bits_of(valid)
    return pa.Array.from_buffers(pa.string(), len(valid), [bits, *buffers])


def _room(pages: Int64s, wanted: Int64s, dtype: np.dtype[Any], width: int = 1) -> Any:
    """Room for the values of all pages, from Arrow's pool: new memory costs much time.

    Zeros where pages are left out.
    """
    size = int(pages[:, COUNT].sum()) * dtype.itemsize * width
    memory: Any = pa.allocate_buffer(size)
    room = np.frombuffer(memory, dtype)
    if len(wanted) < len(pages):
        room[:] = 0
    return room
