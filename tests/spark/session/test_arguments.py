"""Arguments of wrong types: a sentence with what was given, what is wanted, and what takes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import variantlake as vl
from variantlake.errors import InvalidValue, UnsupportedFeature

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_wrong_arguments_are_told_where_they_belong(spark: SparkSession, tmp_path: Path) -> None:
    lake = vl.spark.connect(spark)
    table = vl.Table.create(tmp_path / "t", "event VARIANT")
    frame: Any = spark.range(1)
    text: Any = str(tmp_path / "a.ndjson")
    nothing: Any = None
    wrong_number: Any = 5
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: vl.spark.connect(nothing), "SparkSession"),
        (lambda: lake.ingest(tmp_path / "t", frame), "lake.append"),
        (lambda: lake.sql("SELECT * FROM t", tables={"t": frame}), "createOrReplaceTempView"),
        (lambda: lake.sql("SELECT * FROM t", tables=[text]), "tables={'t'"),  # type: ignore[arg-type] # wrong on purpose
        (lambda: lake.explain("SELECT * FROM t", tables=text), "tables={'t'"),
        (lambda: lake.register("t", frame), "createOrReplaceTempView"),
        (lambda: lake.sql(frame), "lake.sql"),
        (lambda: lake.append(tmp_path / "t", wrong_number), "vl.ndjson"),
        (lambda: lake.append(nothing, frame), "location"),
        (lambda: lake.read(nothing), "location"),
        (lambda: lake.table(tmp_path / "t", text), "whole number"),
        (lambda: lake.table(tmp_path / "t", 0, timestamp="2026-01-02"), "not both"),
        (lambda: lake.convert(tmp_path / "t", frame), "lake.append"),
        (lambda: lake.table(tmp_path / "t", timestamp=wrong_number), "datetime"),
        (lambda: lake.table(tmp_path / "t", True), "whole number"),
        (lambda: lake.table(tmp_path / "t", 0, timestamp="2026-01-01"), "not both"),
        (lambda: lake.add_constraint(tmp_path / "t", "c", nothing), "lake"),
        (lambda: lake.append(tmp_path / "t", frame, json_columns=wrong_number), "list of texts"),
        (lambda: lake.append(tmp_path / "n", frame, partition_by=wrong_number), "list of texts"),
        (lambda: lake.append(tmp_path / "n", frame, shredding=wrong_number), "DDL"),
        (lambda: lake.append(tmp_path / "n", frame, properties=wrong_number), "mapping"),
        (lambda: vl.Table.open(nothing), "location"),
        (lambda: vl.Table.open(""), "location"),
        (lambda: vl.Table.open(tmp_path / "t", text), "whole number"),
        (lambda: table.append(wrong_number), "vl.ndjson"),
    ]
    for call, hint in wrong:
        with pytest.raises(InvalidValue, match=r" is |, not |cannot ") as caught:
            call()
        assert hint in caught.value.hint


def test_names_are_those_of_the_table_in_any_case(spark: SparkSession, tmp_path: Path) -> None:
    lake, table = vl.spark.connect(spark), tmp_path / "t"
    first = spark.sql("SELECT 1 AS Id, DATE'2026-01-31' AS Day, true AS flag")
    lake.append(table, first, partition_by="DAY")
    lake.append(table, spark.sql("SELECT 2 AS ID, DATE'2026-02-01' AS day"), partition_by=["day"])
    assert vl.Table.open(table).snapshot.partition_columns == ("Day",)
    assert sorted(row.asDict()["Id"] for row in lake.read(table).collect()) == [1, 2]
    texts = spark.sql("""SELECT '{"a": 1}' AS Event""")
    lake.append(tmp_path / "e", texts, json_columns="Event")
    lake.append(tmp_path / "e", texts.toDF("EVENT"), json_columns="event", merge_schema=True)
    assert vl.Table.open(tmp_path / "e").scan("event:a::int AS a").to_arrow()["a"].to_pylist() == [
        1,
        1,
    ]


def test_one_column_alone_is_a_condition(spark: SparkSession, tmp_path: Path) -> None:
    lake = vl.spark.connect(spark)
    lake.append(tmp_path / "t", spark.sql("SELECT * FROM VALUES (true), (false) AS t(flag)"))
    assert lake.table(tmp_path / "t").where("flag").collect() == [(True,)]


def test_types_that_delta_lacks_make_no_table(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFeature, match="interval day") as caught:
        vl.spark.connect(spark).append(tmp_path / "t", spark.sql("SELECT INTERVAL 1 DAY AS i"))
    assert "cast" in caught.value.hint
    assert not (tmp_path / "t").exists()


def test_statements_that_need_delta_say_so(spark: SparkSession, tmp_path: Path) -> None:
    vl.Table.create(tmp_path / "t", "event VARIANT, id INT")
    lake = vl.spark.connect(spark)
    for text in ("SHOW CREATE TABLE t", "ALTER TABLE t REPLACE COLUMNS (id INT)"):
        with pytest.raises(UnsupportedFeature) as caught:
            lake.sql(text, tables={"t": tmp_path / "t"})
        assert caught.value.hint


def test_columns_of_the_data_source_are_found_in_any_case(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = tmp_path / "a.ndjson"
    source.write_text('{"a": 1}\n')
    vl.Table.create(tmp_path / "t", "event VARIANT, Id INT").append(vl.ndjson(source))
    vl.spark.register(spark)
    reader = spark.read.format("variantlake")
    assert reader.option("columns", "iD").load(str(tmp_path / "t")).columns == ["Id"]
    frame = spark.read.format("variantlake").schema("ID INT").load(str(tmp_path / "t"))
    assert [row.asDict() for row in frame.collect()] == [{"ID": None}]
