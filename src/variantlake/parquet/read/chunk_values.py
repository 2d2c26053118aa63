"""Decode column chunks with our kernels, faster than pyarrow and only the pages that rows need.

They decode columns outside lists with pages of one of these kinds, as we and most others write
paths: codes of a dictionary of texts, texts in DELTA_BYTE_ARRAY, decimals in
FIXED_LEN_BYTE_ARRAY, and integers (or decimals stored as integers) as PLAIN, DELTA_BINARY_PACKED or
codes. For other or damaged chunks the functions return None: pyarrow reads them, or raises the
error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from variantlake.arrays import numpy_array
from variantlake.kernels.columns.pages import (
    AS_CODES,
    AS_DIFFERENCES,
    AS_THEY_ARE,
    ENTRIES,
    FIRST_ENTRY,
    FORM,
    SPAN,
    decode_codes,
    decode_decimals,
    decode_integers,
    find_values,
)
from variantlake.kernels.columns.texts import join_texts, text_lengths
from variantlake.kernels.log.page_headers import COUNT, DICTIONARY_PAGE, ENCODING, KIND
from variantlake.parquet.metadata.schema_tree import LeafColumn
from variantlake.parquet.read.chunk_pages import (
    CODES,
    DIFFERENCES,
    MOST_BYTES,
    PLAIN,
    PLAIN_DICTIONARY,
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
from variantlake.parquet.read.page_bytes import Parts
from variantlake.parquet.stats.fact_columns import Int64s

_REPEATED = 16
"""Rows per dictionary entry from which it pays to merge equal entries of several dictionaries."""

_PLAIN_BYTES = 1 << 20
"""The most bytes of PLAIN integers that we decode; beyond them, pyarrow copies less."""

_INTEGERS: dict[str, np.dtype[Any]] = {
    "INT32": np.dtype(np.int32),
    "INT64": np.dtype(np.int64),
}


def read_values(place: ChunkPlace, places: Int64s | None) -> Any:
    """Read the values of a chunk: strings, as a dictionary array or not, or numbers.

    `places` are the needed rows of the row group, in order, None for all. Pages without such a row
    are not decoded; the values of their rows mean nothing. None if pyarrow has to read the chunk.
    """
    found = pages_of(place, places)
    return None if found is None else _values(found)


def read_joined(chunks: Sequence[ChunkPlace], places: Int64s | None = None) -> Any:
    """Read the values of several chunks, one after the other, as one array.

    It is much faster to decode many short chunks at once. `places` count from the first row of the
    first chunk. Returns None if the chunks differ in form, or if pyarrow has to read one.
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
    """Return the decoder for the pages of a chunk, None if we have none."""
    physical = chunk.leaf.node.physical
    if physical in _INTEGERS:
        return _integers if _are_integers(chunk) else None
    if chunk.has_entries:
        return _codes if chunk.is_coded and physical == "BYTE_ARRAY" else None
    encodings = set(chunk.pages[:, ENCODING].tolist())
    if encodings == {PREFIXES} and physical == "BYTE_ARRAY":
        return _texts
    if encodings == {PLAIN} and physical == "FIXED_LEN_BYTE_ARRAY":
        return _decimals
    return None


def _are_integers(chunk: ChunkPages) -> bool:
    """Whether we decode all pages: dictionaries, PLAIN, differences, or codes of a dictionary."""
    is_entries = chunk.pages[:, KIND] == DICTIONARY_PAGE
    entries = set(chunk.pages[is_entries, ENCODING].tolist())
    forms = set(chunk.pages[~is_entries, ENCODING].tolist())
    codes = {CODES, PLAIN_DICTIONARY} if chunk.has_entries else set()
    if forms == {PLAIN} and chunk.places is None and chunk.bytes_unpacked > _PLAIN_BYTES:
        return False
    return entries <= {PLAIN, PLAIN_DICTIONARY} and forms <= {PLAIN, DIFFERENCES, *codes}


def _integers(chunk: ChunkPages) -> Any:
    """Decode integers; each page is DELTA_BINARY_PACKED, PLAIN or codes."""
    parts = _with_entries(chunk)
    dtype, type_ = _INTEGERS[chunk.leaf.node.physical or ""], _integer_type(chunk.leaf)
    if parts is None or type_ is None:
        return None
    entries = _integer_entries(parts, dtype)
    if entries is None:
        return None
    numbers = _room(parts.pages, parts.wanted, np.dtype(np.int64))
    forms = np.select(
        [parts.pages[:, ENCODING] == DIFFERENCES, parts.pages[:, ENCODING] == PLAIN],
        [AS_DIFFERENCES, AS_THEY_ARE],
        AS_CODES,
    )[parts.wanted]

    def decode(given: Given) -> int:
        parts.say_entries(given)
        given[1].reshape(-1, SPAN)[:, FORM] = forms
        return decode_integers(*given, entries, dtype.itemsize, numbers)

    found = chunk.decoded(parts.pages, parts.wanted, parts.values, decode)
    if found is None:
        return None
    if pa.types.is_decimal(type_):
        words = np.empty((len(numbers), 2), np.int64)
        words[:, 0], words[:, 1] = numbers, numbers >> 63
        return array_of(words, *found, type_)
    return array_of(numbers.astype(dtype, copy=False), *found, type_)


def _integer_type(leaf: LeafColumn) -> Any:
    """Return the column's integer or decimal type, None for an invalid decimal."""
    logical, dtype = leaf.node.logical, _INTEGERS[leaf.node.physical or ""]
    if logical is None or logical.kind != "DECIMAL":
        return pa.from_numpy_dtype(dtype)
    digits = 9 if dtype.itemsize == 4 else 18
    if not 0 <= logical.scale <= logical.precision <= digits or not logical.precision:
        return None
    return pa.decimal128(logical.precision, logical.scale)


def _integer_entries(parts: _Parts, dtype: np.dtype[Any]) -> Int64s | None:
    """Decode the integers of all dictionaries; None if one does not fill its page exactly."""
    texts = [values for _, values in parts.entries]
    sizes = np.array([len(each) for each in texts], np.int64)
    if (sizes != parts.counts * dtype.itemsize).any():
        return None
    return np.frombuffer(b"".join(texts), dtype).astype(np.int64)


def _decimals(chunk: ChunkPages) -> Any:
    logical, width = chunk.leaf.node.logical, chunk.leaf.node.type_length
    if logical is None or logical.kind != "DECIMAL" or width > 16:
        return None
    if not 0 <= logical.scale <= logical.precision <= 38 or not logical.precision:
        return None
    wanted = chunk.needed_pages(chunk.pages)
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


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of a chunk: dictionaries, with `counts` entries each, and data pages.

    `wanted` indexes the needed data pages; `values` are their bytes, and `numbers` the number of
    each one's dictionary.
    """

    entries: list[Parts]
    counts: Int64s
    pages: Int64s
    wanted: Int64s
    values: list[Parts]
    numbers: Int64s

    def say_entries(self, given: Given) -> None:
        """Set the position of each page's dictionary among all entries, for a kernel."""
        spans = given[1].reshape(-1, SPAN)
        if not len(self.counts):
            spans[:, FIRST_ENTRY] = spans[:, ENTRIES] = 0
            return
        first = np.cumsum(self.counts) - self.counts
        spans[:, FIRST_ENTRY], spans[:, ENTRIES] = first[self.numbers], self.counts[self.numbers]


def _with_entries(chunk: ChunkPages) -> _Parts | None:
    """Split a chunk into dictionaries and data pages, all decompressed at once."""
    is_entries = chunk.pages[:, KIND] == DICTIONARY_PAGE
    own = chunk.pages[~is_entries]
    wanted, at = chunk.needed_pages(own), np.flatnonzero(is_entries)
    parts = chunk.bytes.parts(
        chunk.pages[np.concatenate([at, np.flatnonzero(~is_entries)[wanted]])].tolist()
    )
    if parts is None:
        return None
    # Several chunks may be joined: each page belongs to the last dictionary before it.
    numbers = (np.cumsum(is_entries) - 1)[~is_entries][wanted]
    counts, values = chunk.pages[at, COUNT], parts[len(at) :]
    return _Parts(parts[: len(at)], counts, own, wanted, values, numbers)


def _codes(chunk: ChunkPages) -> Any:
    parts = _with_entries(chunk)
    if parts is None:
        return None
    entries = text_entries(parts.entries, parts.counts)
    if entries is None:
        return None
    codes = _room(parts.pages, parts.wanted, np.dtype(np.int32))

    def decode(given: Given) -> int:
        parts.say_entries(given)
        return decode_codes(*given, codes)

    found = chunk.decoded(parts.pages, parts.wanted, parts.values, decode)
    if found is None:
        return None
    if len(parts.counts) > 1 and 0 < _REPEATED * len(entries) <= len(codes):
        # Neighbouring chunks have similar dictionaries, and later work grows with the entries.
        unique: Any = entries.dictionary_encode()
        codes, entries = np.take(numpy_array(unique.indices), codes), unique.dictionary
    return pa.DictionaryArray.from_arrays(array_of(codes, *found), entries, safe=False)


def _texts(chunk: ChunkPages) -> Any:
    """Decode texts in DELTA_BYTE_ARRAY."""
    wanted = chunk.needed_pages(chunk.pages)
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
    """Allocate room for the values of all pages, from Arrow's pool: fresh memory is slow.

    The rows of skipped pages are zeros.
    """
    size = int(pages[:, COUNT].sum()) * dtype.itemsize * width
    memory: Any = pa.allocate_buffer(size)
    room = np.frombuffer(memory, dtype)
    if len(wanted) < len(pages):
        room[:] = 0
    return room
