"""Column chunks as codes and integers, by our kernels: in less time than pyarrow, and page by page.

Only of columns outside of lists whose pages are all codes of one dictionary of texts, texts by what
they add to the one before, or integers by their differences, as we and most others write paths. Of
anything else, and of whatever is wrong, nothing is said here: pyarrow reads it, or words the error.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from variantlake.kernels.columns.pages import COUNT as VALUES
from variantlake.kernels.columns.pages import (
    END_AT,
    LEVELS_AT,
    PLACE,
    ROWS,
    SPAN,
    VALUES_AT,
    decode_codes,
    decode_differences,
    find_values,
    join_texts,
    plain_texts,
    text_lengths,
)
from variantlake.kernels.columns.runs import RUN_STATE, find_runs
from variantlake.kernels.log.compact_protocol import STACK
from variantlake.kernels.log.page_headers import (
    COUNT,
    CRC,
    DATA_PAGE_V2,
    DICTIONARY_PAGE,
    ENCODING,
    IS_PACKED,
    KIND,
    LEVELS,
    NO_CRC,
    OTHER_LEVELS,
    PACKED,
    SLOTS,
    START,
    UNPACKED,
    find_pages,
)
from variantlake.parquet.metadata.column_chunks import ColumnChunk
from variantlake.parquet.metadata.footer import RowGroup
from variantlake.parquet.metadata.schema_tree import LeafColumn
from variantlake.parquet.stats.fact_columns import Int64s
from variantlake.storage.input_file import InputFile

MOST_BYTES = 256 << 20
"""Chunks of more bytes are left to pyarrow's batches."""

SHORTEST_RUN = 64
"""Rows of a run, on average, from which on runs are faster than rows."""

_RUN_BYTES = 2
"""A run's bytes, about, and compressed. A chunk of more has shorter runs."""

_HEADERS = 1 << 10
"""Bytes of the headers and dictionaries of a chunk, about."""

_PLAIN, _PLAIN_DICTIONARY, _DIFFERENCES, _PREFIXES, _CODES = 0, 2, 5, 7, 8
"""Encodings, as `parquet.thrift` numbers them."""

_INTEGERS = {"INT32": np.dtype(np.int32), "INT64": np.dtype(np.int64)}

_Bytes = npt.NDArray[np.uint8]
_Decode = Callable[[_Bytes, Int64s, _Bytes], int]
"""Decodes the values of pages, given as `find_values` has filled them; -1 if one is unusual."""


def read_values(
    file: InputFile, leaf: LeafColumn, chunk: ColumnChunk, group: RowGroup, places: Int64s | None
) -> Any:
    """The values of a chunk of a row group: strings, as a dictionary array or not, or integers.

    With `places`, rows of the row group in order, pages without any of them are not decoded: what
    stands in their rows means nothing. None for what pyarrow has to read.
    """
    found = _chunk(file, leaf, chunk, group, places)
    return None if found is None else found.values()


@dataclass(frozen=True, slots=True)
class CodeRuns:
    """A chunk of texts as runs: the row behind each, and what its rows hold, a dictionary array."""

    values: Any
    ends: Int64s


def read_runs(
    file: InputFile, leaf: LeafColumn, chunk: ColumnChunk, group: RowGroup
) -> CodeRuns | None:
    """The texts of a chunk of a row group as runs.

    None where there may be many runs, which are no faster than rows, and for what pyarrow has to
    read.
    """
    if chunk.compressed_size > group.num_rows // SHORTEST_RUN * _RUN_BYTES + _HEADERS:
        return None
    found = _chunk(file, leaf, chunk, group, None)
    return None if found is None else found.runs()


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
    data = np.frombuffer(file.read_at(size, chunk.first_page), np.uint8)
    pages = _pages(data, group.num_rows)
    if pages is None or int(pages[:, UNPACKED].sum()) > MOST_BYTES:
        return None
    return _Chunk(data, pages, leaf, chunk.codec, places)


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
    """The bytes of a chunk, its pages, and which rows are asked for."""

    data: _Bytes
    pages: Int64s
    leaf: LeafColumn
    codec: str
    places: Int64s | None

    def values(self) -> Any:
        """See `read_values`."""
        first, physical = self.pages[0], self.leaf.node.physical or ""
        if first[KIND] != DICTIONARY_PAGE:
            encodings = set(self.pages[:, ENCODING].tolist())
            if encodings == {_PREFIXES} and physical == "BYTE_ARRAY":
                return self._texts()
            return self._integers(physical) if encodings == {_DIFFERENCES} else None
        entries = self._dictionary()
        return None if entries is None else self._codes(entries)

    def runs(self) -> CodeRuns | None:
        """See `read_runs`."""
        entries = self._dictionary()
        if entries is None:
            return None
        rows = int(self.pages[1:, COUNT].sum())
        most = _runs_of(rows)
        codes, ends, state = (
            np.empty(most, np.int32),
            np.empty(most, np.int64),
            np.empty(RUN_STATE, np.int64),
        )
        count = start = 0
        for page in self.pages[1:]:
            parts = self._parts(page)
            if parts is None:
                return None
            levels, values = parts
            end = start + int(page[COUNT])
            # Rows without runs are noticed on the first page.
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
        indices = _array(codes[:count], (codes[:count] >= 0).view(np.uint8))
        return CodeRuns(pa.DictionaryArray.from_arrays(indices, entries, safe=False), ends[:count])

    def _dictionary(self) -> Any:
        """The texts that all pages are codes of; None where they are something else."""
        first, encodings = self.pages[0], set(self.pages[1:, ENCODING].tolist())
        if first[KIND] != DICTIONARY_PAGE or self.leaf.node.physical != "BYTE_ARRAY":
            return None
        return self._entries(first) if encodings <= {_CODES, _PLAIN_DICTIONARY} else None

    def _integers(self, physical: str) -> Any:
        dtype = _INTEGERS.get(physical)
        if dtype is None:
            return None
        numbers = self._room(self.pages, np.dtype(np.int64))

        def decode(data: _Bytes, pages: Int64s, valid: _Bytes) -> int:
            return decode_differences(data, pages, valid, numbers, np.empty(1, np.int64))

        valid = self._decoded(self.pages, decode)
        return None if valid is None else _array(numbers.astype(dtype, copy=False), valid)

    def _codes(self, entries: Any) -> Any:
        own = self.pages[1:]
        codes = self._room(own, np.dtype(np.int32))

        def decode(data: _Bytes, pages: Int64s, valid: _Bytes) -> int:
            return decode_codes(data, pages, len(entries), valid, codes, np.empty(1, np.int64))

        valid = self._decoded(own, decode)
        if valid is None:
            return None
        return pa.DictionaryArray.from_arrays(_array(codes, valid), entries, safe=False)

    def _texts(self) -> Any:
        """Texts that share their beginnings with those before them, page by page."""
        parts: list[Any] = []

        def decode(data: _Bytes, pages: Int64s, valid: _Bytes) -> int:
            end = most = 0
            words = np.zeros(2, np.int64)
            for span in pages.reshape(-1, SPAN).tolist():
                parts.append(pa.nulls(span[PLACE] - end, pa.string()))  # pages left out
                own, end = data[span[VALUES_AT] : span[END_AT]], span[PLACE] + span[ROWS]
                lengths: Int64s = np.empty(2 * span[VALUES], np.int64)
                at = text_lengths(own, span[VALUES], lengths, words)
                most += int(words[1])
                if at < 0 or most > MOST_BYTES:
                    return -1
                part = _joined(own, lengths, at, valid[span[PLACE] : end])
                if part is None:
                    return -1
                parts.append(part)
            parts.append(pa.nulls(len(valid) - end, pa.string()))
            return 0

        valid = self._decoded(self.pages, decode)
        if valid is None:
            return None
        return pa.concat_arrays(parts) if parts else pa.nulls(len(valid), pa.string())

    def _room(self, pages: Int64s, dtype: np.dtype[Any]) -> Any:
        """Room for the values of all pages, from Arrow's pool: new memory costs much time.

        Zeros where pages may be left out.
        """
        size = int(pages[:, COUNT].sum()) * dtype.itemsize
        memory: Any = pa.allocate_buffer(size)
        room = np.frombuffer(memory, dtype)
        if self.places is not None:
            room[:] = 0
        return room

    def _entries(self, page: Int64s) -> Any:
        """The texts of the dictionary; None where they are not plain."""
        count = int(page[COUNT])
        body = self._body(page)
        text = None if body is None else self._unpacked(body, int(page[UNPACKED]))
        if (
            text is None
            or page[ENCODING] not in (_PLAIN, _PLAIN_DICTIONARY)
            or 4 * count > len(text)
        ):
            return None
        offsets: Any = np.empty(count + 1, np.int32)
        own: Any = np.empty(len(text), np.uint8)
        size = plain_texts(text, count, offsets, own)
        if size < 0:
            return None
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(own[:size])]
        return pa.Array.from_buffers(pa.string(), count, buffers)

    # --- Pages ---

    def _decoded(self, pages: Int64s, decode: _Decode) -> _Bytes | None:
        """Decode the pages that are asked for; which rows have a value, None if one is unusual."""
        starts = np.cumsum([0, *pages[:, COUNT].tolist()])
        wanted = np.arange(len(pages))
        if self.places is not None:
            wanted = np.flatnonzero(np.diff(np.searchsorted(self.places, starts)) > 0)
        bytes_: list[_Bytes] = []
        spans = np.zeros((len(wanted), SPAN), np.int64)
        end = 0
        for span, number in zip(spans, wanted.tolist(), strict=True):
            parts = self._parts(pages[number])
            if parts is None:
                return None
            bytes_ += parts
            span[LEVELS_AT], span[VALUES_AT] = end, end + len(parts[0])
            end = span[END_AT] = span[VALUES_AT] + len(parts[1])
            span[PLACE], span[ROWS] = starts[number], pages[number, COUNT]
        valid = np.zeros(int(starts[-1]), np.uint8)
        if not bytes_:
            return valid
        data, flat = np.concatenate(bytes_), spans.reshape(-1)
        room, word = np.empty(int(spans[:, ROWS].max()), np.int32), np.empty(1, np.int64)
        if find_values(data, flat, self.leaf.max_definition, valid, room, word) < 0:
            return None
        return None if decode(data, flat, valid) < 0 else valid

    def _parts(self, page: Int64s) -> tuple[_Bytes, _Bytes] | None:
        """The definition levels of a data page, and its values."""
        body, unpacked = self._body(page), int(page[UNPACKED])
        if body is None:
            return None
        if page[KIND] == DATA_PAGE_V2:
            size = int(page[LEVELS])
            if page[OTHER_LEVELS] != 0 or not 0 <= size <= min(len(body), unpacked):
                return None
            values = body[size:]
            if page[IS_PACKED] != 0 and len(values):
                found = self._unpacked(values, unpacked - size)
                return None if found is None else (body[:size], found)
            return body[:size], values
        found = self._unpacked(body, unpacked)
        if found is None or not self.leaf.max_definition:
            return None if found is None else (found[:0], found)
        size = int.from_bytes(found[:4].tobytes(), "little")
        return None if size > len(found) - 4 else (found[4 : 4 + size], found[4 + size :])

    def _body(self, page: Int64s) -> _Bytes | None:
        """The bytes of a page; None where they are not those that its checksum is of."""
        start, checksum = int(page[START]), int(page[CRC])
        body: Any = self.data[start : start + int(page[PACKED])]
        if checksum != NO_CRC and zlib.crc32(body) != checksum & 0xFFFFFFFF:
            return None
        found: _Bytes = body
        return found

    def _unpacked(self, body: _Bytes, size: int) -> _Bytes | None:
        """The bytes without compression, `size` of them; None where they cannot be had."""
        if self.codec == "UNCOMPRESSED":
            return body if len(body) == size else None
        if self.codec == "ZSTD":
            codec = pa.Codec("zstd")
        elif self.codec == "SNAPPY" and _snappy_size(body[:5].tobytes()) == size:
            # Arrow leaves what a shorter text of Snappy does not fill as it was.
            codec = pa.Codec("snappy")
        else:
            return None
        packed: Any = body
        try:
            unpacked: Any = codec.decompress(pa.py_buffer(packed), size)
        except (pa.ArrowException, OSError):
            return None
        found: _Bytes = np.frombuffer(unpacked, np.uint8)
        return found


def _snappy_size(head: bytes) -> int:
    """How many bytes a text of Snappy says that it holds; -1 where it says nothing."""
    size = 0
    for at, byte in enumerate(head):
        size |= (byte & 127) << 7 * at
        if byte < 128:
            return size
    return -1


def _joined(page: _Bytes, lengths: Int64s, at: int, valid: _Bytes) -> Any:
    """The texts of a page, NULL where they are not valid."""
    offsets: Any = np.empty(len(valid) + 1, np.int32)
    text: Any = np.empty(int(lengths.sum()), np.uint8)
    if join_texts(page, at, lengths, valid, offsets, text) < 0:
        return None
    buffers = [_bits(valid), pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.string(), len(valid), buffers)


def _bits(valid: _Bytes) -> Any:
    """Arrow's bits for the rows that are valid; None where all are."""
    packed: Any = np.packbits(valid, bitorder="little")
    return None if valid.all() else pa.py_buffer(packed)


def _array(values: Any, valid: _Bytes) -> Any:
    """The values as Arrow has them, NULL where they are not valid."""
    arrow = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(arrow, len(values), [_bits(valid), pa.py_buffer(values)])
