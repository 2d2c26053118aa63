"""Values of Python in columns: what Arrow would cut is refused, with its row."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import variantlake as vl
from variantlake.ingest.row_values import array_of

TYPES: list[pa.DataType] = [
    pa.int8(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.bool_(),
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
    pa.decimal128(10, 2),
]

VALUES: st.SearchStrategy[Any] = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.floats(-200, 200).map(round),
    st.decimals(-1000, 1000, places=3, allow_nan=False),
    st.booleans(),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(dt.timezone(dt.timedelta(hours=2)))).filter(
        lambda time: 1 < time.year < 9999
    ),
)


def _same(value: Any, stored: Any, kind: pa.DataType) -> bool:
    """Whether a stored value is the one that was given, as its type has it."""
    if pa.types.is_float32(kind):
        return bool(np.float32(value) == np.float32(stored))
    if isinstance(value, dt.datetime) and isinstance(stored, dt.datetime):
        zone = None if stored.tzinfo is None else value.tzinfo or dt.UTC
        return value.replace(tzinfo=value.tzinfo or zone) == stored
    if isinstance(value, dt.datetime):
        return value == dt.datetime.combine(stored, dt.time())
    return bool(value == stored)


@given(st.lists(st.none() | VALUES, min_size=1, max_size=3), st.sampled_from(TYPES))
def test_a_value_is_stored_as_it_is_or_refused(values: list[Any], kind: pa.DataType) -> None:
    """Also as an element of an array and a field of a struct."""
    nested = pa.list_(pa.struct([("x", kind)]))
    try:
        stored = array_of("it", values, 7, kind).to_pylist()
    except vl.InvalidValue:
        with pytest.raises(vl.InvalidValue) as caught:
            array_of("it", [[], [{"x": value} for value in values]], 7, nested)
        assert caught.value.row == 8
        return
    array: Any = array_of("it", [[{"x": value} for value in values]], 0, nested)
    assert [each["x"] for each in array.to_pylist()[0]] == stored
    for value, found in zip(values, stored, strict=True):
        assert (found is None) == (value is None)
        assert value is None or _same(value, found, kind)


@pytest.mark.parametrize(
    ("columns", "row", "said"),
    [
        ("n INT", {"n": 3.5}, "cannot hold 3.5: it is not a whole number"),
        ("n BIGINT", {"n": Decimal("0.1")}, "not a whole number"),
        ("n BIGINT", {"n": np.datetime64("2026-01-01T00:00:00", "ns")}, "it is a time"),
        ("n ARRAY<INT>", {"n": [1, 2.5]}, "not a whole number"),
        ("n MAP<STRING, INT>", {"n": {"a": 2.5}}, "not a whole number"),
        ("n STRUCT<a: INT, v: VARIANT>", {"n": {"a": 2.5}}, "not a whole number"),
        ("n DATE", {"n": 20000}, "it is not a date"),
        (
            "n DATE",
            {"n": dt.datetime.fromisoformat("2026-01-01 05:00")},
            "its time of day",
        ),
        ("n DATE", {"n": "2026-01-01"}, "it is text"),
        ("n TIMESTAMP", {"n": 5}, "it is not a time"),
        ("n TIMESTAMP_NTZ", {"n": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)}, "its time zone"),
        ("n TIMESTAMP", {"n": pd.Timestamp(1)}, "its nanoseconds would be lost"),
        ("n FLOAT", {"n": 1e300}, "it is too large"),
        ("n DOUBLE", {"n": True}, "it is a boolean"),
    ],
)
def test_a_value_that_would_lose_something_is_refused(
    tmp_path: Path, columns: str, row: dict[str, Any], said: str
) -> None:
    table = vl.Table.create(tmp_path / "t", columns)
    with pytest.raises(vl.InvalidValue, match=said) as caught:
        table.append([{"n": None}, row])
    assert caught.value.row == 1
    assert columns.split()[1].partition("<")[0] in caught.value.hint.upper()
    assert table.version == 0


def test_values_of_other_types_that_lose_nothing_are_stored(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "n INT, d DATE, at TIMESTAMP")
    table.append(
        [
            {"n": 3.0, "d": pd.Timestamp("2026-01-02"), "at": pd.Timestamp("2026-01-01 05:00")},
            {"n": np.int64(4), "d": dt.date(2026, 1, 3), "at": None},
            {"n": pd.NA, "d": pd.NaT, "at": pd.NaT},  # rows of a frame that lacks them
        ]
    )
    assert table.to_pylist() == [
        {"n": 3, "d": dt.date(2026, 1, 2), "at": dt.datetime(2026, 1, 1, 5, tzinfo=dt.UTC)},
        {"n": 4, "d": dt.date(2026, 1, 3), "at": None},
        {"n": None, "d": None, "at": None},
    ]


@pytest.mark.parametrize("named", ["event", ["event"]])
def test_text_of_rows_is_a_string_unless_it_is_said_to_be_json(tmp_path: Path, named: Any) -> None:
    table = vl.Table.create(tmp_path, "id BIGINT, event VARIANT")
    table.append([{"id": 0, "event": '{"a": 1}'}])
    table.append([{"id": 1, "event": '{"a": 1}'}, {"id": 2, "event": None}], json_columns=named)
    table.append([{"id": 3, "event": b"[2]"}], json_columns=named)
    table.upsert([{"id": 3, "event": "[3]"}], "id", json_columns=named)
    rows = {row["id"]: row["event"] for row in table.scan().to_pylist()}
    assert rows == {0: '{"a": 1}', 1: {"a": 1}, 2: None, 3: [3]}
    with pytest.raises(vl.InvalidValue, match="row 1: column 'event' is given as JSON text"):
        table.append([{"event": "1"}, {"event": {"a": 1}}], json_columns=named)
    with pytest.raises(vl.InvalidJson, match="row 1"):
        table.append([{"event": "1"}, {"event": "{"}], json_columns=named)
    assert table.count() == 4
