"""Dropping the feature: who may read the table afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variantlake as vl
from tests.cli.command import run
from variantlake.delta.checkpoint.log_cleanup import PROTECTED
from variantlake.delta.log.last_checkpoint import read_last_checkpoint
from variantlake.delta.protocol.features import VARIANT_SHREDDING, reader_features
from variantlake.errors import InvalidValue, UnsupportedFeature

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


def test_a_feature_is_named_in_any_case(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "n INT", properties=DROPPED["vacuumProtocolCheck"])
    table.drop_feature("VACUUMprotocolcheck", truncate_history=False)
    assert "vacuumProtocolCheck" not in table.refresh().snapshot.features


def test_other_features_are_refused(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    with pytest.raises(UnsupportedFeature, match="variantType cannot be dropped here"):
        table.drop_feature("variantType")
    with pytest.raises(InvalidValue, match="does not have the feature 'rowTracking'"):
        table.drop_feature("rowTracking")
    assert table.refresh().version == table.version


COLUMNS = "n INT, p STRING"
DROPPED = {
    "deletionVectors": {"delta.enableDeletionVectors": "true"},
    "rowTracking": {"delta.enableRowTracking": "true"},
    "inCommitTimestamp": {"delta.enableInCommitTimestamps": "true"},
    "v2Checkpoint": {"delta.checkpointPolicy": "v2"},
    "vacuumProtocolCheck": {"delta.feature.vacuumProtocolCheck": "supported"},
    "materializePartitionColumns": {"delta.enableMaterializePartitionColumnsFeature": "true"},
    "checkConstraints": {"delta.feature.checkConstraints": "supported"},
    "domainMetadata": {"delta.feature.domainMetadata": "supported"},
}


def dropped(path: Path, name: str, mode: str = "none") -> vl.Table:
    """A table from which a feature was dropped after changes of rows."""
    properties = {**DROPPED[name], "delta.columnMapping.mode": mode}
    table = vl.Table.create(path, COLUMNS, partition_by=["p"], properties=properties)
    table.append([{"n": n, "p": "ab"[n % 2]} for n in range(20)])
    table.delete("n = 3")
    table.update({"n": vl.expr("n + 100")}, "n = 4")
    assert table.drop_feature(name, dry_run=True).dry_run
    table.drop_feature(name)
    return table.refresh()


RIGHT = sorted({*range(20), 104} - {3, 4})


def rows_of(table: vl.Table) -> list[int]:
    return sorted(n for n in table.scan("n").to_arrow()["n"].to_pylist() if n is not None)


@pytest.mark.parametrize("mode", ["none", "name"])
@pytest.mark.parametrize("name", DROPPED)
def test_each_feature_that_can_be_dropped(tmp_path: Path, name: str, mode: str) -> None:
    table = dropped(tmp_path, name, mode)
    protocol = table.protocol
    assert name not in table.snapshot.features
    readers = ["columnMapping"] if mode == "name" else []
    assert list(reader_features(protocol)) == readers
    assert protocol.min_reader_version == 1 + len(readers)
    assert not {key for key in DROPPED[name] if table.properties.get(key) == "true"}
    assert rows_of(table) == RIGHT
    for version in range(1, table.version):
        assert len(rows_of(vl.Table.open(tmp_path, version))) in (19, 20)
    table.append([{"n": 200, "p": "a"}])
    table.update({"n": 201}, "n = 200")
    table.delete("n = 0")
    assert rows_of(table.refresh()) == [*RIGHT[1:], 201]
    table.checkpoint()
    table.restore(1)
    assert rows_of(table.refresh()) == list(range(20))


ROW: dict[str, Any] = {"a": 1, "s": {"x": 1, "y": 2}, "l": [1], "m": [(1, 2)]}


def widened(path: Path) -> vl.Table:
    """A table with files from before and after the types of columns and their parts got wider."""
    table = vl.Table.create(path, "a INT, s STRUCT<x: INT, y: INT>, l ARRAY<INT>, m MAP<INT, INT>")
    table.append([ROW])
    table.change_type("a", "BIGINT", enable_type_widening=True)
    table.append([ROW])
    for part in ("s.x", "l.element", "m.value"):
        table.change_type(part, "BIGINT")
    table.append([{**ROW, "a": 2**40}])
    return table


@pytest.mark.parametrize("mode", ["none", "name"])
def test_files_with_narrow_types_are_rewritten(tmp_path: Path, mode: str) -> None:
    table = widened(tmp_path)
    if mode == "name":
        table.rename_column("s.x", "z", enable_column_mapping=True)
    kept = set(table.snapshot.files["path"].to_pylist())
    assert table.drop_feature("typeWidening", dry_run=True).files_read == 2
    done = table.drop_feature("typeWidening")
    assert (done.files_read, done.rows_rewritten) == (2, 2)
    files = list(map(str, table.files()["path"].to_pylist()))
    assert len(kept & set(files)) == 1
    assert len({str(pq.read_schema(tmp_path / file).types) for file in files}) == 1
    assert "typeChanges" not in table.snapshot.metadata.schema_string
    assert "delta.enableTypeWidening" not in table.properties
    assert "typeWidening" not in table.snapshot.features
    rows = table.sql("SELECT a, s.y AS y, l, m FROM t ORDER BY a").to_pylist()
    right = {"a": 1, "y": 2, "l": [1], "m": [(1, 2)]}
    assert rows == [right, right, {**right, "a": 2**40}]


def test_files_of_vectors_stay_until_the_retention_is_over(tmp_path: Path) -> None:
    """A program that knows no vectors finds them among the removed files, as of Delta Spark."""
    table = vl.Table.create(tmp_path, "n INT", properties={"delta.enableDeletionVectors": "true"})
    table.append([{"n": n} for n in range(10_000)])
    table.delete("n % 3 = 0")
    (vector,) = tmp_path.glob("*.bin")
    table.drop_feature("deletionVectors")
    said = next(each for each in table.history() if each.operation == "Deletion Vector Tombstones")
    lines = (tmp_path / f"_delta_log/{said.version:020}.json").read_text().splitlines()
    removes = [json.loads(line)["remove"] for line in lines if "remove" in json.loads(line)]
    assert [(each["path"], each["dataChange"]) for each in removes] == [(vector.name, False)]
    assert removes[0]["deletionTimestamp"] > 0
    assert table.vacuum(dry_run=True).files_unneeded == 0
    assert vl.Table.open(tmp_path, 2).scan().count() == table.scan().count() == 6_666


def test_what_the_table_still_needs_is_named(tmp_path: Path) -> None:
    table = vl.Table.create(
        tmp_path,
        COLUMNS,
        properties={"delta.enableRowTracking": "true", "delta.columnMapping.mode": "name"},
    )
    table.alter("ADD CONSTRAINT small CHECK (n < 100)")
    table = table.refresh()
    for name, why in {
        "checkConstraints": "CHECK constraints: small",
        "domainMetadata": "features of the table need it: rowTracking",
        "invariants": "invariants cannot be dropped here",
    }.items():
        with pytest.raises(UnsupportedFeature, match=why):
            table.drop_feature(name)
    assert table.refresh().version == table.version


@pytest.mark.spark
@pytest.mark.usefixtures("interpreted")
def test_delta_spark_reads_and_writes_what_is_left(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    tables = {name: dropped(tmp_path / name, name) for name in DROPPED}
    found = " UNION ALL ".join(
        f"SELECT '{name}' AS name, n FROM delta.`{table.uri}`" for name, table in tables.items()
    )
    kept = delta_spark.sql(found).collect()
    for name, table in tables.items():
        assert sorted(row.n for row in kept if row.name == name) == RIGHT, name
        source = f"delta.`{table.uri}`"
        delta_spark.sql(f"INSERT INTO {source} VALUES (300, 'a')")
        delta_spark.sql(f"DELETE FROM {source} WHERE n = 0")
        detail = delta_spark.sql(f"DESCRIBE DETAIL {source}").collect()[0]
        assert name not in detail.tableFeatures
        assert detail.minReaderVersion == 1
        assert rows_of(table.refresh()) == [*RIGHT[1:], 300], name
    table = widened(tmp_path / "widened")
    table.drop_feature("typeWidening")
    rows = delta_spark.sql(f"SELECT a, s.x, l[0], m[1] FROM delta.`{table.uri}` ORDER BY a")
    assert [tuple(row) for row in rows.collect()] == [(1, 1, 1, 2), (1, 1, 1, 2), (2**40, 1, 1, 2)]


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
