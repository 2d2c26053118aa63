"""Each form of a condition skips files in SQL, and the answer is the one without skipping."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.spark.lake import Lake, connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

COLUMNS = "event VARIANT, k INT, s STRING, d DATE, m DECIMAL(9,2), at TIMESTAMP, st STRUCT<a: INT>"
FILES, ROWS = 4, 10
READ = {
    # How many of the four files are read.
    "event:kind::string LIKE 'a-%'": 1,
    "event:kind::string LIKE 'c-2_5'": 1,
    "event:kind::string NOT LIKE 'a%'": 3,
    "startswith(event:kind::string, 'b')": 1,
    "event:id::bigint BETWEEN 105 AND 203": 2,
    "event:id::int IN (5, 301)": 2,
    "event:id::bigint <=> 205": 1,
    "event:kind::string <=> NULL": 0,
    "event:opt::int IS NOT NULL": 1,
    "event:all::int IS NULL": 1,
    "NOT (event:id::bigint < 200 OR event:id::bigint > 250)": 1,
    "event:id::double > 299.5D": 1,
    "event:m::decimal(10, 1) < 5": 1,
    "event:id::bigint > '250'": 1,
    "k NOT BETWEEN 50 AND 450": 1,
    "k IN (5, 301)": 2,
    "k <=> 205": 1,
    "k IS NULL": 0,
    "k > 250L": 1,
    "k > 250.5": 1,
    "k = 205.0D": 1,
    "m > 250.555": 1,
    "cast(m AS double) > 250": 1,
    "cast(at AS date) >= DATE'2024-03-15'": 1,
    "at < '2024-02-01'": 1,
    "d BETWEEN '2024-02-01' AND '2024-03-01'": 2,
    "s LIKE 'c-2%5'": 1,
    "s NOT LIKE 'a%'": 3,
    "st.a > 150L": 1,
    "ST.A IS NULL": 1,
    # Not proven: a cast to fewer bits may wrap, other functions say nothing of order.
    "cast(k AS tinyint) = 5": 4,
    "k % 1000 > 250": 4,
    "s ILIKE 'a%'": 4,
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = vl.Table.create(tmp_path_factory.mktemp("skipping") / "t", COLUMNS)
    for file in range(FILES):
        numbers = range(file * 100, file * 100 + ROWS)
        first = "abcd"[file]
        documents = [
            {"id": i, "kind": f"{first}-{i}", "m": i + 0.5, "all": None if file == 2 else i}
            | ({"opt": 1} if file == 1 else {})
            for i in numbers
        ]
        month = dt.datetime(2024, 1 + file, 1, tzinfo=dt.UTC)
        structs = [None if file == 3 else {"a": i} for i in numbers]
        rows = {
            "event": pa.array(list(map(json.dumps, documents))),
            "k": pa.array(numbers, pa.int32()),
            "s": pa.array([f"{first}-{i}" for i in numbers]),
            "d": pa.array([month.date()] * ROWS),
            "m": pa.array([Decimal(i) for i in numbers], pa.decimal128(9, 2)),
            "at": pa.array([month] * ROWS, pa.timestamp("us", "UTC")),
            "st": pa.array(structs, pa.struct([pa.field("a", pa.int32())])),
        }
        made.refresh().append(pa.table(rows), json_columns=["event"])
    return made.uri


@pytest.fixture(scope="module")
def lake(spark: SparkSession) -> Lake:
    return connect(spark)


@pytest.mark.parametrize("condition", READ)
def test_a_condition_skips(lake: Lake, table: str, condition: str) -> None:
    (found,) = lake.explain(f"SELECT k FROM delta.`{table}` WHERE {condition}").to_dict()["tables"]
    assert found["files"]["read"] == READ[condition]


def test_what_skipping_leaves_is_the_answer(lake: Lake, table: str) -> None:
    # What is above a LIMIT skips nothing: all rows, and each condition as a column of them.
    conditions = {text: text for text in READ if text != "cast(k AS tinyint) = 5"}
    items = ", ".join(f"({text}) AS c{number}" for number, text in enumerate(conditions))
    rows = lake.sql(f"SELECT k, {items} FROM delta.`{table}`").collect()
    counts = " UNION ALL ".join(
        f"SELECT {number} AS n, count(*) AS c FROM delta.`{table}` WHERE {text}"
        for number, text in enumerate(conditions)
    )
    found = {row.n: row.c for row in lake.sql(counts).collect()}
    assert found == {
        number: sum(row[f"c{number}"] is True for row in rows) for number in range(len(conditions))
    }
