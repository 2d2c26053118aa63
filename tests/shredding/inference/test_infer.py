"""Which paths the inference takes, and why."""

from __future__ import annotations

from typing import Any

import pytest

from variantlake.errors import InvalidSchema
from variantlake.paths import Path
from variantlake.shredding.ddl import format_ddl
from variantlake.shredding.folding import fold_key, folded_twins
from variantlake.shredding.inference.infer import Inference, InferenceOptions, infer
from variantlake.shredding.inference.profile import Profile
from variantlake.shredding.layout import check_writable
from variantlake.types import Primitive


def profile_of(*documents: Any, times: int = 1) -> Profile:
    """The profile of plain documents; a tuple (primitive, integer digits, scale) is a number."""
    profile = Profile()
    for document in documents:
        _see(profile, document, times)
    return profile


def _see(profile: Profile, value: Any, times: int) -> None:
    profile.rows += times
    if isinstance(value, dict):
        profile.objects += times
        for key, child in value.items():
            _see(profile.fields.setdefault(key, Profile()), child, times)
    elif isinstance(value, list):
        profile.arrays += times
        for child in value:
            profile.element = profile.element or Profile()
            _see(profile.element, child, times)
    else:
        primitive, digits, scale = value if isinstance(value, tuple) else (value, 0, 0)
        profile.primitives[primitive] = profile.primitives.get(primitive, 0) + times
        profile.integer_digits = max(profile.integer_digits, digits)
        profile.scale = max(profile.scale, scale)


def ddl(inference: Inference) -> str:
    return format_ddl(inference.schema)


def why(inference: Inference, *steps: str | int) -> str:
    return inference.why(Path.of(*steps))[2]


NULL, TRUE, FALSE = Primitive.NULL, Primitive.TRUE, Primitive.FALSE
TEXT, REAL = Primitive.STRING, Primitive.DOUBLE


def test_scalars_and_nested_objects_become_columns() -> None:
    document = {"s": TEXT, "b": TRUE, "d": REAL, "i": (Primitive.INT8, 1, 0), "o": {"x": TEXT}}
    inference = infer(profile_of(document))
    assert ddl(inference) == "b BOOLEAN, d DOUBLE, i BIGINT, o STRUCT<x: STRING>, s STRING"
    assert all(taken for _, taken, _ in inference.reasons)
    assert next(path for path, _, _ in inference.reasons) == Path()


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([(Primitive.INT8, 2, 0), (Primitive.INT64, 19, 0)], "BIGINT"),
        ([(Primitive.INT8, 2, 0), (Primitive.DECIMAL4, 1, 1)], "DECIMAL(18,1)"),
        ([(Primitive.DECIMAL8, 10, 8)], "DECIMAL(18,8)"),
        ([(Primitive.INT64, 19, 0), (Primitive.DECIMAL4, 1, 1)], "DECIMAL(38,1)"),
        ([(Primitive.DECIMAL16, 11, 8)], "DECIMAL(38,8)"),
        ([(Primitive.DECIMAL16, 38, 0)], "DECIMAL(38,0)"),
    ],
)
def test_integers_and_decimals_are_one_number_type(numbers: list[Any], expected: str) -> None:
    assert ddl(infer(profile_of(*({"n": n} for n in numbers)))) == f"n {expected}"


def test_numbers_beyond_38_digits_are_left() -> None:
    inference = infer(profile_of((Primitive.DECIMAL16, 30, 1), (Primitive.DECIMAL16, 1, 9)))
    assert ddl(inference) == "VARIANT"
    assert "do not fit 38" in why(inference)


def test_doubles_are_no_exact_numbers() -> None:
    profile = profile_of(*[{"n": REAL}] * 3, {"n": (Primitive.INT8, 1, 0)})
    assert ddl(infer(profile)) == "n DOUBLE"


def test_rare_paths_are_left() -> None:
    profile = profile_of({"a": TEXT}, times=95)
    profile.merge(profile_of({"a": TEXT, "rare": TEXT}, times=4))
    profile.merge(profile_of({"a": TEXT, "enough": {"x": TEXT}}, times=5))
    inference = infer(profile, InferenceOptions(min_share=5 / 104))
    assert ddl(inference) == "a STRING, enough STRUCT<x: STRING>"
    assert "fewer than" in why(inference, "rare")


def test_nulls_do_not_count_against_a_path() -> None:
    profile = profile_of(*[{"a": NULL, "n": NULL}] * 9, {"a": TEXT, "n": NULL})
    inference = infer(profile)
    assert ddl(inference) == "a STRING"
    assert why(inference, "n") == "null in every row"


def test_mixed_leaves_need_a_majority() -> None:
    mixed = profile_of({"a": TEXT, "b": TEXT}, {"a": TRUE, "b": TEXT}, {"a": REAL, "b": TRUE})
    inference = infer(mixed)
    assert ddl(inference) == "b STRING"
    assert "no kind of value prevails" in why(inference, "a")


def test_an_object_is_taken_beside_other_values() -> None:
    profile = profile_of(*[{"a": TEXT}] * 8, *[{"a": {"x": TEXT}}] * 2)
    assert ddl(infer(profile)) == "a STRUCT<x: STRING>"


def test_the_most_frequent_leaves_fill_the_columns() -> None:
    profile = profile_of({"a": TEXT, "b": TEXT, "o": {"c": TEXT}}, {"b": TEXT, "o": {"c": TEXT}})
    inference = infer(profile, InferenceOptions(max_columns=2))
    assert ddl(inference) == "b STRING, o STRUCT<c: STRING>"
    assert "2 more frequent paths" in why(inference, "a")
    nothing = infer(profile, InferenceOptions(max_columns=0))
    assert ddl(nothing) == "VARIANT"
    assert why(nothing) == "nothing inside it becomes a column"


def test_depth_is_bounded() -> None:
    inference = infer(profile_of({"a": {"b": TEXT}, "c": TEXT}), InferenceOptions(max_depth=1))
    assert ddl(inference) == "c STRING"
    assert "deeper than 1" in why(inference, "a", "b")


def test_arrays_stay_whole_unless_asked_for() -> None:
    profile = profile_of({"t": [TEXT, TEXT], "e": [], "m": [TEXT, TRUE, REAL]})
    assert ddl(infer(profile)) == "VARIANT"
    inference = infer(profile, InferenceOptions(arrays=True))
    assert ddl(inference) == "t ARRAY<STRING>"
    assert why(inference, "e") == "the arrays are empty"
    assert "prevails" in why(inference, "m", 0)
    assert why(infer(profile), "t", 0) == "arrays stay whole"


def test_objects_in_arrays() -> None:
    profile = profile_of([{"x": TEXT}, {"x": TEXT, "y": (Primitive.INT8, 1, 0)}])
    assert ddl(infer(profile, InferenceOptions(arrays=True))) == (
        "ARRAY<STRUCT<x: STRING, y: BIGINT>>"
    )


@pytest.mark.rule(5)
def test_of_keys_that_differ_by_case_the_most_frequent_becomes_a_column() -> None:
    profile = profile_of(*[{"id": TEXT}] * 2, *[{"ID": TEXT}] * 3, {"Id": {"x": TEXT}})
    inference = infer(profile)
    assert ddl(inference) == "ID STRING"
    assert "equal, except for case, to 'ID'" in why(inference, "id")
    assert not inference.why(Path.of("Id", "x"))[1]
    check_writable(inference.schema)


@pytest.mark.rule(5)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("k", "\u212a"),
        ("ß", "SS"),
        ("\u017f", "S"),
        ("\u0131", "I"),
        ("İ", "i"),
        ("İ", "i\u0307"),
        ("ς", "Σ"),
    ],
)
def test_folding_covers_unicode(one: str, other: str) -> None:
    assert fold_key(one) == fold_key(other)
    assert folded_twins([one, other, "x"]) == {fold_key(one): [one, other]}


@pytest.mark.parametrize(
    "primitive",
    [Primitive.TIME, Primitive.TIMESTAMP_NANOS, Primitive.TIMESTAMP_NTZ_NANOS, Primitive.UUID],
)
def test_types_that_spark_cannot_read_are_left_for_spark(primitive: Primitive) -> None:
    profile = profile_of({"a": primitive, "b": TEXT})
    assert ddl(infer(profile)) == "b STRING"
    assert "Spark cannot read" in why(infer(profile), "a")
    assert ddl(infer(profile, InferenceOptions(spark=False))).startswith("a ")


def test_an_empty_sample_shreds_nothing() -> None:
    assert ddl(infer(Profile())) == "VARIANT"
    assert why(infer(Profile()), "a", "b") == "not seen"


@pytest.mark.parametrize(
    "options", [{"min_share": 1.5}, {"min_purity": -1}, {"max_columns": -1}, {"max_depth": 1000}]
)
def test_thresholds_outside_of_their_range_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidSchema):
        InferenceOptions(**options)
