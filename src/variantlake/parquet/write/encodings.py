"""Choose the encoding of each leaf of a file, once, from its first row group.

A dictionary pays if values repeat. Otherwise pyarrow would fill a dictionary in each row group,
abandon it and write plain values. So we write other numbers, dates and times as
DELTA_BINARY_PACKED, strings as DELTA_LENGTH_BYTE_ARRAY, and the rest as PLAIN. For events of 1 KB
that made files 7 % smaller than dictionaries throughout, in less time, and Spark reads them as
fast. A wrong choice costs size, never correctness.

Strings that often share a prefix with the one before (ids of one kind, paths) are written without
it, as DELTA_BYTE_ARRAY. For zstd such a prefix is a match in every value, from which it searches
on: hashes with a common prefix of 7 characters take half the time without it, and less space.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.parquet.stats.statistics_collector import children_of
from variantlake.shredding.arrays import AnyArray, elements_of
from variantlake.shredding.layout import is_text

SAMPLE_ROWS = 2048
"""The first rows, from which to choose. Four times as many lead to the same choice and take up to
20 ms per file; a quarter of them makes files of GitHub's webhooks 6 % larger."""

MAX_DISTINCT_SHARE = 0.5
"""A leaf gets a dictionary if at most this share of its values is distinct."""

_MAYBE_SHARE = 0.98
"""If at most this share of a sample of texts is distinct, more rows are counted. Twenty thousand
users in a hundred thousand events hardly repeat in a small sample, and never in the first rows if
they take turns."""

_MANY_ROWS = 4 * SAMPLE_ROWS
"""For fewer rows, the sample decides."""

_COUNTED_ROWS = 20 * SAMPLE_ROWS
"""The rows to count first, which takes a millisecond per leaf."""

_LIKELY_SHARE = 0.8
"""If at most this share of the counted rows is distinct, all rows of the row group are counted, in
a few milliseconds: forty thousand users in 140,000 events."""

_SHARED_PREFIX = 4
"""The average shared prefix, in bytes, from which to try DELTA_BYTE_ARRAY. zstd finds no shorter
match."""

_COMPARED_ROWS = 256
"""Strings of the sample that are compared with the one before."""

_COMPARED_BYTES = 256
"""The first bytes of each that are compared."""

DICTIONARY_BYTES = 4 << 20
"""The writer abandons a larger dictionary. With pyarrow's default, a quarter of this, ids of 32
bytes that repeat in half of the rows got no dictionary and took twice the space."""

_TOO_FEW = 64  # values: too few to judge, and a dictionary of them costs nothing


@dataclass(frozen=True, slots=True)
class Encodings:
    """Arguments for pyarrow, by dotted names: leaves with a dictionary, and others' encodings."""

    dictionary: list[str]
    others: dict[str, str]


def choose_encodings(table: pa.Table) -> Encodings:
    """Choose an encoding for each leaf by the first rows of `table`, by more if in doubt.

    Dotted names are not unique (the key `a.b` and the key `b` in `a`). Leaves with the same name
    get a dictionary, which works for every type.
    """
    if not table.num_rows:
        # pyarrow makes no empty arrays of some types (UUID within a struct).
        return Encodings([], {})
    leaves = [
        leaf
        for name, column in zip(table.column_names, table.columns, strict=True)
        for leaf in _leaves((name,), column.slice(0, SAMPLE_ROWS).combine_chunks())
    ]
    names = [".".join(path) for path, _ in leaves]
    shared = Counter(names)
    dictionary = [
        name
        for name, (path, sample) in zip(names, leaves, strict=True)
        if shared[name] > 1 or _is_repeated(sample, path, table)
    ]
    chosen = set(dictionary)
    others = {
        name: encoding
        for name, (_, array) in zip(names, leaves, strict=True)
        if name not in chosen and (encoding := _encoding_of(array))
    }
    return Encodings(dictionary, others)


def _leaves(path: tuple[str, ...], array: AnyArray) -> Iterator[tuple[tuple[str, ...], AnyArray]]:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if isinstance(array, pa.StructArray):
        for child, values in children_of(array).items():
            yield from _leaves((*path, child), values)
    elif isinstance(array, pa.MapArray):
        yield from _leaves((*path, "key_value", "key"), array.keys)
        yield from _leaves((*path, "key_value", "value"), array.items)
    elif isinstance(array, pa.ListArray):
        yield from _leaves((*path, "list", "element"), elements_of(array).slice(0, SAMPLE_ROWS))
    else:
        yield path, array


def _is_repeated(sample: AnyArray, path: tuple[str, ...], table: pa.Table) -> bool:
    """Whether the values of a leaf repeat in the sample or, if that is likely, in all rows."""
    present = len(sample) - sample.null_count
    if present < _TOO_FEW or pa.types.is_dictionary(sample.type) or pa.types.is_null(sample.type):
        return True
    try:
        distinct = pc.count_distinct(sample).as_py()
    except pa.ArrowNotImplementedError:
        return True
    if distinct <= present * MAX_DISTINCT_SHARE:
        return True
    if not is_text(sample.type) or table.num_rows < _MANY_ROWS:
        return False
    leaf = _leaf_of(path, table)
    if leaf is None or min(distinct / present, _distinct(_spread(leaf))[0]) > _MAYBE_SHARE:
        return False
    return _is_repeated_in_all(leaf)


def _is_repeated_in_all(leaf: Any) -> bool:
    """Whether values repeat in the counted rows, or in all if the counted rows leave a doubt."""
    share, size = _distinct(leaf.slice(0, _COUNTED_ROWS))
    if MAX_DISTINCT_SHARE < share <= _LIKELY_SHARE:
        share, size = _distinct(leaf)
    return share <= MAX_DISTINCT_SHARE and size <= DICTIONARY_BYTES


def _leaf_of(path: tuple[str, ...], table: pa.Table) -> Any:
    """Return all values of a leaf that is in no list, map or extension type, else None."""
    column: Any = table.column(path[0])
    if len(path) == 1:
        return column
    try:
        return pc.struct_field(column, list(path[1:]))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, KeyError):
        return None  # within a list, a map, or an extension


def _spread(leaf: Any) -> Any:
    """Take a random sample: sorted or rotating values may all differ in the first rows."""
    rows = np.random.default_rng(0).integers(0, len(leaf), SAMPLE_ROWS)
    return leaf.take(pa.array(np.unique(rows)))


def _distinct(values: Any) -> tuple[float, int]:
    """Return the share of distinct values, and about the bytes of these."""
    present = max(len(values) - values.null_count, 1)
    distinct = pc.count_distinct(values).as_py()
    return distinct / present, values.nbytes * distinct // present


def _encoding_of(sample: AnyArray) -> str:
    """Return the encoding of values that do not repeat; empty for PLAIN."""
    kind = sample.type
    if is_text(kind):
        return "DELTA_BYTE_ARRAY" if _begin_alike(sample) else "DELTA_LENGTH_BYTE_ARRAY"
    is_short_decimal = pa.types.is_decimal128(kind) and kind.precision <= 18
    if pa.types.is_integer(kind) or pa.types.is_temporal(kind) or is_short_decimal:
        return "DELTA_BINARY_PACKED"
    return ""


def _begin_alike(sample: AnyArray) -> bool:
    """Try whether texts compress better without the prefix that they share with the one before.

    They do not if zstd finds longer matches with other texts than that prefix.
    """
    present = pc.indices_nonzero(sample.is_valid()).slice(0, _COMPARED_ROWS)
    few: Any = sample.take(present).cast(pa.large_binary())
    texts: list[bytes] = pc.binary_slice(few, 0, _COMPARED_BYTES).to_pylist()
    if len(texts) < 2:
        return False
    sizes = np.fromiter(map(len, texts), np.int16)
    letters = np.array(texts, f"S{max(sizes.max(), 1)}").view(np.uint8).reshape(len(texts), -1)
    same = np.logical_and.accumulate(letters[1:] == letters[:-1], axis=1).sum(axis=1)
    # Texts are padded with zeros, which do not count as shared.
    shared = np.zeros(len(texts), np.int16)
    shared[1:] = np.minimum(same, np.minimum(sizes[1:], sizes[:-1]))
    if shared.mean() < _SHARED_PREFIX:
        return False
    rests = [text[start:] for text, start in zip(texts, shared.tolist(), strict=True)]
    with_rests = _compressed(shared, sizes - shared, rests)
    return with_rests < _compressed(sizes, texts)


def _compressed(*parts: np.ndarray[Any, Any] | list[bytes]) -> int:
    """Return the bytes of numbers and texts together, compressed with zstd."""
    whole = b"".join(b"".join(part) if isinstance(part, list) else part.tobytes() for part in parts)
    return pa.compress(whole, codec="zstd").size
