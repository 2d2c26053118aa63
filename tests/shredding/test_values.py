"""Notes about the values of a shredded column: of several parts together, and as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from variantlake.paths import Path
from variantlake.shredding.values import (
    AS_STORED,
    INTEGERS,
    SHORTEST,
    NumberForms,
    ValueNotes,
    decode_notes,
    parse_notes,
)

A, B, ELEMENT = Path.of("a"), Path.of("b"), Path.of("c", 0, "d")

NOTES = st.builds(
    ValueNotes,
    st.booleans(),
    st.frozensets(st.sampled_from([A, B, ELEMENT])),
    st.frozensets(st.sampled_from([A, B, ELEMENT])),
    st.frozensets(st.sampled_from([A, B, ELEMENT])),
)


@pytest.mark.rule(33)
def test_integers_are_told_apart_where_no_decimal_looks_like_one() -> None:
    notes = ValueNotes(integers=frozenset({A, B}), whole=frozenset({B, ELEMENT}))
    assert notes.told_apart == {A}
    # Rows of another batch may have what these have not.
    assert notes.merge(ValueNotes(whole=frozenset({A}))).told_apart == frozenset()
    assert ValueNotes(whole=frozenset({A})).merge(notes).told_apart == frozenset()


def test_decimals_keep_the_scale_of_their_column_where_one_of_them_ends_in_a_zero() -> None:
    notes = ValueNotes(integers=frozenset({A, B, ELEMENT}), whole=frozenset({B}))
    padded = notes.merge(ValueNotes(padded=frozenset({A, B})))
    assert padded.forms == NumberForms(shortest=frozenset({ELEMENT}), integers=frozenset({A}))
    assert [padded.forms.of(path) for path in (A, B, ELEMENT)] == [INTEGERS, AS_STORED, SHORTEST]
    assert padded.forms.below(("c", 0)) == NumberForms(shortest=frozenset({Path.of("d")}))


def test_notes_of_two_sets_do_not_say_which_decimals_look_like_integers() -> None:
    """As they were written before these were told from those that only end in a zero."""
    notes = parse_notes('[0,[["a"],["b"]],[["b"]]]')
    assert notes is not None
    assert notes.told_apart == {A}
    assert notes.forms == NumberForms(shortest=frozenset({A}))


@given(NOTES, NOTES)
def test_notes_of_two_parts_hold_for_both(one: ValueNotes, other: ValueNotes) -> None:
    both = one.merge(other)
    assert both == other.merge(one)
    assert both.lacking == (one.lacking or other.lacking)
    assert both.integers == one.integers | other.integers
    for part in (one, other):
        assert both.told_apart.isdisjoint(part.whole)
        assert both.forms.shortest.isdisjoint(part.padded)


@given(NOTES)
def test_what_notes_tell_comes_back(notes: ValueNotes) -> None:
    found = parse_notes(json.dumps(notes.encode()))
    assert found is not None
    assert (found.lacking, found.integers) == (notes.lacking, notes.integers)
    assert found.told_apart == notes.told_apart
    assert found.forms == notes.forms


@pytest.mark.parametrize(
    "given",
    [None, 1, [], [0], [4, [], []], [0, [], [], [], []], [0, [], [], {}], [0, {}, []],
     [0, ["a"], []],
     [0, [[1.5]], []],
     [0, [], [[None]]], [0, [[True]], []]],
)  # fmt: skip
def test_notes_that_make_no_sense_count_as_absent(given: Any) -> None:
    assert decode_notes(given) is None
    assert parse_notes(json.dumps(given)) is None


def test_a_text_that_is_no_json_counts_as_absent() -> None:
    assert parse_notes("[0,") is None
    assert parse_notes(None) is None
