"""Column chunks as codes and integers, by our kernels: in less time than pyarrow, and page by page.

Only of columns outside of lists whose pages are all codes of one dictionary of texts, texts by what
they add to the one before, integers by their differences, or decimals as bytes, as we and most
others write paths. Of anything else, and of whatever is wrong, nothing is said here: pyarrow reads
it, or words the error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from variantlake.arrays import arrow_array
from variantlake.kernels.columns.pages import (
    END_AT,
    ENTRIES,
    FIRST_ENTRY,
    LEVELS_AT,
    PLACE,
    ROWS,
    SPAN,
    VALUES_AT,
    decode_codes,
    decode_decimals,
    decode_differences,
    find_values,
)
from variantlake.kernels.columns.runs import RUN_STATE, find_runs
from variantlake.kernels.columns.texts import join_texts, plain_texts, text_lengths
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
from variantlake.parquet.stats.bounds import decode_bounds
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.storage.input_file import InputFile

MOST_BYTES = 256 << 20
"""Chunks of more bytes are left to pyarrow's batches."""

SHORTEST_RUN = 64
"""Rows of a run, on average, from which runs are faster than rows."""

_RUN_BYTES = 2
"""A run's bytes, about, and compressed. A chunk of more has shorter runs."""

_HEADERS = 1 << 10
"""Bytes of the headers and dictionaries of a chunk, about."""

_PLAIN, _PLAIN_DICTIONARY, _DIFFERENCES, _PREFIXES, _CODES = 0, 2, 5, 7, 8
"""Encodings, as `parquet.thrift` numbers them."""

_INTEGERS = {"INT32": np.dtype(np.int32), "INT64": np.dtype(np.int64)}

_Bytes = npt.NDArray[np.uint8]
_Given = tuple[_Bytes, Int64s, int, _Bytes, npt.NDArray[np.int32], Int64s]
"""What `find_values` takes."""
_Decode = Callable[[_Given], int]
"""Decodes the values of pages, and says as `find_values` does."""
_Valid = tuple[_Bytes, int]
"""1 for each row with a value, else 0; and how many have one."""


def read_values(
    file: InputFile, leaf: LeafColumn, chunk: ColumnChunk, group: RowGroup, places: Int64s | None
) -> Any:
    """The values of a chunk of a row group: strings, as a dictionary array or not, or numbers.

    Decimals have their own type if they are bytes in the file, and are integers if they are these.

    With `places`, rows of the row group in order, pages without any of them are not decoded: what
    stands in their rows means nothing. None for what pyarrow has to read.
    """
    found = _chunk(file, leaf, chunk, group, places)
    return None if found is None else found.values()


@dataclass(frozen=True, slots=True)
class ChunkPlace:
    """A column chunk of a row group of an open file."""

    file: InputFile
    leaf: LeafColumn
    chunk: ColumnChunk
    group: RowGroup


def read_joined(places: Sequence[ChunkPlace]) -> Any:
    """The values of several chunks, one after the other, as `read_values` gives those of one.

    To decode many short chunks at once takes much less than to decode each. None if they are not
    alike, or if pyarrow has to read one.
    """
    chunks: list[_Chunk] = []
    for each in places:
        found = _chunk(each.file, each.leaf, each.chunk, each.group, None)
        if found is None or not found.is_usual:
            return None
        chunks.append(found)
    joined = chunks[0] if len(chunks) == 1 else _joined(chunks)
    return None if joined is None else joined.values()


@dataclass(frozen=True, slots=True)
class CodeRuns:
    """A chunk of texts as runs: the row behind each, and what its rows hold, a dictionary array."""

    values: Any
    ends: Int64s


def read_runs(
    file: InputFile, leaf: LeafColumn, chunk: ColumnChunk, group: RowGroup
) -> CodeRuns | None:
    """The texts of a chunk of a row group as runs.

    Nothing is read if the footer says that all rows are alike. None if there may be many
    runs, which are not faster than rows, and for what pyarrow has to read.
    """
    alike = _run_of_all(leaf, chunk, group)
    if alike is not None:
        return alike
    if chunk.compressed_size > group.num_rows // SHORTEST_RUN * _RUN_BYTES + _HEADERS:
        return None
    found = _chunk(file, leaf, chunk, group, None)
    return None if found is None else found.runs()


def _run_of_all(leaf: LeafColumn, chunk: ColumnChunk, group: RowGroup) -> CodeRuns | None:
    """One run if no row has a text, or all have one that the bounds enclose nothing beside of.

    Cut bounds enclose as well (EXACTNESS, rule 21).
    """
    rows, is_text = group.num_rows, leaf.node.physical == "BYTE_ARRAY"
    if leaf.max_repetition or not is_text or not rows or chunk.num_values != rows:
        return None
    nulls = chunk.null_count if leaf.max_definition else 0
    bounds = decode_bounds(chunk, leaf.node, writer_is_exact=False)
    if nulls == rows:
        text = None
    elif nulls == 0 and isinstance(bounds.minimum, str) and bounds.minimum == bounds.maximum:
        text = bounds.minimum
    else:
        return None
    return CodeRuns(
        arrow_array([text], pa.string()).dictionary_encode(), np.array([rows], np.int64)
    )


def _chunk(
    file: InputFile, leaf: LeafColumn, chunk: ColumnChunk, group: RowGroup, places: Int64s | None
) -> _Chunk | None:
    size = chunk.compressed_size
    if leaf.max_repetition or chunk.num_values != group.num_rows or not group.num_rows:
        return None
    if chunk.first_page < 0 or max(size, 8 * group.num_rows) > MOST_BYTES:
        return None
    file.prefetch([(chunk.first_page, size)])
    if chunk.first_page + size > file.size:
        return None
    data = file.read_at(size, chunk.first_page)
    pages = _pages(np.frombuffer(data, np.uint8), group.num_rows)
    if pages is None or int(pages[:, UNPACKED].sum()) > MOST_BYTES:
        return None
    held = PageBytes(memoryview(data), chunk.codec, leaf.max_definition)
    return _Chunk(pages, leaf, held, places)


def _joined(chunks: Sequence[_Chunk]) -> _Chunk | None:
    """The pages of all chunks as those of one; None if they are not alike."""
    first = chunks[0]
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
    return _Chunk(every, first.leaf, held, None)


def _form(leaf: LeafColumn) -> tuple[object, ...]:
    """What the values of two leaves must have alike to be decoded as one."""
    node = leaf.node
    return node.physical, node.type_length, node.logical, leaf.max_definition


def _runs_of(rows: int) -> int:
    """How many runs so many rows may have."""
    return rows // SHORTEST_RUN + SHORTEST_RUN


def _pages(data: _Bytes, count: int) -> Int64s | None:
    """The pages of a chunk, a row of SLOTS each."""
    room, stack = 32, np.empty(STACK, np.int64)
    while True:
        pages = np.empty(room * SLOTS, np.int64)
        found = find_pages(data, count, pages, stack)
        if found <= room:
            return None if found < 0 else pages.reshape(room, SLOTS)[:found]
        room = found


@dataclass(frozen=True, slots=True)
class _Chunk:
    """The pages of a chunk with their bytes, and which rows are asked for."""

    pages: Int64s
    leaf: LeafColumn
    bytes: PageBytes
    places: Int64s | None

    @property
    def has_entries(self) -> bool:
        """Whether the first page is a dictionary."""
        return bool(self.pages[0, KIND] == DICTIONARY_PAGE)

    @property
    def is_usual(self) -> bool:
        """Whether the pages have a form that kernels decode."""
        return self._way is not None

    @property
    def _way(self) -> Callable[[], Any] | None:
        """What decodes the pages, if anything does."""
        if self.has_entries:
            return self._codes if self._is_coded else None
        encodings, physical = set(self.pages[:, ENCODING].tolist()), self.leaf.node.physical
        if encodings == {_PREFIXES} and physical == "BYTE_ARRAY":
            return self._texts
        if encodings == {_PLAIN} and physical == "FIXED_LEN_BYTE_ARRAY":
            return self._decimals
        is_integer = encodings == {_DIFFERENCES} and physical in _INTEGERS
        return self._integers if is_integer else None

    def values(self) -> Any:
        """See `read_values`."""
        decode = self._way
        return None if decode is None else decode()

    def runs(self) -> CodeRuns | None:
        """See `read_runs`."""
        if not self._is_coded:
            return None
        pages = self.pages[1:].tolist()
        # Rows without runs are noticed on the first page.
        parts = self.bytes.parts(self.pages[:2].tolist())
        if parts is None:
            return None
        entries = self._entries(parts[:1], self.pages[:1, COUNT])
        if entries is None:
            return None
        most = _runs_of(sum(page[COUNT] for page in pages))
        codes, ends, state = (
            np.empty(most, np.int32),
            np.empty(most, np.int64),
            np.empty(RUN_STATE, np.int64),
        )
        count = start = 0
        parts = parts[1:]
        for number, page in enumerate(pages):
            if number == 1:
                parts += self.bytes.parts(pages[1:]) or []
            if number >= len(parts):
                return None
            levels, values = (np.frombuffer(part, np.uint8) for part in parts[number])
            end = start + page[COUNT]
            room = min(most, _runs_of(end))
            count = find_runs(
                levels,
                self.leaf.max_definition,
                values,
                len(entries),
                end - start,
                codes[:room],
                ends[:room],
                count,
                start,
                state,
            )
            if count < 0:
                return None
            start = end
        valid = codes[:count] >= 0
        indices = _array(codes[:count], valid.view(np.uint8), int(np.count_nonzero(valid)))
        return CodeRuns(pa.DictionaryArray.from_arrays(indices, entries, safe=False), ends[:count])

    @property
    def _is_coded(self) -> bool:
        """Whether all pages are codes of a dictionary of texts, or such dictionaries."""
        if not self.has_entries or self.leaf.node.physical != "BYTE_ARRAY":
            return False
        is_entries = self.pages[:, KIND] == DICTIONARY_PAGE
        entries = set(self.pages[is_entries, ENCODING].tolist())
        codes = set(self.pages[~is_entries, ENCODING].tolist())
        return entries <= {_PLAIN, _PLAIN_DICTIONARY} and codes <= {_CODES, _PLAIN_DICTIONARY}

    def _integers(self) -> Any:
        dtype = _INTEGERS[self.leaf.node.physical or ""]
        wanted = self._wanted(self.pages)
        parts = self.bytes.parts(self.pages[wanted].tolist())
        if parts is None:
            return None
        numbers = self._room(self.pages, wanted, np.dtype(np.int64))

        def decode(given: _Given) -> int:
            return decode_differences(*given, numbers)

        found = self._decoded(self.pages, wanted, parts, decode)
        return None if found is None else _array(numbers.astype(dtype, copy=False), *found)

    def _decimals(self) -> Any:
        logical, width = self.leaf.node.logical, self.leaf.node.type_length
        if logical is None or logical.kind != "DECIMAL" or width > 16:
            return None
        if not 0 <= logical.scale <= logical.precision <= 38 or not logical.precision:
            return None
        wanted = self._wanted(self.pages)
        parts = self.bytes.parts(self.pages[wanted].tolist())
        if parts is None:
            return None
        words = self._room(self.pages, wanted, np.dtype(np.int64), 2)

        def decode(given: _Given) -> int:
            return decode_decimals(*given, width, words)

        found = self._decoded(self.pages, wanted, parts, decode)
        if found is None:
            return None
        return _array(words, *found, pa.decimal128(logical.precision, logical.scale))

    def _codes(self) -> Any:
        is_entries = self.pages[:, KIND] == DICTIONARY_PAGE
        own = self.pages[~is_entries]
        wanted = self._wanted(own)
        # The dictionary and its codes are unpacked in one go.
        at = np.flatnonzero(is_entries)
        parts = self.bytes.parts(
            self.pages[np.concatenate([at, np.flatnonzero(~is_entries)[wanted]])].tolist()
        )
        if parts is None:
            return None
        counts = self.pages[at, COUNT]
        entries = self._entries(parts[: len(at)], counts)
        if entries is None:
            return None
        codes = self._room(own, wanted, np.dtype(np.int32))
        # Of several chunks each has pages of its own dictionary.
        number = (np.cumsum(is_entries) - 1)[~is_entries][wanted]
        first = np.cumsum(counts) - counts

        def decode(given: _Given) -> int:
            spans = given[1].reshape(-1, SPAN)
            spans[:, FIRST_ENTRY], spans[:, ENTRIES] = first[number], counts[number]
            return decode_codes(*given, codes)

        found = self._decoded(own, wanted, parts[len(at) :], decode)
        if found is None:
            return None
        return pa.DictionaryArray.from_arrays(_array(codes, *found), entries, safe=False)

    def _texts(self) -> Any:
        """Texts that share their beginnings with those before them."""
        wanted = self._wanted(self.pages)
        parts = self.bytes.parts(self.pages[wanted].tolist())
        if parts is None:
            return None
        buffers: list[Any] = []

        def decode(given: _Given) -> int:
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

        decoded = self._decoded(self.pages, wanted, parts, decode)
        if decoded is None:
            return None
        valid, found = decoded
        if not buffers:
            return pa.nulls(len(valid), pa.string())
        bits = None if found == len(valid) else _bits(valid)
        return pa.Array.from_buffers(pa.string(), len(valid), [bits, *buffers])

    def _room(self, pages: Int64s, wanted: Int64s, dtype: np.dtype[Any], width: int = 1) -> Any:
        """Room for the values of all pages, from Arrow's pool: new memory costs much time.

        Zeros where pages are left out.
        """
        size = int(pages[:, COUNT].sum()) * dtype.itemsize * width
        memory: Any = pa.allocate_buffer(size)
        room = np.frombuffer(memory, dtype)
        if len(wanted) < len(pages):
            room[:] = 0
        return room

    def _entries(self, parts: Sequence[Parts], counts: Int64s) -> Any:
        """The texts of dictionaries, `counts` of them in each; None if they do not fit."""
        sizes = np.array([len(values) for _, values in parts], np.int64)
        if (4 * counts > sizes).any():
            return None
        joined = parts[0][1] if len(parts) == 1 else b"".join([values for _, values in parts])
        text, count = np.frombuffer(joined, np.uint8), int(counts.sum())
        offsets: Any = np.empty(count + 1, np.int32)
        own: Any = np.empty(len(text), np.uint8)
        size = plain_texts(text, count, offsets, own)
        if size < 0:
            return None
        # Each dictionary ends where its page does.
        ends = np.cumsum(counts)
        if (offsets[ends] + 4 * ends != np.cumsum(sizes)).any():
            return None
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(own[:size])]
        return pa.Array.from_buffers(pa.string(), count, buffers)

    # --- Pages ---

    def _wanted(self, pages: Int64s) -> Int64s:
        """The pages that hold rows which are asked for."""
        if self.places is None:
            return np.arange(len(pages))
        starts = np.cumsum(np.concatenate([[0], pages[:, COUNT]]))
        return np.flatnonzero(np.diff(np.searchsorted(self.places, starts)) > 0)

    def _decoded(
        self, pages: Int64s, wanted: Int64s, parts: list[Parts], decode: _Decode
    ) -> _Valid | None:
        """Decode the parts of the pages that are wanted; None if one is unusual."""
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


def _bits(valid: _Bytes) -> Any:
    """Arrow's bits for the rows that are valid."""
    packed: Any = np.packbits(valid, bitorder="little")
    return pa.py_buffer(packed)


def _array(values: Any, valid: _Bytes, found: int, type_: pa.DataType | None = None) -> Any:
    """The values as Arrow has them, NULL if they are not valid; `found` of them are."""
    arrow = type_ or pa.from_numpy_dtype(values.dtype)
    bits = None if found == len(valid) else _bits(valid)
    return pa.Array.from_buffers(arrow, len(valid), [bits, pa.py_buffer(values)])
