"""Bad rows of Arrow data become lines of the quarantine many at once, as each by itself fails."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

import variantlake as vl
from tests.kernels.json.test_bad_document import damaged
from tests.strategies import MORE
from variantlake.errors import InvalidSchema, VariantLakeError

SCHEMA = "a VARIANT, b VARIANT, c VARIANT, n BIGINT, d DECIMAL(38,0), s STRUCT<x: BINARY>"


def rows(count: int) -> pa.Table:
    """Rows of which many have a bad document in `a` or `b`, or a bad Variant in `c`."""
    rnd = random.Random(5)
    good: Any = vl.parquet.variant_array([{"x": 1}])
    metadata, value = good.to_pylist()[0].values()
    broken = {"metadata": metadata, "value": value[:-1]}
    texts = [[rnd.choice([damaged(rnd), b"{}"]) for _ in range(count)] for _ in range(2)]
    variants = [rnd.choice([good.to_pylist()[0], None, broken]) for _ in range(count)]
    given: list[Any] = [
        pa.array(texts[0], pa.binary()),
        pa.array([text.decode(errors="ignore") for text in texts[1]]),
        pa.array(variants, good.type),
        pa.array(range(count)),
        pa.array([10**30 + row for row in range(count)], pa.decimal128(38, 0)),
        pa.array([{"x": b"\xff"}] * count),
    ]
    return pa.table(dict(zip("abcnds", given, strict=True)))


def test_lines_say_what_each_row_by_itself_fails_with(tmp_path: Path) -> None:
    given = rows(300 * MORE)
    table = vl.Table.create(tmp_path / "t", SCHEMA)
    done = table.append(given, json_columns=["a", "b"], mode="quarantine")
    files = (tmp_path / "t/_quarantine").rglob("*.ndjson")
    lines = [orjson.loads(line) for file in files for line in file.read_bytes().splitlines()]
    assert len(lines) == done.rows_bad > 100 * MORE
    found = {line["row"]: line for line in lines}
    for row, line in found.items():
        with pytest.raises(VariantLakeError) as caught:
            table.append(given.slice(row, 1), json_columns=["a", "b"], mode="strict")
        error = caught.value
        assert (line["reason"], line.get("line"), line.get("column")) == (
            error.message, error.line, error.column
        )  # fmt: skip
        assert line["values"]["n"] == row
        assert line["values"]["s"] == {"x": "/w=="}
    assert done.rows_written == given.num_rows - len(lines)


def test_texts_of_times_without_a_zone_name_no_function_of_arrow(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path, "at TIMESTAMP")
    with pytest.raises(InvalidSchema, match="a text names its zone") as raised:
        table.append(pa.table({"at": ["2026-01-31 10:00:00"]}))
    assert "assume_timezone" not in str(raised.value)
