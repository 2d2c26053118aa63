"""Loads by Spark's executors: the same table as locally, and nothing left by a bad input."""

from __future__ import annotations

import gzip
import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.corpora import EARTHQUAKES, WEBHOOKS
from tests.ingest import bad_input
from tests.ingest.test_load import documents
from variantlake.delta.log.snapshot import Snapshot
from variantlake.encoding.json import parse_json
from variantlake.errors import (
    MissingDependency,
    NotADeltaTable,
    UnsupportedFeature,
    VariantLakeError,
)
from variantlake.ingest import load
from variantlake.progress import Progress
from variantlake.spark.load.ingest import ingest
from variantlake.spark.session.jobs import run_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]


@pytest.mark.parametrize("source", [EARTHQUAKES, WEBHOOKS], ids=lambda path: path.name)
def test_every_row_comes_back(spark: SparkSession, tmp_path: Path, source: Path) -> None:
    result = ingest(spark, source, tmp_path / "table", max_rows_per_file=150)
    expected = [parse_json(line) for line in gzip.decompress(source.read_bytes()).splitlines()]
    assert documents(tmp_path / "table") == expected
    assert (result.version, result.rows_written) == (0, len(expected))
    assert result.files_written == -(-len(expected) // 150)


def test_a_plain_file_is_shared_by_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = gzip.decompress(EARTHQUAKES.read_bytes())
    (tmp_path / "a.ndjson").write_bytes(text)
    monkeypatch.setattr(load, "SMALLEST_TASK_BYTES", len(text) // 7)
    monkeypatch.setattr(load, "TASK_BYTES", len(text) // 7)
    seen: list[Progress] = []
    result = ingest(spark, tmp_path / "a.ndjson", tmp_path / "table", progress=seen.append)
    assert result.files_written == 7
    # In the order of the input, so that bounds of ordered fields are narrow.
    assert documents(tmp_path / "table") == [parse_json(line) for line in text.splitlines()]
    assert seen[-1] == Progress(len(text), len(text), "bytes", "read", files_written=7)


def test_spark_itself_reads_the_table_as_it_parses_the_text(
    spark: SparkSession, tmp_path: Path
) -> None:
    ingest(spark, EARTHQUAKES, tmp_path / "table", max_rows_per_file=600)
    ingest(spark, EARTHQUAKES, tmp_path / "table")
    ours = spark.read.format("delta").load(str(tmp_path / "table"))
    theirs = spark.read.text(str(EARTHQUAKES)).selectExpr("parse_json(value) AS event")
    expected = sorted(row.j for row in theirs.selectExpr("to_json(event) AS j").collect())
    found = sorted(row.j for row in ours.selectExpr("to_json(event) AS j").collect())
    assert found == sorted(expected * 2)


def test_a_table_of_delta_spark_is_written_unshredded(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    spark.sql(f"CREATE TABLE delta.`{table}` (id INT, event VARIANT) USING DELTA")
    result = ingest(spark, EARTHQUAKES, table)
    assert (result.version, result.shredding) == (1, {"event": "VARIANT"})
    (add,) = Snapshot.read(table).add_files()
    assert '"event"' not in (add.stats or "").split("nullCount")[0]
    counted = spark.sql(
        f"SELECT count(*) AS n, count(id) AS ids, max(event:properties.mag::double) AS mag "
        f"FROM delta.`{table}`"
    ).first()
    assert counted is not None
    assert tuple(counted)[:2] == (1707, 0)


@pytest.mark.parametrize(
    "name",
    # The workers are other processes: what a case patches would not reach them.
    [name for name, case in bad_input.CASES.items() if case.patch is None],
)
def test_a_bad_input_commits_nothing(
    spark: SparkSession, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = bad_input.CASES[name]
    source = case.prepare(tmp_path, monkeypatch)
    with pytest.raises(VariantLakeError) as caught:
        ingest(spark, source, tmp_path / "table", max_rows_per_file=2)
    case.check(caught.value, source)
    assert bad_input.listing(tmp_path / "table") == []


def test_the_first_bad_line_of_the_input_is_reported(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "SMALLEST_TASK_BYTES", 1000)
    monkeypatch.setattr(load, "TASK_BYTES", 1000)
    lines = ['{"a": 1}'] * 1000
    lines[400] = lines[900] = "{"
    (tmp_path / "a").write_text("\n".join(lines))
    with pytest.raises(VariantLakeError) as caught:
        ingest(spark, tmp_path / "a", tmp_path / "table")
    assert (caught.value.line, caught.value.column) == (401, 2)
    assert bad_input.listing(tmp_path / "table") == []


def test_locations_that_are_no_table_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    with pytest.raises(NotADeltaTable):
        ingest(spark, tmp_path / "a", tmp_path)
    with pytest.raises(NotADeltaTable):
        ingest(spark, tmp_path / "a", tmp_path / "a")


def test_an_unknown_feature_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    table = tmp_path / "table"
    ingest(spark, tmp_path / "a", table)
    log = table / "_delta_log" / f"{0:020d}.json"
    log.write_text(log.read_text().replace('"variantType"', '"variantType","timeMachine"'))
    log.with_suffix(".crc").unlink()
    before = bad_input.listing(table)
    with pytest.raises(UnsupportedFeature, match="timeMachine"):
        ingest(spark, tmp_path / "a", table)
    assert bad_input.listing(table) == before


def test_ctrl_c_leaves_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "SMALLEST_TASK_BYTES", 20 << 20)
    source, table = tmp_path / "a", tmp_path / "table"
    source.write_text('{"a": "%s"}\n' % ("x" * 1000) * 100_000)

    def interrupt() -> None:
        deadline = time.monotonic() + 60
        while len(bad_input.listing(table)) < 3 and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        ingest(spark, source, table, max_rows_per_file=500)
    time.sleep(2)  # workers that Spark did not end stop by themselves
    assert bad_input.listing(table) == []


@pytest.mark.parametrize("module", ["variantlake", "pyroaring"])
def test_workers_without_the_package_are_explained(spark: SparkSession, module: str) -> None:
    def task(number: int) -> list[bytes]:
        raise ModuleNotFoundError(f"No module named '{module}' {number}", name=module)

    with pytest.raises(MissingDependency, match=f"cannot import {module}") as caught:
        run_tasks(spark, task, 1, description="test")
    for named in ("PYSPARK_PYTHON", "spark.archives", "docs/deploying.md"):
        assert named in caught.value.hint


def test_what_tasks_need_besides_the_package_is_not_ours_to_explain(spark: SparkSession) -> None:
    def task(number: int) -> list[bytes]:
        raise ModuleNotFoundError(f"No module named 'duckdb' {number}", name="duckdb")

    with pytest.raises(Exception, match="duckdb") as caught:
        run_tasks(spark, task, 1, description="test")
    assert not isinstance(caught.value, MissingDependency)
