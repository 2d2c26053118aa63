"""Join Parquet files without decoding a value: copy row groups as bytes under a new footer.

Pages, column indexes and bloom filters are copied as they are; only offsets change, in the footer
and in offset indexes. So files can be joined only if everything that defines the meaning of their
bytes is equal: the schema to the last byte, the column orders, the program that wrote them, and
their key-value metadata, except for our own notes, which are joined. A file with unknown parts is
not copied. The finished file is read again and compared with its sources before it is used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from variantlake.errors import MalformedFile, in_file
from variantlake.kernels.digest.mixing import hash_bytes
from variantlake.parquet.metadata.footer import (
    MAGIC,
    MAX_FOOTER_BYTES,
    Footer,
    RowGroup,
    Tail,
    parse_footer,
    read_exactly,
    read_tail,
)
from variantlake.parquet.metadata.moved_chunks import (
    ChunkPart,
    MovableFooter,
    MovedGroup,
    NotMovable,
    binary,
    key_values,
    list_of,
    movable,
    moved_offset_index,
    parts_of,
    patched,
    struct_of,
    zigzag,
)
from variantlake.parquet.metadata.pages import check_pages
from variantlake.parquet.metadata.thrift import Wire
from variantlake.parquet.metadata.value_notes import (
    NOTES_KEY,
    ColumnPath,
    NotedPart,
    encode_all,
    joined_notes,
    notes_of,
)
from variantlake.parquet.stats.facts import FileFacts, facts_of
from variantlake.parquet.stats.merge_facts import merge_facts, sharpened
from variantlake.parquet.write.file_writer import WrittenFile
from variantlake.paths import Path
from variantlake.shredding.schema import Leaf
from variantlake.shredding.values import ValueNotes
from variantlake.storage.input_file import InputFile
from variantlake.storage.opening import Source, name_of, open_file

MIN_ROW_GROUP_BYTES = 4 << 20
"""The least average size, in compressed bytes, of row groups that are worth keeping.

Dictionaries and compression restart in each row group. Events in groups of 4.4 MB take 1.5 % more
bytes than in one of 17 MB and read as fast; groups of 2.2 MB take 4 % more, those of 1.2 MB 10 %,
and one column takes a quarter longer to read."""

MAX_ROW_GROUPS = 1 << 15
"""Ordinals of row groups are 16-bit integers."""

_PIECE = 4 << 20
"""Bytes copied at a time."""

__all__ = ["CopySource", "NotMovable", "copy_row_groups", "open_source", "why_not"]


@dataclass(frozen=True, slots=True)
class CopySource:
    """A file whose row groups can be copied, with its decoded footer. The file is not open.

    `facts` come from its footer; `log_facts`, if any, from the log, and may be better.
    """

    source: Source
    tail: Tail
    footer: Footer
    moved: MovableFooter
    facts: FileFacts
    log_facts: FileFacts | None = None

    @property
    def name(self) -> str:
        """The file's name in errors."""
        return name_of(self.source)

    @property
    def pages_bytes(self) -> int:
        """The bytes of all pages."""
        return sum(c.end - c.start for group in self.moved.groups for c in group.chunks)

    @property
    def metadata(self) -> tuple[tuple[str, str | None], ...]:
        """The key-value metadata that must be the same in all files."""
        return tuple(
            sorted(
                ((k, v) for k, v in self.footer.key_value_metadata if k != NOTES_KEY),
                key=repr,
            )
        )


def open_source(
    file: Source, known: FileFacts | None = None, columns: Iterable[ColumnPath] = ()
) -> CopySource:
    """Read and decode a file's footer.

    `known` are the log's facts about all rows of the file; `columns` as for `facts_of`.

    Raises NotMovable if its row groups cannot be copied, with the reason; MalformedFile and
    MissingSource as `read_footer`.
    """
    with in_file(name_of(file)), open_file(file) as found:
        tail = read_tail(found.borrowed())
        footer = parse_footer(tail.footer, tail.offset)
        moved = movable(tail, footer, found.read_at)
        facts = facts_of(footer, tail.size, tuple(columns))
    return CopySource(file, tail, footer, moved, facts, known)


def why_not(sources: Sequence[CopySource], *, small: bool = False) -> str | None:
    """Return the reason why these files cannot be joined by copying; None if they can.

    `small` allows small row groups.
    """
    first = sources[0]
    for other in sources:
        if not small and (reason := _too_small(other)) is not None:
            return reason
        if other.moved.schema != first.moved.schema:
            return "their schemas differ"
        if other.moved.column_orders != first.moved.column_orders:
            return "their column orders differ"
        if other.moved.created_by != first.moved.created_by:
            return "different programs wrote them"
        if other.metadata != first.metadata:
            keys = {entry[0] for entry in {*other.metadata} ^ {*first.metadata}}
            return f"their key-value metadata differ ({min(keys, default='one entry twice')})"
    if sum(len(source.moved.groups) for source in sources) >= MAX_ROW_GROUPS:
        return "they have too many row groups for one file"
    joined = _notes(sources)
    for source in sources:
        for column, (notes, empty) in _noted(source).items():
            after = joined.get(column, _NOTHING)
            paths = (notes.integers | after.integers) - empty
            if source.footer.num_rows and any(
                notes.forms.of(path) != after.forms.of(path) for path in paths
            ):
                return "numbers in a column of decimals would come back as other types"
    return None


_NOTHING = ValueNotes()


def _too_small(source: CopySource) -> str | None:
    groups = sum(group.rows > 0 for group in source.moved.groups)
    if source.pages_bytes < groups * MIN_ROW_GROUP_BYTES:
        return f"row groups are small ({source.pages_bytes // max(groups, 1) >> 10} KiB)"
    return None


def copy_row_groups(sources: Sequence[CopySource], path: str | os.PathLike[str]) -> WrittenFile:
    """Write the row groups of these files, in their order, to a new file at `path`.

    Memory is bounded by a piece of a column chunk and the footers. Every page header is checked,
    and the finished file is read again to compare each column chunk with its source.

    Raises NotMovable if `why_not` has a reason (small row groups aside), MalformedFile for pages
    that do not fit their footer, or a copy that differs. The new file is removed then.
    """
    reason = why_not(sources, small=True)
    if reason is not None:
        raise NotMovable(reason)
    target = os.fspath(path)
    try:
        with open(target, "xb") as out:  # noqa: PTH123  # str and PathLike alike
            writer = _Writer(out)
            for source in sources:
                writer.add(source)
            end = writer.finish(sources)
        copied = _compared(target, sources, writer.hashes)
    except FileExistsError:
        raise  # and leave that file, which is not ours
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(target)  # noqa: PTH108  # str in, str out
        raise
    if copied.size != end:
        raise MalformedFile("the copy has another size than was written", file=target)
    return copied


@dataclass(slots=True)
class _CopiedGroup:
    """A copied row group; `starts` are the new offsets of its chunks.

    `parts` maps the position, in the old footer, of the offset of each index and bloom filter to
    its new offset and length.
    """

    source: CopySource
    group: MovedGroup
    starts: list[int]
    parts: dict[int, tuple[int, int]] = field(default_factory=dict)


class _Writer:
    """Writes one new file. `hashes` are those of the column chunks, by row group."""

    def __init__(self, out: BinaryIO) -> None:
        self.hashes: list[list[int]] = []
        self._out = out
        self._end = 0
        self._groups: list[_CopiedGroup] = []
        self._write(MAGIC)

    def _write(self, data: bytes) -> None:
        self._out.write(data)
        self._end += len(data)

    def add(self, source: CopySource) -> None:
        """Copy the pages, indexes and bloom filters of a file."""
        with in_file(source.name), open_file(source.source) as file:
            pairs = zip(source.moved.groups, source.footer.row_groups, strict=True)
            for moved, group in pairs:
                if moved.rows:
                    self._add_group(source, file, moved, group)
            self._parts(source, file)

    def _add_group(
        self, source: CopySource, file: InputFile, moved: MovedGroup, group: RowGroup
    ) -> None:
        file.prefetch((chunk.start, chunk.end - chunk.start) for chunk in moved.chunks)
        leaves = source.footer.leaves
        starts = [0] * len(moved.chunks)
        hashes = [0] * len(moved.chunks)
        for index in sorted(range(len(leaves)), key=lambda at: moved.chunks[at].start):
            chunk = moved.chunks[index]
            check_pages(file.read_at, leaves[index], group.columns[index], group)
            starts[index] = self._end
            hashes[index] = _hashed(file, chunk.start, chunk.end, self._write)
        self._groups.append(_CopiedGroup(source, moved, starts))
        self.hashes.append(hashes)

    def _parts(self, source: CopySource, file: InputFile) -> None:
        """Copy the indexes and bloom filters of a file, one kind after the other."""
        own = [group for group in self._groups if group.source is source]
        for kind in ("bloom_filter", "column_index", "offset_index"):
            for group in own:
                for chunk, start in zip(group.group.chunks, group.starts, strict=True):
                    part: ChunkPart | None = getattr(chunk, kind)
                    if part is None:
                        continue
                    data = read_exactly(file, part.offset, part.length)
                    if kind == "offset_index":
                        data = moved_offset_index(data, chunk, start)
                    group.parts[part.place[0]] = self._end, len(data)
                    self._write(data)

    def finish(self, sources: Sequence[CopySource]) -> int:
        """Write the footer, and return the size of the file."""
        first = sources[0].moved
        groups = [self._row_group(number, group) for number, group in enumerate(self._groups)]
        metadata = list(sources[0].metadata)
        if notes := _notes(sources):
            metadata.append((NOTES_KEY, encode_all(notes)))
        rows = sum(group.group.rows for group in self._groups)
        fields = {
            1: (Wire.I32, zigzag(max(source.moved.version for source in sources))),
            2: (Wire.LIST, first.schema),
            3: (Wire.I64, zigzag(rows)),
            4: (Wire.LIST, list_of(groups)),
        }
        if metadata:
            fields[5] = (Wire.LIST, key_values(metadata))
        if first.created_by is not None:
            fields[6] = (Wire.BINARY, binary(first.created_by))
        if first.column_orders:
            fields[7] = (Wire.LIST, first.column_orders)
        footer = struct_of(fields)
        if len(footer) > MAX_FOOTER_BYTES:
            raise NotMovable("the footer of all row groups would be too large")
        self._write(footer + len(footer).to_bytes(4, "little") + MAGIC)
        return self._end

    def _row_group(self, number: int, copied: _CopiedGroup) -> bytes:
        group = copied.group
        numbers = []
        if group.ordinal is not None:
            numbers.append((group.ordinal, number))
        if group.file_offset is not None:
            numbers.append((group.file_offset, min(copied.starts, default=0)))
        for chunk, start in zip(group.chunks, copied.starts, strict=True):
            numbers += [(span, value - chunk.start + start) for span, value in chunk.moving]
            numbers += [(span, 0) for span in chunk.cleared]
        for part in parts_of(group):
            place, length = copied.parts[part.place[0]]
            numbers.append((part.place, place))
            if part.length_place is not None:
                numbers.append((part.length_place, length))
        return patched(copied.source.moved.data, *group.span, numbers)


def _hashed(
    file: InputFile, start: int, end: int, write: Callable[[bytes], object] | None = None
) -> int:
    """Return the hash of a range of bytes, and pass the bytes to `write`, if any."""
    state = 0
    for at in range(start, end, _PIECE):
        data = read_exactly(file, at, min(_PIECE, end - at))
        if write is not None:
            write(data)
        state = hash_bytes(np.frombuffer(data, np.uint8), len(data), state)
    return state


def _compared(
    path: str, sources: Sequence[CopySource], hashes: Sequence[Sequence[int]]
) -> WrittenFile:
    """Compare each column chunk of the finished file with its source, and return the file."""
    tail = read_tail(path)
    footer = parse_footer(tail.footer, tail.offset)
    expected = [
        (source, group)
        for source in sources
        for group in source.footer.row_groups
        if group.num_rows
    ]
    if len(expected) != len(footer.row_groups) or footer.schema != sources[0].footer.schema:
        raise MalformedFile("the copy has other row groups or another schema", file=path)
    with open_file(path) as file:
        pairs = zip(expected, footer.row_groups, hashes, strict=True)
        for number, ((source, old), new, of_old) in enumerate(pairs):
            for leaf, chunk in enumerate(new.columns):
                start = chunk.first_page
                if (
                    replace(old.columns[leaf], first_page=start) != chunk
                    or new.num_rows != old.num_rows
                    or _hashed(file, start, start + chunk.compressed_size) != of_old[leaf]
                ):
                    name = footer.leaves[leaf].node.name
                    raise MalformedFile(
                        f"the copy of row group {number}, column {name!r}, differs from its"
                        f" source {source.name}",
                        file=path,
                    )
    own = facts_of(
        footer, tail.size, tuple(variant.column for variant in sources[0].facts.variants)
    )
    parts = [source.log_facts for source in sources]
    known = [part for part in parts if part is not None]
    if known and len(known) == len(parts):
        own = sharpened(own, _with_plain_floats(merge_facts(known, tail.size)))
    return WrittenFile(path, tail.size, own)


def _with_plain_floats(facts: FileFacts) -> FileFacts:
    """Set `plain_floats` in facts of the log, where floats have a maximum only without NaN."""
    columns = [
        replace(column, plain_floats=column.bounds.maximum is not None)
        if pa.types.is_floating(column.type)
        else column
        for column in facts.columns
    ]
    return replace(facts, columns=tuple(columns))


def _notes(sources: Sequence[CopySource]) -> Mapping[ColumnPath, ValueNotes]:
    """Return the notes that hold for the rows of all files; see `joined_notes`."""
    return joined_notes([_noted(source) for source in sources if source.footer.num_rows])


def _noted(source: CopySource) -> NotedPart:
    """Return the notes of a file, including those that its footer implies."""
    noted = notes_of(source.footer.key_value_metadata)
    found = {column: (notes, frozenset[Path]()) for column, notes in noted.items()}
    for variant in source.facts.variants:
        if variant.notes is not None:
            empty = {
                facts.path
                for facts in variant.paths
                if isinstance(facts.node, Leaf) and facts.typed == 0
            }
            found[variant.column] = (variant.notes, frozenset(empty))
    return found
