"""Columns as text: what Arrow writes for us equals what is written value by value."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from variantlake.encoding.java_numbers import double_text, float_text
from variantlake.errors import MalformedFile
from variantlake.export.row_texts import csv_lines, json_lines, texts

FLOATS = st.floats(width=32) | st.sampled_from([1e7, 9999999.0, 1e-3, -0.0, 16777216.0])


@given(st.lists(st.none() | st.floats(), max_size=6))
def test_doubles_are_as_java_writes_them(values: list[float | None]) -> None:
    found = texts("x", pa.array(values, pa.float64())).to_pylist()
    assert found == [None if each is None else double_text(each) for each in values]


@given(st.lists(st.none() | FLOATS, max_size=6))
def test_floats_are_as_java_writes_them(values: list[float | None]) -> None:
    column = pa.array(values, pa.float32())
    assert texts("x", column).to_pylist() == [
        None if each is None else float_text(each) for each in column.to_pylist()
    ]


@given(st.lists(st.none() | st.text(), min_size=1, max_size=6))
def test_json_reads_back(values: list[str | None]) -> None:
    batch = pa.record_batch({'n "ame': pa.array(values, pa.string())})
    assert [json.loads(each)['n "ame'] for each in json_lines(batch).to_pylist()] == values


@given(st.lists(st.tuples(st.none() | st.text(), st.none() | st.text()), min_size=1, max_size=6))
def test_csv_reads_back_and_tells_null_from_an_empty_text(rows: list[Any]) -> None:
    columns: list[Any] = [pa.array(each, pa.string()) for each in zip(*rows, strict=True)]
    text = "".join(
        f"{line}\n" for line in csv_lines(pa.record_batch(columns, ["a", "b"])).to_pylist()
    )
    found = list(csv.reader(io.StringIO(text, newline="")))
    assert [tuple(each) for each in found] == [(a or "", b or "") for a, b in rows]
    read = pc.read_csv(
        io.BytesIO(text.encode()),
        pc.ReadOptions(column_names=["a", "b"]),
        pc.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        pc.ConvertOptions(
            column_types={"a": pa.string(), "b": pa.string()},
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
        ),
    ).to_pylist()
    # Arrow's reader takes a carriage return by itself for the end of a line, in quotes too.
    if "\r" not in text:
        assert [(each["a"], each["b"]) for each in read] == rows


def test_json_of_what_json_has_no_form_for() -> None:
    batch = pa.record_batch(
        {
            "x": pa.array([math.nan, math.inf, -math.inf, None, 1e22]),
            "b": pa.array([b"\x00\xff", b"", None, b"a", b"b"], pa.binary()),
        }
    )
    assert json_lines(batch).to_pylist() == [
        '{"x":"NaN","b":"AP8="}',
        '{"x":"Infinity","b":""}',
        '{"x":"-Infinity","b":null}',
        '{"x":null,"b":"YQ=="}',
        '{"x":1.0E22,"b":"Yg=="}',
    ]


def test_a_slice_is_written_by_itself() -> None:
    batch = pa.record_batch({"a": ["x", 'y"', None, "z"], "n": [1, 2, None, 4]}).slice(1, 2)
    assert json_lines(batch).to_pylist() == ['{"a":"y\\"","n":2}', '{"a":null,"n":null}']
    assert csv_lines(batch).to_pylist() == ['"y""",2', ","]


@pytest.mark.parametrize("form", [json_lines, csv_lines])
def test_text_that_is_no_utf8_is_an_error_with_its_row(form: Any) -> None:
    broken: Any = pa.array([b"fine", b"\xf9"], pa.binary()).view(pa.string())
    with pytest.raises(MalformedFile, match=r"column 's' holds .*utf-8") as caught:
        form(pa.record_batch({"s": broken}))
    assert caught.value.row == 1
