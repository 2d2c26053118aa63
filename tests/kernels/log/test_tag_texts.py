"""Tags of many files compared by compiled code: as Python compares them one by one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import MORE
from variantlake.delta.stats.columns.json_members import texts_of
from variantlake.kernels.log.tag_texts import find_same, match_marks

NUMBERS = st.sampled_from([0, 1, 7, 10, 50_000, 10**17, 10**18 - 1, -1])
MARKS = st.sampled_from(["", ":", "1", "1:", ":1", "01:1", "1:01", "1:1 ", "-1:1", "1:1:1", "x:1"])


@settings(max_examples=100 * MORE, deadline=None)
@given(rows=st.lists(st.tuples(NUMBERS, NUMBERS, st.none() | st.just("=") | MARKS)))
def test_a_mark_is_the_size_and_the_rows_in_their_own_digits(
    rows: list[tuple[int, int, str | None]],
) -> None:
    texts = [f"{size}:{count}" if text == "=" else text for size, count, text in rows]
    good = np.full(len(rows), 2, np.uint8)
    sizes, counts = (np.array([row[at] for row in rows], np.int64) for at in (0, 1))
    found = match_marks(texts_of(pa.array(texts, pa.string())), sizes, counts, good)
    wanted = [
        int(text == f"{size}:{count}" and size >= 0 and count >= 0)
        for text, (size, count, _) in zip(texts, rows, strict=True)
    ]
    assert good.tolist() == wanted
    assert found == sum(wanted)


@settings(max_examples=100 * MORE, deadline=None)
@given(texts=st.lists(st.none() | st.text("ab", max_size=20)), slots=st.sampled_from([1, 2, 256]))
def test_the_same_text_is_found_in_an_earlier_row(texts: list[str | None], slots: int) -> None:
    same = np.empty(len(texts), np.int64)
    fresh = find_same(texts_of(pa.array(texts, pa.string())), np.full(slots, -1, np.int64), same)
    assert [None if row < 0 else texts[row] for row in same.tolist()] == texts
    assert all(row <= at for at, row in enumerate(same.tolist()))
    assert fresh == sum(row == at for at, row in enumerate(same.tolist()))
    if len(set(texts)) == 1 and texts[0] is not None:
        assert fresh == 1
