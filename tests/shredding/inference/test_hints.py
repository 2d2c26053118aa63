"""Hints: their text, and what they make of a schema."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.twins.profile import profile_trees
from variantlake.encoding.python_values import tree_of
from variantlake.errors import InvalidSchema
from variantlake.shredding.ddl import format_ddl, parse_ddl
from variantlake.shredding.inference.hints import MAX_HINTS, parse_hints, with_hints
from variantlake.shredding.inference.infer import InferenceOptions, infer
from variantlake.shredding.schema import Leaf, ShreddingSchema


def schema_of(documents: Sequence[object], hints: str = "", **options: object) -> ShreddingSchema:
    profile = profile_trees([tree_of(document) for document in documents])
    return infer(profile, InferenceOptions(hints=parse_hints(hints), **options)).schema  # type: ignore[arg-type]


def test_a_hint_is_a_path_and_perhaps_a_type() -> None:
    text = "user.id BIGINT, output.* DOUBLE, note, `a b`['x,y'] DECIMAL(10, 2), $.k::date"
    shown = [(hint.steps, hint.type and hint.type.ddl) for hint in parse_hints(text)]
    assert shown == [
        (("user", "id"), "BIGINT"),
        (("output", "*"), "DOUBLE"),
        (("note",), None),
        (("a b", "x,y"), "DECIMAL(10,2)"),
        (("k",), "DATE"),
    ]
    assert parse_hints("  ") == ()


@pytest.mark.parametrize(
    "text", ["a,,b", "a,", "[0] INT", "'x", "a FOO", "a INT, a", "$", "a..b", "x" * 3 + "[", "(,"]
)
def test_what_is_no_hint_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse_hints(text)


def test_hints_are_bounded() -> None:
    with pytest.raises(InvalidSchema, match="at most"):
        parse_hints(", ".join(f"a{number} INT" for number in range(MAX_HINTS + 1)))


def test_a_hinted_path_is_a_column_of_its_type_whatever_the_rows_say() -> None:
    rare: object = {"rare": {"x": 1, "y": "s"}}
    documents = [{"a": "text", "b": 1}] * 99 + [rare]
    found = schema_of(documents, "a BIGINT, never.seen DATE, rare.*, ID STRING")
    assert format_ddl(found) == (
        "ID STRING, a BIGINT, b BIGINT, never STRUCT<seen: DATE>, rare STRUCT<x: BIGINT, y: STRING>"
    )


def test_what_stands_in_the_way_of_a_hint_gives_way() -> None:
    known = parse_ddl("a STRING, id STRING, z BIGINT")
    found = with_hints(known, parse_hints("a.b INT, ID BIGINT, q.*"))
    assert format_ddl(found) == "ID BIGINT, a STRUCT<b: INT>, z BIGINT"


COMMON = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=4, unique=True)


@settings(max_examples=40, deadline=None)
@given(
    common=COMMON,
    unique=st.integers(0, 40),
    rows=st.integers(21, 60),
    most=st.integers(4, 12),
    hints=st.sampled_from(["", "ids.*", "ids.* STRING, zz BIGINT", "*"]),
)
def test_unique_ids_as_keys_never_crowd_out_common_ones(
    common: list[str], unique: int, rows: int, most: int, hints: str
) -> None:
    """Path counts stay bounded, and what every row holds is a column, with any pattern beside."""
    documents = [
        {
            **dict.fromkeys(common, row),
            **{f"{row}-{number}": row for number in range(unique)},
            "ids": {f"{row}-{number}": "x" for number in range(unique)},
        }
        for row in range(rows)
    ]
    found = schema_of(documents, hints, max_columns=most)
    leaves = [path for path, node in found.nodes() if isinstance(node, Leaf)]
    fixed = 1 if "zz" in hints else 0
    assert len(leaves) <= most
    kept = {path.steps[0] for path in leaves if len(path.steps) == 1}
    assert set(common) <= kept or len(common) + fixed > most
    if not hints:
        assert kept == set(common)
