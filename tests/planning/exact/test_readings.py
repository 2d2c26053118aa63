"""How one path of one file is read: EXACTNESS, rules 3 to 12."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tests.planning.builders import ROWS, between, facts, lit, may_match, path
from variantlake.expressions.tree import Compare, IsNull, Ref
from variantlake.parquet.stats.fact_columns import RecordColumns
from variantlake.parquet.stats.facts import MAX_INSIDE, FileFacts, VariantFacts
from variantlake.planning.exact.exactness import IDENTITY, Conversion, ConversionKind
from variantlake.planning.exact.readings import (
    IN_RESIDUAL,
    MIXED,
    NO_STATISTICS,
    NOT_A_SCALAR,
    TWIN_KEY,
    UNCHECKED,
    WHOLE_VARIANT,
    Native,
    NullColumn,
    PhysicalColumn,
    Reader,
    Reading,
    readable_by_spark,
)
from variantlake.planning.stats.skipping import Skipper
from variantlake.shredding.schema import Leaf, Object, ShreddingSchema
from variantlake.types import INT64, STRING, ShreddedType

OPEN = {"$": {"residuals": 1}}
"""Some row has keys that the layout does not."""


def read(ref: Ref, known: FileFacts | None) -> Reading:
    """The same for one file as for it among many."""
    reading = Reader(ref).read(known)
    unknown = FileFacts(1, ROWS, 1)
    many = Reader(ref).read_all(RecordColumns([unknown, known or unknown, unknown]))
    assert many.choices[many.codes[1]] == reading
    return reading


def cast_to(type_: str) -> Conversion:
    return Conversion(ConversionKind.CAST, type_)


def test_a_clean_leaf_of_the_asked_type_is_the_column_itself() -> None:
    known = facts("commit STRUCT<record: STRUCT<a: BIGINT>>", OPEN)
    expected = ("typed_value", "commit", "typed_value", "record", "typed_value", "a", "typed_value")
    assert read(path("$.commit.record.a"), known) == PhysicalColumn(expected, INT64, IDENTITY)


def test_a_column_without_an_object_at_its_root() -> None:
    assert read(path("$"), facts("BIGINT")) == PhysicalColumn(("typed_value",), INT64, IDENTITY)
    assert read(path("$.a"), facts("BIGINT")) == NullColumn()


@pytest.mark.rule(6)
@pytest.mark.parametrize(
    "key", ["", "value", "typed_value", "metadata", "list", "element", "a.b", "a`b", "\U0001f600"]
)
def test_rule_6_odd_keys_are_steps_like_any_other(key: str) -> None:
    schema = ShreddingSchema(Object(((key, Leaf(INT64)),)))
    template = facts("a BIGINT").variants[0]
    paths = tuple(
        type(own)(at, node, ROWS, 0, 0)
        for own, (at, node) in zip(template.paths, schema.nodes(), strict=True)
    )
    known = FileFacts(1, ROWS, 1, (VariantFacts(("v",), schema, 0, paths),))
    ref = Ref(("v",), paths[1].path, "bigint")
    assert read(ref, known) == PhysicalColumn(("typed_value", key, "typed_value"), INT64, IDENTITY)


@pytest.mark.rule(3)
def test_rule_3_a_path_that_no_row_can_have_is_null() -> None:
    assert read(path("$.nobody"), facts("a BIGINT")) == NullColumn(joinable=True)
    assert read(path("$.nobody"), facts("a BIGINT", OPEN)) == Native(IN_RESIDUAL)
    assert read(path("$.a.b"), facts("a BIGINT", OPEN)) == NullColumn()
    assert read(path("$.a.b"), facts("a BIGINT", {"$['a']": {"residuals": 1}})) == Native(
        IN_RESIDUAL
    )
    assert read(path("$.a.b"), facts("a ARRAY<VARIANT>")) == NullColumn()
    assert read(path("$.a[0]"), facts("a STRUCT<b: BIGINT>")) == NullColumn()
    assert read(path("$.a"), facts("a VARIANT", {"$['a']": {"nulls": 3}})) == NullColumn(
        joinable=True
    )
    assert read(path("$.a"), facts("a STRUCT<b: BIGINT>", {"$['a']": {"typed": 0}})) == NullColumn()


@pytest.mark.rule(5)
def test_rule_5_a_key_that_differs_by_case_goes_native() -> None:
    for requested, stored in (
        ("$.ID", "id"),
        ("$.id", "ID"),
        ("$['\u212a']", "k"),
        ("$.k", "`\u212a`"),
    ):
        assert read(path(requested), facts(f"{stored} BIGINT")) == Native(TWIN_KEY), requested
        assert read(path(requested), facts(f"{stored} BIGINT", OPEN)) == Native(TWIN_KEY), requested
    deep = facts("a STRUCT<ID: BIGINT>")
    assert read(path("$.a.id"), deep) == Native(TWIN_KEY)
    assert read(path("$.A.ID"), deep) == Native(TWIN_KEY)


@pytest.mark.rule(5)
def test_rule_5_keys_are_compared_by_exact_text() -> None:
    both = facts("id BIGINT, ID STRING")
    assert read(path("$.id"), both) == PhysicalColumn(
        ("typed_value", "id", "typed_value"), INT64, IDENTITY
    )
    assert read(path("$.ID", "string"), both) == PhysicalColumn(
        ("typed_value", "ID", "typed_value"), STRING, IDENTITY
    )
    assert read(path("$['e\u0301']"), facts("`\u00e9` BIGINT", OPEN)) == Native(IN_RESIDUAL)


@pytest.mark.rule(7)
@pytest.mark.parametrize(
    ("stored", "requested", "strict", "expected"),
    [
        ("DECIMAL(9,2)", "string", True, None),  # loses its trailing zeros in variant_get
        ("STRING", "bigint", True, None),
        ("STRING", "bigint", False, Conversion(ConversionKind.TRY_CAST, "bigint")),
        ("STRING", "timestamp", False, None),  # takes the session's zone
        ("TIMESTAMP", "date", True, None),
        ("TIMESTAMP", "string", False, None),
        ("DOUBLE", "bigint", False, None),
        ("INT", "bigint", True, cast_to("bigint")),
        ("DECIMAL(18,0)", "bigint", True, cast_to("bigint")),  # fits by its type
        ("DECIMAL(19,0)", "bigint", True, None),
        ("DECIMAL(16,7)", "int", True, None),  # by way of a double in variant_get
        ("BIGINT", "decimal(18,2)", True, None),
        ("BIGINT", "variant", True, None),
        ("BIGINT", "struct<a: bigint>", True, None),
        ("TIME", "string", True, None),
    ],
)
def test_rule_7_only_what_the_table_proves_is_physical(
    stored: str, requested: str, strict: bool, expected: Conversion | None
) -> None:
    reading = read(path("$.a", requested, strict=strict), facts(f"a {stored}"))
    if expected is None:
        assert isinstance(reading, Native)
    else:
        assert isinstance(reading, PhysicalColumn)
        assert (reading.stored, reading.conversion) == (ShreddedType.parse(stored), expected)


@pytest.mark.rule(7)
@pytest.mark.parametrize(
    ("stored", "requested", "inside", "outside"),
    [
        (
            "DECIMAL(38,2)",
            "bigint",
            ("1.50", "9223372036854775807.99"),
            ("0", "9223372036854775808"),
        ),
        ("DECIMAL(18,2)", "int", ("-2147483648.99", "5"), ("-2147483649.00", "5")),
        ("DECIMAL(9,2)", "decimal(5,0)", ("-99999.49", "99999.49"), ("0", "99999.50")),
        ("DECIMAL(9,2)", "decimal(9,3)", ("0", "999999.99"), ("0", "1000000.00")),
    ],
)
def test_rule_7_bounds_prove_that_every_value_fits(
    stored: str, requested: str, inside: tuple[str, str], outside: tuple[str, str]
) -> None:
    fits = between(stored, *map(Decimal, inside))
    reading = read(path("$.a", requested), fits)
    assert isinstance(reading, PhysicalColumn)
    assert reading.conversion == cast_to(requested)
    beyond = between(stored, *map(Decimal, outside))
    assert isinstance(read(path("$.a", requested), beyond), Native)
    lenient = read(path("$.a", requested, strict=False), beyond)
    assert isinstance(lenient, PhysicalColumn)
    assert lenient.conversion == Conversion(ConversionKind.TRY_CAST, requested)


@pytest.mark.rule(7)
def test_rule_7_seconds_beyond_a_timestamp_are_never_cast() -> None:
    ref = path("$.a", "timestamp", strict=False)
    assert isinstance(read(ref, between("BIGINT", 0, 1_700_000_000)), PhysicalColumn)
    assert read(ref, between("BIGINT", 0, 2**62)) == Native("stored as BIGINT")


@pytest.mark.rule(8)
@pytest.mark.parametrize(
    ("known", "pushable"),
    [({}, False), ({"plain_floats": True}, True), ({"typed": 0}, True)],
)
def test_rule_8_floats_that_nobody_checked_are_not_pushed_down(
    known: dict[str, Any], pushable: bool
) -> None:
    for stored in ("DOUBLE", "FLOAT"):
        reading = read(path("$.a", "double"), facts(f"a {stored}", {"$['a']": known}))
        assert isinstance(reading, PhysicalColumn)
        assert reading.pushable is pushable


@pytest.mark.rule(39)
@pytest.mark.parametrize(
    ("stored", "low", "high", "pushable"),
    [
        ("DATE", -141_427, 20_000, False),  # 1582-10-15
        ("DATE", -200_000, 20_000, False),
        ("DATE", -200_000, -141_438, True),
        ("DATE", -45_000, 8_000, True),
        ("DATE", 15_338, 15_338, False),  # 2011-12-30, which Samoa skipped
        ("DATE", 15_340, 20_000, True),
        ("DATE", None, 20_000, False),
        ("TIMESTAMP", -(10**16), 0, False),
        ("TIMESTAMP", -2_208_988_800_000_000, 0, False),  # 1900-01-01
        ("TIMESTAMP", 0, 10**15, True),
        ("TIMESTAMP", 0, None, True),
        ("TIMESTAMP", None, None, False),
        ("TIMESTAMP_NTZ", -(10**16), 0, True),  # passes through no calendar
    ],
)
def test_rule_39_nothing_is_pushed_to_values_where_spark_moves_literals(
    stored: str, low: int | None, high: int | None, pushable: bool
) -> None:
    reading = read(path("$.a", stored.lower()), between(stored, low, high))
    assert isinstance(reading, PhysicalColumn)
    assert reading.pushable is pushable


@pytest.mark.rule(39)
@pytest.mark.parametrize("order", [1, -1])
def test_rule_39_each_of_many_files_is_pushed_to_by_its_own_values(order: int) -> None:
    files = [between("DATE", 0, 8_000), between("DATE", -200_000, 8_000)][::order]
    many = Reader(path("$.a", "date")).read_all(RecordColumns(files))
    found = [many.choices[code] for code in many.codes]
    assert [isinstance(each, PhysicalColumn) and each.pushable for each in found] == [
        True,
        False,
    ][::order]


@pytest.mark.rule(9)
def test_rule_9_clean_is_no_residual_but_variant_nulls() -> None:
    def of(**own: int) -> Reading:
        return read(path("$.a"), facts("a BIGINT", {"$['a']": own}))

    assert isinstance(of(typed=8, nulls=2), PhysicalColumn)
    assert of(residuals=1) == Native(MIXED)
    assert of(residuals=-1) == Native(UNCHECKED)
    assert of(nulls=-1) == Native(UNCHECKED)


@pytest.mark.rule(9)
def test_rule_9_residuals_of_ancestors_do_not_matter() -> None:
    known = facts(
        "a STRUCT<b: BIGINT>", {"$": {"residuals": 5}, "$['a']": {"residuals": 5, "nulls": 1}}
    )
    assert isinstance(read(path("$.a.b"), known), PhysicalColumn)


@pytest.mark.rule(10)
@pytest.mark.parametrize("stored", ["TIME", "TIMESTAMP_NANOS", "TIMESTAMP_NTZ_NANOS", "UUID"])
def test_rule_10_files_that_spark_cannot_read_are_known(stored: str) -> None:
    assert not readable_by_spark(
        facts(f"a BIGINT, l ARRAY<STRUCT<x: {stored}>>").variants[0].schema
    )
    assert not readable_by_spark(facts(f"a STRUCT<b: {stored}>").variants[0].schema)
    assert readable_by_spark(facts("a BIGINT, l ARRAY<STRING>").variants[0].schema)


def inside(bits: int, **more: int) -> dict[str, dict[str, int]]:
    return {"$['l']": {"clean_inside": bits, **more}}


@pytest.mark.rule(12)
def test_rule_12_an_element_is_read_from_the_elements_column() -> None:
    steps = ("typed_value", "l", "typed_value", 7, "typed_value")
    expected = PhysicalColumn(steps, INT64, IDENTITY)
    assert read(path("$.l[7]"), facts("l ARRAY<BIGINT>", inside(1))) == expected
    assert read(path("$.l[7].x"), facts("l ARRAY<BIGINT>", inside(1))) == NullColumn()
    # Nodes inside: 0 the object, 1 x, 2 y, 3 an object of it, 4 z, 5 an array, 6 its elements.
    nested = "l ARRAY<STRUCT<x: STRING, y: ARRAY<STRUCT<z: BIGINT>>, w: ARRAY<STRING>>>"
    deep = (*steps, "y", "typed_value", 1, "typed_value", "z", "typed_value")
    found = read(path("$.l[7].y[1].z"), facts(nested, inside(0b10100)))
    assert found == PhysicalColumn(deep, INT64, IDENTITY)
    assert isinstance(
        read(path("$.l[0].w[0]", "string"), facts(nested, inside(0b1100000))), PhysicalColumn
    )
    assert read(path("$.l[0].nobody"), facts(nested, inside(1))) == NullColumn()
    assert read(path("$.l[0].X"), facts(nested, inside(0b1111111))) == Native(TWIN_KEY)


@pytest.mark.rule(12)
def test_rule_12_clean_includes_the_elements_and_the_array_itself() -> None:
    ddl = "l ARRAY<STRUCT<x: BIGINT, y: ARRAY<BIGINT>>>"
    assert read(path("$.l[0].x"), facts(ddl)) == Native(UNCHECKED)
    assert read(path("$.l[0].x"), facts(ddl, inside(0b1101))) == Native(UNCHECKED)
    assert isinstance(read(path("$.l[0].x"), facts(ddl, inside(0b0010))), PhysicalColumn)
    assert read(path("$.l[0].x"), facts(ddl, inside(0b0010, residuals=1))) == Native(MIXED)
    assert read(path("$.l[0].y[0]"), facts(ddl, inside(0b1011))) == Native(UNCHECKED)
    assert read(path("$.l[0].y[0]"), facts(ddl, inside(0b0111))) == Native(UNCHECKED)
    assert isinstance(read(path("$.l[0].y[0]"), facts(ddl, inside(0b1100))), PhysicalColumn)
    assert read(path("$.l[0].nobody"), facts(ddl, inside(0b1110))) == Native(IN_RESIDUAL)


@pytest.mark.rule(12)
def test_rule_12_of_many_nodes_inside_of_an_array_the_last_are_not_known() -> None:
    fields = ", ".join(f"f{at}: BIGINT" for at in range(60))
    known = facts(f"l ARRAY<STRUCT<{fields}>>", inside((1 << MAX_INSIDE) - 1))
    last = MAX_INSIDE - 2
    assert isinstance(read(path(f"$.l[0].f{last}"), known), PhysicalColumn)
    assert read(path(f"$.l[0].f{last + 1}"), known) == Native(UNCHECKED)
    assert read(path("$.l[0].f59"), known) == Native(UNCHECKED)


@pytest.mark.rule(12)
def test_rule_12_elements_have_no_bounds() -> None:
    known = facts("l ARRAY<BIGINT>", inside(1, minimum=5, maximum=6))
    above = Compare("=", path("$.l[0]"), lit(7))
    assert may_match(Skipper(above), known)
    assert isinstance(read(path("$.l[0]", "int"), known), Native)
    null = IsNull(path("$.l[0]", "variant"))
    assert may_match(Skipper(null), known)
    assert not may_match(Skipper(above), facts("l ARRAY<BIGINT>", inside(1, typed=0)))


def test_other_reasons_for_the_native_way() -> None:
    assert read(path("$.a"), None) == Native(NO_STATISTICS)
    assert read(path("$.a"), FileFacts(1, 1, 1)) == Native(NO_STATISTICS)
    assert read(path("$.a", "variant"), facts("a BIGINT")) == Native(WHOLE_VARIANT)
    assert read(path("$.a", "string"), facts("a STRUCT<b: BIGINT>")) == Native(NOT_A_SCALAR)
    assert read(path("$.a"), facts("a VARIANT", {"$['a']": {"residuals": 1}})) == Native(
        IN_RESIDUAL
    )


def test_a_leaf_without_values_is_read_as_null_when_its_type_does_not_fit() -> None:
    empty = {"$['a']": {"typed": 0}}
    assert read(path("$.a", "bigint"), facts("a DATE", empty)) == NullColumn()
    assert isinstance(read(path("$.a", "int"), facts("a BIGINT", empty)), PhysicalColumn)


def test_an_ordinary_column_has_no_reader() -> None:
    with pytest.raises(ValueError, match="ordinary column"):
        Reader(Ref(("c",), None, "int"))
