"""Tags and partition values of many files by their names, as columns: one pass over all maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import arrow_array, numpy_array
from variantlake.delta.stats.columns.json_members import StringColumn, texts_of
from variantlake.delta.stats.file_texts import packed
from variantlake.kernels.log.map_entries import find_entries
from variantlake.kernels.log.tag_texts import find_same
from variantlake.parquet.stats.fact_columns import Int64s

_SLOTS = 256
"""Of different layouts and notes of a table's files, which are few."""

_REPEATED = 4
"""From this many files of one text, in the middle, texts are worth keeping by their codes."""


@dataclass(frozen=True, slots=True)
class TagColumn:
    """The texts of one tag; `encoded` is an Arrow array of them, by codes, if the log has such."""

    texts: StringColumn
    encoded: Any = None

    def codes(self, code: Callable[[str | None], int]) -> Int64s:
        """Return the number that `code` gives to each text; few are different."""
        same = self._same()
        codes = np.full(len(same) + 1, code(None), np.int64)
        for row in np.flatnonzero(same == np.arange(len(same))).tolist():
            codes[row] = code((self.texts.text(row) or b"").decode())
        return codes[same]

    def _same(self) -> Int64s:
        """Return the first row with the text of each row, -1 without a text."""
        same = np.full(len(self.texts.starts), -1, np.int64)
        if self.encoded is None:
            find_same(self.texts, np.full(_SLOTS, -1, np.int64), same)
            return same
        there = np.flatnonzero(self.texts.starts >= 0)
        codes = numpy_array(self.encoded.indices)[there]
        first = np.full(len(self.encoded.dictionary), -1, np.int64)
        first[codes[::-1]] = there[::-1]
        same[there] = first[codes]
        return same

    def packed(self) -> Any:
        """Return the texts as `file_texts.packed`, which `unpacked` gives back."""
        few = self.encoded is not None and _REPEATED * len(self.encoded.dictionary) < len(
            self.encoded
        )
        return packed(self.encoded if few else self.texts.array())


def map_columns(maps: Any, names: Sequence[str]) -> dict[str, TagColumn]:
    """Return the values under each of these keys in an Arrow array of maps of strings.

    Keys and values may both be dictionary-encoded; the texts are not copied. If a map has a key
    more than once, any of its values may be returned.
    """
    if not len(maps.keys):
        empty = StringColumn(np.zeros(0, np.uint8), *2 * (np.full(len(maps), -1, np.int64),))
        return dict.fromkeys(names, TagColumn(empty))
    is_encoded = pa.types.is_dictionary(maps.type.key_type)
    places = (_encoded_places if is_encoded else _places)(maps, names)
    items, null = texts_of(maps.items), numpy_array(maps.is_null())
    columns = {}
    for name, at in zip(names, places, strict=True):
        starts = np.where((at >= 0) & ~null, items.starts[at], -1)
        texts = StringColumn(items.data, starts, items.ends[at])
        columns[name] = TagColumn(texts, _encoded(maps.items, at, starts) if is_encoded else None)
    return columns


def map_texts(maps: Any, name: str) -> tuple[list[str | None], Int64s]:
    """Return the different texts under a key, and for each map the number of its text, or -1.

    `maps` as in `map_columns`. A null under the key is a text, None. Of equal keys in one map it
    may be any of them.
    """
    codes = np.full(len(maps), -1, np.int64)
    if not len(maps.keys):
        return [], codes
    is_encoded = pa.types.is_dictionary(maps.type.key_type)
    (at,) = (_encoded_places if is_encoded else _places)(maps, [name])
    rows = np.flatnonzero((at >= 0) & ~numpy_array(maps.is_null()))
    texts: Any = maps.items.take(arrow_array(at[rows]))
    if not pa.types.is_dictionary(texts.type):
        texts = texts.dictionary_encode()
    null = len(texts.dictionary)
    used, numbers = np.unique(numpy_array(texts.indices, null), return_inverse=True)
    codes[rows] = numbers
    names: list[str | None] = [*texts.dictionary.to_pylist(), None]
    return [names[each] for each in used.tolist()], codes


def _places(maps: Any, names: Sequence[str]) -> list[Int64s]:
    """Return for each name the entry of each map with this key, -1 if there is none."""
    _, offsets, data = maps.keys.buffers()
    first, entries = maps.keys.offset, len(maps.keys)
    wanted = [name.encode() for name in names]
    found = np.empty(len(maps) * len(names), np.int64)
    find_entries(
        numpy_array(maps.offsets),
        np.frombuffer(data or b"", np.uint8),
        np.frombuffer(offsets, np.int32)[first : first + entries + 1],
        np.frombuffer(b"".join(wanted), np.uint8),
        np.cumsum([len(name) for name in wanted], dtype=np.int64),
        found,
    )
    return [found[number :: len(names)] for number in range(len(names))]


def _encoded_places(maps: Any, names: Sequence[str]) -> list[Int64s]:
    """Do the same as `_places` for dictionary-encoded keys."""
    keys: Any = pc.index_in(maps.keys.dictionary, arrow_array(names, pa.string()))
    wanted = numpy_array(keys, -1)
    offsets = numpy_array(maps.offsets)
    rows = np.repeat(np.arange(len(maps)), np.diff(offsets))
    number = wanted[numpy_array(maps.keys.indices[offsets[0] : offsets[-1]])]
    places = []
    for each in range(len(names)):
        entries = np.flatnonzero(number == each)
        at = np.full(len(maps), -1, np.int64)
        at[rows[entries]] = entries + offsets[0]
        places.append(at)
    return places


def _encoded(items: Any, at: Int64s, starts: Int64s) -> Any:
    codes = arrow_array(numpy_array(items.indices)[at], mask=starts < 0)
    return pa.DictionaryArray.from_arrays(codes, items.dictionary)
