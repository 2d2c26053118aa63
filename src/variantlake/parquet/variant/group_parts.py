"""Parse the parts of Variant groups, in both layouts: members, binaries, lists, leaf types.

Spec: VariantShredding; for siblings, delta-variant-type, "Writer Requirements".
"""

from __future__ import annotations

from collections.abc import Sequence

from variantlake.errors import MalformedFile
from variantlake.parquet.metadata.logical import Logical
from variantlake.parquet.metadata.schema_tree import SchemaNode
from variantlake.paths import Path
from variantlake.types import MAX_PRECISION, Kind, ShreddedType


def members_of(group: SchemaNode, path: Path, known: Sequence[str]) -> dict[str, SchemaNode]:
    """Return the members of a group by name; `known` are the names that it may have.

    Leaves out names that start with `_`. Raises MalformedFile for any other name, for a name that
    appears twice, and for a repeated member.
    """
    members: dict[str, SchemaNode] = {}
    for child in group.children:
        if child.name in known:
            if child.name in members:
                raise MalformedFile(f"{child.name!r} appears twice in a group", path=str(path))
            if child.repetition == "repeated":
                raise MalformedFile(f"{child.name!r} is repeated", path=str(path))
            members[child.name] = child
        elif not child.name.startswith("_"):
            raise MalformedFile(
                f"unknown field {child.name!r} in a Variant group",
                path=str(path),
                hint=f"only {', '.join(known)} and names that start with _ are allowed here",
            )
    return members


def binary_leaf(node: SchemaNode | None, name: str, path: Path) -> int | None:
    """Return the leaf of a binary member, None if it is absent. Raises MalformedFile."""
    if node is None:
        return None
    if node.physical != "BYTE_ARRAY" or node.logical is not None:
        raise MalformedFile(f"{name!r} is {parquet_type(node)}, expected binary", path=str(path))
    return node.leaf


def list_element(typed: SchemaNode, path: Path) -> SchemaNode:
    """Return the element of a three-level list, whatever the names of its inner levels."""
    if len(typed.children) == 1:
        (repeated,) = typed.children
        if repeated.repetition == "repeated" and len(repeated.children) == 1:
            return repeated.children[0]
    raise MalformedFile("a shredded array is not a list of three levels", path=str(path))


_PRIMITIVES: dict[tuple[str, Logical | None], Kind] = {
    ("BOOLEAN", None): Kind.BOOLEAN,
    ("INT32", Logical("INTEGER", bits=8)): Kind.INT8,
    ("INT32", Logical("INTEGER", bits=16)): Kind.INT16,
    ("INT32", Logical("INTEGER", bits=32)): Kind.INT32,
    ("INT32", None): Kind.INT32,
    ("INT64", Logical("INTEGER", bits=64)): Kind.INT64,
    ("INT64", None): Kind.INT64,
    ("FLOAT", None): Kind.FLOAT,
    ("DOUBLE", None): Kind.DOUBLE,
    ("INT32", Logical("DATE")): Kind.DATE,
    ("INT64", Logical("TIME", unit="MICROS")): Kind.TIME,
    ("INT64", Logical("TIMESTAMP", unit="MICROS", utc=True)): Kind.TIMESTAMP,
    ("INT64", Logical("TIMESTAMP", unit="NANOS", utc=True)): Kind.TIMESTAMP_NANOS,
    ("INT64", Logical("TIMESTAMP", unit="MICROS")): Kind.TIMESTAMP_NTZ,
    ("INT64", Logical("TIMESTAMP", unit="NANOS")): Kind.TIMESTAMP_NTZ_NANOS,
    ("BYTE_ARRAY", None): Kind.BINARY,
    ("BYTE_ARRAY", Logical("STRING")): Kind.STRING,
    ("FIXED_LEN_BYTE_ARRAY", Logical("UUID")): Kind.UUID,
}
"""Spec: VariantShredding, "Shredded Value Types"; without decimals."""


def shredded_type(node: SchemaNode, path: Path) -> ShreddedType:
    """Return the type of a primitive `typed_value`. Raises MalformedFile."""
    if node.logical is not None and node.kind == "DECIMAL":
        if node.logical.precision <= _decimal_digits(node):
            return ShreddedType(Kind.DECIMAL, node.logical.precision, node.logical.scale)
    else:
        kind = _PRIMITIVES.get((node.physical or "", node.logical))
        if kind is not None and (kind is not Kind.UUID or node.type_length == 16):
            return ShreddedType(kind)
    raise MalformedFile(
        f"typed_value is {parquet_type(node)}",
        path=str(path),
        hint="the shredding specification lists the types that typed_value may have",
    )


def _decimal_digits(node: SchemaNode) -> int:
    """Return the digits that a decimal's physical type can hold; 0 if it cannot hold decimals."""
    match node.physical:
        case "INT32":
            return 9
        case "INT64":
            return 18
        case "BYTE_ARRAY":
            return MAX_PRECISION
        case "FIXED_LEN_BYTE_ARRAY":
            widest = (1 << (8 * min(node.type_length, 16) - 1)) - 1
            return min(MAX_PRECISION, len(str(widest)) - 1)
    return 0


def parquet_type(node: SchemaNode) -> str:
    """Write the exact type of a node: `INT64 TIMESTAMP(true,MICROS)`."""
    physical = node.physical or "group"
    if node.type_length:
        physical += f"({node.type_length})"
    return f"{physical} {node.logical}" if node.logical is not None else physical
