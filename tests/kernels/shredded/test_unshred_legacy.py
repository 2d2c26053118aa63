"""The compiled reader of the older layout against the plain one: same values, same errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shredding.legacy_columns import (
    EXAMPLE,
    NESTED,
    column,
    groups,
    leaf,
    rows_of,
    type_of,
    untyped,
    untyped_tree,
)
from tests.shredding.strategies import trees
from tests.strategies import MORE
from variantlake.encoding.tree import Tree, decode
from variantlake.errors import VariantLakeError
from variantlake.kernels.shredded.unshred_legacy import unshred_legacy
from variantlake.shredding.legacy.unshred import unshred_legacy_plain


def outcome(read: Any, array: pa.StructArray) -> object:
    """The rows as trees of exact types, or all that there is to know of the error."""
    try:
        result = read(array)
    except VariantLakeError as error:
        return type(error), error.message, error.row, error.path, error.offset
    result.validate(full=True)
    rows = result.to_pylist()
    # As text, in which NaN is NaN and -0.0 is not 0.0.
    return [None if row is None else _text(decode(row["metadata"], row["value"])) for row in rows]


def _text(tree: Tree) -> str:
    if isinstance(tree, dict):
        return f"{{{', '.join(f'{k!r}: {_text(tree[k])}' for k in sorted(tree))}}}"
    return f"[{', '.join(map(_text, tree))}]" if isinstance(tree, list) else repr(tree)


def check(array: pa.StructArray) -> None:
    assert outcome(unshred_legacy, array) == outcome(unshred_legacy_plain, array)


UNTYPED = trees.map(untyped_tree)
HOSTILE = st.sampled_from(
    [b"", b"\x01", b"\x01\x00\x00", b"\x01\x00\x00\x00\x00", b"\x01\x01\x00\x63hi\x00", bytes(9)]
) | st.binary(max_size=12)


@st.composite
def columns(draw: st.DrawFn, values: st.SearchStrategy[bytes], *, valid: bool) -> pa.StructArray:
    group = draw(groups())
    rows = draw(st.lists(rows_of(group, values, valid=valid), max_size=6))
    times = draw(st.sampled_from([1, 1, 32]))
    return column(type_of(group), rows * times)


@settings(max_examples=40 * MORE)
@given(columns(UNTYPED, valid=True), st.integers(0, 3))
def test_valid_columns_read_as_the_twin_reads_them(array: pa.StructArray, start: int) -> None:
    check(array)
    check(array.slice(start, max(len(array) - 2 * start, 0)))


@settings(max_examples=40 * MORE)
@given(columns(UNTYPED | HOSTILE, valid=False))
def test_any_columns_are_read_or_refused_as_by_the_twin(array: pa.StructArray) -> None:
    check(array)


GOOD = {
    "array": [
        {
            "untyped_value": untyped({"z": ["x"]}),
            "object": {"a": {"array": [{"typed_value": 1}, {"untyped_value": untyped("q")}]}},
        },
        {"untyped_value": untyped("no object")},
    ]
}


def test_good_rows_need_no_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    array = column(NESTED, [GOOD, None, {}, {"untyped_value": untyped({"a": 1})}])
    expected = outcome(unshred_legacy_plain, array)
    monkeypatch.delattr("variantlake.kernels.shredded.unshred_legacy.unshred_legacy_plain")
    assert outcome(unshred_legacy, array) == expected


@pytest.mark.parametrize(
    "bad",
    [
        {"typed_value": 7, "untyped_value": untyped(7)},
        {"untyped_value": b"\x01\x00\x00"},
        {"untyped_value": b"\x01\x00\x00\x14\x01"},
    ],
)
def test_a_bad_row_among_many_is_named(bad: dict[str, object]) -> None:
    array = column(leaf(pa.int64()), [{"typed_value": 1}] * 70 + [bad])
    with pytest.raises(VariantLakeError) as error:
        unshred_legacy(array)
    assert error.value.row == 70
    check(array)


def test_odd_rows_among_many_are_read_by_the_twin() -> None:
    odd = [
        {"untyped_value": untyped({"a": 5}), "object": {"a": {"typed_value": 6}}},
        {"untyped_value": untyped({"a": 5, "b": {"c": 7}})},
        {"object": {"a": {"typed_value": 6, "untyped_value": untyped(None)}}},
        {"untyped_value": untyped({"b": 5}), "object": {}},
        {},
    ]
    array = column(EXAMPLE, [{"object": {"a": {"typed_value": 1}}}] * 200 + odd)
    check(array)


def test_many_different_keys_do_not_pile_up_in_each_row() -> None:
    rows = [{"untyped_value": untyped({f"key {i} {j}": j for j in range(3)})} for i in range(400)]
    array = column(EXAMPLE, rows)
    check(array)
    sizes = [len(row["metadata"].as_py()) for row in unshred_legacy(array)]
    assert np.mean(sizes) < 100


def test_dictionaries_that_are_too_large_for_all_rows_are_divided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("variantlake.kernels.shredded.unshred_legacy._DICTIONARIES_BYTES", 4000)
    test_many_different_keys_do_not_pile_up_in_each_row()


def test_hostile_metadata_costs_what_it_weighs() -> None:
    huge = b"\xc1\xff\xff\xff\x7f" + bytes(64)
    array = column(leaf(pa.int64()), [{"typed_value": 1}] * 100 + [{"untyped_value": huge}])
    check(array)


def test_a_type_of_a_later_version_is_refused_as_by_the_twin() -> None:
    later = b"\x01\x00\x00" + b"\xfc"
    array = column(EXAMPLE, [{"object": {"b": {"untyped_value": later}}}] * 2)
    check(array)
