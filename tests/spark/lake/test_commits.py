"""The commits of statements without Delta's jar do and tell what those of Delta Spark do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.errors import InvalidSchema
from variantlake.spark.lake import Lake, connect
from variantlake.spark.lake.session import LakeSession
from variantlake.spark.lake.upkeep import TableStatements
from variantlake.sql.upkeep import ConvertToDelta

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

TOLD = ("operation", "isBlindAppend", "readVersion", "isolationLevel")


class Twins:
    """A table of ours and one of Delta Spark, and clones of both, under names that texts have."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.lake: Lake = connect(spark)
        for name in ("t", "clone"):
            self.lake.register(f"own.{name}", folder / f"ours-{name}")

    def both(self, *texts: str) -> None:
        for text in texts:
            self.lake.sql(text.format(t="own.t", clone="own.clone"))
            names = {each: f"delta.`{self.folder / f'theirs-{each}'}`" for each in ("t", "clone")}
            self.spark.sql(text.format(**names))

    def refused(self, text: str, condition: str, ours: type[Exception], found: str) -> None:
        """By both, and nothing is committed."""
        with pytest.raises(Exception, match=condition):
            self.spark.sql(text.format(t=f"delta.`{self.folder / 'theirs-t'}`"))
        with pytest.raises(ours, match=found):
            self.lake.sql(text.format(t="own.t"))

    def last(self, name: str = "t") -> tuple[dict[str, Any], dict[str, Any]]:
        """The actions of the last commits by their names, without those of files."""
        found = []
        for each in ("ours", "theirs"):
            log = self.folder / f"{each}-{name}" / "_delta_log"
            lines = max(log.glob("*.json")).read_text().splitlines()
            actions = {key: each for line in lines for key, each in json.loads(line).items()}
            actions = {key: each for key, each in actions.items() if key not in ("add", "remove")}
            found.append(actions)
        return found[0], found[1]

    def same(self, name: str = "t") -> dict[str, Any]:
        """What our last commit tells of itself; AssertionError where theirs tells otherwise."""
        ours, theirs = (each["commitInfo"] for each in self.last(name))
        assert [ours.get(key) for key in TOLD] == [theirs.get(key) for key in TOLD]
        assert ours["operationParameters"].keys() == theirs["operationParameters"].keys()
        metrics, other = ours["operationMetrics"], theirs["operationMetrics"]
        assert metrics.keys() == other.keys()
        counts = [key for key in metrics if "Rows" in key or key == "numRemovedFiles"]
        assert {key: metrics[key] for key in counts} == {key: other[key] for key in counts}
        told: dict[str, Any] = ours
        return told


@pytest.fixture
def twins(delta_spark: SparkSession, tmp_path: Path) -> Twins:
    return Twins(delta_spark, tmp_path)


def test_overwrites_count_what_they_replace(twins: Twins) -> None:
    columns = "(a INT, b STRING) USING delta PARTITIONED BY (b)"
    twins.lake.sql(f"CREATE TABLE own.t {columns}")
    twins.spark.sql(f"CREATE TABLE delta.`{twins.folder / 'theirs-t'}` {columns}")
    twins.both("INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'b')")
    for text in (
        "INSERT INTO {t} REPLACE WHERE b = 'b' VALUES (5, 'b')",
        "INSERT INTO {t} REPLACE WHERE a = 5 VALUES (5, 'd')",
        "INSERT OVERWRITE {t} PARTITION (b = 'new') VALUES (9)",
        "INSERT OVERWRITE {t} VALUES (9, 'z')",
    ):
        twins.both(text)
        twins.same()


def test_a_clone_is_told_as_one(twins: Twins) -> None:
    twins.lake.sql("CREATE TABLE own.t (a INT) USING delta")
    twins.spark.sql(f"CREATE TABLE delta.`{twins.folder / 'theirs-t'}` (a INT) USING delta")
    twins.both("INSERT INTO {t} VALUES (1)")
    source = f"delta.`{twins.folder / 'ours-t'}`"
    twins.lake.sql("CREATE TABLE own.clone SHALLOW CLONE own.t")
    twins.spark.sql(f"CREATE TABLE delta.`{twins.folder / 'theirs-clone'}` SHALLOW CLONE {source}")
    told = twins.same("clone")
    assert (
        told["operationParameters"] == twins.last("clone")[1]["commitInfo"]["operationParameters"]
    )


def test_a_deep_clone_of_before_is_renewed_whose_source_has_no_scheme(tmp_path: Path) -> None:
    source = vl.Table.create(tmp_path / "t", "a INT")
    source.append([{"a": 1}])
    source.clone(tmp_path / "clone", deep=True)
    log = tmp_path / "clone" / "_delta_log" / f"{0:020}.json"
    text = log.read_text()
    assert "delta.`file:/" in text
    log.write_text(text.replace("delta.`file:/", "delta.`/"))
    source.append([{"a": 2}])
    assert source.refresh().clone(tmp_path / "clone", deep=True).files_copied == 1


def test_a_folder_is_told_as_converted(twins: Twins) -> None:
    for each in ("ours", "theirs"):
        for number in range(2):
            folder = twins.folder / f"{each}-t" / f"p={number}"
            folder.mkdir(parents=True)
            vl.parquet.write_table(pa.table({"a": [1, 2]}), folder / "a.parquet")
    location = str(twins.folder / "ours-t")
    text = ConvertToDelta(f"parquet.`{location}`", "p STRING")
    TableStatements(LakeSession(twins.spark)).run(location, text, None)
    theirs = f"CONVERT TO DELTA parquet.`{twins.folder / 'theirs-t'}`"
    twins.spark.sql(f"{theirs} PARTITIONED BY (p STRING)")
    told, other = (each["commitInfo"] for each in twins.last())
    own = ("timestamp", "txnId", "engineInfo", "loadId")
    assert told == {**other, **{key: told[key] for key in own}}


def test_files_that_become_a_table_in_their_folder_are_converted(tmp_path: Path) -> None:
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
    vl.parquet.write_table(pa.table({"a": [1, 2]}), tmp_path / "in" / "a.parquet")
    vl.convert(tmp_path / "out", str(tmp_path / "in"))
    vl.convert(tmp_path / "in", str(tmp_path / "in"))
    (converted,), (made,) = (vl.Table.open(tmp_path / each).history() for each in ("in", "out"))
    assert converted.operation == "CONVERT"
    assert converted.info["operationMetrics"] == {"numConvertedFiles": "1"}
    assert made.operation == "CREATE TABLE AS SELECT"


def test_new_columns_leave_a_protocol_that_does(twins: Twins) -> None:
    twins.lake.sql("CREATE TABLE own.t (a INT) USING delta")
    source = "(SELECT 1 AS a, 2 AS {}) s"
    merge = f"MERGE WITH SCHEMA EVOLUTION INTO own.t t USING {source} ON t.a = s.a"
    twins.lake.sql(f"{merge.format('b')} WHEN NOT MATCHED THEN INSERT *")
    log = max((twins.folder / "ours-t" / "_delta_log").glob("*.json"))
    assert '"metaData"' in log.read_text()
    assert '"protocol"' not in log.read_text()
    vl.Table.open(twins.folder / "ours-t").merge(
        [{"a": 4, "c": 5}], "t.a = s.a", "WHEN NOT MATCHED THEN INSERT *", merge_schema=True
    )
    log = max((twins.folder / "ours-t" / "_delta_log").glob("*.json"))
    assert '"protocol"' not in log.read_text()


def test_structs_with_required_fields_are_not_left_out(twins: Twins) -> None:
    columns = "(a INT, s STRUCT<x: INT NOT NULL, y: INT>) USING delta"
    twins.lake.sql(f"CREATE TABLE own.t {columns}")
    twins.spark.sql(f"CREATE TABLE delta.`{twins.folder / 'theirs-t'}` {columns}")
    for text in (
        "INSERT INTO {t} (a) VALUES (1)",
        "INSERT INTO {t} BY NAME SELECT 1 AS a",
        "INSERT INTO {t} BY NAME REPLACE WHERE a = 1 SELECT 1 AS a",
    ):
        twins.refused(text, "DELTA_NOT_NULL_CONSTRAINT_VIOLATED", InvalidSchema, "s.x is NOT NULL")
    table = vl.Table.open(twins.folder / "ours-t")
    with pytest.raises(InvalidSchema, match=r"field s\.x is NOT NULL"):
        table.append(pa.table({"a": pa.array([1], pa.int32())}))
    assert table.refresh().version == 0


def test_nothing_is_enabled_that_a_statement_does_not_ask_for(twins: Twins) -> None:
    condition = "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED"
    text = "CREATE TABLE {t} (a INT, b INT DEFAULT 5) USING delta"
    twins.refused(text, condition, InvalidSchema, condition)
    twins.lake.sql("CREATE TABLE own.t (a INT) USING delta")
    with pytest.raises(InvalidSchema, match=condition):
        twins.lake.sql("ALTER TABLE own.t ALTER COLUMN a SET DEFAULT 5")
    listed = "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    twins.lake.sql(f"ALTER TABLE own.t SET {listed}")
    twins.lake.sql("ALTER TABLE own.t ALTER COLUMN a SET DEFAULT 5")
    twins.lake.sql("CREATE OR REPLACE TABLE own.t (a INT DEFAULT 6) USING delta")
    assert vl.Table.open(twins.folder / "ours-t").schema["a"].default == "6"


def test_four_columns_cluster_a_table_and_no_more(twins: Twins) -> None:
    columns = "(a INT, b INT, c INT, d INT, e INT) USING delta"
    condition = "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS"
    text = f"CREATE TABLE {{t}} {columns} CLUSTER BY (a, b, c, d, e)"
    twins.refused(text, condition, InvalidSchema, condition)
    twins.lake.sql(f"CREATE TABLE own.t {columns} CLUSTER BY (a, b, c, d)")
    with pytest.raises(InvalidSchema, match=condition):
        twins.lake.sql("ALTER TABLE own.t CLUSTER BY (a, b, c, d, e)")


def test_a_constraint_that_is_not_there_is_dropped_in_a_commit(twins: Twins) -> None:
    twins.lake.sql("CREATE TABLE own.t (a INT) USING delta COMMENT 'said'")
    twins.spark.sql(f"CREATE TABLE delta.`{twins.folder / 'theirs-t'}` (a INT) USING delta")
    twins.both("ALTER TABLE {t} DROP CONSTRAINT IF EXISTS nope")
    told = twins.same()
    assert told["operationParameters"] == twins.last()[1]["commitInfo"]["operationParameters"]
    (detail,) = twins.lake.sql("DESCRIBE DETAIL own.t").collect()
    assert detail.location == f"file:{twins.folder / 'ours-t'}"
    lines = twins.lake.sql("DESCRIBE EXTENDED own.t").collect()
    assert ("Comment", "said") in [row[:2] for row in lines]
