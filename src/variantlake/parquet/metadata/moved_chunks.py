"""Take the row groups of a footer apart, so that they can move to another file.

We decode only what changes with a move: the offsets into the file. All other bytes of a row group
are copied as they are. A field that we do not know may be an offset too, so we refuse a footer that
has one. The bytes are hostile: every offset must lie in the file, and no two column chunks may
overlap.
Spec: Parquet, `parquet.thrift`, FileMetaData, RowGroup, ColumnChunk, ColumnMetaData; PageIndex.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from variantlake.errors import MalformedFile
from variantlake.parquet.metadata.footer import Footer, Tail
from variantlake.parquet.metadata.pages import ReadAt
from variantlake.parquet.metadata.thrift import CompactReader, Struct, Wire

Span = tuple[int, int]
"""Where a value starts and ends in the footer."""


class NotMovable(Exception):
    """Row groups that cannot be copied as bytes; the text says why."""


_FILE = {1: Wire.I32, 2: Wire.LIST, 3: Wire.I64, 4: Wire.LIST, 5: Wire.LIST, 6: Wire.BINARY}
_FILE |= {7: Wire.LIST}
_GROUP = {1: Wire.LIST, 2: Wire.I64, 3: Wire.I64, 4: Wire.LIST, 5: Wire.I64, 6: Wire.I64}
_GROUP |= {7: Wire.I16}
_CHUNK = {2: Wire.I64, 3: Wire.STRUCT, 4: Wire.I64, 5: Wire.I32, 6: Wire.I64, 7: Wire.I32}
_META = {1: Wire.I32, 2: Wire.LIST, 3: Wire.LIST, 4: Wire.I32, 5: Wire.I64, 6: Wire.I64}
_META |= {7: Wire.I64, 8: Wire.LIST, 9: Wire.I64, 10: Wire.I64, 11: Wire.I64, 12: Wire.STRUCT}
_META |= {13: Wire.LIST, 14: Wire.I64, 15: Wire.I32, 16: Wire.STRUCT, 17: Wire.STRUCT}
"""The fields that each struct may have; those of encryption and `file_path` are left out."""

_BLOOM_HEADER = Struct({1: Wire.I32})


@dataclass(frozen=True, slots=True)
class ChunkPart:
    """An index or a bloom filter: bytes that belong to a chunk but lie outside its pages.

    `place` is where the footer holds their offset; `length_place` where it holds their length, or
    None.
    """

    place: Span
    length_place: Span | None
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class MovedChunk:
    """A column chunk: its pages are the bytes `start` to `end` of the file.

    `moving` are the offsets that move with its pages; `cleared` are those that become 0.
    """

    start: int
    end: int
    moving: tuple[tuple[Span, int], ...]
    cleared: tuple[Span, ...]
    column_index: ChunkPart | None
    offset_index: ChunkPart | None
    bloom_filter: ChunkPart | None


@dataclass(frozen=True, slots=True)
class MovedGroup:
    """A row group. `span` is its part of the footer; the other spans lie within it."""

    span: Span
    rows: int
    file_offset: Span | None
    ordinal: Span | None
    chunks: tuple[MovedChunk, ...]


@dataclass(frozen=True, slots=True)
class MovableFooter:
    """A footer whose row groups can move. `schema` and `column_orders` are their encoded lists."""

    data: bytes
    version: int
    schema: bytes
    column_orders: bytes
    created_by: bytes | None
    groups: tuple[MovedGroup, ...]


def movable(tail: Tail, footer: Footer, read_at: ReadAt) -> MovableFooter:
    """Find the offsets in a footer; `footer` is the result of `parse_footer` for it.

    Raises NotMovable if it has fields that we do not know or offsets outside of the file, and
    MalformedFile if it is not a footer.
    """
    reader = CompactReader(tail.footer, tail.offset)
    fields = _fields(reader, _FILE, "the footer")
    if 2 not in fields or 4 not in fields:
        raise NotMovable("its footer has no schema or no row groups")
    data = tail.footer
    reader.position = fields[4][0]
    element, count = reader.list_header()
    if count and element != Wire.STRUCT:
        raise NotMovable("its row groups are not a list of structs")
    groups = tuple(_group(reader, tail.offset, read_at) for _ in range(count))
    if [group.rows for group in groups] != [group.num_rows for group in footer.row_groups]:
        raise NotMovable("its footer has more than one list of row groups")
    _check_places(groups, tail.offset)
    orders = fields.get(7)
    return MovableFooter(
        data,
        _number(reader, fields[1], 32) if 1 in fields else 1,
        data[slice(*fields[2])],
        b"" if orders is None else data[slice(*orders)],
        None if 6 not in fields else _binary(reader, fields[6]),
        groups,
    )


def _fields(reader: CompactReader, known: Mapping[int, Wire], what: str) -> dict[int, Span]:
    """The spans of a struct's fields. Moves the reader past the struct."""
    found: dict[int, Span] = {}
    last = 0
    while True:
        wire, last = reader.field_header(last)
        if wire == Wire.STOP:
            return found
        if known.get(last) != wire:
            raise NotMovable(f"{what} has a field {last} that is unknown, or encryption")
        if last in found:
            raise NotMovable(f"{what} has field {last} twice")
        start = reader.position
        reader.skip(wire)
        found[last] = (start, reader.position)


def _number(reader: CompactReader, span: Span, bits: int = 64) -> int:
    reader.position = span[0]
    return reader.integer(bits)


def _binary(reader: CompactReader, span: Span) -> bytes:
    reader.position = span[0]
    return reader.binary()


def _group(reader: CompactReader, limit: int, read_at: ReadAt) -> MovedGroup:
    start = reader.position
    fields = _fields(reader, _GROUP, "a row group")
    end = reader.position
    if 1 not in fields or 3 not in fields:
        raise NotMovable("a row group has no columns or no row count")
    rows = _number(reader, fields[3])
    if not rows:  # it is not copied, so its offsets do not matter
        reader.position = end
        return MovedGroup((start, end), 0, None, None, ())
    reader.position = fields[1][0]
    element, count = reader.list_header()
    if element != Wire.STRUCT:
        raise NotMovable("a row group has no columns")
    chunks = tuple(_chunk(reader, limit, read_at) for _ in range(count))
    reader.position = end
    return MovedGroup((start, end), rows, fields.get(5), fields.get(7), chunks)


def _chunk(reader: CompactReader, limit: int, read_at: ReadAt) -> MovedChunk:
    fields = _fields(reader, _CHUNK, "a column chunk")
    end = reader.position
    if 3 not in fields:
        raise NotMovable("a column chunk has no metadata")
    reader.position = fields[3][0]
    meta = _fields(reader, _META, "the metadata of a column chunk")
    if 7 not in meta or 9 not in meta:
        raise NotMovable("a column chunk has no offset")
    size, pages = _number(reader, meta[7]), _number(reader, meta[9])
    dictionary = _number(reader, meta[11]) if 11 in meta else 0
    first = dictionary if 0 < dictionary < pages else pages
    last = first + size
    if first < 4 or size < 0 or last > limit:
        raise NotMovable("a column chunk is outside of the file")
    moving, cleared = [], []
    for place in (meta[9], *(meta[field] for field in (10, 11) if field in meta)):
        value = _number(reader, place)
        if first <= value <= last:
            moving.append((place, value))
        elif value:
            raise NotMovable("a page is outside of its column chunk")
    if 2 in fields:  # file_offset, deprecated: that of a copy of the metadata, or of the pages
        value = _number(reader, fields[2])
        if first <= value < last:
            moving.append((fields[2], value))
        else:
            cleared.append(fields[2])
    column_index = _part(reader, fields, (6, 7), limit)
    offset_index = _part(reader, fields, (4, 5), limit)
    bloom = _bloom_filter(reader, meta, limit, read_at)
    reader.position = end
    return MovedChunk(first, last, tuple(moving), tuple(cleared), column_index, offset_index, bloom)


def _part(
    reader: CompactReader, fields: Mapping[int, Span], places: tuple[int, int], limit: int
) -> ChunkPart | None:
    offset, length = places
    if offset not in fields and length not in fields:
        return None
    if offset not in fields or length not in fields:
        raise NotMovable("an index has an offset without a length, or a length without an offset")
    part = ChunkPart(
        fields[offset],
        fields[length],
        _number(reader, fields[offset]),
        _number(reader, fields[length], 32),
    )
    if part.offset < 4 or part.length < 1 or part.offset + part.length > limit:
        raise NotMovable("an index is outside of the file")
    return part


_BLOOM_HEADER_BYTES = 64
_MAX_BLOOM_BYTES = 128 << 20


def _bloom_filter(
    reader: CompactReader, meta: Mapping[int, Span], limit: int, read_at: ReadAt
) -> ChunkPart | None:
    """Return the chunk's bloom filter, if it has one. Its header has its length."""
    if 14 not in meta:
        if 15 in meta:
            raise NotMovable("a bloom filter has a length without an offset")
        return None
    offset = _number(reader, meta[14])
    if not 4 <= offset < limit:
        raise NotMovable("a bloom filter is outside of the file")
    header = CompactReader(read_at(min(_BLOOM_HEADER_BYTES, limit - offset), offset), offset)
    header.what = "header of a bloom filter"
    try:
        bits = header.read(_BLOOM_HEADER, Wire.STRUCT).get(1, -1)
    except MalformedFile as error:
        raise NotMovable("a bloom filter has no header") from error
    length = header.position + bits
    if not 0 <= bits <= _MAX_BLOOM_BYTES or offset + length > limit:
        raise NotMovable("a bloom filter is outside of the file")
    if 15 in meta and _number(reader, meta[15], 32) != length:
        raise NotMovable("the length of a bloom filter is not that in its header")
    return ChunkPart(meta[14], None, offset, length)


def _check_places(groups: Sequence[MovedGroup], limit: int) -> None:
    """Raise NotMovable if two chunks share a byte, or if all indexes exceed the file together."""
    chunks = sorted((chunk.start, chunk.end) for group in groups for chunk in group.chunks)
    for (_, end), (start, _) in itertools.pairwise(chunks):
        if start < end:
            raise NotMovable("two column chunks overlap")
    if sum(part.length for group in groups for part in parts_of(group)) > limit:
        raise NotMovable("its indexes overlap")


def parts_of(group: MovedGroup) -> Iterator[ChunkPart]:
    """Yield the indexes and bloom filters of all chunks of a row group."""
    for chunk in group.chunks:
        for part in (chunk.column_index, chunk.offset_index, chunk.bloom_filter):
            if part is not None:
                yield part


def moved_offset_index(data: bytes, chunk: MovedChunk, to: int) -> bytes:
    """Change an OffsetIndex for a chunk whose pages move to the offset `to`.

    Raises NotMovable unless its pages follow each other in the chunk.
    """
    reader = CompactReader(data, 0, "offset index")
    try:
        pages = _page_offsets(reader, chunk)
    except MalformedFile as error:
        raise NotMovable(f"an offset index does not read: {error.message}") from error
    return patched(data, 0, len(data), [(span, old - chunk.start + to) for span, old in pages])


_INDEX = {1: Wire.LIST, 2: Wire.LIST}
_LOCATION = {1: Wire.I64, 2: Wire.I32, 3: Wire.I64}


def _page_offsets(reader: CompactReader, chunk: MovedChunk) -> list[tuple[Span, int]]:
    fields = _fields(reader, _INDEX, "an offset index")
    if reader.position != len(reader.data) or 1 not in fields:
        raise NotMovable("an offset index is longer than its content")
    reader.position = fields[1][0]
    element, count = reader.list_header()
    if count and element != Wire.STRUCT:
        raise NotMovable("an offset index holds no pages")
    found = []
    before = chunk.start
    for _ in range(count):
        location = _fields(reader, _LOCATION, "a page of an offset index")
        end = reader.position
        if location.keys() != _LOCATION.keys():
            raise NotMovable("a page of an offset index has no place")
        offset, size = _number(reader, location[1]), _number(reader, location[2], 32)
        if offset < before or size < 0 or offset + size > chunk.end:
            raise NotMovable("an offset index names a page outside of its column chunk")
        before = offset + size
        found.append((location[1], offset))
        reader.position = end
    return found


# --- Writing --------------------------------------------------------------------------------------


def patched(data: bytes, start: int, end: int, numbers: Sequence[tuple[Span, int]]) -> bytes:
    """Return `data[start:end]` with new numbers at these spans."""
    out = bytearray()
    at = start
    for (first, last), number in sorted(numbers):
        out += data[at:first]
        out += zigzag(number)
        at = last
    out += data[at:end]
    return bytes(out)


def varint(number: int) -> bytes:
    """Encode an unsigned number in LEB128."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def zigzag(number: int) -> bytes:
    """Encode a signed number of at most 64 bits."""
    return varint((number << 1 ^ number >> 63) & 0xFFFFFFFFFFFFFFFF)


def binary(data: bytes) -> bytes:
    """Encode a byte string: its size, then its bytes."""
    return varint(len(data)) + data


def list_of(elements: Sequence[bytes]) -> bytes:
    """Encode a list of structs."""
    count, wire = len(elements), Wire.STRUCT
    head = bytes([count << 4 | wire]) if count < 15 else bytes([0xF0 | wire]) + varint(count)
    return head + b"".join(elements)


def struct_of(fields: Mapping[int, tuple[Wire, bytes]]) -> bytes:
    """Encode a struct; the ids of its fields are at most 15 apart."""
    out = bytearray()
    last = 0
    for field in sorted(fields):
        wire, value = fields[field]
        out += bytes([field - last << 4 | wire]) + value
        last = field
    return bytes(out) + b"\x00"


def key_values(entries: Sequence[tuple[str, str | None]]) -> bytes:
    """Encode FileMetaData.key_value_metadata."""
    out = []
    for key, value in entries:
        fields = {1: (Wire.BINARY, binary(key.encode()))}
        if value is not None:
            fields[2] = (Wire.BINARY, binary(value.encode()))
        out.append(struct_of(fields))
    return list_of(out)
