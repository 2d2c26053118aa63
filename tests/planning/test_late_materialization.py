"""Which files of a plan have their rows found on typed columns first (EXACTNESS, rule 14)."""

from __future__ import annotations

import pytest

from tests.planning.builders import facts, file, lit, path, plan_files
from variantlake.expressions.tree import (
    And,
    Compare,
    In,
    IsNull,
    Not,
    Or,
    Predicate,
    Ref,
    StartsWith,
    Unknown,
)
from variantlake.parquet.stats.facts import FileFacts
from variantlake.paths import Path
from variantlake.planning import late_materialization
from variantlake.planning.late_materialization import plan_late_materialization
from variantlake.planning.plan import ScanPlan

WHOLE = Ref(("v",), Path(), "variant")
A, B, S = path("$.a"), path("$.b"), path("$.s", "string")
COLUMNS = facts("a BIGINT, s STRING", {"$['a']": {"typed": 5}})


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_materialization, "MIN_BYTES", 100)


def planned(known: FileFacts | None, predicate: Predicate, size: int = 100) -> ScanPlan:
    plan = plan_files([file("1", known, size)], [WHOLE], predicate)
    return plan_late_materialization(plan, {"day": "date"})


@pytest.mark.rule(14)
@pytest.mark.parametrize(
    "predicate",
    [
        Compare("=", A, lit(1)),
        Compare("<", lit(1), A),
        Compare("<=>", A, lit(None)),
        In(S, (lit("x", "string"),)),
        StartsWith(S, "x"),
        IsNull(A),
        Or((Compare("=", A, lit(1)), IsNull(S))),
        Compare("=", Ref(("k",), None, "int"), lit(1, "int")),
    ],
    ids=str,
)
def test_conditions_on_columns_find_rows(predicate: Predicate) -> None:
    (group,) = planned(COLUMNS, predicate).groups
    assert group.prefilter == (predicate,)
    assert group.by_kernels


@pytest.mark.parametrize(
    "predicate",
    [
        Compare("<>", A, lit(1)),
        Not(IsNull(A)),
        Not(Compare("=", A, lit(1))),
        Unknown("udf(event)"),
        Or((Compare("=", A, lit(1)), Unknown("udf(event)"))),
        # Only Spark knows in which type it compares.
        Compare("=", A, lit("1", "string")),
        Compare("=", Ref(("day",), None, "date"), lit(1, "date")),
        Compare("=", Ref(("st", "k"), None, "int"), lit(1, "int")),
    ],
    ids=str,
)
def test_others_do_not(predicate: Predicate) -> None:
    (group,) = planned(COLUMNS, predicate).groups
    assert group.prefilter == ()


def test_a_path_that_is_no_column_finds_nothing() -> None:
    for known in (facts("s STRING", {"$": {"residuals": 1}}), facts("a STRING"), None):
        (group,) = planned(known, Compare("=", A, lit(1))).groups
        assert not group.by_kernels


def test_only_conjuncts_on_columns_are_used() -> None:
    open_ = facts("a BIGINT", {"$": {"residuals": 1}})
    on_column, native = Compare("=", A, lit(1)), Compare("=", B, lit(1))
    (group,) = planned(open_, And((native, on_column))).groups
    assert group.prefilter == (on_column,)


def test_a_group_is_split_where_only_some_files_have_the_column() -> None:
    files = [file("1", COLUMNS), file("2", None), file("3", COLUMNS)]
    wanted = Compare("=", A, lit(1))
    plan = plan_late_materialization(plan_files(files, [WHOLE], wanted))
    assert [([one.path for one in group.files], group.prefilter) for group in plan.groups] == [
        (["1", "3"], (wanted,)),
        (["2"], ()),
    ]


def test_a_condition_that_all_rows_fulfil_finds_nothing() -> None:
    known = facts("a BIGINT", {"$['a']": {"minimum": 5, "maximum": 9}})
    assert not planned(known, Compare(">", A, lit(1))).groups[0].by_kernels
    assert planned(known, Compare(">", A, lit(5))).groups[0].by_kernels


def test_few_bytes_are_not_worth_the_workers() -> None:
    assert not planned(COLUMNS, Compare("=", A, lit(1)), size=99).groups[0].by_kernels


def test_columns_alone_are_left_to_the_engine() -> None:
    plan = plan_files([file("1", COLUMNS)], [A], Compare("=", A, lit(1)))
    assert plan_late_materialization(plan) == plan


@pytest.mark.rule(10)
def test_rule_10_our_kernels_find_rows_in_files_that_they_read_anyway() -> None:
    (group,) = planned(facts("a BIGINT, t TIME"), Compare("=", A, lit(1)), size=1).groups
    assert group.kernels
    assert group.prefilter
