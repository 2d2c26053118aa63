"""The plain Arrow types that files are read as and written from, whatever form the rows came in.

A file may say that its texts are views (delta-rs's do): filters and sorts of pyarrow refuse them,
so a reader gives texts.

pyarrow's Parquet writer counts as null of a dictionary inside of a struct what the indices say, and
not the rows whose struct is null: a footer with that count misleads its readers. Views of texts it
cannot slice. Lists have 32-bit offsets, for a file has one form of them.
"""

from __future__ import annotations

import pyarrow as pa

from variantlake.shredding import layout
from variantlake.shredding.arrays import AnyArray, map_leaves, map_types

_PLAIN: dict[pa.DataType, pa.DataType] = {
    pa.string_view(): pa.string(),
    pa.binary_view(): pa.binary(),
}


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type that a column is written from: a dictionary may stay if nothing is around it."""
    return kind if isinstance(kind, pa.DictionaryType) else map_types(kind, _plain_leaf)


def plain_array(array: AnyArray) -> AnyArray:
    """The array in its `plain_type`."""
    return array if plain_type(array.type) == array.type else map_leaves(array, _plain)


def viewless_type(kind: pa.DataType) -> pa.DataType:
    """The type with texts for views of texts. One without views stays as it is."""
    views: list[pa.DataType] = []

    def changed(leaf: pa.DataType) -> pa.DataType:
        views.extend([leaf] if leaf in _PLAIN else [])
        return _PLAIN.get(leaf, leaf)

    plain = map_types(kind, changed)
    return plain if views else kind


def viewless_array(array: AnyArray) -> AnyArray:
    """The array in its `viewless_type`."""
    return array if viewless_type(array.type) == array.type else map_leaves(array, _viewless)


def _viewless(array: AnyArray) -> AnyArray:
    plain = _PLAIN.get(array.type)
    return array if plain is None else array.cast(plain)


def _plain_leaf(kind: pa.DataType) -> pa.DataType:
    """The type of `_plain` leaves."""
    values = layout.plain_type(kind)
    return _PLAIN.get(values, values)


def _plain(array: AnyArray) -> AnyArray:
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    return _viewless(array)
