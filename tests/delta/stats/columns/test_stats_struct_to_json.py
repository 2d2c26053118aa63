"""`stats_parsed` as text: column by column what it is row by row."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests import strategies
from tests.strategies import MORE
from variantlake.delta.stats import z85
from variantlake.delta.stats.columns import stats_struct_to_json as module
from variantlake.delta.stats.columns.stats_struct_to_json import stats_to_json

VARIANT: Any = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
SHREDDED: Any = pa.struct([*VARIANT, ("typed_value", pa.int64())])
SIDE: Any = pa.struct(
    [
        ("b", pa.bool_()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("c", pa.decimal128(20, 8)),
        ("e", pa.date32()),
        ("t", pa.timestamp("us", "UTC")),
        ("z", pa.timestamp("us")),
        ("s", pa.string()),
        ('k"ey', pa.large_string()),
        ("x", pa.binary()),
        ("a", pa.list_(pa.int32())),
        ("v", VARIANT),
        ("n", pa.struct([("w", SHREDDED), ("none", pa.struct([]))])),
    ]
)
PARSED: Any = pa.struct(
    [("numRecords", pa.int64()), ("tightBounds", pa.bool_()), ("minValues", SIDE)]
)


def plain_text(parsed: dict[str, Any] | None) -> str | None:
    """The twin: one row as Python has it."""
    return None if parsed is None else json.dumps(_as_json(parsed))


def _as_json(value: Any) -> Any:
    match value:
        case {"metadata": bytes() as metadata, "value": bytes() as rest, **more}:
            return None if more.get("typed_value") is not None else z85.encode(metadata + rest)
        case {"metadata": _, "value": _}:
            return None
        case dict():
            items = ((name, _as_json(item)) for name, item in value.items())
            return {name: item for name, item in items if item is not None}
        case Decimal():
            return float(value)
        case dt.datetime():
            text = value.replace(tzinfo=None).isoformat(timespec="microseconds")
            return text if value.tzinfo is None else f"{text}Z"
        case dt.date():
            return value.isoformat()
        case float():
            return value if math.isfinite(value) else None
        case bool() | int() | str():
            return value
    return None


sides = st.fixed_dictionaries(
    {
        "b": st.none() | st.booleans(),
        "i": st.none() | st.integers(-(2**31), 2**31 - 1),
        "l": st.none() | st.integers(-(2**63), 2**63 - 1),
        "f": st.none() | st.floats(width=32),
        "d": st.none() | st.floats(),
        "c": st.none() | st.decimals(-(10**11), 10**11, places=8),
        "e": st.none() | st.dates(),
        "t": st.none() | st.datetimes(timezones=st.just(dt.UTC)),
        "z": st.none() | st.datetimes(),
        "s": st.none() | strategies.texts,
        'k"ey': st.none() | strategies.texts,
        "x": st.none() | st.binary(max_size=3),
        "a": st.just([1]),
        "v": st.none()
        | st.fixed_dictionaries(
            {
                "metadata": st.none() | st.binary(max_size=9),
                "value": st.none() | st.binary(max_size=9),
            }
        ),
        "n": st.none()
        | st.fixed_dictionaries(
            {
                "w": st.none()
                | st.fixed_dictionaries(
                    {
                        "metadata": st.binary(max_size=3),
                        "value": st.binary(max_size=3),
                        "typed_value": st.sampled_from([None, None, 1]),
                    }
                ),
                "none": st.none() | st.just({}),
            }
        ),
    }
)
rows = st.none() | st.fixed_dictionaries(
    {
        "numRecords": st.none() | st.integers(0, 9),
        "tightBounds": st.none() | st.booleans(),
        "minValues": st.none() | sides,
    }
)


@settings(max_examples=75 * MORE, deadline=None)
@given(made=st.lists(rows, max_size=5), cut=st.integers(0, 5), offset=st.integers(0, 2))
@example(made=[{"numRecords": 1, "tightBounds": None, "minValues": None}], cut=0, offset=0)
def test_texts_of_all_files_are_those_of_each(
    made: list[dict[str, Any] | None], cut: int, offset: int
) -> None:
    whole = [pa.array(part, PARSED) for part in (made[:cut], made[cut:])]
    column = pa.chunked_array([part.slice(offset) for part in whole], PARSED)
    found = stats_to_json(column).to_pylist()
    expected = [plain_text(row) for row in (*made[:cut][offset:], *made[cut:][offset:])]
    assert [text and json.loads(text) for text in found] == [
        text and json.loads(text) for text in expected
    ]


def test_decimals_keep_every_digit() -> None:
    row = {"minValues": {"c": Decimal("123456789012.34567891")}}
    (text,) = stats_to_json(pa.chunked_array([[row]], PARSED)).to_pylist()
    assert json.loads(text, parse_float=Decimal) == row


def test_what_a_text_cannot_say_is_unknown() -> None:
    years = pa.array([2**30, 2**62], pa.int64())
    row = pa.StructArray.from_arrays(
        [years.cast(pa.timestamp("us", "UTC")), pa.array([2**30, 1], pa.int32()).cast(pa.date32())],
        names=["t", "e"],
    )
    found = stats_to_json(pa.chunked_array([row])).to_pylist()
    assert [json.loads(text) for text in found] == [
        {"t": "1970-01-01T00:17:53.741824Z"},
        {"e": "1970-01-02"},
    ]


def test_moments_of_other_units_and_zones_are_those_of_utc() -> None:
    type_: Any = pa.timestamp("ns", "America/St_Johns")
    row = pa.StructArray.from_arrays([pa.array([1_700_000_000_123_456_789], type_)], names=["t"])
    (text,) = stats_to_json(pa.chunked_array([row])).to_pylist()
    assert json.loads(text) == {"t": "2023-11-14T22:13:20.123456Z"}


def test_much_becomes_text_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PIECE", 200)
    made = [{"numRecords": i, "minValues": {"s": "x" * i}} for i in range(40)]
    found = stats_to_json(pa.chunked_array([made], PARSED))
    assert found.num_chunks > 5
    assert [json.loads(text) for text in found.to_pylist()] == made


def test_a_column_that_is_no_struct_tells_nothing() -> None:
    assert stats_to_json(pa.chunked_array([["x"]])).to_pylist() == [None]


def test_strings_that_are_not_utf8_are_refused() -> None:
    text = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"], pa.binary()).buffers())
    row = pa.StructArray.from_arrays([text], names=["s"])
    with pytest.raises(pa.ArrowInvalid):
        stats_to_json(pa.chunked_array([row]))
