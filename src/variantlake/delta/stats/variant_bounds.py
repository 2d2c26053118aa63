"""Encode and decode the bounds of a Variant column in the log: an object of paths, as Z85 text.

The specification's prose, Delta Spark and Databricks put `metadata` before `value` and pad with
zeros to a multiple of four bytes. The protocol's example strings put `value` before `metadata`. We
write the former and read both. Keys are RFC 9535 normalized paths, values are primitives.
Spec: PROTOCOL, "Statistics for Variant Columns".
"""

from __future__ import annotations

import contextlib
import uuid
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

from variantlake.delta.stats import z85
from variantlake.encoding.metadata import (
    VariantMetadata,
    decode_metadata,
    encode_dictionary,
    metadata_size,
)
from variantlake.encoding.scalar import DECIMAL_DIGITS, INTEGER_BITS, Scalar, decode_scalar
from variantlake.encoding.tree import Tree, encode_value
from variantlake.encoding.value import basic_type, read_children, value_size
from variantlake.errors import (
    InvalidPath,
    MalformedLog,
    MalformedVariant,
    UnknownVariantType,
    VariantLakeError,
)
from variantlake.parquet.stats.bounds import Raw
from variantlake.paths import Path
from variantlake.types import KINDS, BasicType, Kind, Primitive, ShreddedType


def encode_bounds(bounds: Mapping[Path, Scalar]) -> str:
    """Encode all minimums, or all maximums. The dictionary keeps the order of the mapping."""
    names = {path.normalized(): scalar for path, scalar in bounds.items()}
    metadata = encode_dictionary([name.encode() for name in names], sorted_strings=False)
    tree: Tree = dict(names)
    return z85.encode(metadata + encode_value(tree, {name: i for i, name in enumerate(names)}))


def decode_bounds(text: str) -> dict[Path, Scalar]:
    """Decode the bounds in a text, with metadata and value in either order.

    Leaves out values that are no primitives and keys that are no paths. Raises MalformedLog,
    MalformedVariant or LimitExceeded for a text that does not hold one Variant object.
    """
    metadata, value = split(z85.decode(text))
    if basic_type(value) is not BasicType.OBJECT:
        return {}
    dictionary, paths = dictionary_of(metadata)
    children = read_children(dictionary, value, 0, len(value))
    bounds: dict[Path, Scalar] = {}
    for name, start, end in zip(children.names or (), children.starts, children.ends, strict=True):
        path = paths.get(name)
        # The low two bits: 0 a primitive, 1 a short string.
        if path is not None and value[start] & 0x03 <= BasicType.SHORT_STRING:
            with contextlib.suppress(UnknownVariantType):
                bounds[path] = decode_scalar(value, start, end)
    return bounds


def plain_bounds(text: Any) -> Mapping[Path, Scalar]:
    """Return `decode_bounds`, but empty for a text that it refuses."""
    if not isinstance(text, str):
        return {}
    try:
        return decode_bounds(text)
    except VariantLakeError:
        return {}


def plain_split(text: Any) -> tuple[bytes, bytes] | None:
    """Return the `split` of a decoded text, None for a text that it refuses."""
    if not isinstance(text, str):
        return None
    try:
        return split(z85.decode(text))
    except VariantLakeError:
        return None


@lru_cache(maxsize=64)
def dictionary_of(metadata: bytes) -> tuple[VariantMetadata, dict[str, Path]]:
    """Decode the keys, and parse those that are paths. Cached: files of one layout share them.

    Leaves out paths for which there are several spellings among the keys.
    """
    dictionary = decode_metadata(metadata)
    paths: dict[str, Path] = {}
    for key in dictionary.keys:
        with contextlib.suppress(InvalidPath):
            paths[key] = Path.parse(key)
    spellings = Counter(paths.values())
    return dictionary, {key: path for key, path in paths.items() if spellings[path] == 1}


def split(data: bytes) -> tuple[bytes, bytes]:
    """Split bytes into (`metadata`, `value`), which are in either order and zero-padded.

    Each part's header gives its size. The first byte tells the order: the low nibble of metadata is
    its version 1, the low two bits of an object are 2.
    """
    if not data:
        raise MalformedVariant("bounds are empty", offset=0)
    if data[0] & 0x03 == BasicType.OBJECT:
        middle = value_size(data)
        end = middle + metadata_size(data[middle:])
        value, metadata = data[:middle], data[middle:end]
    else:
        middle = metadata_size(data)
        end = middle + value_size(data, middle)
        metadata, value = data[:middle], data[middle:end]
    if any(data[end:]):
        raise MalformedLog("bytes other than padding follow the bounds", offset=end)
    return metadata, value


def scalar_of(leaf: ShreddedType, raw: Raw) -> Scalar:
    """Convert a bound of a leaf to a Variant value of the leaf's type, whatever its magnitude."""
    if leaf.kind is Kind.DECIMAL:
        width = next(width for width, most in DECIMAL_DIGITS.items() if leaf.precision <= most)
        return Scalar(width, raw)
    if leaf.kind is Kind.UUID and isinstance(raw, bytes):
        return Scalar(Primitive.UUID, uuid.UUID(bytes=raw))
    return Scalar(KINDS[leaf.kind].primitives[0], raw)


def raw_of(leaf: ShreddedType, scalar: Scalar) -> Raw | None:
    """Convert a Variant value to a bound of a leaf; None if its type does not fit the leaf.

    Integers of any width fit integer and decimal leaves, because numbers compare by value.
    """
    value = scalar.value
    if scalar.type in INTEGER_BITS and isinstance(value, int):
        if leaf.kind is Kind.DECIMAL:
            return Decimal(value)
        return value if KINDS[leaf.kind].primitives[0] in INTEGER_BITS else None
    if scalar.type not in KINDS[leaf.kind].primitives or value is None:
        return None
    return value.bytes if isinstance(value, uuid.UUID) else value
