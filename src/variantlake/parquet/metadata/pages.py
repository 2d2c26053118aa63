"""Check the page headers of a column chunk before pyarrow reads its pages.

pyarrow believes a page header: one flipped bit in it, or in the footer's offset of the first page,
and it allocates gigabytes for values that are not there. So we first check that headers and footer
agree: the pages lie within their chunk and hold as many values as it counts. This costs a read and
some ten microseconds a page, and decodes no values.
Spec: Parquet, `parquet.thrift`, PageHeader.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from variantlake.errors import MalformedFile
from variantlake.kernels.log.compact_protocol import STACK
from variantlake.kernels.log.page_headers import SLOTS, check_page_headers
from variantlake.parquet.metadata.column_chunks import (
    ColumnChunk,
    Int64s,
    check_readable,
    places,
)
from variantlake.parquet.metadata.footer import RowGroup
from variantlake.parquet.metadata.schema_tree import LeafColumn
from variantlake.parquet.metadata.thrift import CompactReader, Fields, Struct, Wire

MAX_FREE_VALUES = 1 << 24
"""Our limit on the values of a chunk in lists, beyond VALUES_PER_BYTE for each byte of its pages:
run lengths can claim two billion elements in a row of ten bytes."""

VALUES_PER_BYTE = 1024
"""See MAX_FREE_VALUES."""

_VALUE_BYTES = 8
"""The size in memory of a number, or of the offset of a text. Encoded, both may take no space."""

_FIRST_READ = 256  # bytes; a header holds statistics, which may be long
_LARGEST_HEADER = 1 << 24
_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_V2 = 0, 2, 3

_COUNT = Struct({1: Wire.I32})
_PAGE_HEADER = Struct(
    {
        1: Wire.I32,  # type
        2: Wire.I32,  # uncompressed_page_size
        3: Wire.I32,  # compressed_page_size
        5: _COUNT,  # data_page_header
        7: _COUNT,  # dictionary_page_header
        8: _COUNT,  # data_page_header_v2
    }
)
_COUNTED_IN = {_DATA_PAGE: 5, _DICTIONARY_PAGE: 7, _DATA_PAGE_V2: 8}

ReadAt = Callable[[int, int], bytes]
"""Takes a number of bytes and an offset; gives fewer bytes only at the end of the file."""


def check_pages(read_at: ReadAt, leaf: LeafColumn, chunk: ColumnChunk, group: RowGroup) -> int:
    """Check the pages of a column chunk; returns about how many bytes it takes in memory.

    `chunk` is the chunk of `leaf` in the row group. Pages after its last value are not checked,
    because nobody reads them.

    Raises MalformedFile, with the offset in the file, unless pages and footer agree, and
    UnsupportedFeature for a chunk that is encrypted or compressed in a way that we do not know.
    """
    check_readable(chunk, leaf.node)
    name, count, in_lists = leaf.node.name, chunk.num_values, leaf.max_repetition > 0
    if not in_lists and count != group.num_rows:
        raise MalformedFile(f"column {name!r} has {count} values for {group.num_rows} rows")
    position, end = chunk.first_page, chunk.first_page + chunk.compressed_size
    if position < 0:
        raise MalformedFile(f"column {name!r} has no offset in the file")
    values = unpacked = entry = 0
    while values < count and position < end:
        page, data = _header(read_at, name, position, end)
        if min(page.get(2, -1), page.get(3, -1)) < 0 or data + page[3] > end:
            raise MalformedFile(f"a page of column {name!r} does not fit its chunk", offset=data)
        values += _values_of(page, name, data)
        unpacked += page[2]
        position = data + page[3]
        if page.get(1) == _DICTIONARY_PAGE:
            entry = page[2] // max(page[7][1], 1)
    if values != count:
        raise MalformedFile(
            f"the pages of column {name!r} hold {values} values instead of {count}",
            offset=chunk.first_page,
        )
    if in_lists and values > MAX_FREE_VALUES + VALUES_PER_BYTE * unpacked:
        raise MalformedFile(
            f"column {name!r} has {values} values within lists in {unpacked} bytes",
            offset=chunk.first_page,
            hint=f"our limit is {MAX_FREE_VALUES}, and {VALUES_PER_BYTE} more for each byte",
        )
    return unpacked + values * (entry + _VALUE_BYTES)


def pages_are_usual(
    data: bytes | memoryview,
    leaves: Sequence[LeafColumn],
    group: RowGroup,
    wanted: Sequence[int],
    *,
    starts: Int64s | None = None,
) -> int:
    """Return the sum of the results of `check_pages` for the leaves `wanted` of a row group.

    `data` is the whole file, or holds the chunks of these leaves, each at its offset in `starts`.
    Returns -1 if something is unusual or wrong; the caller then calls `check_pages` for the error.
    """
    found = places(group.columns, wanted)
    if (found[:, 0] < 0).any():  # encrypted
        return -1
    if starts is not None:
        found[:, 0] = starts
    in_lists = np.array([leaves[leaf].max_repetition > 0 for leaf in wanted], np.bool_)
    if (found[:, 2] != group.num_rows)[~in_lists].any():
        return -1
    free = np.where(in_lists, MAX_FREE_VALUES, -1)
    scratch = np.empty(SLOTS + STACK, np.int64)
    return check_page_headers(np.frombuffer(data, np.uint8), found.reshape(-1), free, scratch)


def _header(read_at: ReadAt, name: str, position: int, end: int) -> tuple[Fields, int]:
    """Read a page header; also returns where its page's data starts."""
    size = _FIRST_READ
    while True:
        head = read_at(min(size, end - position), position)
        reader = CompactReader(head, position, "page header")
        try:
            return reader.read(_PAGE_HEADER, Wire.STRUCT), position + reader.position
        except MalformedFile as error:
            # Perhaps the header is only longer than what we read.
            if len(head) < size or size >= _LARGEST_HEADER:
                error.say_first(f"column {name!r}")
                raise
        size <<= 8


def _values_of(page: Fields, name: str, offset: int) -> int:
    """Return the values that a page adds to its chunk: none if readers skip pages of its kind."""
    kind = page.get(1, -1)
    if kind not in _COUNTED_IN:
        return 0
    count: int = page.get(_COUNTED_IN[kind], {}).get(1, -1)
    # Every value of a dictionary takes a byte or more.
    if count < 0 or (kind == _DICTIONARY_PAGE and count > page[2]):
        raise MalformedFile(
            f"a page of column {name!r} has {count} values in {page[2]} bytes", offset=offset
        )
    return 0 if kind == _DICTIONARY_PAGE else count
