"""The text of `stats`: what the protocol wants of each type, and what has to stay out."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.delta.tables import bounds, facts, number, path
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.delta.stats.stats_writer import StatsOptions, write_stats
from variantlake.delta.stats.variant_bounds import decode_bounds
from variantlake.parquet.stats.bounds import Bounds
from variantlake.parquet.stats.facts import ColumnFacts, FileFacts
from variantlake.types import Primitive


def _variant(text: str, side: str) -> dict[str, Any]:
    found = decode_bounds(json.loads(text)[side]["event"])
    return {where.normalized(): scalar.value for where, scalar in found.items()}


def test_a_file_has_its_count_its_nulls_and_the_bounds_of_both_kinds_of_columns() -> None:
    known = facts(
        paths={"$['a']": bounds(1, 9), "$['s']": bounds("x", "y")}, columns=(number("n", 3, 4),)
    )
    text = write_stats(known)
    document = json.loads(text)
    assert document["numRecords"] == 5
    assert document["nullCount"] == {"n": 0, "event": 0}
    assert (document["minValues"]["n"], document["maxValues"]["n"]) == (3, 4)
    assert _variant(text, "minValues") == {"$['a']": 1, "$['s']": "x"}
    assert _variant(text, "maxValues") == {"$['a']": 9, "$['s']": "y"}


def test_without_variant_shredding_a_variant_column_has_a_null_count_alone() -> None:
    text = write_stats(facts(paths={"$['a']": bounds(1, 9)}), variant_bounds=False)
    assert json.loads(text) == {
        "numRecords": 5,
        "minValues": {},
        "maxValues": {},
        "nullCount": {"event": 0},
    }


def test_a_variant_in_a_struct_is_nested_in_the_text_as_well() -> None:
    known = facts("BIGINT", column=("nv", "v"), paths={"$": bounds(1, 2)})
    document = json.loads(write_stats(known))
    assert document["nullCount"] == {"nv": {"v": 0}}
    assert decode_bounds(document["minValues"]["nv"]["v"])[path("$")].value == 1


@pytest.mark.parametrize(
    ("layout", "changed"),
    [
        ("a BIGINT", {"nulls": 1}),  # a Variant null is another type
        ("a BIGINT", {"residuals": 1}),
        ("a BIGINT", {"residuals": -1, "nulls": -1}),
        ("a BIGINT", {"minimum": None}),
        ("a BOOLEAN", {}),
        ("a DOUBLE", {"minimum": 0.5, "maximum": 0.7}),  # NaN or -0.0 may be there
        ("a UUID", {"minimum": bytes(16), "maximum": bytes(16)}),  # Spark cannot read it
        ("a TIMESTAMP_NANOS", {}),
        ("a BINARY", {"minimum": b"a", "maximum": b"b"}),
    ],
)
def test_a_path_that_is_not_certain_has_no_bound(layout: str, changed: dict[str, Any]) -> None:
    text = write_stats(facts(layout, paths={"$['a']": {**bounds(1, 9), **changed}}))
    assert json.loads(text)["minValues"] == {}
    assert json.loads(text)["maxValues"] == {}


def test_a_path_that_is_absent_in_some_rows_has_bounds() -> None:
    text = write_stats(facts(paths={"$['a']": bounds(1, 9, typed=2)}))
    assert _variant(text, "minValues") == {"$['a']": 1}


def test_doubles_without_nan_and_negative_zero_have_bounds() -> None:
    text = write_stats(facts("a DOUBLE", paths={"$['a']": bounds(0.5, 0.7, plain_floats=True)}))
    assert _variant(text, "maxValues") == {"$['a']": 0.7}


def test_a_bound_has_the_width_of_its_column_on_both_sides() -> None:
    text = write_stats(facts(paths={"$['a']": bounds(1, 2**40)}))
    for side in ("minValues", "maxValues"):
        found = decode_bounds(json.loads(text)[side]["event"])
        assert found[path("$['a']")].type is Primitive.INT64


def test_of_more_paths_than_the_limit_those_with_the_most_values_stay() -> None:
    layout = ", ".join(f"f{i} BIGINT" for i in range(5))
    changed = {f"$['f{i}']": bounds(i, i, typed=i) for i in range(5)}
    text = write_stats(facts(layout, paths=changed), options=StatsOptions(max_paths=2))
    assert set(_variant(text, "minValues")) == {"$['f3']", "$['f4']"}


@pytest.mark.parametrize("limit", [0, 1, 40, 90, 200, 300, 1000])
def test_of_more_bytes_than_the_limit_the_paths_with_the_most_values_stay(limit: int) -> None:
    layout = ", ".join(f"f{i} STRING" for i in range(6))
    # f1 and f4 have as many values: the first one stays longer.
    order = ["f5", "f3", "f2", "f1", "f4", "f0"]
    typed = {"f5": 5, "f3": 4, "f2": 3, "f1": 2, "f4": 2, "f0": 1}
    changed = {f"$['{name}']": bounds("a" * 9, "b", typed=typed[name]) for name in order}
    text = write_stats(facts(layout, paths=changed), options=StatsOptions(max_bytes=limit))
    document = json.loads(text)
    if "event" not in document["minValues"]:
        assert "event" not in document["maxValues"]
        assert limit <= 40
        return
    size = len(document["minValues"]["event"]) + len(document["maxValues"]["event"])
    assert size <= limit
    found = set(_variant(text, "minValues"))
    assert found == {f"$['{name}']" for name in order[: len(found)]}
    assert found == set(_variant(text, "maxValues"))
    if len(found) < len(order):
        more = {f"$['{name}']": changed[f"$['{name}']"] for name in order[: len(found) + 1]}
        longer = json.loads(write_stats(facts(layout, paths=more)))
        sides = (longer["minValues"]["event"], longer["maxValues"]["event"])
        assert sum(map(len, sides)) > limit


@pytest.mark.rule(21)
def test_a_string_is_cut_and_its_maximum_stays_above() -> None:
    options = StatsOptions(string_length=3)
    text = write_stats(facts(paths={"$['s']": bounds("abcdef", "abcxyz")}), options=options)
    assert _variant(text, "minValues") == {"$['s']": "abc"}
    assert _variant(text, "maxValues") == {"$['s']": "abd"}


def test_a_maximum_without_a_successor_drops_the_path() -> None:
    options = StatsOptions(string_length=2)
    top = "\U0010ffff" * 3
    text = write_stats(facts(paths={"$['s']": bounds("a", top)}), options=options)
    assert "event" not in json.loads(text)["minValues"]


DATE = (dt.date(2026, 11, 21) - dt.date(1970, 1, 1)).days
MICROS = 1_000_000_123_465
TYPES = [
    (pa.int64(), 2**62, 2**62, 2**62),
    (pa.int8(), -3, -3, -3),
    (pa.decimal128(20, 2), Decimal("123456789012345678.90"), None, None),
    (pa.date32(), DATE, "2026-11-21", "2026-11-21"),
    (pa.timestamp("us", "UTC"), MICROS, "1970-01-12T13:46:40.123Z", "1970-01-12T13:46:40.124Z"),
    (pa.timestamp("us"), MICROS, "1970-01-12T13:46:40.123", "1970-01-12T13:46:40.124"),
    (pa.timestamp("us"), -1, "1969-12-31T23:59:59.999", "1970-01-01T00:00:00.000"),
    (pa.string(), "x", "x", "x"),
    (pa.bool_(), True, None, None),
    (pa.binary(), b"x", None, None),
    (pa.float64(), 1.5, 1.5, None),  # NaN may be there, and is greater
    (pa.float64(), float("-inf"), None, None),
    (pa.timestamp("us"), 2**62, None, None),  # beyond the year 9999
    (pa.date32(), 10**8, None, None),
]


@pytest.mark.rule(22)
@pytest.mark.parametrize(("type_", "raw", "low", "high"), TYPES)
def test_ordinary_columns_by_type(type_: pa.DataType, raw: Any, low: Any, high: Any) -> None:
    known = FileFacts(1, 1, 1, (), (ColumnFacts(("c",), type_, 0, Bounds(raw, raw)),))
    text = write_stats(known)
    if isinstance(raw, Decimal):
        assert '"minValues":{"c":123456789012345678.90}' in text
        return
    document = json.loads(text)
    assert document["minValues"].get("c") == low
    assert document["maxValues"].get("c") == high


def test_known_plain_floats_have_a_maximum() -> None:
    column = ColumnFacts(("c",), pa.float64(), 0, Bounds(1.5, 2.5), plain_floats=True)
    document = json.loads(write_stats(FileFacts(1, 1, 1, (), (column,))))
    assert document["maxValues"] == {"c": 2.5}


def test_an_unknown_null_count_is_left_out() -> None:
    column = ColumnFacts(("c",), pa.int32(), -1)
    assert json.loads(write_stats(FileFacts(1, 1, 1, (), (column,))))["nullCount"] == {}


def test_the_properties_choose_columns_and_limits() -> None:
    schema = parse_table_ddl("p INT, a INT, s STRUCT<x: INT, y: INT>, event VARIANT")
    first = StatsOptions.from_properties({"delta.dataSkippingNumIndexedCols": "2"})
    assert first.chosen(schema, ["p"]) == {("a",), ("s", "x")}
    named = StatsOptions.from_properties({"delta.dataSkippingStatsColumns": "s, `event`"})
    assert named.chosen(schema, ["p"]) == {("s", "x"), ("s", "y"), ("event",)}
    everything = StatsOptions.from_properties({"delta.dataSkippingNumIndexedCols": "-1"})
    assert len(everything.chosen(schema, [])) == 5
    limits = StatsOptions.from_properties(
        {"variantlake.stats.maxPaths": "7", "variantlake.stats.stringLength": "nonsense"}
    )
    assert (limits.max_paths, limits.string_length) == (7, 64)


ORDINARY = {
    "b": "BOOLEAN", "i8": "TINYINT", "i16": "SMALLINT", "i32": "INT", "i64": "BIGINT",
    "f": "FLOAT", "d": "DOUBLE", "dec": "DECIMAL(20, 2)", "s": "STRING", "bin": "BINARY",
    "day": "DATE", "t": "TIMESTAMP", "ntz": "TIMESTAMP_NTZ",
}  # fmt: skip
NESTED = (
    ", n STRUCT<x: INT, deep: STRUCT<y: STRING, v: VARIANT>>, v VARIANT, list ARRAY<INT>"
    ", m MAP<STRING, VARIANT>, last INT"
)
EVERY = ", ".join(f"{name} {type_}" for name, type_ in ORDINARY.items()) + NESTED
LEAVES = [
    *((name,) for name in ORDINARY),
    ("n", "x"),
    ("n", "deep", "y"),
    ("n", "deep", "v"),
    ("v",),
    ("last",),
]
# Arrays and maps have no statistics, but Delta counts them.
COUNTED = [*LEAVES[:-1], None, None, LEAVES[-1]]


@pytest.mark.parametrize("count", range(len(COUNTED) + 2))
def test_the_leading_leaves_are_counted_whatever_their_type(count: int) -> None:
    options = StatsOptions.from_properties({"delta.dataSkippingNumIndexedCols": str(count)})
    chosen = options.chosen(parse_table_ddl(EVERY), [])
    assert chosen & set(LEAVES) == {leaf for leaf in COUNTED[:count] if leaf is not None}


@pytest.mark.parametrize("leaf", LEAVES, ids=".".join)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_columns_are_chosen_by_name_or_by_a_struct_around_them(
    leaf: tuple[str, ...], depth: int
) -> None:
    name = ".".join(leaf[:depth])
    options = StatsOptions.from_properties({"delta.dataSkippingStatsColumns": f"{name}, nowhere"})
    found = options.chosen(parse_table_ddl(EVERY), [])
    assert found == {each for each in LEAVES if each[: min(depth, len(leaf))] == leaf[:depth]}


def test_names_of_columns_have_no_case() -> None:
    options = StatsOptions.from_properties({"delta.dataSkippingStatsColumns": "`N`.`Deep`, DAY"})
    found = options.chosen(parse_table_ddl(EVERY), [])
    assert found == {("n", "deep", "y"), ("n", "deep", "v"), ("day",)}


def test_a_nested_variant_that_is_not_chosen_has_nothing() -> None:
    known = facts("BIGINT", column=("n", "v"), paths={"$": bounds(1, 2)})
    for chosen, there in ((("n", "v"), True), (("n", "x"), False)):
        document = json.loads(write_stats(known, columns=[chosen]))
        for part in ("minValues", "maxValues", "nullCount"):
            assert ("n" in document[part]) is there


def test_names_of_columns_win_over_their_number() -> None:
    properties = {
        "delta.dataSkippingNumIndexedCols": "1",
        "delta.dataSkippingStatsColumns": "last",
    }
    found = StatsOptions.from_properties(properties).chosen(parse_table_ddl(EVERY), [])
    assert found == {("last",)}


def test_columns_that_are_not_chosen_have_nothing() -> None:
    text = write_stats(facts(columns=(number("n", 1, 2),)), columns=[("event",)])
    assert json.loads(text)["nullCount"] == {"event": 0}


@pytest.mark.parametrize("text", ["--5", "5-", "٣", "1e3", ""])
def test_a_number_that_does_not_parse_counts_as_absent(text: str) -> None:
    properties = {"delta.dataSkippingNumIndexedCols": text, "variantlake.stats.maxPaths": text}
    assert StatsOptions.from_properties(properties) == StatsOptions()


def test_an_empty_list_of_columns_is_no_column() -> None:
    """As Delta Spark has it."""
    options = StatsOptions.from_properties({"delta.dataSkippingStatsColumns": ""})
    assert options.chosen(parse_table_ddl("a INT, v VARIANT"), ()) == frozenset()
