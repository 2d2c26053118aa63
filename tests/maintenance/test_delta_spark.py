"""Delta Spark judges vacuum and restore: the same tables, handled by it and by us."""

from __future__ import annotations

import os
import shutil
import urllib.parse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variantlake as vl
from tests.maintenance.folders import HOUR, found, put, touch
from variantlake.delta.log.snapshot import Snapshot
from variantlake.maintenance.vacuuming.vacuum import vacuum

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

WEEK = 168 * HOUR


@pytest.fixture(scope="module")
def history(delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Appends, deletes by vectors and of files, change files, new columns: versions 0 to 6."""
    root = tmp_path_factory.mktemp("history") / "t"
    table = f"delta.`{root}`"
    properties = ", ".join(
        f"'delta.{name}' = 'true'"
        for name in ("enableRowTracking", "enableDeletionVectors", "enableChangeDataFeed")
    )
    layout = f"PARTITIONED BY (b) TBLPROPERTIES ({properties})"
    for statement in (
        f"CREATE TABLE {table} (a INT, b STRING) USING delta {layout}",
        f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, CONCAT('x:', id % 2) FROM range(10)",
        f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, CONCAT('x:', id % 2) FROM range(9)",
        f"DELETE FROM {table} WHERE a = 3",
        f"DELETE FROM {table} WHERE b = 'x:0'",
        f"ALTER TABLE {table} ADD COLUMNS (c STRING)",
        f"UPDATE {table} SET c = 'y', a = a + 1 WHERE a = 5",
    ):
        delta_spark.sql(statement)
    return root


def rows(delta_spark: SparkSession, root: Path, version: int | None = None) -> list[Any]:
    text = f"delta.`{root}`" + ("" if version is None else f" VERSION AS OF {version}")
    return sorted(map(tuple, delta_spark.sql(f"SELECT * FROM {text}").collect()), key=repr)


def test_restore_does_what_delta_spark_does(
    delta_spark: SparkSession, history: Path, tmp_path: Path
) -> None:
    ours, theirs = (Path(shutil.copytree(history, tmp_path / name)) for name in ("o", "t"))
    for version in (3,):
        delta_spark.sql(f"RESTORE TABLE delta.`{theirs}` TO VERSION AS OF {version}")
        vl.Table.open(ours).restore(version)
        found_ours, found_theirs = (
            Snapshot.read(root, applies=["deletionVectors"]) for root in (ours, theirs)
        )
        assert found_ours.version == found_theirs.version
        assert found_ours.schema == found_theirs.schema
        assert found_ours.properties == found_theirs.properties
        assert found_ours.domains == found_theirs.domains
        keys = ["path", "deletion_vector", "base_row_id", "default_row_commit_version"]
        files = [
            sorted(s.files.whole().select(keys).to_pylist(), key=repr)
            for s in (found_ours, found_theirs)
        ]
        assert files[0] == files[1]
        infos = [vl.Table.open(root).history(1)[0].info for root in (ours, theirs)]
        for name in ("operation", "operationParameters", "operationMetrics", "isBlindAppend"):
            assert infos[0][name] == infos[1][name]
        assert (
            rows(delta_spark, ours)
            == rows(delta_spark, theirs)
            == rows(delta_spark, history, version)
        )
    # It goes on with what we restored.
    delta_spark.sql(f"RESTORE TABLE delta.`{ours}` TO VERSION AS OF 2")
    assert rows(delta_spark, ours) == rows(delta_spark, history, 2)


def test_vacuum_removes_what_delta_spark_removes(
    delta_spark: SparkSession, history: Path, tmp_path: Path
) -> None:
    """With versions 0 to 3 older than the retention; the few differences are named."""
    ours, theirs = (Path(shutil.copytree(history, tmp_path / name)) for name in ("o", "t"))
    for root in (ours, theirs):
        _age(root)
        now = (root / "_delta_log" / f"{6:020d}.json").stat().st_mtime_ns // 1_000_000
        for path in ("orphan.parquet", "z/deep/orphan.bin", "_hidden.parquet", ".x/y.parquet"):
            put(root, path, now - 900 * HOUR)
        put(root, "young.parquet", now)
        put(root, ".leftover.parquet." + "a" * 32 + ".tmp", now - 900 * HOUR)
    delta_spark.sql(f"VACUUM delta.`{theirs}`")
    vacuum(Snapshot.read(ours, applies=["deletionVectors"]))
    left = [{name for name in found(root) if not name.endswith(".crc")} for root in (ours, theirs)]
    # Ours removes its own temporary files too.
    assert left[1] - left[0] == {".leftover.parquet." + "a" * 32 + ".tmp"}
    # Ours keeps change files that a version within the retention names, by whatever time.
    assert all(name.startswith("_change_data/") for name in left[0] - left[1])
    assert left[0] >= _change_files(ours, 6)
    for version in (4, 6):
        assert rows(delta_spark, ours, version) == rows(delta_spark, history, version)
    starts = [vl.Table.open(root).history(2) for root in (ours, theirs)]
    for mine, its in zip(*starts, strict=True):
        assert mine.operation == its.operation
        assert mine.info["operationParameters"] == its.info["operationParameters"]
        assert mine.info["isolationLevel"] == its.info["isolationLevel"]
        assert mine.info.keys() <= its.info.keys() | {"tags"}


def _change_files(root: Path, version: int) -> set[str]:
    lines = (root / "_delta_log" / f"{version:020d}.json").read_text().splitlines()
    actions = map(orjson.loads, lines)
    return {urllib.parse.unquote(each["cdc"]["path"]) for each in actions if "cdc" in each}


def _age(root: Path) -> None:
    """Move what is older than version 4 to before the retention, by the log's word as well."""
    for version in range(4):
        file = root / "_delta_log" / f"{version:020d}.json"
        touch(file, file.stat().st_mtime_ns // 1_000_000 - 2 * WEEK)
    log = root / "_delta_log" / f"{3:020d}.json"
    crc = log.with_name(f".{log.name}.crc")
    when = log.stat().st_mtime_ns // 1_000_000
    text = log.read_text()
    marker = '"deletionTimestamp":'
    parts = text.split(marker)
    changed = [parts[0], *(f"{int(p[:13]) - 2 * WEEK}{p[13:]}" for p in parts[1:])]
    log.write_text(marker.join(changed))
    crc.unlink(missing_ok=True)
    touch(log, when)
    newest = max(os.stat(p).st_mtime_ns for p in (root / "_delta_log").glob("*3.json"))  # noqa: PTH116
    for file in root.rglob("*"):
        if file.is_file() and "_delta_log" not in file.parts:
            touch(file, newest // 1_000_000 - HOUR)


def test_delta_spark_pads_char_columns_when_it_rewrites(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    """To the digest these are the same rows, as they are to every reader."""
    table = vl.Table.create(tmp_path / "t", "n INT, c CHAR(5), s STRUCT<a: CHAR(3)>, p CHAR(4)",
                            partition_by="p")  # fmt: skip
    for n in range(3):
        rows = {"n": pa.array([n], pa.int32()), "c": ["ab"], "s": [{"a": "x"}], "p": ["y"]}
        table.append(pa.table(rows))
    delta_spark.sql(f"OPTIMIZE delta.`{table.uri}`")
    newest = table.refresh()
    assert newest.check_rewrite().equal
    (add,) = newest.snapshot.add_files()
    stored = pq.read_table(newest.snapshot.location(add.path), partitioning=None)
    assert stored["c"].to_pylist() == ["ab   "] * 3
    newest.append(pa.table(rows))
    newest.refresh().optimize()
    assert newest.refresh().check_rewrite().equal


def test_identity_columns_go_on_after_a_restore_as_in_delta_spark(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    found = []
    for name in ("ours", "theirs"):
        root = tmp_path / name
        table = f"delta.`{root}`"
        identity = "BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY -3)"
        delta_spark.sql(f"CREATE TABLE {table} (i {identity}, n INT) USING delta")
        for n in range(3):
            delta_spark.sql(f"INSERT INTO {table} (n) VALUES ({n})")
        if name == "ours":
            vl.Table.open(root).restore(1)
        else:
            delta_spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF 1")
        restored = Snapshot.read(root)
        delta_spark.sql(f"INSERT INTO {table} (n) VALUES (9)")
        found.append((restored.schema, rows(delta_spark, root)))
    assert found[0] == found[1]
    assert len({i for i, _ in found[0][1]}) == 2
