"""Delta Spark judges our clones and tags: it reads them, writes into them, and makes the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.maintenance.cloning.clone import clone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

PROPERTIES = {"delta.enableDeletionVectors": "true", "delta.enableRowTracking": "true"}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> vl.Table:
    """Two files, one of which has a vector in a file, at a path that a URI escapes."""
    root = tmp_path_factory.mktemp("clones") / "a b%"
    layout = {"partition_by": "k", "properties": PROPERTIES}
    table = vl.Table.create(root, "event VARIANT, n INT, k STRING", **layout)  # type: ignore[arg-type]  # of three types
    for first in (0, 400):
        numbers = range(first, first + 400)
        rows = {
            "event": [f'{{"k": {n}}}' for n in numbers],
            "n": pa.array(numbers, pa.int32()),
            "k": [f"x:{first} ä"] * 400,
        }
        table.append(pa.table(rows), json_columns=["event"])
    table.delete(f"n IN ({', '.join(map(str, range(0, 399, 2)))})")
    return table


def _rows(spark: SparkSession, root: object) -> list[Any]:
    text = f"SELECT n, k, to_json(event) AS event FROM delta.`{root}` ORDER BY n"
    return list(map(tuple, spark.sql(text).collect()))


def test_delta_spark_reads_and_changes_our_clones(
    delta_spark: SparkSession, source: vl.Table, tmp_path: Path
) -> None:
    expected = _rows(delta_spark, source.uri)
    assert len(expected) == 600
    for name, deep in (("shallow", False), ("deep", True)):
        root = tmp_path / f"c d {name}"
        source.clone(root, deep=deep)
        assert _rows(delta_spark, root) == expected
        delta_spark.sql(f"DELETE FROM delta.`{root}` WHERE n IN (1, 401)")
        delta_spark.sql(f"OPTIMIZE delta.`{root}`")
        assert _rows(delta_spark, root) == [row for row in expected if row[0] not in (1, 401)]
        assert vl.Table.open(root).scan().to_arrow().num_rows == len(expected) - 2
    assert _rows(delta_spark, source.uri) == expected


def test_our_shallow_clone_is_that_of_delta_spark(
    delta_spark: SparkSession, source: vl.Table, tmp_path: Path
) -> None:
    ours, theirs = tmp_path / "o", tmp_path / "t"
    delta_spark.sql(f"CREATE TABLE delta.`{theirs}` SHALLOW CLONE delta.`{source.uri}`")
    source.clone(ours)
    found, expected = (vl.Table.open(root) for root in (ours, theirs))
    assert found.digest() == expected.digest()
    assert found.schema == expected.schema
    assert found.snapshot.features <= expected.snapshot.features  # theirs may list a preview more
    assert found.properties.keys() == expected.properties.keys()
    paths = [set(each.files()["path"].to_pylist()) for each in (found, expected)]
    assert paths[0] == paths[1]
    vectors = [
        each.files()["deletion_vector"].drop_null().to_pylist() for each in (found, expected)
    ]
    assert vectors[0] == vectors[1]
    (line,), (other,) = found.history(), expected.history()
    assert line.operation == other.operation == "CLONE"
    assert str(line.info["operationParameters"]["sourceVersion"]) == str(
        other.info["operationParameters"]["sourceVersion"]
    )
    assert line.info["operationMetrics"].keys() == other.info["operationMetrics"].keys()
    # Theirs is a source as well: absolute paths stay as they are, or are copied.
    clone(expected.snapshot, str(tmp_path / "again"), deep=True)
    assert vl.Table.open(tmp_path / "again").digest() == source.digest()


def test_delta_spark_keeps_our_tags(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "n INT")
    table.append(pa.table({"n": pa.array([1, 2], pa.int32())}))
    table.tag("audit", version=1)
    delta_spark.sql(f"UPDATE delta.`{table.uri}` SET n = 7 WHERE n = 1")
    delta_spark.sql(f"ALTER TABLE delta.`{table.uri}` SET TBLPROPERTIES ('team' = 'me')")
    table.refresh().checkpoint()
    delta_spark.sql(f"INSERT INTO delta.`{table.uri}` VALUES (9)")
    assert [(each.name, each.version) for each in table.refresh().tags()] == [("audit", 1)]
    assert vl.Table.open(table.uri, "audit").scan().to_arrow()["n"].to_pylist() == [1, 2]
    table.untag("audit")
    assert table.tags() == []
    assert delta_spark.sql(f"SELECT count(*) AS n FROM delta.`{table.uri}`").first()["n"] == 3  # type: ignore[index]  # a row
