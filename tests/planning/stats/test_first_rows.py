"""What a LIMIT leaves out, against brute force: the rows of random files, sorted one by one."""

from __future__ import annotations

import functools
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.planning import model
from tests.planning.builders import between, facts, file, lit, path, plan_files, skipped
from tests.planning.model import Row
from tests.planning.stats.test_soundness import PARTITION_TYPES, PREDICATES, REFS, files, one_path
from tests.strategies import MORE
from variantlake.delta.actions.actions import DeletionVectorDescriptor
from variantlake.expressions.tree import Compare, IsNull, Not, Or, Predicate, Ref, refs
from variantlake.parquet.stats.bounds import Bounds
from variantlake.parquet.stats.facts import ColumnFacts, FileFacts
from variantlake.planning.files import ScanFile
from variantlake.planning.plan import ScanPlan
from variantlake.planning.stats.first_rows import FirstRows, Order, up_to

Made = list[tuple[ScanFile, list[Row]]]
ORDERS = [
    (descending, nulls_first) for descending in (False, True) for nulls_first in (False, True)
]


def without(scan: ScanFile, rows: list[Row], gone: int) -> tuple[ScanFile, list[Row]]:
    """The file with some of its first rows deleted, and the rows that are left."""
    count = min(gone, len(rows))
    vector = DeletionVectorDescriptor("i", "", 1, count) if count else None
    return replace(scan, vector=vector), rows[count:]


def sorted_by(order: Order, rows: list[Row]) -> list[Row]:
    def compare(one: Row, other: Row) -> int:
        left, right = model.operand(one, order.ref), model.operand(other, order.ref)
        if left is None or right is None:
            sign = (right is None) - (left is None)
            return sign if order.nulls_first else -sign
        sign = bool(model.compare(">", left, right)) - bool(model.compare("<", left, right))
        return -sign if order.descending else sign

    return sorted(rows, key=functools.cmp_to_key(compare))


def planned(made: Made, predicate: Predicate | None, first: FirstRows) -> ScanPlan:
    scans = [replace(scan, path=str(at)) for at, (scan, _) in enumerate(made)]
    return plan_files(scans, [], predicate, first=first, partition_types=PARTITION_TYPES)


def check(made: Made, predicate: Predicate | None, first: FirstRows) -> None:
    """Whatever is left out, sorting the rest gives the same first rows, and none that is alike."""
    plan = planned(made, predicate, first)
    read = {int(scan.path) for scan in plan.files}
    all_rows = [row for _, rows in made for row in rows]
    wanted = [row for row in all_rows if predicate is None or model.evaluate(predicate, row)]
    if first.order is None:
        left = [row for at in read for row in made[at][1]]
        kept = [row for row in left if predicate is None or model.evaluate(predicate, row)]
        assert len(kept) >= min(first.rows, len(wanted))
        return
    in_order = sorted_by(first.order, wanted)
    if first.order.sole:
        left = [row for at in read for row in made[at][1]]
        kept = [row for row in left if predicate is None or model.evaluate(predicate, row)]
        pairs = zip(in_order[: first.rows], sorted_by(first.order, kept), strict=False)
        assert len(kept) >= min(first.rows, len(wanted))
        assert all(alike(first.order.ref, one, other) for one, other in pairs)
        return
    matter = in_order[: first.rows]
    if matter:
        end = sorted_by(first.order, [matter[-1]])[0]
        matter += [row for row in in_order[first.rows :] if alike(first.order.ref, row, end)]
    for at, (_, rows) in enumerate(made):
        assert at in read or not any(row is each for row in rows for each in matter)
    assert plan.reach is None or all(model.evaluate(plan.reach, row) for row in matter)


def alike(ref: Ref, one: Row, other: Row) -> bool:
    left, right = model.operand(one, ref), model.operand(other, ref)
    return left is right if left is None or right is None else bool(model.compare("=", left, right))


FIRST = st.tuples(st.integers(0, 9), st.sampled_from(ORDERS))


@pytest.mark.rule(37)
@settings(max_examples=300 * MORE, deadline=None)
@given(
    made=st.lists(files(), min_size=1, max_size=4),
    predicate=st.none() | PREDICATES,
    ref=REFS,
    first=FIRST,
    gone=st.lists(st.integers(0, 3), min_size=4, max_size=4),
)
def test_rule_37_what_is_left_out_is_not_among_the_first_rows(
    made: Made,
    predicate: Predicate | None,
    ref: Ref,
    first: tuple[int, tuple[bool, bool]],
    gone: list[int],
) -> None:
    left = [without(scan, rows, count) for (scan, rows), count in zip(made, gone, strict=False)]
    for sole in (False, True):
        check(left, predicate, FirstRows(first[0], Order(ref, *first[1], sole=sole)))
    check(left, predicate, FirstRows(first[0]))


@pytest.mark.rule(37)
@settings(max_examples=300 * MORE, deadline=None)
@given(
    cases=st.lists(one_path(), min_size=1, max_size=5),
    first=FIRST,
    gone=st.lists(st.integers(0, 2), min_size=5, max_size=5),
    filtered=st.booleans(),
)
def test_rule_37_what_is_left_out_of_one_typed_path_is_not_among_the_first_rows(
    cases: list[tuple[FileFacts, list[Row], Predicate]],
    first: tuple[int, tuple[bool, bool]],
    gone: list[int],
    filtered: bool,
) -> None:
    made = [
        without(ScanFile("part", 1, known), rows, count)
        for (known, rows, _), count in zip(cases, gone, strict=False)
    ]
    predicate = cases[0][2]
    part = predicate.term if isinstance(predicate, Not) else predicate
    for sole in (False, True):
        order = Order(next(iter(refs(part))), *first[1], sole=sole)
        check(made, predicate if filtered else None, FirstRows(first[0], order))


def left_out(plan: ScanPlan) -> list[str]:
    return [name for name, _ in skipped(plan)]


@pytest.mark.rule(37)
def test_files_beyond_the_reach_of_enough_rows_are_left_out() -> None:
    ref = path("$.a")
    scans = [file(f"f{at}", between("BIGINT", 10 * at, 10 * at + 9)) for at in range(4)]
    up = plan_files(scans, [ref], first=FirstRows(11, Order(ref)))
    assert left_out(up) == ["f2", "f3"]
    assert str(up.reach) == "v:a::bigint <= 10"
    down = plan_files(scans, [ref], first=FirstRows(11, Order(ref, descending=True)))
    assert left_out(down) == ["f0", "f1"]
    assert str(down.reach) == "v:a::bigint >= 29"
    # The least value of a file is one of a row: nobody needs to know where the others lie.
    assert str(plan_files(scans, [ref], first=FirstRows(1, Order(ref))).reach) == "v:a::bigint <= 0"
    assert plan_files(scans, [ref], first=FirstRows(41, Order(ref))).reach is None
    everything = plan_files(scans, [ref], first=FirstRows(40, Order(ref)))
    assert (everything.reach, everything.first) == (None, None)  # it would leave nothing out


@pytest.mark.rule(37)
def test_nulls_count_where_they_come_first() -> None:
    ref = path("$.a")
    scans = [
        file("none", between("BIGINT", 0, 1, typed=0, nulls=10)),
        file("some", between("BIGINT", 0, 9, typed=5, nulls=5)),
        file("all", between("BIGINT", 5, 20)),
    ]
    for count, nulls_first, reach in (
        (15, True, "v:a::bigint IS NULL"),
        (20, True, "v:a::bigint <= 9 OR v:a::bigint IS NULL"),
        (2, False, "v:a::bigint <= 5"),
        (14, False, "v:a::bigint <= 20"),
        (16, False, None),
    ):
        plan = plan_files(scans, [ref], first=FirstRows(count, Order(ref, nulls_first=nulls_first)))
        assert str(plan.reach) == str(reach)


@pytest.mark.rule(37)
def test_of_nulls_that_come_first_by_the_only_term_any_will_do() -> None:
    ref = path("$.a")
    scans = [
        file("few", between("BIGINT", 0, 9, typed=7, nulls=3), size=10),
        file("many", between("BIGINT", 0, 9, typed=2, nulls=8), size=90),
        file("less", between("BIGINT", 0, 9, typed=2, nulls=8), size=80),
        file("none", between("BIGINT", 0, 9)),
        file("unknown", between("BIGINT", 0, 9, residuals=1)),
    ]
    by_key = Compare(">=", ref, lit(0))
    for count, order, condition, others in (
        (3, Order(ref, sole=True), None, ["many", "less", "none", "unknown"]),
        (4, Order(ref, sole=True), None, ["few", "many", "none", "unknown"]),
        (9, Order(ref, sole=True), None, ["few", "none", "unknown"]),
        (19, Order(ref, sole=True), None, ["none", "unknown"]),
        (20, Order(ref, sole=True), None, []),
        (4, Order(ref), None, ["none"]),
        (4, Order(ref, nulls_first=False, sole=True), None, []),
        (4, Order(ref, descending=True, sole=True), None, ["few", "many", "none", "unknown"]),
        (4, Order(ref, sole=True), by_key, []),
    ):
        plan = plan_files(scans, [ref], condition, first=FirstRows(count, order))
        assert left_out(plan) == others
    # Where every row is NULL nothing lies beyond the reach.
    scans = [file(f"f{at}", between("BIGINT", 0, 1, typed=0, nulls=10)) for at in range(3)]
    plan = plan_files(scans, [ref], first=FirstRows(11, Order(ref, sole=True)))
    assert (plan.reach, plan.read_files) == (None, 2)


@pytest.mark.rule(37)
def test_a_condition_on_the_key_leaves_no_nulls() -> None:
    ref = path("$.a")
    scans = [
        file("near", between("BIGINT", 0, 9)),
        file("nulls", between("BIGINT", 50, 59, typed=5, nulls=5)),
    ]
    for condition, others in (
        (Compare(">=", ref, lit(0)), ["nulls"]),
        (Not(IsNull(ref)), ["nulls"]),
        (Or((Compare(">=", ref, lit(0)), IsNull(ref))), []),
        (Compare("<=>", ref, lit(None)), ["near"]),
    ):
        plan = plan_files(scans, [ref], condition, first=FirstRows(1, Order(ref)))
        assert left_out(plan) == others


@pytest.mark.rule(22)
@pytest.mark.parametrize("type_", ["TIMESTAMP", "TIMESTAMP_NTZ"])
def test_rule_22_a_row_lies_a_millisecond_within_the_bounds_of_times(type_: str) -> None:
    ref = path("$.a", type_.lower())
    scans = [file(f"f{at}", between(type_, 10**7 * at, 10**7 * at + 5)) for at in range(3)]
    plan = plan_files(scans, [ref], first=FirstRows(1, Order(ref)))
    assert left_out(plan) == ["f1", "f2"]
    scans = [file(f"f{at}", between(type_, at, 10**9)) for at in range(3)]
    plan = plan_files(scans, [ref], first=FirstRows(1, Order(ref)))
    assert "00:00:00.001" in str(plan.reach)
    plan = plan_files(scans, [ref], first=FirstRows(1, Order(ref, descending=True)))
    assert "00:16:39.999" in str(plan.reach)


@pytest.mark.rule(37)
def test_what_is_not_known_for_certain_has_no_reach() -> None:
    ref = path("$.a")
    near, far = between("BIGINT", 0, 9), between("BIGINT", 50, 59)

    def leaves_out(first: FileFacts, order: Order | None = None, gone: int = 0) -> list[str]:
        scans = [file("near", first), file("far", far)]
        vector = DeletionVectorDescriptor("i", "", 1, gone) if gone else None
        scans[0] = replace(scans[0], vector=vector)
        return left_out(plan_files(scans, [ref], first=FirstRows(8, order or Order(ref))))

    assert leaves_out(near) == ["far"]
    assert leaves_out(near, gone=2) == ["far"]
    assert leaves_out(near, gone=3) == []
    assert leaves_out(replace(near, num_records=-1)) == []  # rows that nobody counted
    assert leaves_out(between("BIGINT", 0, None)) == []
    last = Order(ref, nulls_first=False)
    assert leaves_out(between("BIGINT", 0, 9, typed=8, nulls=2), last) == ["far"]
    assert leaves_out(between("BIGINT", 0, 9, residuals=1), last) == []
    assert leaves_out(between("BIGINT", 0, 9, typed=-1, nulls=-1), last) == []


@pytest.mark.rule(37)
def test_nulls_that_nobody_counted_count_only_where_they_come_first() -> None:
    ref = Ref(("c",), None, "int")
    scans = []
    for name, nulls, low in (("near", -1, 0), ("far", 0, 50)):
        column = ColumnFacts(
            ("c",), pa.int32(), nulls, Bounds(low, low + 9, minimum_exact=True, maximum_exact=True)
        )
        scans.append(file(name, facts("z INT", columns=(column,))))
    for nulls_first, others in ((True, ["far"]), (False, [])):
        order = Order(ref, nulls_first=nulls_first)
        assert left_out(plan_files(scans, [], first=FirstRows(8, order))) == others


@pytest.mark.rule(8, 37)
def test_rule_8_rows_that_may_be_nan_come_after_any_other_value() -> None:
    ref = path("$.a", "double")
    plain = file("near", between("DOUBLE", 0.0, 9.0, plain_floats=True))
    unchecked = file("near", between("DOUBLE", 0.0, 9.0))
    far = file("far", between("DOUBLE", 50.0, 59.0, plain_floats=True))
    up, down = (FirstRows(5, Order(ref, descending)) for descending in (False, True))
    assert left_out(plan_files([plain, far], [ref], first=up)) == ["far"]
    assert left_out(plan_files([unchecked, far], [ref], first=up)) == []
    # Largest first, NaN comes before them all: such a file is always read.
    assert left_out(plan_files([unchecked, far], [ref], first=down)) == []
    assert left_out(plan_files([plain, far], [ref], first=down)) == ["near"]


@pytest.mark.rule(21)
def test_rule_21_a_cut_string_still_encloses() -> None:
    ref = path("$.a", "string")
    cut = {"minimum_exact": False, "maximum_exact": False}
    scans = [
        file("a", between("STRING", "a", "b\U0010ffff", **cut)),
        file("b", between("STRING", "b", "c", **cut)),
        file("d", between("STRING", "d", "e", **cut)),
    ]
    plan = plan_files(scans, [ref], first=FirstRows(3, Order(ref)))
    assert left_out(plan) == ["d"]
    down = FirstRows(3, Order(ref, descending=True))
    assert left_out(plan_files(scans, [ref], first=down)) == ["a", "b"]


@pytest.mark.rule(20)
def test_rule_20_other_orders_than_that_of_bytes_have_no_reach() -> None:
    columns = [
        ColumnFacts(
            ("c",), pa.string(), 0, Bounds(low, low, minimum_exact=True, maximum_exact=True)
        )
        for low in ("a", "z")
    ]
    scans = [file(str(at), facts("z INT", columns=(each,))) for at, each in enumerate(columns)]
    for ref in (
        Ref(("c",), None, "string collate UTF8_LCASE"),
        replace(Ref(("c",), None, "string"), char_length=3),
    ):
        assert plan_files(scans, [], first=FirstRows(1, Order(ref))).reach is None
    plain = Ref(("c",), None, "string")
    assert plan_files(scans, [], first=FirstRows(1, Order(plain))).reach is not None


@pytest.mark.rule(37)
def test_a_limit_alone_reads_the_fewest_files_that_certainly_suffice() -> None:
    scans = [
        file("unknown", None),
        file("large", facts("a INT", rows=100), size=9000),
        file("small", facts("a INT", rows=20), size=500),
        file("smaller", facts("a INT", rows=10), size=100),
    ]
    for rows, read in (
        (0, []),
        (5, ["smaller"]),
        (15, ["small"]),
        (110, ["large", "small"]),
        (130, ["large", "small", "smaller"]),
        (131, ["unknown", "large", "small", "smaller"]),
    ):
        plan = plan_files(scans, [], first=FirstRows(rows))
        assert sorted(scan.path for scan in plan.files) == sorted(read)
    some = IsNull(Ref(("c",), None, "int"))  # of which the log does not tell
    assert left_out(plan_files(scans, [], some, first=FirstRows(5))) == []


def test_what_comes_no_later_than_a_null() -> None:
    ref = path("$.a")
    assert up_to(Order(ref, nulls_first=True), None) == IsNull(ref)
    assert up_to(Order(ref, nulls_first=False), None) is None
