"""Which files are ordered: the plan alone, on boxes that tests make up."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import MORE
from variantlake.maintenance.clustering.boxes import Boxes
from variantlake.maintenance.clustering.choose import choose
from variantlake.maintenance.clustering.overlap import overlapping, overlaps
from variantlake.maintenance.rewrite.cells import cells_of
from variantlake.writing.sort_rows import SortKey

MB = 1 << 20


def boxes(*ranges: tuple[tuple[int, int], ...]) -> Boxes:
    """A box a file, each a range of slots for each path."""
    table = np.array(ranges, np.int64)
    return Boxes(table[:, :, 0], table[:, :, 1])


def line(*ranges: tuple[int, int]) -> Boxes:
    """Boxes along one path."""
    return boxes(*((each,) for each in ranges))


def test_files_that_meet_in_one_value_do_not_overlap() -> None:
    assert overlapping(line((0, 4), (4, 8), (8, 8), (8, 8), (8, 12))).tolist() == [False] * 5
    assert overlapping(line((0, 4), (2, 2), (3, 6))).tolist() == [True, True, True]
    assert overlapping(line((0, 4), (4, 4), (5, 6))).tolist() == [False] * 3


def test_files_of_one_value_overlap_where_another_path_does() -> None:
    same_kind = boxes(((2, 2), (0, 6)), ((2, 2), (4, 8)), ((4, 4), (0, 8)))
    assert overlapping(same_kind).tolist() == [True, True, False]


slots = st.integers(0, 12)
spans = st.tuples(slots, slots).map(lambda pair: (min(pair), max(pair)))


@settings(max_examples=30 * MORE, deadline=None)
@given(st.lists(spans, min_size=2, max_size=12))
def test_the_sweep_of_one_path_equals_the_comparison_of_all_pairs(
    ranges: list[tuple[int, int]],
) -> None:
    made = line(*ranges)
    pairs = overlaps(made, np.arange(made.files)).any(axis=1)
    assert overlapping(made).tolist() == pairs.tolist()


@settings(max_examples=40 * MORE, deadline=None)
@given(
    st.lists(st.tuples(spans, spans, st.integers(1, 200)), min_size=2, max_size=14),
    st.integers(0, 2000),
    st.booleans(),
)
def test_the_budget_holds_and_chosen_files_overlap(
    given_files: list[tuple[tuple[int, int], tuple[int, int], int]], budget: int, one: bool
) -> None:
    made = boxes(*((a,) if one else (a, b) for a, b, _ in given_files))
    sizes = np.array([size * MB for _, _, size in given_files], np.int64)
    groups = choose(made, sizes, budget * MB, 64 * MB)
    rows = np.concatenate(groups) if groups else np.zeros(0, np.int64)
    assert len(set(rows.tolist())) == len(rows)
    assert sizes[rows].sum() <= budget * MB
    for group in groups:
        assert len(group) > 1
        assert overlapping(made.take(group)).any()


def test_new_files_come_before_those_that_were_ordered() -> None:
    old = [(4 * n, 4 * n + 2) for n in range(40)]
    new = [(0, 158)] * 2
    made = line(*old, *new)
    sizes = np.full(42, 128 * MB, np.int64)
    (group,) = choose(made, sizes, 4 * 128 * MB, 128 * MB)
    assert {40, 41} <= set(group.tolist())
    assert len(group) <= 4


@pytest.mark.parametrize("paths", [1, 2, 3])
def test_cells_hold_about_as_many_rows_and_do_not_overlap(paths: int) -> None:
    random = np.random.default_rng(paths)
    names = [f"k{n}" for n in range(paths)]
    columns = [pa.array(random.integers(0, 10**6, 4000)) for _ in names]
    cells = cells_of(tuple(map(SortKey, names)), columns, 7, 2)
    assert cells.count == 14
    batch = pa.record_batch(columns, names=names)
    found = dict(cells.assign(batch))
    assert sum(map(len, found.values())) == 4000
    of_file = ([n for n in range(14) if cells.file_of[n] == file] for file in range(7))
    by_file = [np.concatenate([found[number] for number in numbers]) for numbers in of_file]
    assert max(map(len, by_file)) < 1.3 * min(map(len, by_file))
    values = np.stack([np.asarray(each) for each in columns], axis=1)
    made = Boxes(
        np.stack([values[rows].min(axis=0) for rows in by_file]),
        np.stack([values[rows].max(axis=0) for rows in by_file]),
    )
    assert not overlapping(made).any()


def test_equal_values_share_a_cell_and_null_lies_last() -> None:
    column = pa.array(["b"] * 90 + ["a"] * 5 + [None] * 5)
    cells = cells_of((SortKey("k"),), [column], 4)
    found = dict(cells.assign(pa.record_batch([column], names=["k"])))
    values = [{column[place].as_py() for place in found[n].tolist()} for n in sorted(found)]
    assert values == [{"a"}, {"b"}, {None}]
    constant = pa.array([1, 1, 1])
    assert cells_of((SortKey("k"),), [constant], 4).count == 1


def test_nan_lies_with_null() -> None:
    column = pa.array([float("nan")] * 4 + [1.0, 2.0, 3.0, 4.0])
    cells = cells_of((SortKey("k"),), [column], 2)
    found = dict(cells.assign(pa.record_batch([column], names=["k"])))
    assert sorted(found[1].tolist()) == [0, 1, 2, 3]
