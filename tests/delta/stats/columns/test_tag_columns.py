"""Entries that are read of all maps at once are those of each map."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import MORE
from variantlake.delta.log.files.logical_files import STRING_MAP
from variantlake.delta.stats.columns.tag_columns import map_columns, map_texts
from variantlake.delta.stats.file_texts import unpacked

_TEXT = pa.dictionary(pa.int32(), pa.string())
ENCODED = pa.map_(_TEXT, _TEXT)
NAMES = ["a", "b", "ab", "é", ""]


@settings(max_examples=50 * MORE, deadline=None)
@given(
    maps=st.lists(
        st.none() | st.dictionaries(st.sampled_from([*NAMES, "x", "y"]), st.none() | st.text())
    ),
    cut=st.integers(0, 3),
    is_encoded=st.booleans(),
)
def test_entries_of_all_maps_are_those_of_each(
    maps: list[dict[str, str | None] | None], cut: int, is_encoded: bool
) -> None:
    rows = [None if each is None else list(each.items()) for each in maps]
    array: Any = pa.array(rows, ENCODED if is_encoded else STRING_MAP).slice(cut)
    columns = map_columns(array, NAMES)
    for name in NAMES:
        wanted = [(each or {}).get(name) for each in maps[cut:]]
        assert columns[name].texts.array().to_pylist() == wanted
        assert unpacked(columns[name].packed()).to_pylist() == wanted
        texts, codes = map_texts(array, name)
        present = [each is not None and name in each for each in maps[cut:]]
        assert (codes >= 0).tolist() == present
        assert [texts[code] for code in codes.tolist() if code >= 0] == [
            text for text, there in zip(wanted, present, strict=True) if there
        ]
        numbers = {text: number for number, text in enumerate(dict.fromkeys([*wanted, None]))}
        assert columns[name].codes(numbers.__getitem__).tolist() == [numbers[w] for w in wanted]
