"""Combinations of columns' entries: what the rows hold, each column by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from variantlake.expressions.arrays import Values
from variantlake.expressions.tree import Ref
from variantlake.scan.files import combinations
from variantlake.scan.files.combinations import Combinations

ROWS = 30
column = st.lists(st.sampled_from("abc") | st.none(), min_size=ROWS, max_size=ROWS)


def encoded(rows: list[str | None]) -> Values:
    array: Any = pa.array(rows, pa.string())
    return Values(array.dictionary_encode())


def refs_of(columns: list[list[str | None]]) -> dict[Ref, Values]:
    return {Ref((f"c{at}",), None, "string"): encoded(rows) for at, rows in enumerate(columns)}


@pytest.mark.rule(38)
@settings(deadline=None)
@given(
    columns=st.lists(column, max_size=4),
    kept=st.lists(st.booleans(), min_size=ROWS, max_size=ROWS),
    data=st.data(),
)
def test_rule_38_combinations_hold_what_their_rows_hold(
    columns: list[list[str | None]], kept: list[bool], data: st.DataObject
) -> None:
    asked = refs_of(columns)
    found = Combinations.of(asked, ROWS)
    assert found is not None
    codes = found.codes.tolist()
    for ref, rows in zip(asked, columns, strict=True):
        texts = found.columns[ref].array.to_pylist()
        assert len(texts) == found.count
        assert [texts[code] for code in codes] == rows
    left = np.array(kept)
    counts = [0] * found.count
    for code, each in zip(codes, kept, strict=True):
        counts[code] += each
    assert found.rows(left).tolist() == counts
    chosen = np.array(
        data.draw(st.lists(st.booleans(), min_size=found.count, max_size=found.count))
    )
    only = found.only(chosen, left)
    assert only.tolist() == [each and chosen[code] for code, each in zip(codes, kept, strict=True)]
    assert left.tolist() == kept


def test_many_values_are_no_combinations() -> None:
    many: list[str | None] = [str(number) for number in range(combinations.MOST - 1)]
    assert Combinations.of(refs_of([many]), len(many)) is not None
    assert Combinations.of(refs_of([[*many, "one more"]]), len(many) + 1) is None
    assert Combinations.of(refs_of([many, ["a"] * len(many)]), len(many)) is None


def test_values_that_are_not_encoded_or_fail_are_no_combinations() -> None:
    ref = Ref(("c",), None, "string")
    assert Combinations.of({ref: Values(pa.array(["a", "b"]))}, 2) is None
    failed = Values(encoded(["a", None]).array, np.array([False, True]))
    assert Combinations.of({ref: failed}, 2) is None
