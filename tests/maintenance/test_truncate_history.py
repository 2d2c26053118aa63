"""Dropping a feature with the versions that use it: two calls, with a time to wait between."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import variantlake as vl
from tests.cli.command import run
from variantlake.delta.protocol.features import reader_features, writer_features
from variantlake.errors import CommitConflict, InvalidValue, UnsupportedFeature

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEATURES = {
    "columnMapping": {"delta.columnMapping.mode": "name"},
    "deletionVectors": {"delta.enableDeletionVectors": "true"},
    "typeWidening": {"delta.enableTypeWidening": "true"},
    "v2Checkpoint": {"delta.checkpointPolicy": "v2"},
    "variantShredding": {"delta.enableVariantShredding": "true"},
}


def make(path: Path, name: str) -> vl.Table:
    """A table of six rows that uses the feature."""
    table = vl.Table.create(path, "n INT, v VARIANT", properties=FEATURES[name])
    table.append([{"n": n, "v": {"k": n}} for n in range(7)])
    table.checkpoint()
    table.delete("n = 3")
    if name == "typeWidening":
        table.change_type("n", "BIGINT")
    return table


def a_day_later(path: Path) -> None:
    """All of the log is two days older."""
    then = time.time() - 2 * 86_400
    for number, file in enumerate(sorted(each for each in (path / "_delta_log").iterdir())):
        if file.is_file():
            os.utime(file, (then + number, then + number))


def rows(table: vl.Table) -> list[int]:
    return sorted(int(n) for n in table.scan("v:k::int AS k").to_arrow()["k"].to_pylist())  # type: ignore[arg-type]


RIGHT = [0, 1, 2, 4, 5, 6]


@pytest.mark.parametrize("name", FEATURES)
def test_the_second_call_drops_the_feature_and_the_versions(tmp_path: Path, name: str) -> None:
    table = make(tmp_path, name)
    with pytest.raises(
        CommitConflict, match=f"no longer uses {name}, but versions up to"
    ) as caught:
        table.drop_feature(name, truncate_history=True)
    assert "delta.dropFeatureTruncateHistory.retentionDuration" in caught.value.hint
    half = table.refresh().version
    assert name in {*reader_features(table.protocol), *writer_features(table.protocol)}
    # Switched on alone, type widening is in no file.
    first = 3 if name == "typeWidening" else 0
    with pytest.raises(CommitConflict, match=f"no longer uses {name}, but version {first}"):
        table.drop_feature(name, truncate_history=True)
    assert (table.refresh().version, rows(vl.Table.open(tmp_path, 1))) == (half, list(range(7)))
    a_day_later(tmp_path)
    assert table.drop_feature(name, truncate_history=True).version == half + 1
    after = table.refresh()
    listed = {*reader_features(after.protocol), *writer_features(after.protocol)}
    assert listed.isdisjoint({name, "checkpointProtection"})
    assert after.history(1)[0].info["operationParameters"] == {
        "featureName": name,
        "truncateHistory": True,
    }
    assert [each.version for each in after.history()] == [half + 1, half]
    assert rows(after) == RIGHT
    after.append([{"n": 7, "v": {"k": 7}}])
    assert rows(after.refresh()) == [*RIGHT, 7]


def test_the_protection_of_checkpoints_goes_with_what_it_protects(tmp_path: Path) -> None:
    table = make(tmp_path, "deletionVectors")
    table.drop_feature("deletionVectors")
    with pytest.raises(UnsupportedFeature, match="dropped with the versions that it protects"):
        table.drop_feature("checkpointProtection")
    with pytest.raises(CommitConflict, match="but version 0 of its history may"):
        table.alter("DROP FEATURE checkpointProtection TRUNCATE HISTORY")
    a_day_later(tmp_path)
    table.alter("DROP FEATURE checkpointProtection TRUNCATE HISTORY")
    assert "checkpointProtection" not in table.snapshot.features
    assert not [key for key in table.properties if "rotection" in key]
    assert rows(table) == RIGHT


def test_what_is_used_again_stays(tmp_path: Path) -> None:
    """Another writer switched it on since, and off."""
    table = make(tmp_path, "deletionVectors")
    with pytest.raises(CommitConflict):
        table.drop_feature("deletionVectors", truncate_history=True)
    a_day_later(tmp_path)
    table.set_properties({"delta.enableDeletionVectors": "true"})
    again = table.version
    table.unset_properties("delta.enableDeletionVectors")
    with pytest.raises(CommitConflict, match=f"but version {again} of its history may"):
        table.drop_feature("deletionVectors", truncate_history=True)
    assert "deletionVectors" in table.refresh().snapshot.features


def test_a_tag_keeps_its_version(tmp_path: Path) -> None:
    table = make(tmp_path, "deletionVectors")
    table.tag("audit", version=2)
    with pytest.raises(CommitConflict):
        table.drop_feature("deletionVectors", truncate_history=True)
    a_day_later(tmp_path)
    with pytest.raises(CommitConflict, match="but version 1 of its history may"):
        table.drop_feature("deletionVectors", truncate_history=True)
    assert rows(vl.Table.open(tmp_path, "audit")) == RIGHT


def test_features_of_writers_leave_the_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    table = vl.Table.create(tmp_path, "n INT", properties={"delta.enableRowTracking": "true"})
    with pytest.raises(InvalidValue, match="rowTracking binds no reader"):
        table.drop_feature("rowTracking", truncate_history=True)
    said = run(monkeypatch, capfd, "drop-feature", table.uri, "rowTracking", "--truncate-history")
    assert (said.code, "binds no reader" in said.err) == (1, True)
    assert table.refresh().version == 0


@pytest.mark.spark
def test_delta_spark_reads_and_writes_what_is_left(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    for name in ("columnMapping", "deletionVectors"):
        table = make(tmp_path / name, name)
        source = f"delta.`{table.uri}`"
        with pytest.raises(CommitConflict):
            table.drop_feature(name, truncate_history=True)
        a_day_later(tmp_path / name)
        table.drop_feature(name, truncate_history=True)
        found = delta_spark.sql(f"SELECT v:k::int AS k FROM {source}").collect()
        assert sorted(row.k for row in found) == RIGHT
        features = delta_spark.sql(f"DESCRIBE DETAIL {source}").collect()[0].tableFeatures
        assert {name, "checkpointProtection"}.isdisjoint(features)
        delta_spark.sql(f"INSERT INTO {source} SELECT 9, parse_json('{{\"k\": 9}}')")
        assert rows(table.refresh()) == [*RIGHT, 9]


@pytest.mark.spark
@pytest.mark.parametrize("name", ["deletionVectors", "v2Checkpoint"])
def test_delta_spark_ends_what_was_begun_here(
    delta_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    table = make(tmp_path, name)
    with pytest.raises(CommitConflict, match="versions up to"):
        table.drop_feature(name, truncate_history=True)
    a_day_later(tmp_path)
    delta_spark.sql(f"ALTER TABLE delta.`{tmp_path}` DROP FEATURE {name} TRUNCATE HISTORY")
    after = table.refresh()
    assert name not in {*reader_features(after.protocol), *writer_features(after.protocol)}
    assert rows(after) == RIGHT
