"""Mark groups of a finished file as VARIANT(1), which pyarrow cannot do while it writes.

A footer holds no offsets into itself, so the seven bytes of the logical type are put before the
end of the group's SchemaElement and every other byte stays as it was. Do this before a file is
published: it is rewritten from its footer on.
Spec: Parquet, "VARIANT" in "Logical Types".
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from typing import BinaryIO

from variantlake.errors import MalformedFile, MissingSource, VariantLakeError
from variantlake.parquet.metadata.footer import MAGIC, SCHEMA_FIELD, Tail, read_tail
from variantlake.parquet.metadata.logical import of_converted
from variantlake.parquet.metadata.schema_tree import MAX_SCHEMA_DEPTH, SCHEMA_ELEMENT
from variantlake.parquet.metadata.thrift import CompactReader, Fields, Struct, Wire

SPECIFICATION_VERSION = 1
"""The only version of the VARIANT logical type so far."""

_LOGICAL_FIELD = 10  # SchemaElement.logicalType
_STOP = b"\x00"
# LogicalType.VARIANT is field 16: a delta too big for the short header, so id 16 follows as zigzag.
# In it, field 1 is an i8. Then the ends of VariantType and of LogicalType.
_VARIANT_UNION = bytes([Wire.STRUCT, 16 << 1, 1 << 4 | Wire.I8, SPECIFICATION_VERSION]) + 2 * _STOP

_ELEMENT = Struct(SCHEMA_ELEMENT)

ColumnPath = tuple[str, ...]
"""Names of schema nodes from a top-level column down (through `list`, `element` and the like)."""


def annotate(file: str | os.PathLike[str], columns: Collection[ColumnPath]) -> Tail:
    """Mark these groups of a local file as VARIANT(1), in place; returns the footer as it is then.

    Raises MalformedFile for a file that is not Parquet, that lacks one of the columns, or where
    one is no group or has another logical type; nothing was changed then. MissingSource without
    a file.
    """
    try:
        with open(file, "r+b") as stream:  # noqa: PTH123  # str and PathLike alike
            return _annotate_stream(stream, columns)
    except FileNotFoundError:
        raise MissingSource("no such file", file=os.fspath(file)) from None
    except VariantLakeError as error:
        error.file = error.file or os.fspath(file)
        raise


def _annotate_stream(stream: BinaryIO, columns: Collection[ColumnPath]) -> Tail:
    tail = read_tail(stream)
    footer, count = annotate_footer(tail.footer, columns, tail.offset)
    if not count:
        return tail
    end = footer + len(footer).to_bytes(4, "little") + MAGIC
    stream.seek(tail.offset)
    stream.write(end)
    stream.truncate()
    return Tail(footer, tail.offset, tail.offset + len(end))


def annotate_footer(
    footer: bytes, columns: Collection[ColumnPath], offset: int = 0
) -> tuple[bytes, int]:
    """A Thrift FileMetaData with these groups marked as VARIANT(1), and how many were not yet.

    `offset` is the footer's place in its file, for errors. Raises MalformedFile as `annotate` does.
    """
    ends = _ends_of(columns, CompactReader(footer, offset))
    out = bytearray(footer)
    for end in sorted(ends, key=lambda end: end.stop, reverse=True):
        out[end.stop : end.stop] = _insertion(end, offset)
    return bytes(out), len(ends)


@dataclass(frozen=True, slots=True)
class _ElementEnd:
    """Where a SchemaElement's stop byte stands in the footer, and the id of its last field."""

    stop: int
    last_field: int


def _ends_of(columns: Collection[ColumnPath], reader: CompactReader) -> list[_ElementEnd]:
    """The ends of the columns' groups that have no mark yet; reads no further than the last one."""
    missing = set(columns)
    prefixes = {path[:size] for path in missing for size in range(len(path) + 1)}
    ends = []
    # For each group around the next element, its path and how many children are to come. Depth
    # first, as elements stand in the footer; a path is None where no column is below.
    above: list[tuple[ColumnPath | None, int]] = []
    for _ in range(_schema_size(reader)):
        if not missing:
            break
        start = reader.position
        fields = reader.read(_ELEMENT, Wire.STRUCT)
        path = _path_below(above, fields, reader) if above else ()
        path = path if path in prefixes else None
        if 1 not in fields:
            above.append((path, fields.get(5, 0)))
        if path is not None and path in missing:
            missing.discard(path)
            if _must_be_marked(fields, path):
                reader.position = start
                ends.append(_element_end(reader))
        while above and above[-1][1] <= 0:
            above.pop()
        if not above:
            break
    if missing:
        raise MalformedFile(f"the file has no column {'.'.join(min(missing))!r} to mark as VARIANT")
    return ends


def _path_below(
    above: list[tuple[ColumnPath | None, int]], fields: Fields, reader: CompactReader
) -> ColumnPath | None:
    """The path of the next child of the innermost group, which is counted."""
    group, children = above[-1]
    above[-1] = (group, children - 1)
    if len(above) > MAX_SCHEMA_DEPTH or 4 not in fields:
        raise reader.fail("an element of the schema has no name, or lies too deep")
    return None if group is None else (*group, fields[4].decode("utf-8", "replace"))


def _must_be_marked(fields: Fields, path: ColumnPath) -> bool:
    if 1 in fields:
        raise MalformedFile(f"column {'.'.join(path)!r} is not a group and cannot be a VARIANT")
    logical = fields.get(10) or of_converted(fields.get(6), fields.get(8, 0), fields.get(7, 0))
    if logical is None:
        return True
    if logical.kind == "VARIANT" and logical.version == SPECIFICATION_VERSION:
        return False
    raise MalformedFile(f"column {'.'.join(path)!r} has the logical type {logical}")


def _schema_size(reader: CompactReader) -> int:
    """Move to the first element of the schema; how many there are."""
    last = 0
    while True:
        wire, last = reader.field_header(last)
        if wire == Wire.STOP:
            raise reader.fail("the Parquet footer has no schema")
        if last == SCHEMA_FIELD:
            break
        reader.skip(wire)
    element, size = reader.list_header()
    if element != Wire.STRUCT:
        raise reader.fail("the schema in the Parquet footer is not a list of structs")
    return size


def _element_end(reader: CompactReader) -> _ElementEnd:
    last = 0
    while True:
        position = reader.position
        wire, last = reader.field_header(last)
        if wire == Wire.STOP:
            return _ElementEnd(position, last)
        reader.skip(wire)


def _insertion(end: _ElementEnd, offset: int) -> bytes:
    delta = _LOGICAL_FIELD - end.last_field
    if not 0 < delta < 16:
        raise MalformedFile(
            f"a schema element ends with field {end.last_field}", offset=offset + end.stop
        )
    return bytes([delta << 4 | Wire.STRUCT]) + _VARIANT_UNION
