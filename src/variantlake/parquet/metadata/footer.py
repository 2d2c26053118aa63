"""Read Parquet's file metadata, of which pyarrow does not show all, such as the tree of groups.

`read_footer` reads only the tail of the file and takes its bytes as hostile: for any bytes it
returns a Footer or raises MalformedFile with file and offset, in time and memory proportional to
the size of the footer. It checks that the parts of a Footer fit together: every row group has one
column chunk per leaf of the tree, of the leaf's type. A logical type or codec that is newer than
this version, or an encrypted column, hinders only readers of that column.
Spec: Parquet, `parquet.thrift` and "File Format".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from variantlake.errors import Hints, MalformedFile, in_file
from variantlake.kernels.log.column_chunks import CRYPTO_METADATA
from variantlake.parquet.metadata.column_chunks import (
    ColumnChunk,
    chunk_of,
    encrypted_chunk,
    read_chunks,
)
from variantlake.parquet.metadata.schema_tree import (
    PHYSICAL,
    SCHEMA_ELEMENT,
    LeafColumn,
    SchemaNode,
    TreeBuilder,
    leaves_of,
    with_notes,
)
from variantlake.parquet.metadata.thrift import CompactReader, Fields, ListOf, Spec, Struct, Wire
from variantlake.parquet.metadata.value_notes import notes_of
from variantlake.storage.input_file import TAIL_BYTES, InputFile
from variantlake.storage.opening import Source, name_of, open_file

MAGIC = b"PAR1"
ENCRYPTED_MAGIC = b"PARE"

MAX_FOOTER_BYTES = 32 << 20
"""Our limit on the size of a footer: the Python objects made of it take up to 50 times as much."""

_NOT_PARQUET = Hints(
    hint="not a Parquet file, or one that was cut short while it was written",
    cli_hint="not a Parquet file, or one that was cut short while it was written; "
    "`variantlake profile` and `variantlake ingest` read JSON",
)


@dataclass(frozen=True, slots=True)
class RowGroup:
    """`columns` has one chunk for each leaf, in schema order. `total_byte_size`: uncompressed."""

    num_rows: int
    total_byte_size: int
    columns: Sequence[ColumnChunk]


@dataclass(frozen=True, slots=True)
class Footer:
    """The metadata of a whole file. A key of `key_value_metadata` may lack its value (None)."""

    num_rows: int
    schema: SchemaNode
    leaves: tuple[LeafColumn, ...]
    row_groups: tuple[RowGroup, ...]
    created_by: str
    key_value_metadata: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class Tail:
    """The undecoded footer: `footer` without length and magic, where it starts, the file's size."""

    footer: bytes
    offset: int
    size: int


def read_footer(file: Source) -> Footer:
    """Read the footer of a Parquet file.

    Raises MalformedFile, with the offset in the file, for anything but a readable Parquet file,
    MissingSource when there is none.
    """
    with in_file(name_of(file)):
        tail = read_tail(file)
        return parse_footer(tail.footer, tail.offset)


def is_parquet(file: Source) -> bool:
    """Whether an existing file begins or ends as a Parquet file does."""
    with open_file(file) as found:
        ends = (0, found.size - len(MAGIC))
        return ends[1] >= 0 and any(read_exactly(found, at, len(MAGIC)) == MAGIC for at in ends)


def read_tail(file: Source) -> Tail:
    """Read the last bytes of a file, with its footer. Raises as `read_footer` does."""
    with open_file(file) as found:
        return _read_tail(found)


def _read_tail(file: InputFile) -> Tail:
    size = file.size
    if size < 12:
        raise MalformedFile(
            f"{size} bytes are too few for a Parquet file", offset=0, **_NOT_PARQUET
        )
    end = read_exactly(file, max(0, size - TAIL_BYTES), min(size, TAIL_BYTES))
    if end[-4:] == ENCRYPTED_MAGIC:
        raise MalformedFile(
            "the Parquet footer is encrypted",
            offset=size - 4,
            hint="with the key, write the file again without encryption",
        )
    if end[-4:] != MAGIC:
        raise MalformedFile(
            # Do not show the bytes: they may be those of a file with secrets.
            f"the file does not end with {MAGIC.decode()}, as a Parquet file does",
            offset=size - 4,
            **_NOT_PARQUET,
        )
    length = int.from_bytes(end[-8:-4], "little")
    offset = size - 8 - length
    if offset < 4 or length > MAX_FOOTER_BYTES:
        raise MalformedFile(
            f"a footer of {length} bytes in a file of {size} bytes",
            offset=size - 8,
            hint=f"our limit for a footer is {MAX_FOOTER_BYTES} bytes",
        )
    if length + 8 > len(end):
        return Tail(read_exactly(file, offset, length), offset, size)
    return Tail(end[len(end) - 8 - length : len(end) - 8], offset, size)


def read_exactly(file: InputFile, offset: int, size: int) -> bytes:
    """Read `size` bytes of a file. Raises MalformedFile if the file ends before."""
    data = file.read_at(size, offset)
    if len(data) < size:
        raise MalformedFile("the file became shorter while it was read", offset=offset)
    return data


# --- parquet.thrift: the fields that we read ------------------------------------------------------


def _key_value(fields: Fields, end: int) -> tuple[str, str | None]:
    if 1 not in fields:
        raise MalformedFile("an entry of the key-value metadata has no key", offset=end)
    key, value = fields[1], fields.get(2)
    return key.decode("utf-8", "replace"), value and value.decode("utf-8", "replace")


_STATISTICS = Struct(
    {
        1: Wire.BINARY,  # max, deprecated
        2: Wire.BINARY,  # min, deprecated
        3: Wire.I64,  # null_count
        5: Wire.BINARY,  # max_value
        6: Wire.BINARY,  # min_value
        7: Wire.TRUE,  # is_max_value_exact
        8: Wire.TRUE,  # is_min_value_exact
    }
)

_COLUMN_META_DATA = Struct(
    {
        1: Wire.I32,  # type
        4: Wire.I32,  # codec
        5: Wire.I64,  # num_values
        6: Wire.I64,  # total_uncompressed_size
        7: Wire.I64,  # total_compressed_size
        9: Wire.I64,  # data_page_offset
        11: Wire.I64,  # dictionary_page_offset
        12: _STATISTICS,
    }
)

_COLUMN_CHUNK: dict[int, Spec] = {
    3: _COLUMN_META_DATA,
    4: Wire.I64,  # offset_index_offset
    6: Wire.I64,  # column_index_offset
    CRYPTO_METADATA: Struct({}),
}


def _column_order(fields: Fields, _: int) -> bool:
    # TYPE_ORDER is the only order that we know; IEEE_754_TOTAL_ORDER (2) and later ones give no
    # bounds.
    return 1 in fields


_COLUMN_ORDER = Struct({1: Struct({})}, _column_order)
_TYPE_ORDER = b"\x1c\x00\x00"


def _usual_orders(reader: CompactReader, count: int) -> list[bool] | None:
    """Read all of a file's column orders at once if each is TYPE_ORDER; None otherwise."""
    size = len(_TYPE_ORDER) * count
    if reader.data[reader.position : reader.position + size] != _TYPE_ORDER * count:
        return None
    reader.position += size
    return [True] * count


_Metadata = tuple[tuple[str, str | None], ...]

SCHEMA_FIELD = 2
"""FileMetaData.schema."""


def parse_footer(footer: bytes, offset: int = 0) -> Footer:
    """Decode a Thrift FileMetaData; `offset` is its place in the file, for errors.

    Raises MalformedFile.
    """
    reader = _FooterReader(footer, offset)
    result = reader.read()
    if not ((reader.unordered or reader.encrypted) and result.row_groups):
        return result
    # Rare. The footer gives both only after the column chunks that depend on them: read it again.
    unordered, encrypted = reader.unordered, reader.encrypted
    del reader, result
    return _FooterReader(footer, offset, unordered, encrypted=encrypted).read()


_MAX_HEAD = 1 << 18
"""Our limit on the bytes of a schema that we keep for the next footer."""


def _begins_with_schema(footer: bytes) -> bool:
    """Whether only a version of one byte precedes the list of schema elements."""
    return footer[0] == 0x15 and footer[1] < 0x80 and footer[2] == 0x19


class _KnownSchema:
    """A schema of an earlier footer, shared by every footer that begins with the bytes `head`.

    Most files of a table share it. Footers with equal metadata, and so equal notes, share one tree.
    """

    __slots__ = ("_noted", "head", "leaves", "schema")

    def __init__(self, head: bytes, schema: SchemaNode, leaves: tuple[LeafColumn, ...]) -> None:
        self.head, self.schema, self.leaves = head, schema, leaves
        self._noted: tuple[_Metadata, SchemaNode] = (), schema

    def noted(self, metadata: _Metadata) -> SchemaNode:
        """Return the tree with the notes of this metadata."""
        known, found = self._noted
        if known != metadata:
            found = with_notes(self.schema, notes_of(metadata))
            self._noted = metadata, found
        return found


_known: deque[_KnownSchema] = deque(maxlen=8)


def _known_schema(footer: bytes) -> _KnownSchema | None:
    # Search a copy: another thread may add to the deque.
    return next((each for each in tuple(_known) if footer.startswith(each.head)), None)


class _FooterReader:
    """One pass over a footer, which checks each column chunk against its leaf as it reads it.

    Checking early keeps memory in step with the input: a hostile footer cannot pile up empty
    structs. `unordered` holds the indexes of leaves whose bounds are in no order that we know;
    `encrypted` says that columns may be encrypted. The first pass assumes that there are none of
    either, and finds out.
    """

    def __init__(
        self,
        footer: bytes,
        offset: int,
        unordered: frozenset[int] = frozenset(),
        *,
        encrypted: bool = False,
    ) -> None:
        self.unordered = unordered
        self.encrypted = encrypted
        self._footer = footer
        self._offset = offset
        self._tree = TreeBuilder()
        self._element_count = 0
        self._schema: SchemaNode | None = None
        self._leaves: tuple[LeafColumn, ...] = ()
        self._next_leaf = 0
        self._schema_end = 0

    def read(self) -> Footer:
        element = Struct(SCHEMA_ELEMENT, self._schema_element)
        chunk = Struct(_COLUMN_CHUNK, self._column_chunk)
        group = Struct(
            {1: ListOf(chunk, self._column_chunks), 2: Wire.I64, 3: Wire.I64}, self._row_group
        )
        file_meta_data = Struct(
            {
                SCHEMA_FIELD: ListOf(element, self._schema_elements),
                3: Wire.I64,  # num_rows
                4: ListOf(group),
                5: ListOf(Struct({1: Wire.BINARY, 2: Wire.BINARY}, _key_value)),
                6: Wire.BINARY,  # created_by
                7: ListOf(_COLUMN_ORDER, _usual_orders),
                8: Struct({}),  # encryption_algorithm
            }
        )
        reader = CompactReader(self._footer, self._offset)
        known = _known_schema(self._footer)
        if known is None:
            fields: Fields = reader.read(file_meta_data, Wire.STRUCT)
        else:
            self._schema, self._leaves = known.schema, known.leaves
            reader.position = len(known.head)
            fields = reader.rest(file_meta_data, SCHEMA_FIELD)
        schema = self._finish_schema()
        if len(fields.get(SCHEMA_FIELD, ())) != (self._element_count if known is None else 0):
            raise MalformedFile("the Parquet footer has two schemas", offset=self._offset)
        orders = fields.get(7, [])
        self.unordered = frozenset(
            index
            for index in range(len(self._leaves))
            if len(orders) != len(self._leaves) or not orders[index]
        )
        groups: list[RowGroup] = fields.get(4, [])
        self.encrypted = 8 in fields
        if 3 not in fields:
            raise MalformedFile("the footer has no count of rows", offset=self._offset)
        metadata = tuple(fields.get(5, ()))
        if known is None:
            known = _KnownSchema(self._footer[: self._schema_end], schema, self._leaves)
            if 0 < self._schema_end <= _MAX_HEAD:
                _known.appendleft(known)
        return Footer(
            # Not the file's own count: a few writers left it at 0, and every reader counts groups.
            num_rows=sum(group.num_rows for group in groups),
            schema=known.noted(metadata),
            leaves=self._leaves,
            row_groups=tuple(groups),
            created_by=fields.get(6, b"").decode("utf-8", "replace"),
            key_value_metadata=metadata,
        )

    def _schema_elements(self, reader: CompactReader, count: int) -> list[Any]:
        """Read the whole schema; note where it ends if only the version precedes it."""
        is_first = not self._element_count
        element = Struct(SCHEMA_ELEMENT, self._schema_element)
        found = [reader.read(element, Wire.STRUCT, 2) for _ in range(count)]
        if is_first and _begins_with_schema(self._footer):
            self._schema_end = reader.position
        return found

    def _schema_element(self, fields: Fields, end: int) -> None:
        self._tree.add(fields, end)
        self._element_count += 1

    def _finish_schema(self) -> SchemaNode:
        """Return the schema tree; builds it at the first column chunk or at the footer's end."""
        if self._schema is None:
            self._schema = self._tree.finish(self._offset)
            self._leaves = tuple(leaves_of(self._schema))
        return self._schema

    def _row_group(self, fields: Fields, end: int) -> RowGroup:
        self._finish_schema()
        columns = fields.get(1, [])
        self._next_leaf = 0
        if len(columns) != len(self._leaves):
            raise MalformedFile(
                f"a row group has {len(columns)} columns, the schema {len(self._leaves)} leaves",
                offset=end,
            )
        num_rows = fields.get(3, -1)
        if num_rows < 0:
            raise MalformedFile("a row group has no row count or a negative one", offset=end)
        if isinstance(columns, list):
            columns = tuple(
                replace(chunk, num_values=num_rows) if chunk.num_values < 0 else chunk
                for chunk in columns
            )
        return RowGroup(num_rows, max(0, fields.get(2, 0)), columns)

    def _column_chunks(self, reader: CompactReader, count: int) -> Sequence[ColumnChunk] | None:
        """Read all chunks of a row group in compiled code; None if their form is unusual."""
        self._finish_schema()
        if count != len(self._leaves) or self.encrypted:
            return None
        return read_chunks(reader, self._leaves, self.unordered)

    def _column_chunk(self, fields: Fields, end: int) -> ColumnChunk:
        self._finish_schema()
        index = self._next_leaf
        self._next_leaf += 1
        if index >= len(self._leaves):
            raise MalformedFile("a row group has more columns than the schema", offset=end)
        node = self._leaves[index].node
        if CRYPTO_METADATA in fields:
            return encrypted_chunk()
        meta = fields.get(3)
        if meta is None:
            raise MalformedFile(f"column {node.name!r} has no metadata", offset=end)
        if meta.get(1) not in range(len(PHYSICAL)) or PHYSICAL[meta[1]] != node.physical:
            raise MalformedFile(
                f"a chunk of column {node.name!r} is not of the schema's type {node.physical}",
                offset=end,
            )
        num_values, codec = meta.get(5, -1), meta.get(4, -1)
        if num_values < 0 or codec < 0:
            raise MalformedFile(
                f"a chunk of column {node.name!r} has no count of values or no codec", offset=end
            )
        return chunk_of(fields, node, ordered=index not in self.unordered)
