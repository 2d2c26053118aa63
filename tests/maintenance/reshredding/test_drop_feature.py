"""Dropping the feature: who may read the table afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import variantlake as vl
from tests.cli.command import run
from variantlake.delta.log.last_checkpoint import read_last_checkpoint
from variantlake.delta.protocol.features import VARIANT_SHREDDING, reader_features
from variantlake.errors import InvalidValue, UnsupportedFeature
from variantlake.maintenance.reshredding.drop_feature import PROTECTED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PREVIEW = "variantShredding-preview"


def make(path: Path) -> vl.Table:
    table = vl.Table.create(path, "event VARIANT")
    for load in range(2):
        docs = [json.dumps({"n": 10 * load + n}) for n in range(10)]
        table.append(pa.table({"event": docs}), json_columns=["event"])
    return table.refresh()


def numbers(table: vl.Table) -> list[int]:
    rows = table.scan("event:n::int AS n").to_arrow()["n"].to_pylist()
    return sorted(n for n in rows if n is not None)


def test_the_newest_version_lists_the_feature_no_more_and_has_a_checkpoint(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    version = table.drop_feature("variantShredding").version
    after = table.refresh()
    assert after.version == version
    assert "variantShredding" not in after.snapshot.features
    assert "variantShredding" not in reader_features(after.protocol)
    assert "checkpointProtection" in after.snapshot.features
    assert int(after.properties[PROTECTED]) == version
    assert read_last_checkpoint(after.snapshot.store) == version
    assert numbers(after) == list(range(20))
    assert numbers(vl.Table.open(table.uri, table.version)) == list(range(20))
    after.append(pa.table({"event": ['{"n": 20}']}), json_columns=["event"])
    assert numbers(after.refresh()) == list(range(21))
    with pytest.raises(InvalidValue, match="does not have the feature 'variantShredding'"):
        after.drop_feature("variantShredding")
    after.set_properties({"delta.enableVariantShredding": "true"})
    assert "variantShredding" in after.refresh().snapshot.features


def test_the_command_says_what_it_would_do_and_does_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    table = make(tmp_path / "t")
    said = run(monkeypatch, capfd, "drop-feature", table.uri, "--dry-run")
    assert "2 of 2 files" in said.out
    assert table.refresh().version == table.version
    done = run(monkeypatch, capfd, "drop-feature", table.uri, "variantShredding", "--json")
    version = json.loads(done.out)["version"]
    after = table.refresh()
    assert (after.version, numbers(after)) == (version, list(range(20)))
    again = run(monkeypatch, capfd, "drop-feature", table.uri)
    assert (again.code, "does not have the feature" in again.err) == (1, True)


def test_the_preview_goes_by_either_name(tmp_path: Path) -> None:
    """Delta Spark lists it where shredding is switched on there."""
    for name in ("variantShredding", "variantShredding-preview"):
        root = tmp_path / name
        vl.Table.create(root, "event VARIANT")
        first = root / f"_delta_log/{0:020}.json"
        first.write_text(first.read_text().replace('"variantShredding"', f'"{PREVIEW}"'))
        for file in root.glob("_delta_log/*.crc"):
            file.unlink()
        table = vl.Table.open(root)
        assert PREVIEW in table.snapshot.features
        table.append(pa.table({"event": ['{"n": 1}']}), json_columns=["event"])
        table.refresh().drop_feature(name)
        assert table.refresh().snapshot.features.isdisjoint(VARIANT_SHREDDING)
        assert numbers(table.refresh()) == [1]


def test_other_features_are_left_to_delta_spark(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    with pytest.raises(UnsupportedFeature, match="variantType cannot be dropped here"):
        table.drop_feature("variantType")
    with pytest.raises(InvalidValue, match="does not have the feature 'rowTracking'"):
        table.drop_feature("rowTracking")
    assert table.refresh().version == table.version


@pytest.mark.spark
def test_delta_spark_reads_and_writes_the_table_afterwards(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    table = make(tmp_path / "t")
    table.drop_feature("variantShredding")
    name = f"delta.`{table.uri}`"
    query = f"SELECT sum(event:n::int) AS n FROM {name}"
    assert delta_spark.sql(query).collect()[0].n == sum(range(20))
    delta_spark.sql(f"INSERT INTO {name} SELECT parse_json('{{\"n\": 100}}')")
    assert delta_spark.sql(query).collect()[0].n == sum(range(20)) + 100
    features = delta_spark.sql(f"DESCRIBE DETAIL {name}").collect()[0].tableFeatures
    assert "variantShredding" not in features
    assert 100 in numbers(table.refresh())
