"""Grouping files by layout, and the figures of a plan."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from tests.planning.builders import between, facts, file, lit, path, plan_files, skipped
from variantlake.delta.protocol.learned_schemas import LearnedSchemas
from variantlake.expressions.tree import And, Compare, Ref, StartsWith, Unknown
from variantlake.parquet.stats.facts import FileFacts
from variantlake.paths import Path
from variantlake.planning import plan as planning
from variantlake.planning.exact.exactness import IDENTITY
from variantlake.planning.exact.readings import NO_STATISTICS, Native, NullColumn, PhysicalColumn
from variantlake.planning.explain import RowGroups, count_row_groups, explain
from variantlake.planning.files import ScanFile
from variantlake.planning.stats.skipping import Skipper
from variantlake.shredding.values import ValueNotes
from variantlake.types import INT64

A, B = path("$.a"), path("$.b", "string")
OF_A = frozenset({Path.of("a")})
OPEN = {"$": {"residuals": 1}}


def names(files: Sequence[ScanFile]) -> list[str]:
    return [one.path for one in files]


def test_files_of_one_layout_are_one_group() -> None:
    plan = plan_files(
        [file("1", facts("a BIGINT, b STRING")), file("2", facts("b STRING, a BIGINT"))], [A, B, A]
    )
    (group,) = plan.groups
    assert names(group.files) == ["1", "2"]
    assert [ref for ref, _ in group.readings] == [A, B]
    assert group.physical
    assert group.reading(A) == PhysicalColumn(("typed_value", "a", "typed_value"), INT64, IDENTITY)
    with pytest.raises(KeyError):
        group.reading(path("$.c"))


@pytest.mark.rule(4)
def test_rule_4_each_exact_type_is_a_group_of_its_own() -> None:
    requested = path("$.a", "double")
    types = ["BIGINT", "INT", "DECIMAL(9,2)", "DECIMAL(18,2)", "DECIMAL(18,4)", "FLOAT", "DOUBLE"]
    files = [file(type_, facts(f"a {type_}")) for type_ in types]
    plan = plan_files([*files, *files], [requested])
    assert sorted(names(group.files) for group in plan.groups) == sorted([t, t] for t in types)
    for group in plan.groups:
        reading = group.reading(requested)
        assert isinstance(reading, PhysicalColumn)
        assert str(reading.stored) == group.files[0].path


def test_files_without_a_path_join_the_files_that_have_it() -> None:
    plan = plan_files(
        [
            file("both", facts("a BIGINT, b STRING")),
            file("a only", facts("a BIGINT")),
            file("neither", facts("c BIGINT")),
        ],
        [A, B],
    )
    assert [names(group.files) for group in plan.groups] == [["both", "a only", "neither"]]


def test_files_with_something_else_in_the_place_do_not_join() -> None:
    deep = path("$.a.x")
    plan = plan_files(
        [file("object", facts("a STRUCT<x: BIGINT>"), 300), file("scalar", facts("a BIGINT"))],
        [deep],
    )
    assert [names(group.files) for group in plan.groups] == [["object"], ["scalar"]]
    assert plan.groups[1].reading(deep) == NullColumn()


def test_a_column_is_read_one_way_in_a_group() -> None:
    other = Ref(("w",), A.path, "bigint")
    plan = plan_files([file("1", facts("a BIGINT", OPEN))], [A, B, other])
    (group,) = plan.groups
    assert [type(reading) for _, reading in group.readings] == [Native, Native, Native]
    assert not group.physical


@pytest.mark.rule(5)
def test_rule_5_keys_that_differ_by_case_are_not_read_together() -> None:
    """Spark's pruning of columns takes one for the other, also deep inside of them."""
    for ddl, one, other in (
        ("K BIGINT, k STRING", "$.K", "$.k"),
        ("`\u212a` BIGINT, k STRING", "$['\u212a']", "$.k"),
        ("a STRUCT<B: BIGINT, b: STRUCT<c: STRING>>", "$.a.B", "$.a.b.c"),
    ):
        requests = path(one), path(other, "string")
        (group,) = plan_files([file("1", facts(ddl))], requests).groups
        assert all(isinstance(reading, Native) for _, reading in group.readings), ddl
        for alone in requests:
            (group,) = plan_files([file("1", facts(ddl))], [alone]).groups
            assert group.physical


@pytest.mark.rule(10)
def test_rule_10_native_files_that_spark_cannot_read_need_kernels() -> None:
    odd, plain = facts("a BIGINT, t TIME", OPEN), facts("a BIGINT", OPEN)
    native = plan_files([file("odd", odd), file("plain", plain)], [A, B])
    assert {group.files[0].path: group.kernels for group in native.groups} == {
        "odd": True,
        "plain": False,
    }
    physical = plan_files([file("odd", odd), file("plain", plain)], [A])
    assert [(names(group.files), group.kernels) for group in physical.groups] == [
        (["odd", "plain"], False)
    ]


@pytest.mark.rule(31)
@pytest.mark.parametrize(
    ("notes", "fails", "shows"),
    [
        (ValueNotes(), False, False),
        (ValueNotes(lacking=True), True, True),
        (None, False, True),
        (ValueNotes(integers=OF_A), False, True),
        (ValueNotes(integers=OF_A, whole=OF_A), False, False),
    ],
)
def test_rule_31_residuals_decide_who_reads_a_variant(
    notes: ValueNotes | None, fails: bool, shows: bool
) -> None:
    """`fails`: Spark's reader does; `shows`: it may, or it shows another type than was written."""
    files = [file("1", facts("a DECIMAL(9,2)", OPEN, notes=notes))]
    whole = Ref(("v",), Path(), "variant")
    for requested in ([whole], [A, whole]):
        assert [group.kernels for group in plan_files(files, requested).groups] == [fails]
        (group,) = plan_files(files, requested, has_kernels=True).groups
        assert group.kernels == shows


@pytest.mark.rule(31)
def test_rule_31_a_path_that_is_a_column_needs_no_kernels() -> None:
    known = facts("a DECIMAL(9,2)", notes=ValueNotes(lacking=True))
    requested = path("$.a", "decimal(9,2)")
    (group,) = plan_files([file("1", known)], [requested], has_kernels=True).groups
    assert group.physical
    assert not group.kernels


@pytest.mark.rule(31)
def test_rule_31_an_unshredded_variant_is_bytes_to_spark() -> None:
    known = facts("VARIANT", notes=ValueNotes(lacking=True))
    whole = Ref(("v",), Path(), "variant")
    (group,) = plan_files([file("1", known)], [whole], has_kernels=True).groups
    assert not group.kernels


@pytest.mark.rule(40)
@pytest.mark.parametrize("layout", ["VARIANT", "a DECIMAL(9,2)"])
def test_rule_40_our_kernels_read_what_spark_has_in_another_order(layout: str) -> None:
    whole = Ref(("v",), Path(), "variant")
    for reordered in (True, False):
        files = [file("1", facts(layout, OPEN, notes=ValueNotes(reordered=reordered)))]
        for has_kernels in (True, False):
            (group,) = plan_files(files, [whole], has_kernels=has_kernels).groups
            assert group.kernels == reordered


@pytest.mark.rule(31)
@pytest.mark.parametrize(("notes", "may_fail"), [(ValueNotes(), False), (None, True)])
def test_rule_31_a_scalar_of_a_file_without_notes_needs_kernels(
    notes: ValueNotes | None, may_fail: bool
) -> None:
    """It shows no types, but Spark's reader may fail at the Variant that it stands in."""
    files = [file("1", facts("a DECIMAL(9,2)", OPEN, notes=notes))]
    elsewhere = path("$.zzz", "string")
    (group,) = plan_files(files, [elsewhere], has_kernels=True).groups
    assert group.kernels == may_fail
    (group,) = plan_files(files, [elsewhere]).groups
    assert not group.kernels


@pytest.mark.rule(33)
def test_rule_33_a_scalar_shows_no_type() -> None:
    """Spark itself gives the same text for 7 and 7.0."""
    notes = ValueNotes(integers=OF_A)
    known = facts("a DECIMAL(9,2)", OPEN, notes=notes)
    elsewhere = path("$.zzz", "string")
    (group,) = plan_files([file("1", known)], [elsewhere], has_kernels=True).groups
    assert not group.kernels
    inside = Ref(("v",), elsewhere.path, "array<variant>")
    (group,) = plan_files([file("1", known)], [inside], has_kernels=True).groups
    assert group.kernels


def test_a_very_mixed_table_has_few_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    requested = [path(f"$.k{i}", "double") for i in range(8)]
    kinds = ["BIGINT", "INT", "SMALLINT", "DOUBLE"]
    files = [
        file(
            str(i),
            facts(
                ", ".join(f"k{j} {kinds[(i >> j) % 4]}" for j in range(8)) + ", t TIME" * (i % 2)
            ),
            size=100 + i,
        )
        for i in range(200)
    ]
    monkeypatch.setattr(planning, "MAX_GROUPS", 5)
    plan = plan_files(files, requested)
    assert len(plan.groups) == 6
    assert plan.read_files == 200
    assert all(group.physical for group in plan.groups[:-2])
    spark, ours = plan.groups[-2:]
    assert {spark.kernels, ours.kernels} == {False, True}
    for group in (spark, ours):
        assert {int(one.path) % 2 for one in group.files} == {int(group.kernels)}


def test_no_paths_is_one_group_and_no_files_is_none() -> None:
    plan = plan_files([file("1", facts("a BIGINT")), file("2", None)], [Ref(("c",), None, "int")])
    assert [names(group.files) for group in plan.groups] == [["1", "2"]]
    assert plan.requests == ()
    assert plan_files([], [A]).groups == ()


def test_skipped_files_and_totals() -> None:
    low, high = Compare(">=", A, lit(10)), Compare("<", A, lit(20))
    plan = plan_files(
        [
            file("low", between("BIGINT", 0, 9), 10),
            file("hit", between("BIGINT", 15, 16), 20),
            file("high", between("BIGINT", 20, 30), 30),
            file("unknown", None, 40),
        ],
        [A],
        And((low, high)),
    )
    assert skipped(plan) == [
        ("low", low),
        ("high", high),
    ]
    assert (plan.read_files, plan.total_files) == (2, 4)
    assert (plan.read_bytes, plan.total_bytes) == (60, 100)
    assert sorted(one.path for one in plan.files) == ["hit", "unknown"]
    assert [kept.file.path for kept in plan.kept] == ["hit", "unknown"]
    assert plan.kept[0].reasons[0] == (low, "the file holds 15 to 16")


def test_explain_as_text_and_as_json() -> None:
    condition = And((Compare("=", A, lit(5)), Unknown("f(x)")))
    files = [
        file("hit.parquet", between("BIGINT", 1, 9), 1500),
        file("miss.parquet", between("BIGINT", 10, 20), 2_500_000),
        file("old.parquet", None, 700),
    ]
    plan = plan_files(files, [A, path("$.kind", "string")], condition)
    groups = count_row_groups(
        Skipper(condition),
        [(files[0], [between("BIGINT", 1, 3), between("BIGINT", 4, 9)])],
    )
    assert groups == RowGroups(2, 1)
    explanation = explain(plan, row_groups=groups)
    whole = f"read from the whole Variant in 1 file ({NO_STATISTICS})"
    assert str(explanation).splitlines() == [
        "files: 2 of 3 read, 1 skipped (2.2 kB of 2.5 MB)",
        "row groups of these files: 1 of 2 may match",
        "scans: 2, one for each layout",
        "skipped by:",
        "  v:a::bigint = 5: 1 file",
        "paths:",
        f"  v:a::bigint: a typed column in 1 file, {whole}",
        f"  v:kind::string: {whole}, NULL in 1 file",
        "kept, for example:",
        "  hit.parquet",
        "    v:a::bigint = 5: the file holds 1 to 9",
        "    f(x): planning does not understand it",
        "  old.parquet",
        "    v:a::bigint = 5: nothing is known about the file",
        "    f(x): planning does not understand it",
    ]
    as_json = json.loads(json.dumps(explanation.to_dict()))
    assert as_json["files"] == {"total": 3, "read": 2, "skipped": 1}
    assert as_json["bytes"] == {"total": 2_502_200, "read": 2200}
    assert as_json["row_groups"] == {"total": 2, "read": 1}
    assert as_json["skipped_by"] == [{"predicate": "v:a::bigint = 5", "files": 1}]
    assert as_json["paths"][0]["physical"] == 1
    assert as_json["kept"][1]["file"] == "old.parquet"
    assert explain(plan).to_dict()["row_groups"] is None


def test_explain_tells_layouts_apart_by_the_schemas_that_were_learned() -> None:
    first, second = (facts(ddl) for ddl in ("a BIGINT", "a BIGINT, b STRING"))
    plan = plan_files(
        [file("1", first), file("2", second), file("3", second), file("4", None)], [A]
    )
    learned = LearnedSchemas()
    for version, each in enumerate((first, second)):
        learned = learned.next(each.variants[0].schema, version)
    explanation = explain(plan, properties={"variantlake.learned.v": learned.text()})
    one, two = (each.layout for each in learned.schemas)
    lines = str(explanation).splitlines()
    assert lines[lines.index("layouts of v:") + 1 :][:3] == [
        "  unknown: 1 file",
        f"  schema 1 ({one}): 1 file",
        f"  schema 2 ({two}): 2 files",
    ]
    assert explanation.to_dict()["layouts"][2] == {
        "column": "v",
        "layout": two,
        "schema": 2,
        "files": 2,
    }


@pytest.mark.rule(3)
def test_rule_3_did_you_mean() -> None:
    known = facts(
        "kind STRING, commit STRUCT<record: STRUCT<createdAt: STRING>>, time_us BIGINT, "
        "langs ARRAY<STRING>",
        OPEN,
    )

    def suggested(text: str) -> tuple[str, ...]:
        plan = plan_files([file("1", known)], [path(text, "string")])
        return explain(plan).paths[0].suggestions

    assert suggested("$.knd") == ("v:kind",)
    assert suggested("$.Kind") == ("v:kind",)
    assert suggested("$.commit.record.createdat") == ("v:commit.record.createdAt",)
    assert suggested("$.commit.recrd.createdAt") == ("v:commit.record.createdAt",)
    assert suggested("$.kind") == ()
    assert suggested("$.langs[0]") == ()
    assert suggested("$.lang[0]") == ("v:langs",)
    assert suggested("$.unlike_anything") == ()
    assert "Did you mean v:kind?" in str(explain(plan_files([file("1", known)], [path("$.knd")])))


def test_suggestions_come_from_skipped_files_too() -> None:
    known = between("BIGINT", 1, 2)
    plan = plan_files([file("1", known)], [path("$.A")], Compare(">", A, lit(5)))
    assert plan.read_files == 0
    assert explain(plan).paths[0].suggestions == ("v:a",)
    assert "no file is read. Did you mean v:a?" in str(explain(plan))


def test_a_plan_for_an_empty_table_reads_well() -> None:
    plan = plan_files([], [A], StartsWith(B, "x"))
    assert str(explain(plan)) == (
        "files: 0 of 0 read, 0 skipped (0 bytes of 0 bytes)\npaths:\n  v:a::bigint: no file is read"
    )


def test_facts_that_do_not_fit_their_layout_are_unknown() -> None:
    broken = facts("a BIGINT")
    cut = FileFacts(1, 1, 1, (type(broken.variants[0])(("v",), broken.variants[0].schema, 0, ()),))
    assert isinstance(plan_files([file("1", cut)], [A]).groups[0].reading(A), Native)
