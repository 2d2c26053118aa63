"""What the log alone answers, against brute force: rows that are left, counted one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.planning import model
from tests.planning.builders import between, facts, file, lit, path
from tests.planning.model import Row
from tests.planning.stats.test_soundness import (
    PARTITION_TYPES,
    PREDICATES,
    REFS,
    VARIANT_REFS,
    files,
    one_path,
)
from tests.strategies import MORE
from variantlake.delta.actions.actions import DeletionVectorDescriptor
from variantlake.expressions.tree import Compare, IsNull, Not, Predicate, Ref, refs
from variantlake.parquet.stats.bounds import Bounds
from variantlake.parquet.stats.facts import ColumnFacts
from variantlake.planning.files import RecordFiles, ScanFile
from variantlake.planning.stats.exact_facts import ExactFacts, KnownFiles, LogAggregate

COUNTED = LogAggregate("count")
DAY = Ref(("day",), None, "date")


def deleted(count: int) -> DeletionVectorDescriptor | None:
    return DeletionVectorDescriptor("i", "", 1, count) if count else None


def known(
    scan: ScanFile,
    predicate: Predicate | None,
    *aggregates: LogAggregate,
    keys: tuple[Ref, ...] = (),
) -> KnownFiles:
    return ExactFacts(RecordFiles([scan]), PARTITION_TYPES).answerable(predicate, aggregates, keys)


def same(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return bool(model.compare("=", one, other))


def check(
    scan: ScanFile, rows: list[Row], left: list[Row], predicate: Predicate | None, ref: Ref
) -> None:
    """Each aggregate alone: what is answered is what the rows that are left say."""
    scan = replace(scan, vector=deleted(len(rows) - len(left)))
    values = [value for row in left if (value := model.operand(row, ref)) is not None]
    for function in ("count", "min", "max"):
        if function != "count" and ref.type in ("variant", "boolean"):
            continue
        found = known(scan, predicate, LogAggregate(function, ref), COUNTED)
        if not len(found.answered):
            continue
        assert predicate is None or all(model.evaluate(predicate, row) is True for row in left)
        ((value, count),) = found.values
        assert count == len(left)
        if function == "count":
            assert value == len(values)
            continue
        side = "<" if function == "min" else ">"
        assert (value is None) == (not values)
        assert all(not model.compare(side, each, value) for each in values)
        assert not values or any(same(each, value) for each in values)
    found = known(scan, predicate, keys=(ref,))
    if len(found.answered) and ref.type != "variant":
        ((key,),) = found.keys
        assert all(same(model.operand(row, ref), key) for row in left)


@pytest.mark.rule(23)
@settings(max_examples=200 * MORE, deadline=None)
@given(
    made=files(),
    predicate=st.none() | PREDICATES,
    ref=REFS | VARIANT_REFS,
    gone=st.lists(st.booleans(), min_size=4, max_size=4),
    whole=st.booleans(),
)
def test_rule_23_what_the_log_answers_is_what_the_rows_that_are_left_say(
    made: tuple[ScanFile, list[Row]],
    predicate: Predicate | None,
    ref: Ref,
    gone: list[bool],
    whole: bool,
) -> None:
    scan, rows = made
    left = [row for row, away in zip(rows, gone, strict=False) if whole or not away]
    check(scan, rows, left, predicate, ref)


@pytest.mark.rule(23)
@settings(max_examples=200 * MORE, deadline=None)
@given(case=one_path(), gone=st.lists(st.booleans(), min_size=3, max_size=3), whole=st.booleans())
def test_rule_23_one_typed_path_is_answered_as_its_rows_say(
    case: tuple[Any, list[Row], Predicate], gone: list[bool], whole: bool
) -> None:
    known_facts, rows, predicate = case
    left = [row for row, away in zip(rows, gone, strict=False) if whole or not away]
    part = predicate.term if isinstance(predicate, Not) else predicate
    ref = next(iter(refs(part)))
    check(ScanFile("part", 1, known_facts), rows, left, None, ref)
    check(ScanFile("part", 1, known_facts), rows, left, predicate, ref)


def test_counts_and_bounds_of_a_clean_path_are_answered() -> None:
    ref = path("$.a")
    scan = file("f", between("BIGINT", 2, 7, typed=9, nulls=1))
    wanted = [COUNTED, LogAggregate("count", ref), LogAggregate("min", ref)]
    found = known(scan, None, *wanted, LogAggregate("max", ref))
    assert found.values == ((10, 9, 2, 7),)
    assert known(scan, Compare(">=", ref, lit(2)), COUNTED).values == ()  # a row has none
    every = file("f", between("BIGINT", 2, 7))
    assert known(every, Compare(">=", ref, lit(2)), COUNTED).values == ((10,),)
    nothing = known(every, Compare(">", ref, lit(7)), COUNTED)
    assert (len(nothing.answered), len(nothing.read)) == (0, 0)


@pytest.mark.rule(9)
def test_rule_9_a_path_with_residuals_is_read() -> None:
    ref = path("$.a")
    for own in ({"residuals": 1}, {"residuals": -1}, {"typed": -1}):
        scan = file("f", between("BIGINT", 2, 7, **own))
        for function in ("count", "min", "max"):
            assert known(scan, None, LogAggregate(function, ref)).read.tolist() == [0]


@pytest.mark.rule(21)
def test_rule_21_a_cut_string_is_no_minimum() -> None:
    ref = path("$.a", "string")
    whole, cut = between("STRING", "a", "c"), between("STRING", "a", "c", minimum_exact=False)
    assert known(file("f", whole), None, LogAggregate("min", ref)).values == (("a",),)
    assert known(file("f", cut), None, LogAggregate("min", ref)).values == ()
    padded = replace(Ref(("c",), None, "string"), char_length=3)
    column = ColumnFacts(
        ("c",), pa.string(), 0, Bounds("a", "b", minimum_exact=True, maximum_exact=True)
    )
    scan = file("f", facts("z INT", columns=(column,)))
    assert known(scan, None, LogAggregate("min", padded)).values == ()


@pytest.mark.rule(21)
def test_rule_21_strings_between_equal_bounds_are_that_one_whether_or_not_these_were_cut() -> None:
    ref, cut = path("$.a", "string"), {"minimum_exact": False, "maximum_exact": False}
    for high, nulls, answered in (("a", 0, True), ("b", 0, False), ("a", 1, False)):
        scan = file("f", between("STRING", "a", high, typed=10 - nulls, nulls=nulls, **cut))
        found = known(scan, None, LogAggregate("min", ref), keys=(ref,))
        assert found.keys == ((("a",),) if answered else ())
        assert found.values == found.keys
    padded = replace(Ref(("c",), None, "string"), char_length=3)
    scan = file(
        "f", facts("z INT", columns=(ColumnFacts(("c",), pa.string(), 0, Bounds("a", "a")),))
    )
    assert known(scan, None, COUNTED, keys=(padded,)).keys == ()


@pytest.mark.rule(22)
def test_rule_22_bounds_of_timestamps_are_no_values() -> None:
    ref = path("$.a", "timestamp")
    assert known(file("f", between("TIMESTAMP", 5, 9)), None, LogAggregate("max", ref)).values == ()


@pytest.mark.rule(8)
def test_rule_8_bounds_of_floats_are_values_where_nan_and_minus_zero_are_not() -> None:
    ref = path("$.a", "double")
    plain = between("DOUBLE", -0.0, 2.5, plain_floats=True)
    ((low,),) = known(file("f", plain), None, LogAggregate("min", ref)).values
    assert str(low) == "0.0"
    unsure = between("DOUBLE", -0.0, 2.5)
    assert known(file("f", unsure), None, LogAggregate("max", ref)).values == ()


@pytest.mark.rule(23)
def test_rule_23_deleted_rows_take_certainty_from_counts_and_bounds() -> None:
    ref = path("$.a")
    scan = replace(file("f", between("BIGINT", 2, 7, typed=9, nulls=1)), vector=deleted(4))
    assert known(scan, None, COUNTED).values == ((6,),)
    for function in ("count", "min", "max"):
        assert known(scan, None, LogAggregate(function, ref)).values == ()
    every = replace(file("f", between("BIGINT", 7, 7)), vector=deleted(4))
    wanted = [LogAggregate("count", ref), LogAggregate("min", ref)]
    assert known(every, None, *wanted, keys=(ref,)).values == ((6, 7),)
    empty = replace(file("f", between("BIGINT", 2, 7)), vector=deleted(10))
    found = known(empty, None, *wanted)
    assert (len(found.answered), len(found.read)) == (0, 0)


def test_an_impossible_number_of_deleted_rows_is_no_count() -> None:
    scan = replace(file("f", between("BIGINT", 2, 7)), vector=deleted(11))
    assert known(scan, None, COUNTED).read.tolist() == [0]


@pytest.mark.parametrize(("day", "keys"), [("2024-01-01", ((19723,),)), ("", ((None,),))])
def test_a_partition_column_is_a_key_of_its_files(day: str, keys: Any) -> None:
    scan = replace(file("f", facts("z INT")), partition={"day": day}, vector=deleted(3))
    found = known(scan, None, COUNTED, LogAggregate("count", DAY), keys=(DAY,))
    assert (found.keys, found.values) == (keys, ((7, 7 if day else 0),))
    assert known(scan, IsNull(DAY), COUNTED).values == (() if day else ((7,),))
