"""Decode the column chunks of a footer: check all at once, and make objects only on demand.

Reading or rewriting a file of many columns needs few fields of each chunk, and needs them for all
chunks together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from variantlake.errors import UnsupportedFeature
from variantlake.kernels.log.column_chunks import (
    BYTES_FIELDS,
    CHUNK_FIELDS,
    COUNT_FIELDS,
    FLAG_FIELDS,
    HAS_META,
    HAS_STATISTICS,
    META,
    META_FIELDS,
    PRESENT,
    STATISTICS,
    column_chunks,
)
from variantlake.parquet.metadata.schema_tree import PHYSICAL, LeafColumn, SchemaNode
from variantlake.parquet.metadata.thrift import CompactReader, Fields

CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")
ENCRYPTED = "ENCRYPTED"
"""Replaces the codec of a column that cannot be read without its key."""

Int64s = npt.NDArray[np.int64]

_TYPE, _CODEC, _VALUES, _SIZE, _DATA, _DICTIONARY = (META_FIELDS[n] for n in (1, 4, 5, 7, 9, 11))
_NEEDED = HAS_META | 1 << _TYPE | 1 << _CODEC | 1 << _VALUES

_CHUNK = [(field, slot, 1 << slot) for field, slot in CHUNK_FIELDS.items()]
_META = [(field, slot, 1 << slot) for field, slot in META_FIELDS.items()]
_COUNTS = [(field, slot, 1 << slot) for field, slot in COUNT_FIELDS.items()]
_BYTES = [(field, slot, 1 << slot) for field, slot in BYTES_FIELDS.items()]
_FLAGS = [(field, slot, 1 << slot) for field, slot in FLAG_FIELDS.items()]
"""Fields, their slots, and their bits in PRESENT."""


@dataclass(frozen=True, slots=True)
class ColumnChunk:
    """One leaf in one row group. Sizes in bytes.

    `num_values` counts nulls too. `null_count`, `min_exact` and `max_exact` are None if the writer
    did not set them. `min_value` and `max_value` are plain-encoded, and None unless they follow the
    order that the type defines. `first_page` is the offset of the pages in the file. `codec` is one
    of CODECS, `UNKNOWN_<number>` for a newer one, or ENCRYPTED: then only the number of rows is
    known.
    """

    num_values: int
    null_count: int | None
    min_value: bytes | None
    max_value: bytes | None
    min_exact: bool | None
    max_exact: bool | None
    first_page: int
    compressed_size: int
    uncompressed_size: int
    codec: str
    page_index: bool


class ColumnChunks(Sequence[ColumnChunk]):
    """The column chunks of a row group. Each becomes a ColumnChunk at its first access."""

    __slots__ = ("_data", "_leaves", "_made", "_slots", "_unordered")

    def __init__(
        self,
        slots: Int64s,
        data: bytes,
        leaves: Sequence[LeafColumn],
        unordered: frozenset[int],
    ) -> None:
        """Wrap the checked `slots` that `kernels.log.column_chunks` read from `data`."""
        self._slots, self._data = slots, data
        self._leaves, self._unordered = leaves, unordered
        self._made: list[ColumnChunk | None] = [None] * len(slots)

    def places(self) -> Int64s:
        """Return the result of the function `places` for all leaves."""
        slots = self._slots
        data, dictionary = slots[:, _DATA], slots[:, _DICTIONARY]
        first = np.where((dictionary > 0) & (dictionary < data), dictionary, data)
        return np.stack([first, np.maximum(slots[:, _SIZE], 0), slots[:, _VALUES]], axis=1)

    def __len__(self) -> int:
        return len(self._made)

    @overload
    def __getitem__(self, index: int) -> ColumnChunk: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[ColumnChunk, ...]: ...

    def __getitem__(self, index: int | slice) -> ColumnChunk | tuple[ColumnChunk, ...]:
        if isinstance(index, slice):
            return tuple(self[at] for at in range(*index.indices(len(self))))
        made = self._made[index]
        if made is None:
            index %= len(self._made)
            fields = fields_of(self._slots[index].tolist(), self._data)
            ordered = index not in self._unordered
            made = self._made[index] = chunk_of(fields, self._leaves[index].node, ordered=ordered)
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ColumnChunks | tuple) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)


def fields_of(row: list[int], data: bytes) -> Fields:
    """Make the fields of one ColumnChunk from its slots, as `thrift` decodes them."""
    present = row[PRESENT]
    fields: Fields = {field: row[slot] for field, slot, bit in _CHUNK if present & bit}
    if present & HAS_META:
        meta: Fields = {field: row[slot] for field, slot, bit in _META if present & bit}
        fields[META] = meta
        if present & HAS_STATISTICS:
            meta[STATISTICS] = _statistics(row, data)
    return fields


def _statistics(row: list[int], data: bytes) -> Fields:
    present = row[PRESENT]
    fields: Fields = {field: row[slot] for field, slot, bit in _COUNTS if present & bit}
    for field, slot, bit in _BYTES:
        if present & bit:
            fields[field] = data[row[slot] : row[slot] + row[slot + 1]]
    for field, slot, bit in _FLAGS:
        if present & bit:
            fields[field] = row[slot] == 1
    return fields


def encrypted_chunk() -> ColumnChunk:
    """Make the chunk of an encrypted column; `num_values` is -1 until the row count is known."""
    return ColumnChunk(-1, None, None, None, None, None, -1, 0, 0, ENCRYPTED, page_index=False)


def check_readable(chunk: ColumnChunk, node: SchemaNode) -> None:
    """Raise UnsupportedFeature for a chunk whose values we cannot decode."""
    if chunk.codec == ENCRYPTED:
        raise UnsupportedFeature(
            f"column {node.name!r} is encrypted",
            hint="other columns of the file can be read; with the key, write the file again"
            " without encryption",
        )
    if chunk.codec not in CODECS:
        raise UnsupportedFeature(
            f"column {node.name!r} has the compression {chunk.codec}, which this version does not "
            "know",
            hint="a newer version of this package may read it",
        )


def places(chunks: Sequence[ColumnChunk], leaves: Sequence[int]) -> Int64s:
    """Return the offset, bytes and number of values of some leaves' pages; shape (leaves, 3)."""
    if isinstance(chunks, ColumnChunks):
        return np.ascontiguousarray(chunks.places()[list(leaves)])
    found = [
        (c.first_page, c.compressed_size, c.num_values) for c in map(chunks.__getitem__, leaves)
    ]
    return np.array(found, np.int64).reshape(-1, 3)


def read_chunks(
    reader: CompactReader, leaves: Sequence[LeafColumn], unordered: frozenset[int]
) -> ColumnChunks | None:
    """Read the chunks of a row group at the reader's position, one for each leaf.

    Returns None and does not move the reader if something is unusual or wrong; the plain reader
    then reads them or raises the error.
    """
    found = column_chunks(reader.data, reader.position, len(leaves))
    if found is None:
        return None
    slots, end = found
    types = np.array([_TYPES.get(leaf.node.physical or "", -1) for leaf in leaves], np.int64)
    codecs = slots[:, _CODEC]
    if (
        ((slots[:, PRESENT] & _NEEDED) == _NEEDED).all()
        and (slots[:, _TYPE] == types).all()
        and (slots[:, _VALUES] >= 0).all()
        and (codecs >= 0).all()
        and (codecs < len(CODECS)).all()
    ):
        reader.position = end
        return ColumnChunks(slots, reader.data, leaves, unordered)
    return None


_TYPES = {name: number for number, name in enumerate(PHYSICAL)}


def chunk_of(fields: Fields, node: SchemaNode, *, ordered: bool) -> ColumnChunk:
    """Build a chunk from its fields.

    The caller has checked that they have the leaf's type, a count and a codec. `ordered` tells
    whether we know the order of its bounds.
    """
    meta = fields[3]
    num_values = meta[5]
    statistics = meta.get(12, {})
    null_count = statistics.get(3)
    minimum, maximum = _trusted_bounds(statistics, node, ordered=ordered)
    return ColumnChunk(
        num_values=num_values,
        # Ignore an impossible count.
        null_count=null_count if null_count in range(num_values + 1) else None,
        min_value=minimum,
        max_value=maximum,
        min_exact=statistics.get(8),
        max_exact=statistics.get(7),
        first_page=_first_page(meta.get(9, 0), meta.get(11, 0)),
        compressed_size=max(0, meta.get(7, 0)),
        uncompressed_size=max(0, meta.get(6, 0)),
        codec=CODECS[meta[4]] if meta[4] < len(CODECS) else f"UNKNOWN_{meta[4]}",
        page_index=4 in fields and 6 in fields,
    )


def _first_page(data_page_offset: int, dictionary_page_offset: int) -> int:
    """Return the offset of the first page. Some writers set a dictionary's to 0, or the data's."""
    if 0 < dictionary_page_offset < data_page_offset:
        return dictionary_page_offset
    return data_page_offset


_SIGNED = frozenset({"INT32", "INT64", "FLOAT", "DOUBLE"})


def _trusted_bounds(
    statistics: Fields, node: SchemaNode, *, ordered: bool
) -> tuple[bytes | None, bytes | None]:
    """Return the minimum and maximum if they surely follow the order that the type defines.

    `min_value`/`max_value` mean nothing without a column order. Old writers compared the deprecated
    `min`/`max` as signed numbers, even those of strings, so we use them only for signed types.
    """
    if ordered and (5 in statistics or 6 in statistics):
        return statistics.get(6), statistics.get(5)
    unsigned = node.logical is not None and not node.logical.signed
    if node.physical in _SIGNED and not unsigned:
        return statistics.get(2), statistics.get(1)
    return None, None
