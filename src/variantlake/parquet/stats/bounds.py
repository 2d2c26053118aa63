"""Decode the minimum and maximum of a column chunk, and whether they are exact.

A bound that we do not fully understand is dropped. Spec: Parquet, `parquet.thrift`, Statistics and
ColumnOrder; "Logical Types", the sort order of each.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from decimal import Decimal

from variantlake.encoding.scalar import decimal_of
from variantlake.parquet.metadata.column_chunks import ColumnChunk
from variantlake.parquet.metadata.schema_tree import SchemaNode

Raw = int | float | str | bytes | Decimal
"""A bound as stored: dates in days, times and timestamps as counts of the type's own unit since
midnight or the epoch, decimals exact with the column's scale, UUIDs as 16 bytes."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds that enclose all values; a side is None if unknown.

    `*_exact` is false if perhaps no value equals the bound (a truncated string).
    """

    minimum: Raw | None = None
    maximum: Raw | None = None
    minimum_exact: bool = False
    maximum_exact: bool = False

    def merge(self, other: Bounds) -> Bounds:
        """Return bounds of the values of both; a side that is unknown in one is unknown."""
        low = _pick(self.minimum, other.minimum, larger=False)
        high = _pick(self.maximum, other.maximum, larger=True)
        return Bounds(
            None if low is None else (self, other)[low].minimum,
            None if high is None else (self, other)[high].maximum,
            low is not None and (self, other)[low].minimum_exact,
            high is not None and (self, other)[high].maximum_exact,
        )

    def filled(self, other: Bounds) -> Bounds:
        """Fill each side that is unknown here with that of the other."""
        low = other if self.minimum is None else self
        high = other if self.maximum is None else self
        return Bounds(low.minimum, high.maximum, low.minimum_exact, high.maximum_exact)


UNBOUNDED = Bounds()


def _pick(left: Raw | None, right: Raw | None, *, larger: bool) -> int | None:
    """Return 0 for `left` or 1 for `right`, whichever is smaller or `larger`; None if unknown."""
    if left is None or right is None:
        return None
    # Both come from one column, so both are of one type and comparable.
    right_wins = right > left if larger else right < left  # type: ignore[operator]
    return int(right_wins)


def widened(bounds: Bounds) -> Bounds:
    """Widen float bounds of zero to [-0.0, +0.0], since writers treat the two zeros differently."""
    low, high = bounds.minimum, bounds.maximum
    return Bounds(
        -0.0 if low == 0 and isinstance(low, float) else low,
        0.0 if high == 0 and isinstance(high, float) else high,
        bounds.minimum_exact,
        bounds.maximum_exact,
    )


def decode_bounds(chunk: ColumnChunk, node: SchemaNode, *, writer_is_exact: bool) -> Bounds:
    """Return the bounds of one chunk of the column `node`.

    `writer_is_exact`: without exactness flags, the bounds of this writer are exact. Types without a
    defined order (INT96, INTERVAL) and booleans have no bounds, nor do chunks whose minimum is
    above their maximum.
    """
    minimum_exact = _is_exact(chunk.min_exact, chunk.min_value, node, writer_is_exact)
    maximum_exact = _is_exact(chunk.max_exact, chunk.max_value, node, writer_is_exact)
    minimum = _decode(chunk.min_value, node, exact=minimum_exact, is_minimum=True)
    maximum = _decode(chunk.max_value, node, exact=maximum_exact, is_minimum=False)
    bounds = widened(
        Bounds(
            minimum,
            maximum,
            minimum is not None and minimum_exact,
            maximum is not None and maximum_exact,
        )
    )
    if _pick(bounds.minimum, bounds.maximum, larger=False):
        return Bounds()
    return bounds


def _is_exact(flag: bool | None, raw: bytes | None, node: SchemaNode, writer: bool) -> bool:
    if flag is not None:
        return flag
    if node.physical == "BYTE_ARRAY" and node.kind != "DECIMAL":
        return writer
    return node.type_length == 0 or raw is None or len(raw) == node.type_length


def _decode(raw: bytes | None, node: SchemaNode, *, exact: bool, is_minimum: bool) -> Raw | None:
    if raw is None:
        return None
    match node.physical:
        case "INT32" | "INT64":
            return _decode_integer(raw, node)
        case "FLOAT" | "DOUBLE":
            return _decode_float(raw, node)
        case "BYTE_ARRAY" | "FIXED_LEN_BYTE_ARRAY":
            return _decode_bytes(raw, node, exact=exact, is_minimum=is_minimum)
    return None


_INTEGER_KINDS = frozenset({"INTEGER", "DATE", "TIME", "TIMESTAMP"})


def _decode_integer(raw: bytes, node: SchemaNode) -> Raw | None:
    if len(raw) != (4 if node.physical == "INT32" else 8):
        return None
    if node.logical is None:
        return int.from_bytes(raw, "little", signed=True)
    if node.kind == "DECIMAL":
        return decimal_of(int.from_bytes(raw, "little", signed=True), node.logical.scale)
    if node.kind in _INTEGER_KINDS:
        return int.from_bytes(raw, "little", signed=node.logical.signed)
    return None


def _decode_float(raw: bytes, node: SchemaNode) -> float | None:
    layout = "<f" if node.physical == "FLOAT" else "<d"
    if len(raw) != struct.calcsize(layout) or node.logical is not None:
        return None
    value: float = struct.unpack(layout, raw)[0]
    return None if math.isnan(value) else value


_TEXT_KINDS = frozenset({"STRING", "ENUM", "JSON"})


def _decode_bytes(raw: bytes, node: SchemaNode, *, exact: bool, is_minimum: bool) -> Raw | None:
    if node.type_length and len(raw) > node.type_length:
        return None
    if node.logical is None or node.kind in ("BSON", "UUID"):
        return raw
    if node.kind == "DECIMAL":
        whole = exact and len(raw) == (node.type_length or len(raw)) and 0 < len(raw) <= 32
        unscaled = int.from_bytes(raw, "big", signed=True)
        return decimal_of(unscaled, node.logical.scale) if whole else None
    if node.kind in _TEXT_KINDS:
        return _decode_text(raw, exact=exact, is_minimum=is_minimum)
    return None


def _decode_text(raw: bytes, *, exact: bool, is_minimum: bool) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        # If a minimum ends within a character, the text before it is still a lower bound. A
        # maximum without its last bytes may be too small, or have an incremented byte.
        if is_minimum and not exact and error.end == len(raw):
            return raw[: error.start].decode()
        return None
