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
from variantlake.parquet.footer import MAGIC, SCHEMA_FIELD, parse_schema, read_tail
from variantlake.parquet.schema_tree import SchemaNode
from variantlake.parquet.thrift import CompactReader, Wire

SPECIFICATION_VERSION = 1
"""The only version of the VARIANT logical type so far."""

_LOGICAL_FIELD = 10  # SchemaElement.logicalType
_STOP = b"\x00"
# LogicalType.VARIANT is field 16: a delta too big for the short header, so id 16 follows as zigzag.
# In it, field 1 is an i8. Then the ends of VariantType and of LogicalType.
_VARIANT_UNION = bytes([Wire.STRUCT, 16 << 1, 1 << 4 | Wire.I8, SPECIFICATION_VERSION]) + 2 * _STOP

ColumnPath = tuple[str, ...]
"""Names of schema nodes from a top-level column down (through `list`, `element` and the like)."""


def annotate(file: str | os.PathLike[str], columns: Collection[ColumnPath]) -> int:
    """Mark these groups of a local file as VARIANT(1), in place; returns how many were not yet.

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


def _annotate_stream(stream: BinaryIO, columns: Collection[ColumnPath]) -> int:
    tail = read_tail(stream)
    footer, count = annotate_footer(tail.footer, columns, tail.offset)
    if count:
        stream.seek(tail.offset)
        stream.write(footer + len(footer).to_bytes(4, "little") + MAGIC)
        stream.truncate()
    return count


def annotate_footer(
    footer: bytes, columns: Collection[ColumnPath], offset: int = 0
) -> tuple[bytes, int]:
    """A Thrift FileMetaData with these groups marked as VARIANT(1), and how many were not yet.

    `offset` is the footer's place in its file, for errors. Raises MalformedFile as `annotate` does.
    """
    wanted = _elements_of(parse_schema(footer, offset), columns)
    ends = _element_ends(footer, offset)
    out = bytearray(footer)
    for index in sorted(wanted, reverse=True):
        out[ends[index].stop : ends[index].stop] = _insertion(ends[index], offset)
    return bytes(out), len(wanted)


def _elements_of(schema: SchemaNode, columns: Collection[ColumnPath]) -> set[int]:
    """The positions, in the footer's flat list, of the columns' groups that have no mark yet."""
    missing = set(columns)
    found: set[int] = set()
    # Depth first, as the elements stand in the footer.
    stack: list[tuple[SchemaNode, ColumnPath]] = [(schema, ())]
    index = 0
    while stack:
        node, path = stack.pop()
        if path in missing:
            missing.discard(path)
            if _must_be_marked(node, path):
                found.add(index)
        index += 1
        stack.extend((child, (*path, child.name)) for child in reversed(node.children))
    if missing:
        raise MalformedFile(f"the file has no column {'.'.join(min(missing))!r} to mark as VARIANT")
    return found


def _must_be_marked(node: SchemaNode, path: ColumnPath) -> bool:
    if not node.is_group:
        raise MalformedFile(f"column {'.'.join(path)!r} is no group and cannot be a VARIANT")
    if node.logical is None:
        return True
    if node.logical.kind == "VARIANT" and node.logical.version == SPECIFICATION_VERSION:
        return False
    raise MalformedFile(f"column {'.'.join(path)!r} has the logical type {node.logical}")


@dataclass(frozen=True, slots=True)
class _ElementEnd:
    """Where a SchemaElement's stop byte stands in the footer, and the id of its last field."""

    stop: int
    last_field: int


def _element_ends(footer: bytes, offset: int) -> list[_ElementEnd]:
    reader = CompactReader(footer, offset)
    last = 0
    while True:
        wire, last = reader.field_header(last)
        if wire == Wire.STOP:
            raise MalformedFile("the Parquet footer has no schema", offset=offset)
        if last == SCHEMA_FIELD:
            break
        reader.skip(wire)
    _, size = reader.list_header()
    return [_element_end(reader) for _ in range(size)]


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
