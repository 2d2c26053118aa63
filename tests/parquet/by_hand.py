"""Parquet files written byte by byte, from a schema in the notation of the specifications.

Nothing of the package and nothing of pyarrow is used, so a misreading of the format in either
cannot hide here. Every column is one plain, uncompressed data page. Specs: Parquet's README,
Encodings.md, `parquet.thrift` (numbers of its fields stand in comments).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

FIXED = "fixed_len_byte_array"
PHYSICAL = ("boolean", "int32", "int64", "int96", "float", "double", "binary", FIXED)
REPETITIONS = ("required", "optional", "repeated")
LINE = re.compile(
    r"(?P<repetition>required|optional|repeated) (?P<type>\w+)(?:\((?P<length>\d+)\))? "
    r"(?P<name>\w+)(?: \((?P<logical>[^{;#]+)\))? ?[{;]"
)


@dataclass
class Node:
    """A line of a schema."""

    name: str
    repetition: str
    physical: str | None
    length: int = 0
    logical: str = ""
    children: list[Node] = field(default_factory=list)


def parse_message(text: str) -> Node:
    """The tree of what stands between `message {` and `}` in the specifications."""
    root = Node("root", "required", None)
    open_groups = [root]
    for line in text.splitlines():
        if line.strip() == "}":
            open_groups.pop()
        elif match := LINE.match(line.strip()):
            physical = None if match["type"] == "group" else match["type"]
            length = int(match["length"] or 0)
            node = Node(
                match["name"], match["repetition"], physical, length, match["logical"] or ""
            )
            open_groups[-1].children.append(node)
            if physical is None:
                open_groups.append(node)
        else:
            assert not line.strip(), line
    assert open_groups == [root]
    return root


# --- Thrift's compact protocol --------------------------------------------------------------------

I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def integer(number: int) -> bytes:
    """Zigzag: 0, -1, 1, -2 are 0, 1, 2, 3."""
    return varint(2 * number if number >= 0 else -2 * number - 1)


def text(value: str) -> bytes:
    return varint(len(value.encode())) + value.encode()


def record(*fields: tuple[int, int, bytes]) -> bytes:
    """A struct of fields as (number, wire type, bytes)."""
    out, last = b"", 0
    for number, wire, value in fields:
        near = 0 < number - last <= 15
        out += bytes([number - last << 4 | wire]) if near else bytes([wire]) + integer(number)
        out, last = out + value, number
    return out + b"\x00"


def sequence(wire: int, items: Iterable[bytes]) -> bytes:
    items = list(items)
    size = len(items)
    head = bytes([size << 4 | wire]) if size < 15 else bytes([0xF0 | wire]) + varint(size)
    return head + b"".join(items)


def boolean(number: int, value: str) -> tuple[int, int, bytes]:
    """A field whose value is in its wire type."""
    return number, 1 if value == "true" else 2, b""


# --- The footer -----------------------------------------------------------------------------------


def logical_type(text_: str) -> bytes:
    """A LogicalType from `TIMESTAMP(true, MICROS)` and the like."""
    name, *arguments = re.findall(r"\w+", text_)
    empty = record()
    units = {"MILLIS": 1, "MICROS": 2, "NANOS": 3}
    match name:
        case "VARIANT":
            return record((16, STRUCT, record((1, 3, bytes([int(arguments[0])])))))
        case "TIME" | "TIMESTAMP":
            unit = record((units[arguments[1]], STRUCT, empty))
            kind = record(boolean(1, arguments[0]), (2, STRUCT, unit))
            return record((7 if name == "TIME" else 8, STRUCT, kind))
        case "INT":
            kind = record((1, 3, bytes([int(arguments[0])])), boolean(2, arguments[1]))
            return record((10, STRUCT, kind))
        case "DECIMAL":
            precision, scale = map(int, arguments)
            kind = record((1, I32, integer(scale)), (2, I32, integer(precision)))
            return record((5, STRUCT, kind))
    numbers = {"STRING": 1, "MAP": 2, "LIST": 3, "ENUM": 4, "DATE": 6, "JSON": 12, "UUID": 14}
    return record((numbers[name], STRUCT, empty))


def schema_elements(node: Node) -> list[bytes]:
    """The SchemaElements of a node and all below it, depth first."""
    fields = []
    if node.physical is not None:
        fields.append((1, I32, integer(PHYSICAL.index(node.physical))))
    if node.length:
        fields.append((2, I32, integer(node.length)))
    fields.append((3, I32, integer(REPETITIONS.index(node.repetition))))
    fields.append((4, BINARY, text(node.name)))
    if node.physical is None:
        fields.append((5, I32, integer(len(node.children))))
    if node.logical:
        fields.append((10, STRUCT, logical_type(node.logical)))
    below = [element for child in node.children for element in schema_elements(child)]
    return [record(*fields), *below]


# --- Columns --------------------------------------------------------------------------------------


@dataclass
class Column:
    """A leaf, and its entries as (repetition level, definition level, value)."""

    node: Node
    path: tuple[str, ...]
    max_repetition: int
    max_definition: int
    entries: list[tuple[int, int, Any]] = field(default_factory=list)


def columns_of(node: Node, path: tuple[str, ...] = (), levels: tuple[int, int] = (0, 0)) -> Any:
    """The columns of a node as a tree of the schema's shape, which `add_value` fills."""
    repetition = levels[0] + (node.repetition == "repeated")
    definition = levels[1] + (node.repetition != "required")
    if node.physical is not None:
        return Column(node, path, repetition, definition)
    return [
        columns_of(child, (*path, child.name), (repetition, definition)) for child in node.children
    ]


def leaves(columns: Any) -> list[Column]:
    return (
        [columns] if isinstance(columns, Column) else [x for each in columns for x in leaves(each)]
    )


def add_value(
    node: Node, columns: Any, value: Any, levels: tuple[int, int] = (0, 0), depth: int = 0
) -> None:
    """Put a value into its columns by Dremel's rules; `depth` counts the lists around it."""
    repetition, definition = levels
    if node.repetition == "repeated":
        assert isinstance(value, list)
        for number, item in enumerate(value):
            here = (repetition if number == 0 else depth + 1, definition + 1)
            add_present(node, columns, item, here, depth + 1)
        if value:
            return
    elif node.repetition == "required" or value is not None:
        here = (repetition, definition + (node.repetition == "optional"))
        add_present(node, columns, value, here, depth)
        return
    for column in leaves(columns):
        column.entries.append((repetition, definition, None))


def add_present(node: Node, columns: Any, value: Any, levels: tuple[int, int], depth: int) -> None:
    if isinstance(columns, Column):
        assert value is not None, f"{columns.path} is required"
        columns.entries.append((*levels, value))
        return
    if node.logical == "LIST":  # [x] stands for {"list": [{"element": x}]}
        (middle,) = node.children
        (element,) = middle.children
        value = {middle.name: [{element.name: item} for item in value]}
    for child, below in zip(node.children, columns, strict=True):
        add_value(child, below, (value or {}).get(child.name), levels, depth)


def level_bytes(levels: list[int], maximum: int) -> bytes:
    """Runs of length one in the RLE hybrid, after their size; nothing if there is one level."""
    if maximum == 0:
        return b""
    runs = b"".join(varint(1 << 1) + bytes([level]) for level in levels)
    return struct.pack("<i", len(runs)) + runs


def plain(node: Node, values: list[Any]) -> bytes:
    """The encoding PLAIN."""
    if node.physical == "boolean":
        bits: int = sum(value << index for index, value in enumerate(values))
        return bits.to_bytes((len(values) + 7) // 8, "little")
    formats = {"int32": "<i", "int64": "<q", "float": "<f", "double": "<d"}
    if node.physical in formats:
        return b"".join(struct.pack(formats[node.physical], value) for value in values)
    raw = [value.encode() if isinstance(value, str) else value for value in values]
    if node.physical == "binary":
        return b"".join(struct.pack("<i", len(value)) + value for value in raw)
    assert all(len(value) == (node.length or 12) for value in raw)
    return b"".join(raw)


def page(column: Column) -> bytes:
    """A DataPage with its header."""
    entries = column.entries
    body = level_bytes([r for r, _, _ in entries], column.max_repetition)
    body += level_bytes([d for _, d, _ in entries], column.max_definition)
    body += plain(column.node, [value for _, _, value in entries if value is not None])
    # num_values, encoding PLAIN, and RLE (3) for both levels
    head = record(*((n, I32, integer(x)) for n, x in enumerate((len(entries), 0, 3, 3), start=1)))
    sizes = ((2, I32, integer(len(body))), (3, I32, integer(len(body))))
    return record((1, I32, integer(0)), *sizes, (5, STRUCT, head)) + body


def file_bytes(message: str, rows: list[dict[str, Any]]) -> bytes:
    """A file of one row group. A value is None if it is missing, a list where it is repeated."""
    root = parse_message(message)
    columns = columns_of(root)
    for row in rows:
        add_present(root, columns, row, (0, 0), 0)
    out, chunks = b"PAR1", []
    for column in leaves(columns):
        start, data = len(out), page(column)
        assert column.node.physical is not None
        metadata = record(
            (1, I32, integer(PHYSICAL.index(column.node.physical))),
            (2, LIST, sequence(I32, [integer(0), integer(3)])),  # PLAIN, RLE
            (3, LIST, sequence(BINARY, [text(name) for name in column.path])),
            (4, I32, integer(0)),  # UNCOMPRESSED
            (5, I64, integer(len(column.entries))),
            (6, I64, integer(len(data))),
            (7, I64, integer(len(data))),
            (9, I64, integer(start)),  # data_page_offset
        )
        chunks.append(record((2, I64, integer(start)), (3, STRUCT, metadata)))
        out += data
    group = record(
        (1, LIST, sequence(STRUCT, chunks)),
        (2, I64, integer(len(out) - 4)),
        (3, I64, integer(len(rows))),
    )
    footer = record(
        (1, I32, integer(2)),  # version
        (2, LIST, sequence(STRUCT, schema_elements(root))),
        (3, I64, integer(len(rows))),
        (4, LIST, sequence(STRUCT, [group])),
        (6, BINARY, text("by hand")),
    )
    return out + footer + struct.pack("<i", len(footer)) + b"PAR1"
