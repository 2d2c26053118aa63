"""Documents to tapes, and back to trees, for the kernels' tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa

from variantlake.encoding.json import DuplicateKeys, parse_json_tree
from variantlake.encoding.tree import Tree, decode, logical_key
from variantlake.errors import VariantLakeError
from variantlake.kernels.json.json_reader import JsonReader
from variantlake.kernels.tape.tape import Tape


def read(documents: Sequence[bytes], reader: JsonReader | None = None) -> Tape:
    """One tape of all documents, which stand in the text with nothing between them."""
    sizes = [len(document) for document in documents]
    ends = np.cumsum(sizes, dtype=np.int64)
    text = np.frombuffer(b"".join(documents), np.uint8)
    return (reader or JsonReader()).read(text, ends - np.array(sizes, np.int64), ends)


def expected(document: bytes, duplicate_keys: DuplicateKeys = "error") -> Tree | None:
    """What the twin makes of a document, None when it refuses it."""
    try:
        return parse_json_tree(document, duplicate_keys=duplicate_keys)
    except VariantLakeError:
        return None


def trees(variants: pa.StructArray) -> Iterator[Tree | None]:
    """The trees of struct<metadata, value>."""
    variants.validate(full=True)
    for row in cast("Any", variants).to_pylist():
        yield None if row is None else decode(row["metadata"], row["value"])


def same(one: Tree | None, other: Tree | None) -> bool:
    """Equal by value, with the same types of scalars where they are plain to see."""
    if one is None or other is None:
        return one is other
    if isinstance(one, dict | list):
        return logical_key(one) == logical_key(other)
    return repr(one) == repr(other)
