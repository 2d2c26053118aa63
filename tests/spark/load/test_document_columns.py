"""Loads into partitioned tables by Spark's tasks; paths are cast as `variant_get` casts them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import types as st

import variantlake as vl
from variantlake.errors import InvalidSchema, InvalidValue
from variantlake.spark.lake import Lake, connect
from variantlake.spark.load.append_target import columns_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def lake(spark: SparkSession) -> Lake:
    return connect(spark)


def test_comments_of_nested_fields_stay(spark: SparkSession) -> None:
    inner = st.StructField("z", st.IntegerType(), False, {"comment": "deep", "other": 1})
    middle = st.StructField("y", st.ArrayType(st.StructType([inner])))
    outer = st.StructField("s", st.StructType([middle]), metadata={"comment": "outer"})
    given = st.StructType([outer])
    made = columns_of(spark.createDataFrame([], given).schema, ())
    comments = {field.name: (field.nullable, dict(field.metadata)) for field in made.walk()}
    assert comments == {
        "s": (True, {"comment": "outer"}),
        "y": (True, {}),
        "z": (True, {"comment": "deep"}),
    }


def _date(rng: random.Random) -> str:
    parts = [
        rng.choice(["2026", "1999", "0001", "9999", "02026", "26", "+2026", "\uff12026"]),
        rng.choice(["01", "1", "12", "13", "00", "", "012"]),
        rng.choice(["01", "1", "29", "30", "31", "32", "0", "", "x"]),
    ]
    text = "-".join(parts[: rng.choice([1, 2, 3, 3, 3, 3])])
    return (
        rng.choice(["", "", " ", "\t"])
        + text
        + rng.choice(["", "", "T10:00Z", " x", "Z", "T", " "])
    )


def _value(rng: random.Random) -> Any:
    return rng.choice(
        [
            _date(rng), _date(rng), _date(rng), None, True, 7, -7, 1.5, 1e300, 2**40,
            {"a": 1}, [1], "", "12", "1e3", "0.5", "true", "No", " 7 ",
        ]
    )  # fmt: skip


@pytest.mark.parametrize("type_", ["date", "int", "string", "boolean", "bigint"])
def test_paths_are_cast_as_spark_casts_them(
    spark: SparkSession, lake: Lake, tmp_path: Path, type_: str
) -> None:
    rng = random.Random(type_)
    lines = [json.dumps({"k": k, "v": _value(rng)}) for k in range(300)]
    if type_ != "date":
        lines = [line for line in lines if "\\uff12" not in line]  # whose digits only Java knows
    (tmp_path / "a.json").write_text("\n".join(lines) + '\n{"k": -1}\n')
    path = f"try_variant_get(event, '$.v', '{type_}')"
    result = lake.ingest(tmp_path / "t", tmp_path / "a.json", partition_by=f"p={path}")
    assert result.rows_written == len(lines) + 1
    frame = spark.read.text(str(tmp_path / "a.json")).selectExpr("parse_json(value) AS event")
    ask = ["event:k::int AS k", "p"]
    expected = {
        (row.k, row.p or None if type_ == "string" else row.p)
        for row in frame.selectExpr(ask[0], f"{path} AS p").collect()
    }
    assert {tuple(row) for row in lake.table(tmp_path / "t").selectExpr(*ask).collect()} == expected
    delta = spark.read.format("delta").load(str(tmp_path / "t"))
    assert {tuple(row) for row in delta.selectExpr(*ask).collect()} == expected


def test_folders_the_file_and_the_time_by_tasks(lake: Lake, tmp_path: Path) -> None:
    for day in (1, 2, 3):
        folder = tmp_path / f"src/day=2026-01-0{day}"
        folder.mkdir(parents=True)
        (folder / "a.ndjson").write_text(f'{{"k": {day}}}\n')
        (folder / "empty.ndjson").touch()
    result = lake.ingest(
        tmp_path / "t", tmp_path / "src", partition_by="day DATE", file_column="_file",
        loaded_at_column="_loaded_at",
    )  # fmt: skip
    assert (result.rows_written, result.files_empty) == (3, 3)
    found = lake.sql(f"SELECT event:k::int k, day, _file, _loaded_at FROM delta.`{tmp_path}/t`")
    rows = {
        row.k: (row.day.day, row._file.endswith(f"day=2026-01-0{row.k}/a.ndjson"))
        for row in found.collect()
    }
    assert rows == {1: (1, True), 2: (2, True), 3: (3, True)}
    report = lake.explain(f"SELECT event:k FROM delta.`{tmp_path}/t` WHERE day = DATE '2026-01-02'")
    assert report.tables[0].scan.read_files == 1
    with pytest.raises(InvalidValue, match="did you mean partition_by"):
        lake.ingest(tmp_path / "t", tmp_path / "src", partition_byy="day")  # type: ignore[call-arg]


def test_a_dataframe_makes_its_table(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    frame = spark.sql(
        'SELECT \'{"kind": "a", "n": 1}\' AS event, 7L AS id, DATE \'2026-01-01\' AS day, '
        "named_struct('x', 1) AS s"
    )
    result = lake.append(
        tmp_path / "t", frame, json_columns=["event"], partition_by="day",
        shredding="kind STRING", properties={"mine": "yes"},
    )  # fmt: skip
    assert (result.version, result.rows_written) == (0, 1)
    table = vl.Table.open(tmp_path / "t")
    assert table.snapshot.partition_columns == ("day",)
    assert table.properties["variantlake.shredding.event"] == "kind STRING"
    assert table.properties["mine"] == "yes"
    assert lake.append(tmp_path / "t", frame, json_columns=["event"]).version == 1
    assert spark.read.format("delta").load(str(tmp_path / "t")).count() == 2
    with pytest.raises(InvalidSchema, match="partitioned by day"):
        lake.append(tmp_path / "t", frame, json_columns=["event"], partition_by="id")


def test_new_columns_of_a_dataframe(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    first = spark.sql("SELECT parse_json('1') AS event, named_struct('x', 1) AS s, 7 AS n")
    more = spark.sql(
        "SELECT parse_json('2') AS event, named_struct('x', 1, 'y', 'z') AS s, 8 AS n, "
        "true AS more, parse_json('3') AS other"
    )
    lake.append(tmp_path / "t", first)
    with pytest.raises(InvalidSchema) as caught:
        lake.append(tmp_path / "t", more)
    assert "merge_schema=True" in caught.value.hint
    assert lake.append(tmp_path / "t", more, merge_schema=True).version == 1
    rows = lake.sql(
        f"SELECT n, s.y AS y, more, other::int AS o FROM delta.`{tmp_path}/t` ORDER BY n"
    )
    assert [tuple(row) for row in rows.collect()] == [(7, None, None, None), (8, "z", True, 3)]
    with pytest.raises(InvalidSchema, match="'n' is integer"):
        lake.append(tmp_path / "t", spark.sql("SELECT 'x' AS n"), merge_schema=True)
    lake.overwrite(tmp_path / "t", more, merge_schema=True)
    assert lake.read(tmp_path / "t").count() == 1
