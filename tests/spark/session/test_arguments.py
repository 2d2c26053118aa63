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
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: vl.spark.connect(nothing), "SparkSession"),
        (lambda: lake.ingest(frame, tmp_path / "t"), "lake.append"),
        (lambda: lake.sql("SELECT * FROM t", tables={"t": frame}), "createOrReplaceTempView"),
        (lambda: lake.sql("SELECT * FROM t", tables={"t": table}), "table.uri"),  # type: ignore[dict-item] # wrong on purpose
        (lambda: lake.register("t", frame), "createOrReplaceTempView"),
        (lambda: lake.sql(frame), "lake.sql"),
        (lambda: lake.append(text, tmp_path / "t"), "lake.ingest"),
        (lambda: lake.append(frame, nothing), "location"),
        (lambda: lake.read(nothing), "location"),
        (lambda: lake.table(tmp_path / "t", text), "whole number"),
        (lambda: lake.table(tmp_path / "t", 0, timestamp="2026-01-02"), "not both"),
        (lambda: lake.convert(frame, tmp_path / "t"), "lake.append"),
        (lambda: vl.Table.open(nothing), "location"),
        (lambda: vl.Table.open(""), "location"),
        (lambda: vl.Table.open(tmp_path / "t", text), "whole number"),
        (lambda: table.append(text), "vl.ndjson"),
        (lambda: table.append(frame.collect()), "vl.ndjson"),
    ]
    for call, hint in wrong:
        with pytest.raises(InvalidValue, match=" is ") as caught:
            call()
        assert hint in caught.value.hint


def test_statements_that_need_delta_say_so(spark: SparkSession, tmp_path: Path) -> None:
    vl.Table.create(tmp_path / "t", "event VARIANT, id INT")
    lake = vl.spark.connect(spark)
    for text in ("DELETE FROM t", "UPDATE t SET id = 1", "DESCRIBE t"):
        with pytest.raises(UnsupportedFeature, match="is not supported") as caught:
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
