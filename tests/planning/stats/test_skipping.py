"""When a file is skipped, and when not: truth tables, and EXACTNESS, rules 8 and 16 to 23."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from tests.planning.builders import ROWS, between, facts, file, lit, may_be, may_match, path
from variantlake.expressions.bounds import May
from variantlake.expressions.tree import (
    And,
    Compare,
    CompareOp,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Ref,
    StartsWith,
    Unknown,
)
from variantlake.parquet.stats.bounds import Bounds
from variantlake.parquet.stats.facts import ColumnFacts, FileFacts
from variantlake.planning.files import RecordFiles
from variantlake.planning.stats.skipping import Skipper

T, F, N = May.TRUE, May.FALSE, May.NULL
NAN = float("nan")


def may(predicate: Predicate, known: FileFacts | None) -> May:
    """The truth values of a predicate that is one conjunct."""
    ((_, found),) = may_be(predicate, file("1", known))
    return found


def compare(
    op: CompareOp, value: Any, type_: str = "bigint", requested: str = "bigint"
) -> Predicate:
    return Compare(op, path("$.a", requested), lit(value, type_))


def skips(predicate: Predicate, known: FileFacts | None) -> bool:
    return not may_match(Skipper(predicate), known)


# Conditions that are always true, false, null in the file KNOWN; and one that may be anything.
KNOWN = facts("a BIGINT", {"$['a']": {"minimum": 1, "maximum": 1}})
ALWAYS = {
    T: compare("=", 1),
    F: compare("=", 2),
    N: compare("=", None),
    May.ANY: Unknown("?"),
}


def test_the_conditions_of_the_truth_tables_are_what_they_say() -> None:
    assert {expected: may(condition, KNOWN) for expected, condition in ALWAYS.items()} == {
        expected: expected for expected in ALWAYS
    }


AND_TABLE = {(T, T): T, (T, F): F, (T, N): N, (F, F): F, (F, N): F, (N, N): N}


@pytest.mark.rule(19)
@pytest.mark.parametrize(("left", "right"), list(product((T, F, N), repeat=2)), ids=str)
def test_rule_19_truth_tables_of_and_or_not(left: May, right: May) -> None:
    key = (left, right) if (left, right) in AND_TABLE else (right, left)
    terms = (ALWAYS[left], ALWAYS[right])
    swap = {T: F, F: T, N: N}
    or_key = (swap[left], swap[right])
    or_key = or_key if or_key in AND_TABLE else (or_key[1], or_key[0])
    # A term that is nested in an Or, so that the And is not taken apart into conjuncts.
    assert may(Or((And(terms),)), KNOWN) == AND_TABLE[key]
    assert may(Or(terms), KNOWN) == swap[AND_TABLE[or_key]]
    assert may(Not(ALWAYS[left]), KNOWN) == swap[left]


@pytest.mark.rule(19)
def test_rule_19_unknown_conditions_bound_what_they_join() -> None:
    unknown = ALWAYS[May.ANY]
    assert may(Not(unknown), KNOWN) == May.ANY
    assert may(Or((And((unknown, ALWAYS[F])),)), KNOWN) == F
    assert may(Or((And((unknown, ALWAYS[N])),)), KNOWN) == F | N
    assert may(Or((unknown, ALWAYS[T])), KNOWN) == T
    assert may(Or((unknown, ALWAYS[F])), KNOWN) == May.ANY


@pytest.mark.rule(19)
def test_rule_19_an_inequality_is_false_only_where_all_values_are_the_one() -> None:
    text = Compare("=", path("$.a", "string"), lit("b", "string"))
    number = compare("=", 1.0, "double", "double")
    cut = {"minimum_exact": False, "maximum_exact": False}
    for condition, low, more, skipped in (
        (text, "b", {}, True),
        (text, "a", {}, False),
        (text, "b", cut, True),  # rule 21
        (number, 1.0, {"plain_floats": True} | cut, False),
        (number, 1.0, {"plain_floats": True}, True),
        (number, 1.0, {"plain_floats": False}, False),  # NaN
    ):
        kind, high = ("STRING", "b") if condition is text else ("DOUBLE", 1.0)
        assert skips(Not(condition), between(kind, low, high, **more)) == skipped


@pytest.mark.parametrize(
    ("op", "value", "expected"),
    [
        ("=", 0, F), ("=", 1, T | F), ("=", 5, T | F), ("=", 9, T | F), ("=", 10, F),
        ("<>", 0, T), ("<>", 5, T | F),
        ("<", 1, F), ("<", 2, T | F), ("<", 9, T | F), ("<", 10, T),
        ("<=", 0, F), ("<=", 1, T | F), ("<=", 9, T),
        (">", 9, F), (">", 8, T | F), (">", 1, T | F), (">", 0, T),
        (">=", 10, F), (">=", 9, T | F), (">=", 1, T),
        ("<=>", 100, F), ("<=>", 5, T | F),
    ],
)  # fmt: skip
def test_comparisons_on_a_range(op: CompareOp, value: int, expected: May) -> None:
    known = between("BIGINT", 1, 9)
    assert may(compare(op, value), known) == expected
    nullable = between("BIGINT", 1, 9, typed=ROWS - 1)
    assert may(compare(op, value), nullable) == expected | (F if op == "<=>" else N)


def test_a_null_safe_comparison_with_null_is_is_null() -> None:
    known = between("BIGINT", 1, 9)
    assert may(compare("<=>", None), known) == F
    assert may(compare("<=>", None), between("BIGINT", 1, 9, typed=ROWS - 1)) == T | F
    assert skips(Not(compare("<=>", 1)), between("BIGINT", 1, 1))


def test_a_cast_column_has_the_cast_bounds() -> None:
    column = ColumnFacts(
        ("c",), pa.int32(), 0, Bounds(1, 9, minimum_exact=True, maximum_exact=True)
    )
    known = facts("a BIGINT", columns=(column,))
    for type_, above in (("bigint", 10), ("double", 9.5), ("decimal(10,2)", Decimal("9.01"))):
        ref = Ref(("c",), None, type_)
        assert skips(Compare(">=", ref, lit(above, type_)), known), type_
        assert not skips(Compare("<", ref, lit(above, type_)), known), type_


def test_a_literal_on_the_left_turns_the_operator() -> None:
    known = between("BIGINT", 1, 9)
    assert skips(Compare("<", lit(9), path("$.a")), known)
    assert not skips(Compare("<=", lit(9), path("$.a")), known)
    assert not skips(Compare("=", path("$.a"), path("$.a")), known)


def test_between_is_two_comparisons_and_says_which_one_skipped() -> None:
    low, high = compare(">=", 10), compare("<=", 20)
    files = RecordFiles([file("1", between("BIGINT", 1, 9)), file("2", between("BIGINT", 21, 30))])
    assert Skipper(And((low, high))).skipped_by(files).tolist() == [0, 1]


def test_in_skips_when_no_option_lies_within_the_bounds() -> None:
    known = between("BIGINT", 10, 20)
    assert skips(In(path("$.a"), (lit(1), lit(30))), known)
    assert not skips(In(path("$.a"), (lit(1), lit(15))), known)
    assert may(In(path("$.a"), (lit(1), lit(None))), known) == N
    assert may(Not(In(path("$.a"), (lit(1), lit(30)))), known) == T
    assert may(In(path("$.a"), (lit(3), lit(4))), between("BIGINT", 3, 3)) == T


@pytest.mark.rule(8)
def test_rule_8_floats_without_a_check_may_hold_nan_above_every_bound() -> None:
    checked = between("DOUBLE", 1.0, 3.0, plain_floats=True)
    unchecked = between("DOUBLE", 1.0, 3.0)
    assert skips(compare(">", 5.0, "double", "double"), checked)
    assert not skips(compare(">", 5.0, "double", "double"), unchecked)
    assert not skips(compare("=", NAN, "double", "double"), unchecked)
    assert skips(compare("=", NAN, "double", "double"), checked)
    assert skips(compare(">", NAN, "double", "double"), unchecked)  # nothing is above NaN
    # NaN is above every number, so it cannot satisfy these:
    assert skips(compare("<", 1.0, "double", "double"), unchecked)
    assert skips(compare("=", 5.0, "double", "double"), unchecked)
    one = between("DOUBLE", 1.0, 1.0)
    assert not skips(Not(compare("=", 1.0, "double", "double")), one)


@pytest.mark.rule(8)
def test_rule_8_zero_has_two_signs() -> None:
    for low, high in ((0.0, 0.0), (-0.0, -0.0), (-0.0, 0.0)):
        known = between("DOUBLE", low, high)
        assert not skips(compare("=", 0.0, "double", "double"), known)
        assert not skips(compare("=", -0.0, "double", "double"), known)


@pytest.mark.rule(16)
def test_rule_16_a_bound_counts_only_through_the_cast() -> None:
    known = between("DECIMAL(9,2)", Decimal("1.50"), Decimal("1.90"))
    assert not skips(compare("=", 1), known)  # variant_get(1.9, 'bigint') is 1
    assert skips(compare("=", 2), known)
    two = Literal(Decimal(2), "decimal(1,0)")
    assert not skips(Compare("=", path("$.a", "decimal(5,0)"), two), known)
    assert skips(Compare("=", path("$.a", "decimal(5,1)"), two), known)
    # Strings as numbers have no order that bounds could know: '10' < '9'.
    assert not skips(compare("=", 50), between("STRING", "10", "9"))
    assert not skips(compare("=", "5", "string", "string"), between("BIGINT", 10, 20))


@pytest.mark.rule(16)
def test_rule_16_values_beyond_the_asked_type_are_null() -> None:
    wide = between("BIGINT", 300, 400)
    tiny = path("$.a", "tinyint", strict=False)
    assert may(Compare("=", tiny, lit(1, "tinyint")), wide) == N
    assert may(IsNull(tiny), wide) == T
    some = between("BIGINT", 100, 400)
    assert may(Compare("<", tiny, lit(100, "tinyint")), some) == F | N
    assert may(IsNull(tiny), some) == T | F


@pytest.mark.rule(16)
def test_rule_16_timestamps_as_dates_are_a_day_wider() -> None:
    day = 86_400_000_000
    known = between("TIMESTAMP", 10 * day, 10 * day + 5)
    for value, expected in ((8, True), (9, False), (10, False), (11, False), (12, True)):
        condition = Compare("=", path("$.a", "date"), lit(value, "date"))
        assert skips(condition, known) == expected, value
    assert T in may(Not(Compare("=", path("$.a", "date"), lit(10, "date"))), known)


@pytest.mark.rule(17)
def test_rule_17_a_comparison_in_another_type_keeps_the_file() -> None:
    known = between("BIGINT", 2**53 + 1, 2**53 + 1)
    # As doubles, 9007199254740993 = 9007199254740992.0 is true.
    assert not skips(compare("=", 9007199254740992.0, "double"), known)
    assert not skips(compare("=", "7", "string"), known)
    assert not skips(compare(">", 5.0, "float", "int"), between("INT", 1, 2))
    assert not skips(compare(">", 5, "date"), known)
    # In these every bigint, every int stays what it is.
    assert skips(compare("=", Decimal("7.5"), "decimal(2,1)"), known)
    assert skips(compare("=", 7, "int"), known)
    assert skips(compare(">", 2.5, "double", "int"), between("INT", 1, 2))
    # Spark would cut digits of the fraction to stay within 38.
    exact = path("$.a", "decimal(38,30)")
    small = between("DECIMAL(38,30)", Decimal(1), Decimal(2))
    assert not skips(Compare("=", exact, lit(10**18, "bigint")), small)


@pytest.mark.rule(17)
def test_rule_17_what_spark_takes_for_certain_is_true_of_null() -> None:
    nulls = between("BIGINT", 0, 1, typed=0, nulls=10)
    assert skips(compare("<", Decimal(2**63 - 1), "decimal(19,0)"), nulls)
    assert not skips(compare("<", Decimal(2**63), "decimal(19,0)"), nulls)
    assert not skips(compare(">", Decimal(-(2**63) - 1), "decimal(19,0)"), nulls)
    assert not skips(Not(compare(">", Decimal(2**63), "decimal(19,0)", "int")), nulls)


@pytest.mark.rule(17)
def test_rule_17_an_in_list_is_compared_in_one_type() -> None:
    known = between("BIGINT", 2**53 + 1, 2**53 + 1)
    assert not skips(In(path("$.a"), (lit(1), lit(9007199254740992.0, "double"))), known)
    assert not skips(In(path("$.a"), (lit(1), lit("2", "string"))), known)


@pytest.mark.rule(20)
def test_rule_20_only_binary_strings_have_bounds() -> None:
    known = between("STRING", "b", "c")
    for requested in ("string collate UNICODE_CI", "string collate UTF8_LCASE", "char(5)"):
        ref = path("$.a", requested)
        assert not skips(Compare("=", ref, lit("x", requested)), known)
        assert not skips(StartsWith(ref, "x"), known)
    assert skips(Compare("=", path("$.a", "string"), lit("x", "string")), known)


@pytest.mark.rule(21)
def test_rule_21_a_prefix_is_a_range() -> None:
    known = between("STRING", "abc", "abz")
    ref = path("$.a", "string")
    assert not skips(StartsWith(ref, "ab"), known)
    assert not skips(StartsWith(ref, "abcd"), known)
    assert skips(StartsWith(ref, "abb"), known)
    assert skips(StartsWith(ref, "ac"), known)
    assert may(StartsWith(ref, "ab"), known) == T
    cut = between("STRING", "ab", "abz", minimum_exact=False, maximum_exact=False)
    assert skips(Not(StartsWith(ref, "ab")), cut)
    assert not skips(Not(StartsWith(ref, "abz")), cut)
    # No text follows U+10FFFF, so that prefix has no successor and no upper end.
    top = between("STRING", "\U0010ffff", "\U0010ffff" * 3)
    assert not skips(StartsWith(ref, "\U0010ffff\U0010ffff"), top)


@pytest.mark.rule(21)
def test_rule_21_cut_bounds_enclose_and_prove_the_value_that_both_are() -> None:
    cut = {"minimum_exact": False, "maximum_exact": False}
    ref = path("$.a", "string")
    for high, expected in (("abc", T), ("abd", T | F)):
        known = between("STRING", "abc", high, **cut)
        assert may(Compare("=", ref, lit("abc", "string")), known) == expected
        assert may(In(ref, (lit("abc", "string"),)), known) == expected
        assert skips(Compare("=", ref, lit("abe", "string")), known)


@pytest.mark.rule(21)
def test_rule_21_strings_order_by_utf8_bytes() -> None:
    known = between("STRING", "\uffff", "\uffff")  # UTF-16 would put U+10000 before it
    assert not skips(Compare("<", path("$.a", "string"), lit("\U00010000", "string")), known)
    assert skips(Compare(">", path("$.a", "string"), lit("\U00010000", "string")), known)


@pytest.mark.rule(23)
def test_rule_23_a_path_without_bounds_is_not_absent() -> None:
    assert not skips(compare("=", 1), facts("a BIGINT"))
    assert not skips(compare("=", 1), facts("a BIGINT", {"$['a']": {"typed": -1}}))
    only_low = between("BIGINT", 5, None)
    assert skips(compare("=", 1), only_low)
    assert not skips(compare("=", 9), only_low)


@pytest.mark.rule(23)
def test_rule_23_nulls_skip_only_by_counts_of_no_or_all_rows() -> None:
    ref = path("$.a")
    for typed, null, not_null in (
        (ROWS, F, T),
        (0, T, F),
        (ROWS - 1, T | F, T | F),
        (-1, T | F, T | F),
    ):
        known = facts("a BIGINT", {"$['a']": {"typed": typed}})
        assert may(IsNull(ref), known) == null
        assert may(Not(IsNull(ref)), known) == not_null
    without_rows = facts("a BIGINT", rows=-1)
    assert may(IsNull(ref), without_rows) == T | F


@pytest.mark.rule(23)
def test_rule_23_unknown_counts_of_a_column_inform_about_nothing() -> None:
    for rows, nulls in ((-1, -1), (ROWS, -1), (-1, 0), (ROWS, ROWS - 1)):
        column = ColumnFacts(("s", "c"), pa.int32(), nulls, Bounds(1, 9))
        known = FileFacts(1, rows, 1, (), (column,))
        assert T in may(Not(IsNull(COUNT)), known)
        assert (T in may(IsNull(COUNT), known)) == (nulls != 0)
        assert not skips(Compare("=", COUNT, lit(5)), known)
        assert skips(Compare("=", COUNT, lit(10)), known)


@pytest.mark.rule(23)
def test_rule_23_a_variant_null_is_a_value_of_type_variant() -> None:
    nulls = facts("a BIGINT", {"$['a']": {"typed": 0, "nulls": ROWS}})
    assert may(Not(IsNull(path("$.a", "bigint"))), nulls) == F
    assert may(Not(IsNull(path("$.a", "variant"))), nulls) == T
    nothing = facts("a BIGINT", {"$['a']": {"typed": 0}})
    assert may(Not(IsNull(path("$.a", "variant"))), nothing) == F


def test_only_clean_paths_have_bounds() -> None:
    for given in ({"residuals": 1}, {"residuals": -1}, {"nulls": -1}):
        assert not skips(compare("=", 1), between("BIGINT", 5, 9, **given))
    assert skips(compare("=", 1), between("BIGINT", 5, 9, typed=8, nulls=2))


def test_a_path_that_no_row_has_is_null() -> None:
    closed, open_ = facts("b BIGINT"), facts("b BIGINT", {"$": {"residuals": 1}})
    assert may(compare("=", 1), closed) == N
    assert may(IsNull(path("$.a")), closed) == T
    assert may(compare("=", 1), open_) == May.ANY


def test_unknown_files_are_kept() -> None:
    assert not skips(compare("=", 1), None)
    assert not skips(compare("=", 1), FileFacts(1, -1, -1))
    assert not skips(Unknown("f(x)"), KNOWN)


def test_bounds_of_a_wrong_type_are_no_bounds() -> None:
    assert not skips(compare("=", 1), between("BIGINT", "5", "9"))
    assert not skips(compare("=", 1.0, "double", "double"), between("DOUBLE", NAN, NAN))


DAY = Ref(("day",), None, "date")
COUNT = Ref(("s", "c"), None, "bigint")


def test_partition_values_decide_for_all_rows() -> None:
    skipper = Skipper(Compare("=", DAY, lit(19723, "date")), {"day": "date"})
    assert may_match(skipper, None, {"day": "2024-01-01"})
    assert not may_match(skipper, None, {"day": "2024-01-02"})
    assert not may_match(skipper, None, {"day": None})
    assert not may_match(skipper, None, {"day": ""})
    assert may_match(skipper, None, {"day": "soon"})
    not_null = Skipper(Not(IsNull(DAY)), {"day": "date"})
    assert [may_match(not_null, None, {"day": d}) for d in ("2024-01-01", None)] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("string", "a b", "a b"), ("boolean", "true", True), ("int", "-5", -5),
        ("tinyint", "300", None), ("int", "1_000", None), ("int", "1.5", None), ("int", "5", 5),
        ("bigint", "1e9999", None), ("double", "NaN", None), ("double", "-Infinity", -float("inf")),
        ("double", "1.5", 1.5), ("double", "\u0661", None), ("decimal(5,2)", "1e9999", None),
        ("decimal(5,2)", "NaN", None), ("decimal(5,2)", "1.5", Decimal("1.50")),
        ("decimal(5,2)", "1.555", None), ("date", "0000-00-00", None),
        ("timestamp", "2024-01-01 00:00:00", None),
        ("timestamp", "1970-01-01T00:00:01.000001Z", 1_000_001),
        ("timestamp_ntz", "1970-01-01 00:00:01", 1_000_000), ("binary", "\x01", None),
    ],
)  # fmt: skip
def test_partition_values_of_every_type(type_: str, text: str, value: Any) -> None:
    ref = Ref(("p",), None, type_)
    other = {"string": "other", "boolean": False}.get(type_, 77)
    same = Skipper(
        Compare("=", ref, lit(value if value is not None else other, type_)), {"p": type_}
    )
    different = Skipper(Compare("=", ref, lit(other, type_)), {"p": type_})
    assert may_match(same, None, {"p": text})
    assert may_match(different, None, {"p": text}) == (value is None)


def test_a_partition_of_floats_holds_the_float_that_the_text_means() -> None:
    # 0.1 as a float is a little more than as a double, in which Spark compares it.
    ref = Ref(("p",), None, "float")
    ops: tuple[tuple[CompareOp, bool], ...] = (
        (">", True),
        ("<>", True),
        ("=", False),
        ("<=", False),
    )
    for op, matches in ops:
        skipper = Skipper(Compare(op, ref, lit(Decimal("0.1"), "decimal(1,1)")), {"p": "float"})
        assert may_match(skipper, None, {"p": "0.1"}) == matches


def test_ordinary_columns_have_bounds_and_null_counts() -> None:
    column = ColumnFacts(
        ("s", "c"), pa.int32(), 0, Bounds(1, 9, minimum_exact=True, maximum_exact=True)
    )
    known = FileFacts(1, ROWS, 1, (), (column,))
    assert skips(Compare(">", COUNT, lit(9)), known)
    assert skips(IsNull(COUNT), known)
    assert not skips(Compare(">", Ref(("c",), None, "bigint"), lit(9)), known)
    array = FileFacts(1, ROWS, 1, (), (ColumnFacts(("s", "c"), pa.list_(pa.int32()), ROWS),))
    assert skips(Not(IsNull(COUNT)), array)


def test_null_counts_of_the_variant_column_itself() -> None:
    assert skips(IsNull(Ref(("v",), None, "variant")), facts("a BIGINT"))


def test_a_skipper_keeps_nothing_of_the_files_it_saw() -> None:
    skipper = Skipper(compare("=", 5))
    first, second = between("BIGINT", 1, 9), between("BIGINT", 10, 20)
    outcomes = [may_match(skipper, known) for known in (first, second, first, None, second)]
    assert outcomes == [True, False, True, True, False]


def test_why_a_file_was_kept() -> None:
    condition = And((compare("=", 5), Unknown("f(x)"), IsNull(path("$.b"))))
    reasons = Skipper(condition).why_kept(RecordFiles([file("1", between("BIGINT", 1, 9))]), 0)
    assert [why for _, why in reasons] == [
        "the file holds 1 to 9",
        "planning does not understand it",
        "v:b::bigint: no row has a value",
    ]
    mixed = Skipper(compare("=", 5)).why_kept(
        RecordFiles([file("1", between("BIGINT", 1, 9, residuals=2))]), 0
    )
    assert mixed[0][1] == "some rows hold a value of another type"
