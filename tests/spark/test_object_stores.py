"""Tables in an object store, read and changed by Spark, and read by us: `s3a:` and `s3:`."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import variantlake as vl
from tests import s3_server
from variantlake.parquet.variant.variant_arrays import variant_array
from variantlake.spark import connect
from variantlake.spark.session.stores import follow_spark
from variantlake.spark.streaming.registration import register
from variantlake.storage.options import (
    fall_back_to,
    options_to_send,
    storage_options,
    take_options,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
ROOT = f"s3a://{s3_server.BUCKET}"
DELTA = "delta.`{}`"


@pytest.fixture(scope="module")
def s3(delta_spark: SparkSession) -> Iterator[SparkSession]:
    """The shared session, which reaches the server; its Python workers know nothing of it."""
    with s3_server.running() as environment:
        settings = {
            "fs.s3a.endpoint": environment["AWS_ENDPOINT_URL"],
            "fs.s3a.endpoint.region": "us-east-1",
            "fs.s3a.path.style.access": "true",
            "fs.s3a.access.key": "test",
            "fs.s3a.secret.key": "test",
            "fs.s3a.impl.disable.cache": "true",
        }
        java = delta_spark.sparkContext._jsc.hadoopConfiguration()  # no public way
        for name, value in settings.items():
            java.set(name, value)
        yield delta_spark
        for name in settings:
            java.unset(name)


def test_settings_of_single_buckets(
    delta_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They win over those of all buckets, and over the environment, in which others sign."""
    settings = {
        "fs.s3a.access.key": "of-all",
        "fs.s3a.secret.key": "s",
        "fs.s3a.session.token": "of-all",
        "fs.s3a.endpoint": "http://minio.example",
        "fs.s3a.bucket.my.own.access.key": "of-one",
        "fs.s3a.bucket.my.own.secret.key": "t",
        "fs.s3a.bucket.my.own.endpoint": "s3.eu-central-1.amazonaws.com",
        "fs.s3a.bucket.my.own.endpoint.region": "eu-central-1",
        "fs.s3a.bucket.other.path.style.access": "true",
    }
    monkeypatch.setenv("HOME", "/nowhere")
    java = delta_spark.sparkContext._jsc.hadoopConfiguration()  # no public way
    of_one = {
        "AWS_ACCESS_KEY_ID": "of-one",
        "AWS_SECRET_ACCESS_KEY": "t",
        "AWS_REGION": "eu-central-1",
        "AWS_ALLOW_HTTP": "false",
    }
    try:
        for name, value in settings.items():
            java.set(name, value)
        follow_spark(delta_spark)
        found = storage_options("s3://my.own/t")
        assert {name: found.get(name) for name in of_one} == of_one
        assert not {"AWS_ENDPOINT", "AWS_SESSION_TOKEN"} & found.keys()
        for other in ("s3a://other/t", "s3://third"):
            assert storage_options(other)["AWS_ACCESS_KEY_ID"] == "of-all"
            assert storage_options(other)["AWS_ENDPOINT"] == "http://minio.example"
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-environment")
        assert storage_options("s3://third")["AWS_ACCESS_KEY_ID"] == "of-environment"
        assert storage_options("s3://my.own")["AWS_ACCESS_KEY_ID"] == "of-one"
        sent = options_to_send()
        fall_back_to({})
        take_options(sent)
        assert storage_options("s3://my.own")["AWS_ACCESS_KEY_ID"] == "of-one"
    finally:
        take_options({})
        fall_back_to({})
        for name in settings:
            java.unset(name)


@pytest.fixture(scope="module")
def table(s3: SparkSession) -> str:
    """A table of Delta Spark with deletion vectors, a checkpoint, and mapped columns."""
    path = f"{ROOT}/table"
    name = DELTA.format(path)
    s3.sql(
        f"CREATE TABLE {name} (id BIGINT, `event` VARIANT) USING delta TBLPROPERTIES ("
        "'delta.enableDeletionVectors' = 'true', 'delta.checkpointInterval' = '2', "
        "'delta.columnMapping.mode' = 'name')"
    )
    rows = 'SELECT id, parse_json(format_string(\'{"n": %d, "s": "v%d"}\', id, id % 3))'
    s3.sql(f"INSERT INTO {name} {rows} FROM range(0, 50, 1, 1)")
    s3.sql(f"INSERT INTO {name} {rows} FROM range(50, 100, 1, 1)")
    s3.sql(f"DELETE FROM {name} WHERE id % 10 = 3")
    return path


SUM = "SELECT count(*) AS c, sum(event:n::bigint) AS n FROM {} WHERE event:s::string = 'v1'"
EXPECTED = [(n, n) for n in range(100) if n % 10 != 3]


def expected_sum() -> tuple[int, int]:
    found = [n for n, _ in EXPECTED if n % 3 == 1]
    return len(found), sum(found)


@pytest.mark.parametrize("scheme", ["s3a", "s3"])
def test_a_table_with_deletion_vectors_is_read_by_either_name(
    s3: SparkSession, table: str, scheme: str
) -> None:
    location = table.replace("s3a:", f"{scheme}:")
    lake = connect(s3)
    assert [tuple(row) for row in lake.sql(SUM.format(DELTA.format(location))).collect()] == [
        expected_sum()
    ]
    assert lake.read(location).count() == len(EXPECTED)
    report = lake.explain(SUM.format(DELTA.format(location)))
    assert report.tables[0].scan.row_groups is not None
    here = vl.Table.open(location)
    found = here.scan(["id", "event:n::bigint AS n"]).to_arrow()
    assert sorted(zip(*(column.to_pylist() for column in found.columns), strict=True)) == EXPECTED


def test_what_tasks_read_by_kernels_they_read_with_the_options_of_the_driver(
    s3: SparkSession, table: str
) -> None:
    register(s3)
    rows = s3.read.format("variantlake").load(table).selectExpr("id", "event:n::bigint AS n")
    assert sorted(map(tuple, rows.collect())) == EXPECTED


def test_loads_by_spark_land_in_the_store(s3: SparkSession) -> None:
    lake = connect(s3)
    frame = s3.range(0, 10, 1, 2).selectExpr("id", "format_string('{\"n\": %d}', id) AS event")
    location = f"{ROOT}/appended"
    vl.Table.create(location, "id BIGINT, event VARIANT")
    lake.append(location, frame, json_columns=["event"])
    rows = lake.sql(f"SELECT id, event:n::int AS n FROM {DELTA.format(location)}").collect()
    assert sorted(map(tuple, rows)) == [(n, n) for n in range(10)]


@pytest.mark.rule(10)
def test_rule_10_kernels_read_from_the_store(s3: SparkSession) -> None:
    location = f"s3://{s3_server.BUCKET}/odd"
    made = vl.Table.create(location, "event VARIANT, k INT", shredding={"event": "at TIME"})
    values = variant_array([{"id": n, "at": dt.time(1, 2, n)} for n in range(5)])
    made.append(pa.table({"event": values, "k": pa.array(range(5), pa.int32())}))
    found = connect(s3).read(location).selectExpr("k", "event:id::int AS id").collect()
    assert sorted(map(tuple, found)) == [(n, n) for n in range(5)]


def test_sparks_own_settings_serve_where_the_environment_tells_nothing(
    s3: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT",
        "AWS_ALLOW_HTTP",
        "AWS_REGION",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
    ):
        monkeypatch.delenv(name)
    found = connect(s3).sql(SUM.format(DELTA.format(table))).collect()
    assert [tuple(row) for row in found] == [expected_sum()]


def test_streams_from_and_into_tables_of_a_bucket(s3: SparkSession, tmp_path: Path) -> None:
    """JSON text into a table, and that table into another one, by batches of a file each."""
    register(s3)
    source = tmp_path / "in"
    source.mkdir()

    def stream(frame: DataFrame, target: str, **options: str) -> None:
        writer = frame.writeStream.format("variantlake").options(**options)
        writer = writer.option("checkpointLocation", str(tmp_path / target))
        writer.trigger(availableNow=True).start(f"{ROOT}/{target}").awaitTermination()

    def load(number: int) -> None:
        (source / str(number)).write_text(f'{{"id": {number}}}\n{{"id": {number + 100}}}\n')
        text = s3.readStream.text(str(source)).selectExpr("value AS event")
        stream(text, "stream", jsonColumns="event", queryId="text")

    for number in (0, 1):
        load(number)
    rows = s3.readStream.format("variantlake").option("maxFilesPerTrigger", 1)
    stream(rows.load(f"{ROOT}/stream"), "streamed")
    query = "SELECT variant_get(event, '$.id', 'int') AS id FROM " + DELTA
    for name in ("stream", "streamed"):
        judged = s3.sql(query.format(f"{ROOT}/{name}")).collect()
        assert sorted(row.id for row in judged) == [0, 1, 100, 101]
    shutil.rmtree(tmp_path / "stream")
    with pytest.raises(Exception, match="checkpoint was lost"):
        load(2)
