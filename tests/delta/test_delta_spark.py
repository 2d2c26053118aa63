"""Delta Spark as the judge: it reads, extends and changes the tables that our log describes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variantlake as vl
from tests.delta.tables import add_for, append, create_table, known_facts, read_stats
from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint
from variantlake.delta.log.log_segment import commit_path
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.delta.schema.table_schema import StructType
from variantlake.delta.transaction.new_actions import new_add
from variantlake.encoding.json import parse_json
from variantlake.parquet.stats.facts import FileFacts, read_facts
from variantlake.shredding.layout import VARIANT_TYPE
from variantlake.storage.opening import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

SCHEMA = parse_table_ddl("event VARIANT, n INT, day DATE")


def _write(root: Path, name: str, numbers: range) -> FileFacts:
    """An unshredded file of `{"a": i}` and i, by pyarrow alone."""
    events = [parse_json(f'{{"a": {i}}}') for i in numbers]
    rows = [{"metadata": event.metadata, "value": event.value} for event in events]
    table = pa.table(
        {"event": pa.array(rows, VARIANT_TYPE), "n": pa.array(list(numbers), pa.int32())}
    )
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    return read_facts(path, [("event",)])


def _create(root: Path, schema: StructType = SCHEMA) -> None:
    name = "day=2026-01-02/first file.parquet"
    file = new_add(
        name,
        _write(root, name, range(5)),
        schema=schema,
        properties={},
        partition_columns=["day"],
        partition_values={"day": "2026-01-02"},
    )
    create_table(open_store(root), schema, partition_columns=["day"], adds=[file])


def test_delta_spark_reads_and_extends_our_table(delta_spark: SparkSession, tmp_path: Path) -> None:
    _create(tmp_path)
    snapshot = Snapshot.read(tmp_path)
    second = _write(tmp_path, "second%.parquet", range(5, 9))
    append(snapshot, [add_for(snapshot, "second%.parquet", second, {"day": None})])
    query = f"""SELECT n, variant_get(event, '$.a', 'int') AS a, day
                FROM delta.`{tmp_path}` ORDER BY n"""
    rows = delta_spark.sql(query).collect()
    assert [(row.n, row.a) for row in rows] == [(i, i) for i in range(9)]
    assert [str(row.day) for row in rows] == ["2026-01-02"] * 5 + ["None"] * 4

    delta_spark.sql(
        f"INSERT INTO delta.`{tmp_path}` SELECT parse_json('{{\"a\": 9}}'), 9, DATE'2026-01-03'"
    )
    newest = snapshot.refresh()
    assert newest.version == 2
    found = [read_stats(file.stats, newest.schema).num_records for file in newest.add_files()]
    assert sorted(found) == [1, 4, 5]
    ours = [file for file in newest.add_files() if known_facts(file, newest.schema) is not None]
    assert len(ours) == 2
    third = _write(tmp_path, "third.parquet", range(10, 12))
    append(newest, [add_for(newest, "third.parquet", third, {"day": "2026-01-04"})])
    assert delta_spark.sql(query).count() == 12


def test_a_checkpoint_of_delta_spark_keeps_what_we_wrote(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    _create(tmp_path)
    before = list(Snapshot.read(tmp_path).add_files())
    delta_spark.sql(
        f"ALTER TABLE delta.`{tmp_path}` SET TBLPROPERTIES ('delta.checkpointInterval' = '1')"
    )
    delta_spark.sql(f"INSERT INTO delta.`{tmp_path}` SELECT parse_json('1'), 1, DATE'2026-01-03'")
    assert list((tmp_path / "_delta_log").glob("*.checkpoint*.parquet"))
    for commit in (tmp_path / "_delta_log").glob("*.json"):
        commit.unlink()
    snapshot = Snapshot.read(tmp_path)
    (ours,) = [file for file in snapshot.add_files() if file.path == before[0].path]
    assert ours.tags == before[0].tags
    assert known_facts(ours, snapshot.schema) == known_facts(before[0], snapshot.schema)


def test_deletes_of_delta_spark_are_seen(delta_spark: SparkSession, tmp_path: Path) -> None:
    _create(tmp_path)
    delta_spark.sql(f"DELETE FROM delta.`{tmp_path}` WHERE n >= 3")
    snapshot = Snapshot.read(tmp_path)
    found = [read_stats(file.stats, snapshot.schema).num_records for file in snapshot.add_files()]
    assert found == [3]
    # The rewritten file has none of our tags.
    assert [known_facts(file, snapshot.schema) for file in snapshot.add_files()] == [None]


def test_delta_spark_reads_our_checkpoint(delta_spark: SparkSession, tmp_path: Path) -> None:
    _create(tmp_path)
    snapshot = Snapshot.read(tmp_path)
    second = _write(tmp_path, "second.parquet", range(5, 9))
    append(snapshot, [add_for(snapshot, "second.parquet", second, {"day": None})])
    assert write_checkpoint(snapshot.store) == 1
    # Delta Spark takes the time of a version from its commit, so the newest one has to stay.
    (tmp_path / commit_path(0)).unlink()
    delta_spark.sql(f"INSERT INTO delta.`{tmp_path}` SELECT parse_json('1'), 9, DATE'2026-01-03'")
    rows = delta_spark.sql(f"SELECT n FROM delta.`{tmp_path}` WHERE n > 3 ORDER BY n").collect()
    assert [row.n for row in rows] == list(range(4, 10))
    partition = f"SELECT n FROM delta.`{tmp_path}` WHERE day = DATE'2026-01-02'"
    assert delta_spark.sql(partition).count() == 5


def test_delta_spark_reads_sidecars_that_are_ordered_and_used_again(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    """Of a clustered table, whose commits before the checkpoint are gone."""
    properties = {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "1000"}
    table = vl.Table.create(
        tmp_path, "event VARIANT, n INT", cluster_by="event:a::bigint", properties=properties
    )
    for at in (3, 1, 2, 0, 4):
        table.append([{"event": {"a": at}, "n": at}])
    table.checkpoint()
    log = tmp_path / "_delta_log"
    (first,) = (log / "_sidecars").iterdir()
    table.append([{"event": {"a": 5}, "n": 5}])
    table.checkpoint()
    assert {first} < {*(log / "_sidecars").iterdir()}
    for path in log.iterdir():
        if path.is_file() and path.name < f"{table.version:020d}":
            path.unlink()
    query = f"SELECT to_json(event) AS event, n FROM delta.`{tmp_path}` ORDER BY n"
    found = [(row.event, row.n) for row in delta_spark.sql(query).collect()]
    assert found == [(f'{{"a":{at}}}', at) for at in range(6)]
    delta_spark.sql(f"INSERT INTO delta.`{tmp_path}` SELECT parse_json('{{\"a\": 6}}'), 6")
    assert table.refresh().scan("n").count() == 7
