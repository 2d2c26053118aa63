"""Statistics as columns: of all files at once they are what the plain readers say of each."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.delta.stats.columns.plain_parsed_stats import plain_parsed_stats
from tests.delta.stats.columns.test_log_facts import SCHEMA, adds, turned
from tests.strategies import MORE
from variantlake.delta.actions.actions import AddFile
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.delta.schema.table_schema import StructType
from variantlake.delta.stats import z85
from variantlake.delta.stats.columns.stats_json_to_struct import parsed_stats
from variantlake.encoding.metadata import encode_dictionary

ODD = parse_table_ddl(
    "b TINYINT, h SMALLINT, i INT, l BIGINT, s STRING, f FLOAT, d DOUBLE, p DECIMAL(5,2), "
    "w DECIMAL(38,10), day DATE, t TIMESTAMP, n TIMESTAMP_NTZ, z BOOLEAN, v VARIANT"
)


def _check(texts: list[str | None], schema: StructType, *, some: bool = True) -> None:
    columns = {path for path, _ in schema.leaves(physical=True)}
    options = {"variant_bounds": some, "tight_bounds": some}
    found: Any = parsed_stats(pa.array(texts, pa.string()), schema, columns, **options)
    found.validate(full=True)
    wanted = plain_parsed_stats(texts, schema, columns, **options)
    # Text tells -0.0 from 0.0, and microseconds from none.
    assert list(map(repr, found.to_pylist())) == list(map(repr, wanted))


@settings(max_examples=15 * MORE, deadline=None)
@given(made=st.lists(adds(), max_size=5), some=st.booleans())
def test_statistics_of_all_files_are_those_of_each(made: list[AddFile], some: bool) -> None:
    _check([add.stats for add in made], SCHEMA, some=some)


# Beyond doubles the plain parser takes the whole text for none.
_NUMBERS = (
    st.integers(-(2**70), 2**70).map(str)
    | st.integers(-200, 200).map(str)
    | st.decimals(allow_nan=False, allow_infinity=False, places=3).map(lambda d: f"{d:f}")
    | st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.sampled_from(["0", "0.0", "-0.0", "1e2", "-1E-2", "9007199254740993", "1.10", "3.5e38"])
    | st.sampled_from(["123.456789012345678", "999.99", "1000.00", "0.001", "9223372036854775807"])
    | st.sampled_from(["1e-999", "0e9"])
)
_TEXTS = st.sampled_from(
    ["", "a", "é\n", '"', "2024-02-30", "2024-02-29", "1582-01-01", "20240229", "2024-02-29 ",
     "2024-02-29T01:02:03Z", "2024-02-29T01:02:03.1234567Z", "2024-02-29T01:02:03.123-08:00",
     "2024-02-29T24:00:00Z", "2024-02-29T23:59:60Z", "2024-02-29T01:02:03.5", "9999-12-31",
     "2024-02-29T01:02:03", "2024-02-30T01:02:03Z", "0001-01-01T00:00:00.123Z", "2024-02-29T1:2:3Z"]
).map(json.dumps)  # fmt: skip
_ODD = st.sampled_from(["null", "true", "false", "[]", "{}", '{"a":1}', "[1]"])


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Statistics whose bounds may be of any type."""
    names = [field.name for field in ODD.fields]
    chosen = draw(st.lists(st.sampled_from(names), unique=True))
    sides = [
        ",".join(f'"{name}":{draw(_NUMBERS | _TEXTS | _ODD)}' for name in chosen)
        for _ in ("minValues", "maxValues", "nullCount")
    ]
    parts = zip(("minValues", "maxValues", "nullCount"), sides, strict=True)
    return f'{{"numRecords":{draw(_NUMBERS)},' + ",".join(f'"{k}":{{{v}}}' for k, v in parts) + "}"


@settings(max_examples=25 * MORE, deadline=None)
@given(texts=st.lists(documents() | st.sampled_from([None, "", "1", "[]", "{", "{}"]), max_size=6))
@example(texts=['{"minValues":{"d":-0.0,"f":1e39,"p":1000.00,"w":12345678901234567890.1}}'])
def test_members_of_any_type_are_what_the_plain_parser_says(texts: list[str | None]) -> None:
    _check(texts, ODD)


_DICTIONARY = encode_dictionary([b"$['a']"], sorted_strings=False)
_GOOD = z85.encode(_DICTIONARY + bytes([2, 1, 0, 0, 2, 12, 7]))


@pytest.mark.parametrize(
    "text",
    [
        _GOOD,
        turned(_GOOD),
        _GOOD[:-1],
        _GOOD[:-5],
        _GOOD[:5],
        "",
        "0",
        "é" * 5,
        "~" * 5,
        "#" * 5,
        _GOOD + "00000",
        _GOOD + "00001",
        z85.encode(_DICTIONARY),
        z85.encode(_DICTIONARY + bytes([12, 7])),
        z85.encode(_DICTIONARY + bytes([2, 200, 0, 0])),
        z85.encode(_DICTIONARY + bytes([66, 1, 0, 0, 0, 0, 0, 2, 12, 7])),
        z85.encode(_DICTIONARY + bytes([2, 2, 0, 0, 0, 0, 1, 12])),
        z85.encode(b"\x01\x01\x01\x00" + bytes([2, 0, 0])),
        z85.encode(b"\xc1" + b"\xff" * 12),
    ],
)
def test_bounds_of_variants_are_split_as_the_plain_reader_does(text: str) -> None:
    _check([json.dumps({"minValues": {"v": each}}) for each in (_GOOD, text, _GOOD)], ODD)
