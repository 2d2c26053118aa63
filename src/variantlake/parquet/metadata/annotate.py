"""Mark groups of a finished file as VARIANT(1), which pyarrow cannot do while it writes.

A footer holds no offsets into itself, so we insert the seven bytes of the logical type before the
end of the group's SchemaElement and keep every other byte. Do this before you publish a file: its
footer is rewritten in place.
Spec: Parquet, "VARIANT" in "Logical Types".
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import BinaryIO

from variantlake.errors import MalformedFile, MissingSource, in_file
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
    """Mark these groups of a local file as VARIANT(1), in place; returns the new footer.

    Raises MalformedFile, and changes nothing, if the file is not Parquet or lacks one of the
    columns, or if a column is not a group or has another logical type. Raises MissingSource if
    there is no file.
    """
    with in_file(os.fspath(file)):
        try:
            stream = open(file, "r+b")  # noqa: PTH123, SIM115  # str and PathLike alike
        except FileNotFoundError:
            raise MissingSource("no such file") from None
        with stream:
            return _annotate_stream(stream, columns)


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
    """Mark these groups of a Thrift FileMetaData as VARIANT(1); also returns how many were not.

    `offset` is the footer's place in its file, for errors. Raises MalformedFile as `annotate` does.
    """
    marks = _missing_marks(columns, CompactReader(footer, offset))
    out = bytearray(footer)
    for place, mark in sorted(marks, reverse=True):
        out[place:place] = mark
    return bytes(out), len(marks)


def _missing_marks(
    columns: Collection[ColumnPath], reader: CompactReader
) -> list[tuple[int, bytes]]:
    """Return the marks that the columns' groups lack, each with its place in the footer.

    Reads no further than the last of these groups.
    """
    missing = set(columns)
    prefixes = {path[:size] for path in missing for size in range(len(path) + 1)}
    marks = []
    # For each group around the next element, its path and the number of children to come. Elements
    # come depth first. A path is None if it leads to none of the columns.
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
                marks.append(_mark(reader))
        while above and above[-1][1] <= 0:
            above.pop()
        if not above:
            break
    if missing:
        raise MalformedFile(f"the file has no column {'.'.join(min(missing))!r} to mark as VARIANT")
    return marks


def _path_below(
    above: list[tuple[ColumnPath | None, int]], fields: Fields, reader: CompactReader
) -> ColumnPath | None:
    """Return the path of the innermost group's next child, and count the child as read."""
    group, children = above[-1]
    above[-1] = (group, children - 1)
    if len(above) > MAX_SCHEMA_DEPTH or 4 not in fields:
        raise reader.fail("an element of the schema has no name, or is nested too deep")
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
    """Move to the first element of the schema; returns the number of elements."""
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


def _mark(reader: CompactReader) -> tuple[int, bytes]:
    """Return the mark for the SchemaElement at the cursor, and the place of its stop byte."""
    last = 0
    while True:
        position = reader.position
        wire, last = reader.field_header(last)
        if wire == Wire.STOP:
            break
        reader.skip(wire)
    delta = _LOGICAL_FIELD - last
    if not 0 < delta < 16:
        raise reader.fail(f"a schema element ends with field {last}")
    return position, bytes([delta << 4 | Wire.STRUCT]) + _VARIANT_UNION
