"""Convert Arrow arrays to the plain types in which files are read and written.

The schema in a file may ask for view types (delta-rs's does), which pyarrow cannot filter or sort,
so readers replace them by strings and binaries.

For a dictionary in a struct, pyarrow's Parquet writer counts the nulls of the indices and not the
rows whose struct is null, so the null count in the footer would be wrong. It also cannot slice
views. Lists get 32-bit offsets, since files have only one form of lists.
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
    """Return the type for writing a column. A dictionary stays if the column itself is one."""
    return kind if isinstance(kind, pa.DictionaryType) else map_types(kind, _plain_leaf)


def plain_array(array: AnyArray) -> AnyArray:
    """Convert an array to its `plain_type`."""
    return array if plain_type(array.type) == array.type else map_leaves(array, _plain)


def viewless_type(kind: pa.DataType) -> pa.DataType:
    """Replace view types by plain ones. A type without views is returned as it is."""
    views: list[pa.DataType] = []

    def changed(leaf: pa.DataType) -> pa.DataType:
        views.extend([leaf] if leaf in _PLAIN else [])
        return _PLAIN.get(leaf, leaf)

    plain = map_types(kind, changed)
    return plain if views else kind


def viewless_array(array: AnyArray) -> AnyArray:
    """Convert an array to its `viewless_type`."""
    return array if viewless_type(array.type) == array.type else map_leaves(array, _viewless)


def _viewless(array: AnyArray) -> AnyArray:
    plain = _PLAIN.get(array.type)
    return array if plain is None else array.cast(plain)


def _plain_leaf(kind: pa.DataType) -> pa.DataType:
    """Return the type that `_plain` gives to leaves."""
    values = layout.plain_type(kind)
    return _PLAIN.get(values, values)


def _plain(array: AnyArray) -> AnyArray:
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    return _viewless(array)
