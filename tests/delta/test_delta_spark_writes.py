"""Delta Spark as the judge of what we write: every feature, in turns, and after interruptions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import variantlake as vl
from tests.delta.crashes import OPERATIONS, Rehearsal
from tests.delta.spark_race import race
from variantlake.delta.checkpoint.log_cleanup import clean_log

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.spark

EVERYTHING = {
    "delta.columnMapping.mode": "id",
    "delta.enableRowTracking": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.enableChangeDataFeed": "true",
    "delta.enableDeletionVectors": "true",
    "delta.checkpointPolicy": "v2",
    "delta.checkpointInterval": "3",
}


def _rows(*numbers: int, day: str = "a") -> pa.Table:
    return pa.table(
        {
            "event": [json.dumps({"k": n, "s": f"x{n}"}) for n in numbers],
            "n": pa.array(numbers, pa.int32()),
            "who": pa.array([{"id": n, "tags": [{"t": "u"}]} for n in numbers]),
            "day": [day] * len(numbers),
        }
    )


def _append(table: vl.Table, *numbers: int, day: str = "a") -> int:
    return table.append(_rows(*numbers, day=day), json_columns=["event"]).version


def _read(spark: SparkSession, table: vl.Table) -> list[Row]:
    query = f"""SELECT n, variant_get(event, '$.k', 'int') AS k, who.id AS id, who.tags[0].t AS t,
                day FROM delta.`{table.uri}` ORDER BY n"""
    return spark.sql(query).collect()


def test_delta_spark_and_we_take_turns_on_a_table_with_every_feature(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    ddl = "event VARIANT, n INT, who STRUCT<id: BIGINT, tags: ARRAY<STRUCT<t: STRING>>>, day STRING"
    table = vl.Table.create(tmp_path, ddl, partition_by=["day"], properties=EVERYTHING)
    name = f"delta.`{tmp_path}`"
    _append(table, 1, 2)
    delta_spark.sql(
        f"""INSERT INTO {name} SELECT parse_json('{{"k": 3}}'), 3,
            named_struct('id', 3L, 'tags', array(named_struct('t', 'u'))), 'b'"""
    )
    _append(table, 4, day="b")  # checkpoints are ours and theirs
    delta_spark.sql(f"DELETE FROM {name} WHERE n = 2")
    assert _append(table, 5) == 5
    table.add_column("`odd name` VARIANT")
    table.overwrite(_rows(6, day="b"), where={"day": "b"}, json_columns=["event"])
    delta_spark.sql(f"UPDATE {name} SET n = 7 WHERE n = 5")
    assert _append(table, 8) == 9
    assert table.set_properties({"comment": "ours"}).version == 10
    found = [tuple(row) for row in _read(delta_spark, table)]
    assert found == [
        (1, 1, 1, "u", "a"),
        (6, 6, 6, "u", "b"),
        (7, 5, 5, "u", "a"),
        (8, 8, 8, "u", "a"),
    ]
    # Row ids are unique, and new rows came with the versions that added them.
    ids = delta_spark.sql(
        f"SELECT n, _metadata.row_id AS i, _metadata.row_commit_version AS v FROM {name} ORDER BY n"
    ).collect()
    assert len({row.i for row in ids}) == 4
    assert [(row.n, row.v) for row in ids] == [(1, 1), (6, 7), (7, 8), (8, 9)]
    changes = delta_spark.sql(
        f"""SELECT n, _change_type AS what, _commit_version AS v
            FROM table_changes_by_path('{tmp_path}', 1) ORDER BY v, n, what"""
    ).collect()
    assert [(row.v, row.n, row.what) for row in changes] == [
        (1, 1, "insert"),
        (1, 2, "insert"),
        (2, 3, "insert"),
        (3, 4, "insert"),
        (4, 2, "delete"),
        (5, 5, "insert"),
        (7, 3, "delete"),
        (7, 4, "delete"),
        (7, 6, "insert"),
        (8, 5, "update_preimage"),
        (8, 7, "update_postimage"),
        (9, 8, "insert"),
    ]
    stamps = [entry.timestamp for entry in vl.Table.open(tmp_path).history()]
    assert stamps == sorted(stamps, reverse=True)
    assert len(set(stamps)) == len(stamps)
    # The log without what the checkpoints hold is the same table for both.
    store = table.snapshot.store
    clean_log(store, {"delta.logRetentionDuration": "interval 0 days"}, now=1 << 45)
    assert not (tmp_path / "_delta_log" / f"{0:020d}.json").exists()
    delta_spark.catalog.clearCache()
    assert [tuple(row) for row in _read(delta_spark, table)] == found
    assert vl.Table.open(tmp_path).files().num_rows == table.refresh().files().num_rows


CONDITIONS = [
    "event:k::int >= 30",
    "event:k::int < 15",
    "event:k::int BETWEEN 12 AND 25 AND n <> 20",
    "event:s::string = 'x17'",
    "event:s::string IS NULL",
    "n > 37",
]


def _assert_scans_agree(spark: SparkSession, root: Path) -> None:
    """Counts and rows of ours are those of Delta Spark, whatever the copied tags say."""
    table = vl.Table.open(root)
    met = ", ".join(f"{condition} AS c{i}" for i, condition in enumerate(CONDITIONS))
    rows = spark.sql(f"SELECT n, event:k::int AS k, {met} FROM delta.`{root}` ORDER BY n").collect()
    assert table.scan().count() == len(rows)
    for i, condition in enumerate(CONDITIONS):
        theirs = [{"n": row.n, "k": row.k} for row in rows if row[f"c{i}"]]
        scan = table.scan("n, event:k::int AS k", condition)
        assert scan.to_arrow().sort_by("n").to_pylist() == theirs, condition
        assert table.scan(where=condition).count() == len(theirs), condition


def test_tags_that_delta_spark_copies_are_never_believed_wrongly(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    source, clone = tmp_path / "source", tmp_path / "clone"
    table = vl.Table.create(
        source, "event VARIANT, n INT", properties={"delta.enableDeletionVectors": "true"}
    )
    for start in (0, 20):
        rows = _rows(*range(start, start + 20)).select(["event", "n"])
        table.append(rows, json_columns=["event"])
    tags = {file.path: file.tags for file in table.refresh().snapshot.add_files()}
    assert all(
        any(key.startswith("variantlake.") for key in found or ()) for found in tags.values()
    )

    # The rows that reach the bounds go.
    delta_spark.sql(f"DELETE FROM delta.`{source}` WHERE n >= 35 OR n < 3")
    deleted = list(table.refresh().snapshot.add_files())
    assert [file.deletion_vector is None for file in deleted] == [False, False]
    assert {file.path: file.tags for file in deleted} == tags
    _assert_scans_agree(delta_spark, source)

    delta_spark.sql(f"RESTORE TABLE delta.`{source}` TO VERSION AS OF 1")
    (restored,) = table.refresh().snapshot.add_files()
    assert restored.tags == tags[restored.path]
    _assert_scans_agree(delta_spark, source)
    delta_spark.sql(f"RESTORE TABLE delta.`{source}` TO VERSION AS OF 3")

    delta_spark.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE delta.`{source}`")
    cloned = list(vl.Table.open(clone).snapshot.add_files())
    kept = sorted(sorted((file.tags or {}).items()) for file in cloned)
    assert kept == sorted(sorted((found or {}).items()) for found in tags.values())
    _assert_scans_agree(delta_spark, clone)
    delta_spark.sql(f"DELETE FROM delta.`{clone}` WHERE n BETWEEN 10 AND 16")
    _assert_scans_agree(delta_spark, clone)
    delta_spark.sql(f"UPDATE delta.`{clone}` SET event = parse_json('{{\"k\": 99}}') WHERE n > 30")
    _assert_scans_agree(delta_spark, clone)


def test_timestamps_begin_on_an_existing_table(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path, "n INT")
    table.append(pa.table({"n": pa.array([1], pa.int32())}))
    table.set_properties({"delta.enableInCommitTimestamps": "true"})
    properties = table.refresh().properties
    assert properties["delta.inCommitTimestampEnablementVersion"] == "2"
    table.append(pa.table({"n": pa.array([2], pa.int32())}))
    delta_spark.sql(f"INSERT INTO delta.`{tmp_path}` VALUES (3)")
    query = f"SELECT n FROM delta.`{tmp_path}` VERSION AS OF 2"
    assert [row.n for row in delta_spark.sql(query).collect()] == [1]
    assert delta_spark.table(f"delta.`{tmp_path}`").count() == 3


def test_delta_spark_clusters_a_clustered_table_of_ours(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    table = vl.Table.create(tmp_path, "event VARIANT, n INT", cluster_by=["n"])
    for number in range(3):
        table.append(
            pa.table({"event": ["1"], "n": pa.array([number], pa.int32())}), json_columns=["event"]
        )
    (detail,) = delta_spark.sql(f"DESCRIBE DETAIL delta.`{tmp_path}`").collect()
    assert detail.clusteringColumns == ["n"]
    delta_spark.sql(f"OPTIMIZE delta.`{tmp_path}`")
    assert table.refresh().files().num_rows == 1
    assert table.append(pa.table({"n": pa.array([9], pa.int32())})).version == 5
    assert delta_spark.table(f"delta.`{tmp_path}`").count() == 4


@pytest.mark.parametrize("name", ["append with its checkpoint", "overwrite of a partition"])
def test_delta_spark_reads_what_interruptions_leave(
    delta_spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """At a few moments; `test_crashes` has them all, with deltalake as the reader."""
    rehearsal = Rehearsal.of(OPERATIONS[name], tmp_path)
    assert rehearsal.before is not None
    assert rehearsal.after is not None
    counts: list[Any] = []
    for number in range(0, len(rehearsal.names), len(rehearsal.names) // 4):
        root = tmp_path / f"at{number}"
        left = rehearsal.left_at(number, root)
        counts.append(delta_spark.table(f"delta.`{root}`").count())
        assert left is not None
        assert counts[-1] == len(left[1])
    assert counts[0] == len(rehearsal.before[1])
    assert name in OPERATIONS


def test_nothing_is_lost_silently_beside_delta_spark_at_the_same_instant(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    """EXACTNESS, rule 26: the small form of `python -m tests.delta.spark_race`."""
    outcome = race(delta_spark, tmp_path, 3, hold=True)
    assert outcome.together
    assert outcome.ours | outcome.theirs == outcome.found
