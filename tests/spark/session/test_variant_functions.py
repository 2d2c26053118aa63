"""The functions that change Variants, over Spark columns and in SQL; nothing of ours stays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

import variantlake as vl
from variantlake.errors import InvalidQuery
from variantlake.spark.session.variant_functions import NAMES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    text = """SELECT id, parse_json(doc) AS event, path, n FROM VALUES
        (1, '{"a":1,"tags":["x"]}', '$.a', 10L), (2, NULL, '$.a', 20L),
        (3, '{"tags":[]}', '$.tags[1]', NULL), (4, '{"a":{"b":2}}', NULL, 40L)
        AS t(id, doc, path, n)"""
    return spark.sql(text)


def shown(frame: DataFrame) -> list[str | None]:
    (name,) = (name for name in frame.columns if name != "id")
    rows = frame.select("id", sf.to_json(name).alias("text")).orderBy("id").collect()
    return [row.text for row in rows]


def test_columns(events: DataFrame) -> None:
    v = events.event
    with_n = vl.variant_set(v, "$.n", events.n)
    found = events.select("id", vl.try_variant_insert(with_n, "$.a.c", {"k": [None]}).alias("v"))
    assert shown(found) == [None, None, None, '{"a":{"b":2,"c":{"k":[null]}},"n":40}']
    found = events.select("id", vl.variant_delete(v, "$.a", "$.tags[0]").alias("v"))
    assert shown(found) == ['{"tags":[]}', None, '{"tags":[]}', "{}"]
    found = events.select("id", vl.variant_set(v, "$.n", None).alias("v")).where("id = 3")
    assert shown(found) == ['{"n":null,"tags":[]}']


def test_sql_knows_the_functions_and_keeps_none(spark: SparkSession, tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "id INT, event VARIANT, path STRING")
    rows = [('{"a":1}', "$.a"), (None, "$.a"), ('{"a":{"b":[1]}}', "$.a.b"), ("{}", None)]
    documents = [None if text is None else vl.parse_json(text) for text, _ in rows]
    events = [each and {"metadata": each.metadata, "value": each.value} for each in documents]
    table.append(
        pa.table(
            {
                "id": pa.array(range(4), pa.int32()),
                "event": pa.array(
                    events, pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
                ),
                "path": [path for _, path in rows],
            }
        )
    )
    lake = vl.spark.connect(spark)
    before = spark.sql("SHOW USER FUNCTIONS").collect()

    def sql(expression: str) -> list[str | None]:
        text = f"SELECT id, {expression} AS v FROM delta.`{table.uri}`"
        frame = lake.sql(text)
        assert spark.sql("SHOW USER FUNCTIONS").collect() == before
        return shown(frame)

    assert sql("variant_set(event, path, 7)") == ['{"a":7}', None, '{"a":{"b":7}}', None]
    assert sql("variant_set(event, '$.z', id, false)") == [
        '{"a":1}', None, '{"a":{"b":[1]}}', "{}",
    ]  # fmt: skip
    assert sql("VARIANT_REMOVE(event, path, '$.x')") == ["{}", None, '{"a":{}}', "{}"]
    assert sql("try_variant_array_append(event, '$.a.b', parse_json('[2]'))") == [
        None, None, '{"a":{"b":[1,[2]]}}', "{}",
    ]  # fmt: skip
    assert sql("try_variant_set(event, '$.a.b', event:a)") == [
        None, None, '{"a":{"b":{"b":[1]}}}', None,
    ]  # fmt: skip
    kept = lake.sql(
        f"SELECT variant_set(event, '$.day', DATE'2026-01-02') AS v FROM delta.`{table.uri}` "
        "WHERE event:a::string = '1'"
    )
    assert kept.selectExpr("v:day::date AS d").collect()[0].d.isoformat() == "2026-01-02"
    with pytest.raises(PySparkException, match="DuplicateKey"):
        sql("variant_insert(event, '$.a', 1)")
    with pytest.raises(InvalidQuery):
        sql("variant_sets(event, '$.a', 1)")


def test_a_session_is_given_them_for_good(spark: SparkSession) -> None:
    session = spark.newSession()
    assert set(vl.spark.register_functions(session)) <= set(NAMES)
    assert vl.spark.register_functions(session) == ()
    (row,) = session.sql(
        "SELECT to_json(variant_set(parse_json('{}'), '$.a[1]', 1.5)) AS v"
    ).collect()
    assert row.v == '{"a":[null,1.5]}'
