"""Rows as JSON lines."""

from __future__ import annotations

import pyarrow as pa
import pytest

from variantlake.cli.terminal.rows import json_lines
from variantlake.errors import MalformedFile


def test_strings_that_are_not_utf8_are_an_error_with_their_row() -> None:
    """Arrow takes them out of files as they are."""
    broken = pa.array([b"fine", b"\xf9"], pa.binary()).view(pa.string())
    with pytest.raises(MalformedFile, match=r"column 's' holds .*utf-8") as caught:
        list(json_lines(pa.record_batch({"s": broken})))
    assert caught.value.row == 1


def test_dates_beyond_the_year_9999_are_as_spark_prints_them() -> None:
    dates = pa.array([0, 2**31 - 1], pa.int32()).view(pa.date32())
    assert list(json_lines(pa.record_batch({"d": dates}))) == [
        '{"d": "1970-01-01"}',
        '{"d": "+5881580-07-11"}',
    ]
