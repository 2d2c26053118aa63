"""Tags and statistics together: what the log alone knows, and when it must not be believed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.delta.tables import SCHEMA, bounds, facts, facts_in_log, known_facts, number
from variantlake.delta.actions.actions import AddFile, DeletionVectorDescriptor
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.delta.stats.tags import column_name, file_tags
from variantlake.delta.transaction.new_actions import new_add
from variantlake.parquet.stats.facts import UNKNOWN, FileFacts, PathFacts

VECTOR = DeletionVectorDescriptor("i", "x", 1, 1)


def _add(known: FileFacts, **properties: str) -> AddFile:
    return new_add("f.parquet", known, schema=SCHEMA, properties=properties)


def _paths(known: FileFacts | None) -> dict[str, PathFacts]:
    assert known is not None
    return {found.path.normalized(): found for found in known.variants[0].paths}


def test_the_log_gives_back_what_was_known_of_the_file() -> None:
    known = facts(
        "a BIGINT, o STRUCT<x: DOUBLE, y: DATE>, l ARRAY<STRING>, u VARIANT",
        paths={
            "$['a']": bounds(1, 9),
            "$['o']['x']": bounds(0.5, 0.7, plain_floats=True),
            "$['o']['y']": {"nulls": UNKNOWN, "residuals": UNKNOWN},
            "$['l']": {"typed": 2, "nulls": 1, "residuals": 2},
        },
        columns=(number("n", 3, 4),),
    )
    assert known_facts(_add(known), SCHEMA) == replace(known, row_groups=UNKNOWN)


def test_bounds_beside_variant_nulls_are_in_the_tags_alone() -> None:
    known = facts(paths={"$['a']": bounds(1, 9, typed=3, nulls=2)})
    add = _add(known)
    assert (
        "minValues" not in (add.stats or "") or '"event"' not in (add.stats or "").split("nullC")[0]
    )
    assert set(add.tags or {}) == {
        "variantlake.version",
        "variantlake.file",
        "variantlake.layout.event",
        "variantlake.facts.event",
        "variantlake.bounds.event",
    }
    found = _paths(known_facts(add, SCHEMA))["$['a']"]
    assert (found.bounds.minimum, found.bounds.maximum, found.bounds.minimum_exact) == (1, 9, True)


def test_types_that_spark_does_not_know_have_their_bounds_in_the_tags() -> None:
    known = facts("u UUID", paths={"$['u']": bounds(bytes(16), b"\xff" * 16)})
    found = _paths(known_facts(_add(known), SCHEMA))["$['u']"]
    assert (found.bounds.minimum, found.bounds.maximum) == (bytes(16), b"\xff" * 16)


@pytest.mark.rule(21)
def test_string_bounds_are_never_exact() -> None:
    found = _paths(known_facts(_add(facts(paths={"$['s']": bounds("a", "b")})), SCHEMA))["$['s']"]
    assert (found.bounds.minimum, found.bounds.maximum, found.bounds.maximum_exact) == (
        "a",
        "b",
        False,
    )


def test_the_flag_tells_plain_floats() -> None:
    for plain in (True, False):
        known = facts("a DOUBLE", paths={"$['a']": bounds(0.5, 0.7, plain_floats=plain)})
        found = _paths(known_facts(_add(known), SCHEMA))["$['a']"]
        assert found.plain_floats is plain
        assert found.bounds.minimum == (0.5 if plain else None)


def test_where_rows_were_deleted_bounds_enclose_and_no_more() -> None:
    add = _add(facts(paths={"$['a']": bounds(5, 5)}))
    found = _paths(known_facts(replace(add, deletion_vector=VECTOR), SCHEMA))["$['a']"]
    assert (found.bounds.minimum, found.bounds.maximum) == (5, 5)
    assert not found.bounds.minimum_exact
    assert not found.bounds.maximum_exact


KNOWN = facts(paths={"$['a']": bounds(1, 9)})


@pytest.mark.rule(25)
@pytest.mark.parametrize(
    "changes",
    [
        {"tags": None},
        {"tags": {}},
        {"size": 101},  # another file
        {"stats": None},
        {"stats": '{"numRecords":6}'},
        {"stats": '{"numRecords":"5"}'},
    ],
)
def test_tags_of_another_file_are_not_believed(changes: dict[str, Any]) -> None:
    assert known_facts(replace(_add(KNOWN), **changes), SCHEMA) is None


@pytest.mark.rule(25)
@pytest.mark.parametrize(
    ("tag", "value"),
    [
        ("variantlake.version", "2"),
        ("variantlake.version", None),
        ("variantlake.file", "100:6"),
        ("variantlake.layout.event", None),
        ("variantlake.layout.event", "a BIGINT"),  # fewer nodes than facts
        ("variantlake.layout.event", "a NONSENSE, s STRING"),
        ("variantlake.facts.event", "[[5,0,0,0]"),
        ("variantlake.facts.event", "[[5,0,0,0],[5,0,0,0],[6,0,0,0]]"),  # more than rows
        ("variantlake.facts.event", "[[5,0,0,0],[5,0,0,0],[-2,0,0,0]]"),
        ("variantlake.facts.event", '[[5,0,0,0],[5,0,0,0],["5",0,0,0]]'),
        ("variantlake.facts.event", "[[5,0,0,0],[5,0,0,0],[5,0,0]]"),
        ("variantlake.facts.event", "[[5,0,0,0],[5,0,0,0],5]"),
        ("variantlake.facts.event", "7"),
        ("variantlake.bounds.event", "{}"),
        ("variantlake.bounds.event", "[]"),
        ("variantlake.bounds.event", '{"min":"~","max":"~"}'),
        ("variantlake.bounds.event", '{"min":1,"max":1}'),
    ],
)
def test_tags_that_make_no_sense_count_as_absent(tag: str, value: str | None) -> None:
    add = _add(KNOWN)
    tags = {**(add.tags or {}), tag: value}
    if value is None:
        del tags[tag]
    assert known_facts(replace(add, tags=tags), SCHEMA) is None


@given(
    st.dictionaries(
        st.sampled_from([*sorted(file_tags(KNOWN)), "variantlake.bounds.event"]),
        st.text(max_size=12) | st.sampled_from(["[[1]]", "{}", "a BIGINT", "100:5", "1"]),
    )
)
def test_tags_of_any_content_are_no_error(changed: dict[str, str]) -> None:
    add = _add(KNOWN)
    known_facts(replace(add, tags={**(add.tags or {}), **changed}), SCHEMA)


def test_a_bound_of_another_type_than_the_layout_is_unknown() -> None:
    add = _add(facts("a BIGINT", paths={"$['a']": bounds(1, 9)}))
    tags = {**(add.tags or {}), "variantlake.layout.event": "a STRING"}
    found = _paths(known_facts(replace(add, tags=tags), SCHEMA))["$['a']"]
    assert (found.bounds.minimum, found.bounds.maximum) == (None, None)


def test_every_variant_column_needs_its_tags() -> None:
    wider = parse_table_ddl("event VARIANT, n INT, other VARIANT")
    assert known_facts(_add(KNOWN), wider) is None


def test_a_table_without_variants_needs_no_tags() -> None:
    add = AddFile("f", 1, 1, stats='{"numRecords":2,"minValues":{"n":1}}')
    known = known_facts(add, parse_table_ddl("n INT"))
    assert known is not None
    assert known.columns[0].bounds.minimum == 1


def test_statistics_alone_serve_ordinary_columns_of_files_of_other_writers() -> None:
    add = AddFile("f", 1, 1, stats='{"numRecords":2,"minValues":{"n":1,"event":"x"}}')
    known = facts_in_log(add, SCHEMA)
    assert known.variants == ()
    assert [column.column for column in known.columns] == [("n",)]


@pytest.mark.parametrize(
    ("column", "name"),
    [(("a",), "a"), (("a", "b"), "a.b"), (("a.b",), "`a.b`"), (("a`", "c d"), "`a```.c d")],
)
def test_a_column_has_one_name_in_tags(column: tuple[str, ...], name: str) -> None:
    assert column_name(column) == name


def test_the_limit_on_paths_holds_for_statistics_and_tags_each() -> None:
    layout = ", ".join(f"f{i} BIGINT" for i in range(6))
    changed = {f"$['f{i}']": bounds(i, i, nulls=i % 2, typed=4) for i in range(6)}
    add = _add(facts(layout, paths=changed), **{"variantlake.stats.maxPaths": "1"})
    found = _paths(known_facts(add, SCHEMA))
    assert sum(facts.bounds.minimum is not None for facts in found.values()) == 2


def test_tags_are_small_json() -> None:
    entries = orjson.loads(file_tags(KNOWN)["variantlake.facts.event"])
    assert entries == [[5, 0, 0, 0], [5, 0, 0, 6], [5, 0, 0, 0]]
