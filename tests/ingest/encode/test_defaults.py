"""Rows that leave columns out get their defaults, as far as this process computes them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.errors import UnsupportedFeature

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULTS: list[tuple[str, str, Any]] = [
    ("STRING", "'it is'", "it is"),
    ("INT", "-7", -7),
    ("BIGINT", "1 + 2", 3),
    ("DECIMAL(10,2)", "1.5", Decimal("1.50")),
    ("DOUBLE", "2", 2.0),
    ("FLOAT", "1.5", 1.5),
    ("BOOLEAN", "true", True),
    ("DATE", "DATE'2024-01-31'", dt.date(2024, 1, 31)),
    ("STRING", "'a' || 'b'", "ab"),
    ("STRING", "NULL", None),
    ("STRING", "concat('a', 'b')", "ab"),
]


def made(path: Path) -> vl.Table:
    columns = ", ".join(
        f"c{at} {kind} DEFAULT {text}" for at, (kind, text, _) in enumerate(DEFAULTS)
    )
    table = vl.Table.create(path, f"id INT, {columns}, p STRING DEFAULT 'x'", partition_by=["p"])
    table.append([{"id": 1}, {"id": 2, "p": "y", "c1": 5}])
    table.append(pa.table({"id": pa.array([3], pa.int32())}))
    table.stage([{"id": 4}]).publish()
    return table.refresh()


def test_rows_get_the_defaults_of_columns_that_they_leave_out(tmp_path: Path) -> None:
    found = {row["id"]: row for row in made(tmp_path).to_pylist()}
    right = {f"c{at}": value for at, (_, _, value) in enumerate(DEFAULTS)}
    assert found[3] == {"id": 3, **right, "p": "x"}
    assert found[4] == {"id": 4, **right, "p": "x"}
    # A column that some rows of a load name is given, and NULL in the others.
    assert (found[1]["c1"], found[1]["p"], found[2]["p"]) == (None, None, "y")
    assert found[1]["c0"] == "it is"


def test_documents_get_them(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"n": 1}\n{"n": 2}')
    table = vl.Table.create(
        tmp_path / "t",
        "event VARIANT, s STRING DEFAULT 'x', d DECIMAL(9,2) NOT NULL DEFAULT 1.5, i INT DEFAULT 7",
    )
    table.append(str(tmp_path / "a.json"), column="event")
    found = table.refresh().scan("s, d, i, event:n::int AS n").to_arrow().to_pylist()
    assert found == [{"s": "x", "d": Decimal("1.50"), "i": 7, "n": n} for n in (1, 2)]


@pytest.mark.parametrize("text", ["uuid()", "current_date()", "rand()"])
def test_what_spark_alone_computes_is_refused(tmp_path: Path, text: str) -> None:
    kind = {"c": "DATE", "r": "DOUBLE"}.get(text[0], "STRING")
    table = vl.Table.create(tmp_path, f"id INT, c {kind} DEFAULT {text}")
    with pytest.raises(UnsupportedFeature, match="whose default is an SQL expression"):
        table.append([{"id": 1}])
    assert table.refresh().version == 0


@pytest.mark.spark
def test_they_are_those_of_delta_spark(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = made(tmp_path)
    delta_spark.sql(f"INSERT INTO delta.`{table.uri}` (id) VALUES (5)")
    found = {row["id"]: row for row in table.refresh().to_pylist()}
    assert {**found[5], "id": 3} == found[3]
