"""Autoload through Spark, and what Delta Spark does to a table that is loaded so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import variantlake as vl
from tests.autoloading.sources import ids, put

pytestmark = pytest.mark.spark


def test_delta_spark_keeps_the_state_and_reads_the_rows(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    source, table = tmp_path / "in", tmp_path / "table"
    put(source / "a.json", 1, 2)
    lake = vl.spark.connect(delta_spark)
    done = lake.autoload(f"{table}", source, name="events", max_files=1)
    assert (done.version, done.rows_written) == (0, 2)
    # Delta Spark writes, checkpoints, vacuums and restores: the state stays what it was.
    delta_spark.sql(f"INSERT INTO delta.`{table}` VALUES (parse_json('{{\"id\": 100}}'))")
    delta_spark.sql(
        f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.checkpointInterval' = '2')"
    )
    put(source / "b.json", 3)
    assert lake.autoload(f"{table}", source, name="events").files_read == 1
    for path in (table / "_variantlake").rglob("*.parquet"):
        os.utime(path, (1e9, 1e9))
    delta_spark.sql(f"VACUUM delta.`{table}`")
    assert lake.autoload(f"{table}", source, name="events").batches == 0
    rows = delta_spark.sql(
        f"SELECT variant_get(event, '$.id', 'int') AS id FROM delta.`{table}` ORDER BY id"
    ).collect()
    assert [row.id for row in rows] == ids(table) == [1, 2, 3, 100]
    delta_spark.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF 1")
    assert lake.autoload(f"{table}", source, name="events").batches == 0
    assert ids(table) == [1, 2, 100]
    assert vl.Table.open(table).loads()["file"].to_pylist() == ["a.json", "b.json"]


def test_a_large_batch_is_run_by_spark(delta_spark: SparkSession, tmp_path: Path) -> None:
    source, table = tmp_path / "in", tmp_path / "table"
    text = b"".join(
        b'{"id": %d, "text": "%s"}\n' % (number, b"x" * 1000) for number in range(20_000)
    )
    for name in ("a.json", "b.json"):
        put(source / name, data=text)
    done = vl.spark.connect(delta_spark).autoload(f"{table}", source)
    assert (done.files_read, done.rows_written) == (2, 40_000)
    assert vl.Table.open(table).files().num_rows >= 2
    assert vl.Table.open(table).loads()["rows"].to_pylist() == [20_000, 20_000]
