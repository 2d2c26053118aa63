"""Column mapping taken away: the same rows, in files that name columns as the table does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import variantlake as vl
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.clustering import clustering_columns
from variantlake.delta.protocol.features import reader_features, writer_features
from variantlake.errors import CommitConflict, UnsupportedFeature

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = """id INT, p STRING, s STRUCT<a: INT, b: INT>, v VARIANT, m MAP<STRING, STRUCT<q: INT>>,
l ARRAY<STRUCT<w: INT, z: VARIANT>>, gone INT, n VOID"""
RENAMED = {
    "s.a": "c",
    "s.b": "a",
    "s.c": "b",
    "id": "ident",
    "p": "part",
    "v": "doc",
    "l.element.w": "ww",
    "m.value.q": "qq",
}
QUERY = "SELECT ident, part, s, doc, m, l FROM t ORDER BY ident"


def row(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "p": "xy"[number % 2],
        "s": {"a": number, "b": -number},
        "v": {"k": number, "t": "x"},
        "m": [("k", {"q": number})],
        "l": [{"w": number, "z": {"q": number}}],
        "gone": number,
    }


def mapped(path: Path, mode: str = "name", **properties: str) -> vl.Table:
    """A table whose files name columns in several ways; two fields have changed their names."""
    first = {"delta.columnMapping.mode": mode} if mode == "id" else {}
    columns = COLUMNS if mode == "name" else COLUMNS.replace(", n VOID", "")
    table = vl.Table.create(
        path,
        columns,
        partition_by=["p"],
        properties={**first, "delta.enableDeletionVectors": "true", **properties},
    )
    table.append([row(number) for number in range(10)])
    if mode == "name":
        table.set_properties({"delta.columnMapping.mode": "name"})
    for column, name in RENAMED.items():
        table.rename_column(column, name)
    table.alter("ALTER COLUMN s.a FIRST")
    table.drop_columns("gone")
    table.alter("ADD COLUMN gone STRING")
    table.append([{"ident": 100, "s": {"a": 1, "b": 2}, "doc": {"k": 1.5}, "gone": "no"}])
    table.delete("ident = 3")
    return table


@pytest.mark.parametrize("mode", ["name", "id"])
def test_rows_stay_and_files_have_the_names_of_the_table(tmp_path: Path, mode: str) -> None:
    table = mapped(tmp_path, mode, **{"delta.enableRowTracking": "true"})
    before, version = table.sql(QUERY).to_pylist(), table.version
    assert table.drop_feature("columnMapping", dry_run=True).files_read == 3
    done = table.drop_feature("columnMapping")
    assert done.rows_rewritten == len(before) == 10
    assert table.sql(QUERY).to_pylist() == before
    assert table.scan("gone").to_arrow()["gone"].to_pylist().count("no") == 1
    listed = (*reader_features(table.protocol), *writer_features(table.protocol))
    assert "columnMapping" not in listed
    assert "columnMapping" not in str(table.snapshot.metadata)
    stored = {"ident", "s", "doc", "m", "l", "gone"}
    for file in map(str, table.files()["path"].to_pylist()):
        names = pq.read_schema(tmp_path / file).names
        assert {name for name in names if not name.startswith("_row-")} == stored
        assert "/" not in file or file.startswith("part=")
    assert {key for add in table.snapshot.add_files() for key in add.partition_values} == {"part"}
    assert vl.Table.open(tmp_path, version).sql(QUERY).to_pylist() == before
    assert table.scan("ident", where="ident = 7 AND part = 'y'").to_pylist() == [{"ident": 7}]
    assert table.scan(where="ident = 100").explain().read_files == 1
    table.append([{"ident": 101, "part": "x"}])
    table.delete("ident = 0")
    table.restore(version)
    assert table.sql(QUERY).to_pylist() == before


def test_row_ids_stay(tmp_path: Path) -> None:
    table = mapped(tmp_path, **{"delta.enableRowTracking": "true"})
    before = ids_of(table)
    table.drop_feature("columnMapping")
    assert ids_of(table) < before
    assert len(ids_of(table)) == 10


def ids_of(table: vl.Table) -> set[tuple[object, int]]:
    """The first column of each row in a file, deleted ones too, with the row's id."""
    snapshot: Snapshot = table.snapshot
    name = snapshot.properties["delta.rowTracking.materializedRowIdColumnName"]
    found = set[tuple[object, int]]()
    for add in snapshot.add_files():
        rows = pq.read_table(Path(table.uri) / add.path, partitioning=None).to_pylist()
        for place, each in enumerate(rows):
            kept = each.get(name)
            number = (add.base_row_id or 0) + place if kept is None else kept
            found.add((each[snapshot.schema.fields[0].physical_name], number))
    return found


def test_what_names_columns_goes_by_their_names(tmp_path: Path) -> None:
    table = vl.Table.create(
        tmp_path,
        "a INT, s STRUCT<x: INT>, v VARIANT",
        cluster_by=["a", "s.x"],
        shredding="k BIGINT",
        properties={"delta.columnMapping.mode": "name"},
    )
    table.append([{"a": 1, "s": {"x": 2}, "v": {"k": 3}}])
    table.rename_column("a", "b")
    table.alter("SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none', 'owner' = 'me')")
    assert table.properties["delta.columnMapping.mode"] == "none"
    assert (table.properties["owner"], table.properties["variantlake.shredding.v"]) == (
        "me",
        "k BIGINT",
    )
    assert clustering_columns(table.snapshot.domains) == (("b",), ("s", "x"))
    operations = [each.operation for each in table.history()]
    assert operations[:2] == ["SET TBLPROPERTIES", "REMOVE COLUMN MAPPING"]
    # The feature stays, and mapping may come back.
    assert "columnMapping" in table.snapshot.features
    table.rename_column("b", "c", enable_column_mapping=True)
    assert table.scan("c").to_pylist() == [{"c": 1}]
    table.alter("UNSET TBLPROPERTIES ('delta.columnMapping.mode', 'owner')")
    assert not {"delta.columnMapping.mode", "owner"} & set(table.properties)
    assert table.scan("c").to_pylist() == [{"c": 1}]


def test_a_table_without_files(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path, "a INT", properties={"delta.columnMapping.mode": "id"})
    table.drop_feature("columnMapping")
    assert (table.scan().count(), table.protocol.min_reader_version) == (0, 1)


def test_names_that_need_mapping_are_refused(tmp_path: Path) -> None:
    properties = {"delta.columnMapping.mode": "name"}
    table = vl.Table.create(tmp_path, "s STRUCT<`a b`: INT>", properties=properties)
    with pytest.raises(UnsupportedFeature, match="'a b' has a name that only a table with"):
        table.drop_feature("columnMapping")
    with pytest.raises(UnsupportedFeature, match="cannot change from 'name' to 'id'"):
        table.set_properties({"delta.columnMapping.mode": "id"})
    assert table.refresh().version == 0


def test_tables_for_iceberg_keep_their_mapping(tmp_path: Path) -> None:
    properties = {"delta.columnMapping.mode": "name", "delta.feature.columnMapping": "supported"}
    table = vl.Table.create(tmp_path, "a INT", properties=properties)
    log = tmp_path / f"_delta_log/{0:020}.json"
    log.write_text(
        log.read_text().replace('"columnMapping"', '"columnMapping","icebergCompatV2"', 1)
    )
    for checksum in tmp_path.glob("_delta_log/*.crc"):
        checksum.unlink()
    table = vl.Table.open(tmp_path)
    assert "icebergCompatV2" in table.snapshot.features
    with pytest.raises(UnsupportedFeature, match="needs column mapping for icebergCompatV2"):
        table.drop_feature("columnMapping")


def test_another_writer_was_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of the attempt go, and nothing is committed."""
    table = mapped(tmp_path)
    other = vl.Table.open(tmp_path)
    files = {*tmp_path.rglob("*.parquet")}

    def late(*_: object, **__: object) -> int:
        other.append([{"ident": 7}])
        raise CommitConflict("another was first", file=table.uri)

    monkeypatch.setattr("variantlake.maintenance.unmap_columns.commit", late)
    with pytest.raises(CommitConflict):
        table.drop_feature("columnMapping")
    left = {path for path in tmp_path.rglob("*.parquet") if "_delta_log" not in str(path)}
    assert len(left - files) == 1
    assert table.refresh().scan().count() == 11


@pytest.mark.spark
def test_delta_spark_reads_the_table_before_and_after(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    """And the history says what it says of a table of its own."""
    table = mapped(tmp_path / "t")
    source = f"delta.`{table.uri}`"
    columns = "ident, part, s.a, s.b, doc:k::int, m['k'].qq, l[0].ww, l[0].z:q::int, gone"
    query = f"SELECT {columns} FROM {source} ORDER BY ident"
    before = delta_spark.sql(query).collect()
    table.drop_feature("columnMapping")
    delta_spark.sql(f"REFRESH TABLE {source}")
    assert delta_spark.sql(query).collect() == before
    delta_spark.sql(f"INSERT INTO {source} (ident, part) VALUES (300, 'x')")
    delta_spark.sql(f"DELETE FROM {source} WHERE ident = 0")
    assert table.refresh().scan().count() == 10
    theirs = f"delta.`{tmp_path}/theirs`"
    delta_spark.sql(
        f"CREATE TABLE {theirs} (id INT) USING delta"
        " TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    delta_spark.sql(f"INSERT INTO {theirs} VALUES (1)")
    delta_spark.sql(f"ALTER TABLE {theirs} DROP FEATURE columnMapping")
    lines = {
        name: {
            each.operation: (each.info.get("operationParameters"), each.info.get("isBlindAppend"))
            for each in vl.Table.open(tmp_path / name).history()
        }
        for name in ("t", "theirs")
    }
    for operation in ("REMOVE COLUMN MAPPING", "DROP FEATURE"):
        assert lines["t"][operation][0] == lines["theirs"][operation][0], operation
