"""Statistics read back: our own, those of other writers, and nonsense."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.delta.tables import SCHEMA, bounds, facts, number, path, read_stats
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.delta.schema.table_schema import PrimitiveType, StructField, StructType
from variantlake.delta.stats.stats_reader import FileStats
from variantlake.delta.stats.stats_writer import write_stats
from variantlake.parquet.stats.bounds import Bounds
from variantlake.parquet.stats.facts import UNKNOWN, ColumnFacts, FileFacts


def _read(ddl: str, **document: Any) -> FileStats:
    return read_stats(json.dumps(document), parse_table_ddl(ddl))


def test_what_we_wrote_comes_back() -> None:
    known = facts(paths={"$['a']": bounds(1, 9)}, columns=(number("n", 3, 4),))
    stats = read_stats(write_stats(known), SCHEMA)
    assert stats.num_records == 5
    assert stats.columns == (number("n", 3, 4),)
    assert stats.variant_nulls == {("event",): 0}
    assert stats.minimums[("event",)][path("$['a']")].value == 1
    assert stats.maximums[("event",)][path("$['a']")].value == 9


@pytest.mark.parametrize(
    ("ddl", "value", "low", "high"),
    [
        ("c BIGINT", 2**62, 2**62, 2**62),
        ("c INT", 2**40, None, None),
        ("c INT", 1.5, None, None),
        ("c INT", True, None, None),
        ("c DOUBLE", 1, 1.0, 1.0),
        ("c DOUBLE", "NaN", None, None),
        ("c STRING", "x", "x", "x"),
        ("c STRING", 1, None, None),
        ("c DATE", "1970-01-03", 2, 2),
        ("c DATE", "19700103", None, None),
        ("c TIMESTAMP", "1970-01-01T00:00:00.123Z", 123_000, 124_000),
        ("c TIMESTAMP", "1969-12-31T16:00:00.123-08:00", 123_000, 124_000),
        ("c TIMESTAMP", "1970-01-01T00:00:00.123", None, None),
        ("c TIMESTAMP_NTZ", "1970-01-01T00:00:00.123", 123_000, 124_000),
        ("c BOOLEAN", True, None, None),
        ("c BINARY", "x", None, None),
    ],
)
def test_bounds_by_type(ddl: str, value: Any, low: Any, high: Any) -> None:
    stats = _read(ddl, numRecords=1, minValues={"c": value}, maxValues={"c": value})
    found = [(column.bounds.minimum, column.bounds.maximum) for column in stats.columns]
    assert found == ([] if low is None else [(low, high)])


def test_decimals_keep_every_digit() -> None:
    text = '{"numRecords":1,"minValues":{"c":123456789012345678.91},"maxValues":{"c":7}}'
    (column,) = read_stats(text, parse_table_ddl("c DECIMAL(20,2)")).columns
    assert (column.bounds.minimum, column.bounds.maximum) == (
        Decimal("123456789012345678.91"),
        Decimal(7),
    )


@pytest.mark.rule(8)
def test_a_zero_bound_of_doubles_covers_both_zeros() -> None:
    (column,) = _read("c DOUBLE", minValues={"c": 0.0}, maxValues={"c": -0.0}).columns
    assert (str(column.bounds.minimum), str(column.bounds.maximum)) == ("-0.0", "0.0")


def test_numbers_are_exact_strings_and_times_are_not() -> None:
    lows = {"i": 1, "s": "x", "t": "1970-01-01T00:00:00.000Z"}
    stats = _read("i INT, s STRING, t TIMESTAMP", minValues=lows, maxValues=lows)
    assert [column.bounds.minimum_exact for column in stats.columns] == [True, False, False]


@pytest.mark.rule(23)
def test_wide_bounds_enclose_but_prove_nothing_else() -> None:
    stats = _read(
        "i INT, j INT, k INT",
        numRecords=5,
        tightBounds=False,
        minValues={"i": 1, "j": 1, "k": 1},
        nullCount={"i": 0, "j": 5, "k": 3},
    )
    assert [column.nulls for column in stats.columns] == [0, 5, UNKNOWN]
    assert not any(column.bounds.minimum_exact for column in stats.columns)


@pytest.mark.rule(24)
def test_nested_columns_go_by_physical_names() -> None:
    schema = parse_table_ddl("s STRUCT<x: INT>")
    physical = schema.to_json().replace(
        '"name":"x","type":"integer","nullable":true,"metadata":{}',
        '"name":"x","type":"integer","nullable":true,'
        '"metadata":{"delta.columnMapping.physicalName":"col-1"}',
    )
    stats = read_stats('{"minValues":{"s":{"col-1":4}}}', type(schema).from_json(physical))
    assert stats.columns == (
        ColumnFacts(("s", "col-1"), pa.int32(), UNKNOWN, Bounds(4, minimum_exact=True)),
    )


@pytest.mark.parametrize("text", [None, "", "{", "[]", "1", '"x"', "\udc00", "[" * 5000])
def test_nonsense_tells_nothing(text: str | None) -> None:
    assert read_stats(text, SCHEMA) == FileStats()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["event", "n", "c", "d", "t"]), inner, max_size=4)
    ),
    max_leaves=8,
)
WIDE = parse_table_ddl("event VARIANT, n INT, c DECIMAL(5,2), d DATE, t TIMESTAMP")


@given(json_values, json_values, json_values)
def test_statistics_of_any_shape_are_no_error(low: Any, high: Any, nulls: Any) -> None:
    document = {"numRecords": low, "minValues": low, "maxValues": high, "nullCount": nulls}
    assert isinstance(read_stats(json.dumps(document), WIDE), FileStats)


@given(st.integers(-(2**53), 2**53), st.integers(0, 2**40))
def test_timestamps_that_we_write_enclose_the_real_ones(start: int, length: int) -> None:
    column = ColumnFacts(("t",), pa.timestamp("us", "UTC"), 0, Bounds(start, start + length))
    text = write_stats(FileFacts(1, 1, 1, (), (column,)))
    (found,) = read_stats(text, parse_table_ddl("t TIMESTAMP")).columns
    assert isinstance(found.bounds.minimum, int)
    assert isinstance(found.bounds.maximum, int)
    assert found.bounds.minimum <= start
    assert found.bounds.maximum >= start + length


def test_a_float_bound_is_the_float_that_its_text_means() -> None:
    # As a double 1.1 is less than the float 1.1, which a row holds: `c > 1.1D` is true of it.
    (column,) = _read("c FLOAT", numRecords=1, minValues={"c": 1.1}, maxValues={"c": 1.1}).columns
    assert (column.bounds.minimum, column.bounds.maximum) == (1.10000002384185791015625,) * 2
    (column,) = _read("c FLOAT", numRecords=1, maxValues={"c": 1e300}).columns
    assert column.bounds.maximum == float("inf")


def test_bounds_of_a_double_that_was_a_float_enclose_both() -> None:
    change = {"delta.typeChanges": [{"fromType": "float", "toType": "double"}]}
    field = StructField("c", PrimitiveType("double"), metadata=change)
    text = json.dumps({"numRecords": 1, "minValues": {"c": 1.1}, "maxValues": {"c": 1.1}})
    (column,) = read_stats(text, StructType((field,))).columns
    assert (column.bounds.minimum, column.bounds.maximum) == (1.1, 1.10000002384185791015625)
    assert not column.bounds.minimum_exact
    assert not column.bounds.maximum_exact


def test_narrower_statistics_of_widened_columns_are_read() -> None:
    """Old files have statistics of the type that the column had then."""
    found = _read(
        "c DECIMAL(20,2), d TIMESTAMP_NTZ",
        numRecords=1,
        minValues={"c": 5, "d": "2024-01-01"},
        maxValues={"c": 7, "d": "2024-01-02"},
    )
    decimal, moment = found.columns
    assert (decimal.bounds.minimum, decimal.bounds.maximum) == (Decimal(5), Decimal(7))
    assert moment.bounds.minimum == 19723 * 86_400_000_000
