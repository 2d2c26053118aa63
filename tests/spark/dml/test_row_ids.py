"""Rows that Spark's tasks change keep their row ids, as Delta Spark reads them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import variantlake as vl

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

SOURCE = "(SELECT int(id) AS id, int(-id) AS n FROM range(5, 14))"
MERGE = f"""MERGE INTO own.t AS t USING {SOURCE} AS s ON t.id = s.id
    WHEN MATCHED AND s.id % 4 = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET n = s.n
    WHEN NOT MATCHED THEN INSERT (id, n, p) VALUES (s.id, s.n, 'new')
    WHEN NOT MATCHED BY SOURCE AND t.id > 2 THEN UPDATE SET n = t.n * 10"""


def tracked(spark: SparkSession, path: Path) -> dict[int, tuple[int, int, int]]:
    """By id: the row's id and commit version, and n."""
    frame = spark.read.format("delta").load(str(path))
    found = frame.selectExpr("id", "_metadata.row_id", "_metadata.row_commit_version", "n")
    return {row[0]: tuple(row)[1:] for row in found.collect()}


@pytest.mark.parametrize(
    ("vectors", "mode", "feed"),
    [("true", "none", "false"), ("false", "id", "true"), ("true", "name", "true")],
)
def test_changed_rows_keep_their_ids(
    delta_spark: SparkSession, tmp_path: Path, vectors: str, mode: str, feed: str
) -> None:
    lake = vl.spark.connect(delta_spark)
    table = vl.Table.create(
        tmp_path,
        "id INT, n INT, p STRING",
        partition_by=["p"],
        properties={
            "delta.enableRowTracking": "true",
            "delta.enableDeletionVectors": vectors,
            "delta.columnMapping.mode": mode,
            "delta.enableChangeDataFeed": feed,
        },
    )
    table.append([{"id": i, "n": i, "p": "ab"[i % 2]} for i in range(10)])
    lake.register("own.t", tmp_path)
    before = tracked(delta_spark, tmp_path)

    def expect(changed: dict[int, int], gone: set[int], new: dict[int, int]) -> None:
        nonlocal before
        newest = vl.Table.open(tmp_path).version
        after = tracked(delta_spark, tmp_path)
        right: dict[int, Any] = {key: row for key, row in before.items() if key not in gone}
        right |= {key: (right[key][0], newest, n) for key, n in changed.items()}
        highest = max(row_id for row_id, _, _ in before.values())
        for key, n in new.items():
            assert after[key][0] > highest
            right[key] = (after[key][0], newest, n)
        assert after == right
        assert len({row_id for row_id, _, _ in after.values()}) == len(after)
        assert vl.Table.open(tmp_path).history(1)[0].info["tags"] == {
            "delta.rowTracking.preserved": "true"
        }
        before = after

    lake.sql("UPDATE own.t SET n = n + 100 WHERE abs(id) < 3")
    expect({i: i + 100 for i in range(3)}, set(), {})
    updated = {6: -6, 7: -7, 8: -8, 3: 30, 4: 40}
    lake.sql(MERGE)
    expect(updated, {5, 9}, {i: -i for i in range(10, 14)})
    # Ids that files hold by now, and rows that move among partitions.
    lake.sql("UPDATE own.t SET p = 'c', n = 0 WHERE abs(id) IN (1, 7, 12)")
    expect(dict.fromkeys((1, 7, 12), 0), set(), {})
    lake.optimize(tmp_path)
    assert tracked(delta_spark, tmp_path) == before
    lake.sql("UPDATE own.t SET n = 1 WHERE abs(id) IN (1, 7, 10)")
    expect(dict.fromkeys((1, 7, 10), 1), set(), {})
    if feed == "true":
        changes = lake.changes(tmp_path, vl.Table.open(tmp_path).version)
        assert changes.columns == [
            "id", "n", "p", "_change_type", "_commit_version", "_commit_timestamp",
        ]  # fmt: skip
        assert changes.count() == 6
