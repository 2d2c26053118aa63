"""The main job, judged by others: Spark on the unshredded data, Delta Spark, DuckDB, pyarrow."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow.parquet as pq
import pytest
from benchmarks.documents import write as write_documents

import variantlake as vl
from tests import corpora

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

EARTHQUAKES = corpora.EARTHQUAKES

QUERIES = {
    "aggregate": """
        SELECT event:properties.net::string AS net, count(*) AS n,
               max(event:properties.mag::double) AS strongest
        FROM {t} GROUP BY 1""",
    "selective-range": """
        SELECT event:id::string AS id, event:properties.mag::double AS mag FROM {t}
        WHERE event:properties.time::bigint BETWEEN 1517700000000 AND 1517721600000""",
    "not-shredded": """
        SELECT round(sum(event:geometry.coordinates[2]::double), 6) AS depth FROM {t}""",
    "variant_get": """
        SELECT variant_get(event, '$.properties.place', 'string') AS place FROM {t}
        WHERE try_variant_get(event, '$.properties.sig', 'int') > 500""",
    "null-bearing": """
        SELECT event:properties.felt::int AS felt, count(*) AS n FROM {t}
        WHERE event:properties.felt::int IS NOT NULL GROUP BY 1""",
    "in-and-or": """
        SELECT count(*) AS n FROM {t}
        WHERE event:properties.net::string IN ('ci', 'us')
           OR (event:properties.mag::double >= 5 AND NOT event:properties.tsunami::int = 1)""",
    "unknown-path": "SELECT count(event:properties.nobody.has.it::string) AS n FROM {t}",
    "string-range": """
        SELECT min(event:id::string) AS low, count(*) AS n FROM {t}
        WHERE event:id::string >= 'us' AND event:id::string < 'uu'""",
    "guarded": """
        SELECT sum(CASE WHEN event:properties.type::string = 'earthquake'
                        THEN event:properties.mag::decimal(10, 3) END) AS total FROM {t}""",
}


@pytest.fixture(scope="module")
def documents() -> list[str]:
    with gzip.open(EARTHQUAKES, "rt", encoding="utf-8") as lines:
        return list(lines)


@pytest.fixture(scope="module")
def judge(spark: SparkSession, documents: list[str]) -> Iterator[str]:
    """A view of the documents as Spark itself parses them: unshredded and never scanned."""
    frame = spark.createDataFrame([(line,) for line in documents], "line STRING")
    frame.selectExpr("parse_json(line) AS event").createOrReplaceTempView("judge")
    yield "judge"
    spark.catalog.dropTempView("judge")


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("lake") / "earthquakes")
    result = vl.spark.connect(spark).ingest(path, str(EARTHQUAKES), max_rows_per_file=150)
    assert (result.rows_written, result.files_written) == (1707, 12)
    return path


def rows(frame: DataFrame) -> list[str]:
    """The rows in an order of their own, as text that tells types apart."""
    return sorted(repr(tuple(row)) for row in frame.collect())


@pytest.mark.parametrize("name", QUERIES)
def test_answers_are_those_on_unshredded_data(
    spark: SparkSession, table: str, judge: str, name: str
) -> None:
    ours = vl.spark.connect(spark).sql(QUERIES[name].format(t=f"delta.`{table}`"))
    theirs = spark.sql(QUERIES[name].format(t=judge))
    assert ours.columns == theirs.columns
    assert [f.dataType for f in ours.schema.fields] == [f.dataType for f in theirs.schema.fields]
    assert rows(ours) == rows(theirs)


@pytest.mark.parametrize("name", QUERIES)
def test_delta_spark_gives_the_same_answers(
    delta_spark: SparkSession, table: str, judge: str, name: str
) -> None:
    theirs = delta_spark.sql(QUERIES[name].format(t=f"delta.`{table}`"))
    assert rows(theirs) == rows(delta_spark.sql(QUERIES[name].format(t=judge)))


@pytest.mark.parametrize("name", QUERIES)
def test_answers_hold_after_delta_spark_appended(
    delta_spark: SparkSession,
    documents: list[str],
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    appended: str,
) -> None:
    del tmp_path_factory, documents
    ours = vl.spark.connect(delta_spark).sql(QUERIES[name].format(t=f"delta.`{appended}`"))
    theirs = delta_spark.sql(QUERIES[name].format(t=f"delta.`{appended}`"))
    assert rows(ours) == rows(theirs)


@pytest.fixture(scope="module")
def appended(delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of ours to which Delta Spark appended rows of its own, some of another shape."""
    path = str(tmp_path_factory.mktemp("lake") / "appended")
    vl.spark.connect(delta_spark).ingest(path, str(EARTHQUAKES), max_rows_per_file=400)
    own = [
        {"id": "us-own-1", "properties": {"net": "us", "mag": 6.5, "time": 1517710000000}},
        {"id": 17, "properties": {"net": "ci", "mag": "strong", "felt": None}},
        {"id": "zz", "properties": "none"},
    ]
    frame = delta_spark.createDataFrame([(json.dumps(doc),) for doc in own[:1]], "line STRING")
    frame.selectExpr("parse_json(line) AS event").write.format("delta").mode("append").save(path)
    return path


def test_the_range_query_reads_fewer_than_half_of_the_files(
    spark: SparkSession, table: str
) -> None:
    query = QUERIES["selective-range"].format(t=f"delta.`{table}`")
    report = vl.spark.connect(spark).explain(query).to_dict()
    (scan,) = report["tables"]
    assert scan["files"]["total"] == 12
    assert 0 < scan["files"]["read"] < 6


SETS = {
    "earthquakes": EARTHQUAKES,
    "github-webhooks": corpora.WEBHOOKS,
    "events": None,
}


@pytest.mark.parametrize("name", SETS)
def test_every_row_comes_back_as_spark_parses_it(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    source = SETS[name]
    if source is None:
        source = tmp_path / "events.ndjson"
        write_documents("events", source, 3000)
    path = str(tmp_path / "table")
    lake = vl.spark.connect(spark)
    lake.ingest(path, str(source))
    ours = lake.read(path).selectExpr("to_json(event) AS j")
    theirs = spark.read.text(str(source)).selectExpr("to_json(parse_json(value)) AS j")
    assert sorted(row.j for row in ours.collect()) == sorted(row.j for row in theirs.collect())


def test_duckdb_and_pyarrow_read_the_files(table: str, documents: list[str]) -> None:
    files = sorted(str(file) for file in Path(table).glob("*.parquet"))
    connection = duckdb.connect()
    counted = connection.execute(
        "SELECT count(*), sum(CAST(event.properties.sig AS BIGINT)) FROM read_parquet(?)", [files]
    ).fetchone()
    expected = sum(json.loads(line)["properties"]["sig"] for line in documents)
    assert counted == (len(documents), expected)
    kind = connection.execute(
        "SELECT typeof(event) FROM read_parquet(?) LIMIT 1", [files]
    ).fetchone()
    assert kind == ("VARIANT",)
    assert sum(pq.read_table(file).num_rows for file in files) == len(documents)
