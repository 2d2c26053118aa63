"""Find the pages of one or several column chunks, for our kernels.

For unusual or damaged chunks the functions return None: pyarrow reads them, or raises the error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from variantlake.kernels.columns.pages import END_AT, LEVELS_AT, PLACE, ROWS, SPAN, VALUES_AT
from variantlake.kernels.columns.texts import plain_texts
from variantlake.kernels.log.compact_protocol import STACK
from variantlake.kernels.log.page_headers import (
    COUNT,
    DICTIONARY_PAGE,
    ENCODING,
    KIND,
    SLOTS,
    START,
    UNPACKED,
    find_pages,
)
from variantlake.parquet.metadata.column_chunks import ColumnChunk
from variantlake.parquet.metadata.footer import RowGroup
from variantlake.parquet.metadata.schema_tree import LeafColumn
from variantlake.parquet.read.page_bytes import PageBytes, Parts
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.storage.input_file import InputFile

MOST_BYTES = 256 << 20
"""Larger chunks are left to pyarrow's batches."""

PLAIN, PLAIN_DICTIONARY, DIFFERENCES, PREFIXES, CODES = 0, 2, 5, 7, 8
"""Encodings by their numbers in `parquet.thrift`."""

Bytes = npt.NDArray[np.uint8]
Given = tuple[Bytes, Int64s, int, Bytes, npt.NDArray[np.int32], Int64s]
"""The arguments of `find_values`."""
Decode = Callable[[Given], int]
"""Decodes the values of pages; returns what `find_values` returns."""
Valid = tuple[Bytes, int]
"""1 for each row with a value, else 0; and the number of rows with a value."""


@dataclass(frozen=True, slots=True)
class ChunkPlace:
    """A column chunk of a row group of an open file."""

    file: InputFile
    leaf: LeafColumn
    chunk: ColumnChunk
    group: RowGroup


@dataclass(frozen=True, slots=True)
class ChunkPages:
    """The pages of a chunk with their bytes, and the needed rows, None for all."""

    pages: Int64s
    leaf: LeafColumn
    bytes: PageBytes
    places: Int64s | None

    @property
    def has_entries(self) -> bool:
        """Whether the first page is a dictionary."""
        return bool(self.pages[0, KIND] == DICTIONARY_PAGE)

    @property
    def bytes_unpacked(self) -> int:
        """The uncompressed bytes of all pages."""
        return int(self.pages[:, UNPACKED].sum())

    @property
    def is_coded(self) -> bool:
        """Whether all pages are dictionaries or codes of them."""
        if not self.has_entries:
            return False
        is_entries = self.pages[:, KIND] == DICTIONARY_PAGE
        entries = set(self.pages[is_entries, ENCODING].tolist())
        codes = set(self.pages[~is_entries, ENCODING].tolist())
        return entries <= {PLAIN, PLAIN_DICTIONARY} and codes <= {CODES, PLAIN_DICTIONARY}

    def needed_pages(self, pages: Int64s) -> Int64s:
        """Return the indexes of the pages with needed rows."""
        if self.places is None:
            return np.arange(len(pages))
        starts = np.cumsum(np.concatenate([[0], pages[:, COUNT]]))
        return np.flatnonzero(np.diff(np.searchsorted(self.places, starts)) > 0)

    def decoded(
        self, pages: Int64s, wanted: Int64s, parts: list[Parts], decode: Decode
    ) -> Valid | None:
        """Decode the parts of the wanted pages; None if one is unusual."""
        ends = np.cumsum(pages[:, COUNT])
        valid = np.zeros(int(ends[-1]), np.uint8)
        if not len(wanted):
            return valid, 0
        spans = np.empty((len(wanted), SPAN), np.int64)
        rows = pages[wanted, COUNT]
        spans[:, PLACE], spans[:, ROWS] = ends[wanted] - rows, rows
        bytes_ = [part for both in parts for part in both]
        behind = np.cumsum([len(part) for part in bytes_])
        spans[:, VALUES_AT], spans[:, END_AT] = behind[::2], behind[1::2]
        spans[0, LEVELS_AT], spans[1:, LEVELS_AT] = 0, behind[1:-1:2]
        data, flat = np.frombuffer(b"".join(bytes_), np.uint8), spans.reshape(-1)
        room, word = np.empty(int(rows.max()), np.int32), np.empty(1, np.int64)
        found = decode((data, flat, self.leaf.max_definition, valid, room, word))
        return None if found < 0 else (valid, found)


def pages_of(place: ChunkPlace, places: Int64s | None) -> ChunkPages | None:
    """Read a chunk and find its pages; None if pyarrow has to read it."""
    leaf, chunk, rows = place.leaf, place.chunk, place.group.num_rows
    size = chunk.compressed_size
    if leaf.max_repetition or chunk.num_values != rows or not rows:
        return None
    if chunk.first_page < 0 or max(size, 8 * rows) > MOST_BYTES:
        return None
    place.file.prefetch([(chunk.first_page, size)])
    if chunk.first_page + size > place.file.size:
        return None
    data = place.file.read_at(size, chunk.first_page)
    pages = _pages(np.frombuffer(data, np.uint8), rows)
    if pages is None or int(pages[:, UNPACKED].sum()) > MOST_BYTES:
        return None
    return ChunkPages(
        pages, leaf, PageBytes(memoryview(data), chunk.codec, leaf.max_definition), places
    )


def _pages(data: Bytes, count: int) -> Int64s | None:
    """Return the pages of a chunk, one row of SLOTS for each, None if they are unusual."""
    room, stack = 32, np.empty(STACK, np.int64)
    while True:
        pages = np.empty(room * SLOTS, np.int64)
        found = find_pages(data, count, pages, stack)
        if found <= room:
            return None if found < 0 else pages.reshape(room, SLOTS)[:found]
        room = found


def joined(chunks: Sequence[ChunkPages], places: Int64s | None) -> ChunkPages | None:
    """Join the pages of all chunks; None if the chunks differ in form, or are too large together.

    `places` are the needed rows, counted from the first row of the first chunk.
    """
    first = chunks[0]
    if len(chunks) == 1:
        return replace(first, places=places)
    alike = {(*_form(each.leaf), each.bytes.codec, each.has_entries) for each in chunks}
    if len(alike) > 1:
        return None
    starts = np.cumsum([0, *(len(each.bytes.data) for each in chunks)])
    pages = [each.pages.copy() for each in chunks]
    for own, start in zip(pages, starts[:-1].tolist(), strict=True):
        own[:, START] += start
    data = b"".join([each.bytes.data for each in chunks])
    every = np.concatenate(pages)
    rows = int(every[:, COUNT].sum())  # entries are counted too
    if max(int(every[:, UNPACKED].sum()), 8 * rows) > MOST_BYTES:
        return None
    held = PageBytes(memoryview(data), first.bytes.codec, first.bytes.most)
    return ChunkPages(every, first.leaf, held, places)


def _form(leaf: LeafColumn) -> tuple[object, ...]:
    """Return the properties that leaves must share for their values to be decoded together."""
    node = leaf.node
    return node.physical, node.type_length, node.logical, leaf.max_definition


def text_entries(parts: Sequence[Parts], counts: Int64s) -> Any:
    """Decode the texts of dictionaries, with `counts` entries each; None if they do not fit."""
    sizes = np.array([len(values) for _, values in parts], np.int64)
    if (4 * counts > sizes).any():
        return None
    text = parts[0][1] if len(parts) == 1 else b"".join([values for _, values in parts])
    data, count = np.frombuffer(text, np.uint8), int(counts.sum())
    offsets: Any = np.empty(count + 1, np.int32)
    own: Any = np.empty(len(data), np.uint8)
    size = plain_texts(data, count, offsets, own)
    if size < 0:
        return None
    # Each dictionary ends where its page does.
    ends = np.cumsum(counts)
    if (offsets[ends] + 4 * ends != np.cumsum(sizes)).any():
        return None
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(own[:size])]
    return pa.Array.from_buffers(pa.string(), count, buffers)


def bits_of(valid: Bytes) -> Any:
    """Return Arrow's validity bits."""
    packed: Any = np.packbits(valid, bitorder="little")
    return pa.py_buffer(packed)


def array_of(values: Any, valid: Bytes, found: int, type_: pa.DataType | None = None) -> Any:
    """Make an Arrow array of the values, NULL where not valid; `found` is the number valid."""
    arrow = type_ or pa.from_numpy_dtype(values.dtype)
    bits = None if found == len(valid) else bits_of(valid)
    return pa.Array.from_buffers(arrow, len(valid), [bits, pa.py_buffer(values)])
