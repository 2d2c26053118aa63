"""`variantlake cluster` and `variantlake reshred`, and the same from Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import variantlake as vl
from tests.cli.command import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def make(path: Path) -> vl.Table:
    """Three files that overlap; the last has a path that the first have not."""
    table = vl.Table.create(path, "event VARIANT", cluster_by="event:ts")
    for load in range(3):
        docs = [{"ts": 3 * n + load, "kind": "k"} for n in range(40)]
        if load == 2:
            docs = [{**doc, "price": n} for n, doc in enumerate(docs)]
        rows = pa.table({"event": [json.dumps(doc) for doc in docs]})
        table.append(rows, json_columns=["event"])
    return table.refresh()


def times(table: vl.Table) -> list[int | None]:
    rows: list[int | None] = table.scan("event:ts::int AS ts").to_arrow()["ts"].to_pylist()
    return rows


def test_the_commands_say_what_they_would_do_and_do_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    table = make(tmp_path / "t")
    said = run(monkeypatch, capfd, "cluster", table.uri, "--dry-run", "--budget", "2GB")
    assert "would be read" in said.out
    assert "3 files" in said.out
    done = run(monkeypatch, capfd, "cluster", table.uri, "--by", "event:ts::bigint", "--json")
    assert json.loads(done.out)["files_read"] == 3
    assert times(table.refresh()) == list(range(120))
    said = run(monkeypatch, capfd, "reshred", table.uri, "--dry-run")
    assert "price BIGINT" in said.out
    done = run(monkeypatch, capfd, "reshred", table.uri, "--shredding", "event=ts BIGINT", "--json")
    assert json.loads(done.out)["shredding"] == {"event": "ts BIGINT"}
    done = run(monkeypatch, capfd, "reshred", table.uri, "--unshred")
    assert done.code == 0
    assert sorted(filter(None, times(table.refresh()))) == list(range(1, 120))
    wrong = run(monkeypatch, capfd, "cluster", table.uri)
    assert wrong.code == 1
    assert "--by" in wrong.err


@pytest.mark.spark
@pytest.mark.usefixtures("interpreted")
def test_delta_spark_reads_the_same_rows_before_and_after(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    table = make(tmp_path / "t")
    lake = vl.spark.connect(delta_spark)

    def rows(version: int) -> list[str]:
        reader = delta_spark.read.format("delta").option("versionAsOf", version)
        frame = reader.load(table.uri).selectExpr("to_json(event) AS e")
        return sorted(row.e for row in frame.collect())

    before = rows(table.version)
    size = sum(add.size for add in table.snapshot.add_files())
    done = lake.cluster(table.uri, target_file_size=size // 3)
    assert done.files_read == 3
    assert done.files_written > 2
    assert rows(done.versions[-1]) == rows(table.version) == before
    done_too = lake.reshred(table.uri)
    assert done_too.files_read
    assert rows(done_too.versions[-1]) == before
    assert lake.check_rewrite(table.uri, table.version).equal
    assert lake.digest(table.uri) == table.digest()
    assert lake.unshred(table.uri, dry_run=True).files_read
    last = lake.drop_feature(table.uri, "variantShredding")
    assert rows(last.version or 0) == before
    delta_spark.sql(f"OPTIMIZE delta.`{table.uri}`")
    assert rows((last.version or 0) + 1) == before
    assert lake.check_rewrite(table.uri, last.version).equal
