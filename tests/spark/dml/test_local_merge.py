"""`Table.merge` gives what Delta Spark's MERGE gives."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import variantlake as vl
from tests.spark.dml.twins import Twins

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

SETUP = (
    """CREATE TABLE {t} (id BIGINT, n INT, d DOUBLE, day STRING, event VARIANT) USING delta
        TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')""",
    """INSERT INTO {t} SELECT id, CAST(id % 4 AS INT), IF(id % 5 = 0, DOUBLE('NaN'), id / 2 - 2),
        concat('d', id % 3), parse_json(concat('{{"k":', id, ',"u":"u', id % 6, '"}}'))
        FROM range(20)""",
    "INSERT INTO {t} VALUES (NULL, NULL, -0.0D, NULL, NULL), (30, 2, 0.0D, 'd1', parse_json('7'))",
)
SHOWN = "id, n, d, day, to_json(event) AS event"
SOURCE: list[dict[str, Any]] = [
    {"id": 3, "n": 1, "d": float("nan"), "day": "d0", "event": '{"k":3,"u":"u3","new":true}'},
    {"id": 8, "n": None, "d": 0.0, "day": None, "event": '{"k":8.0}'},
    {"id": 40, "n": 5, "d": None, "day": "x", "event": '{"k":17,"u":"u40"}'},
    {"id": None, "n": 2, "d": 2.5, "day": "d1", "event": None},
]
DELETE, UPDATE = "WHEN MATCHED THEN DELETE", "WHEN MATCHED THEN UPDATE SET"
INSERT, OTHERS = "WHEN NOT MATCHED THEN INSERT *", "WHEN NOT MATCHED BY SOURCE"
MERGES = [
    ("t.id = s.id", f"{UPDATE} *", INSERT),
    ("t.event:k::int = s.event:k::int", f"{UPDATE} event = s.event, n = t.n + s.n", INSERT),
    ("t.id <=> s.id", f"{UPDATE} day = concat(t.day, '!')", INSERT),
    ("t.d = s.d AND t.id > 2", DELETE),  # NaN is NaN, -0.0 is 0.0: several rows match one
    ("s.n = t.n", DELETE),
    ("s.n = t.n", "WHEN MATCHED AND t.n > 1 AND s.day = 'd1' THEN DELETE"),
    ("s.n = t.n AND s.id < t.id", f"{UPDATE} d = s.d"),
    ("t.n > s.id", "WHEN NOT MATCHED AND s.n > 1 THEN INSERT (id, n) VALUES (s.n, s.n)"),
    ("t.day = s.day", f"{UPDATE} n = 1"),
    ("t.day = s.day", INSERT),
    (
        "t.id = s.id AND t.event:u::string = s.event:u::string",
        "WHEN MATCHED AND s.n = 1 THEN DELETE",
        f"{UPDATE} *",
        f"{OTHERS} AND t.n = 3 THEN DELETE",
        f"{OTHERS} AND t.day = 'd1' THEN UPDATE SET n = t.n * 10, event = NULL",
    ),
    ("false", INSERT),
    (  # values of other types than the columns, as Spark stores them
        "t.id = s.id",
        f"{UPDATE} d = s.n * 1.25, day = s.id, n = t.n * 2.5",
        "WHEN NOT MATCHED THEN INSERT (id, n, d) VALUES (s.d * 2, s.d, s.n)",
    ),
]


def _first(spark: SparkSession, text: str) -> Any:
    return spark.sql(text).collect()[0]


def counts_of(run: Callable[[], Any]) -> Any:
    """What a merge gives; None where it refuses that several rows match one."""
    try:
        return run()
    except (vl.VariantLakeError, Py4JJavaError, PySparkException) as error:
        if "MULTIPLE_SOURCE_ROW" not in str(error):
            raise
        return None


def test_merges_of_every_kind(spark: SparkSession, tmp_path: Path) -> None:
    twins = Twins.create(vl.spark.connect(spark), spark, tmp_path, *SETUP, shown=SHOWN)
    ddl = "id BIGINT, n INT, d DOUBLE, day STRING, event STRING"
    spark.createDataFrame([tuple(each.values()) for each in SOURCE], ddl).createOrReplaceTempView(
        "merge_source"
    )
    kinds = pa.int64(), pa.int32(), pa.float64(), pa.string(), pa.string()
    fields = [pa.field(name, kind) for name, kind in zip(SOURCE[0], kinds, strict=True)]
    source = pa.Table.from_pylist(SOURCE, pa.schema(fields))
    query = "(SELECT * EXCEPT (event), parse_json(event) AS event FROM merge_source)"
    for on, *clauses in MERGES:
        text = f"MERGE INTO {twins.theirs} t USING {query} s ON {on} {' '.join(clauses)}"
        right = counts_of(partial(_first, spark, text))
        table = vl.Table.open(tmp_path / "ours")
        done = counts_of(partial(table.merge, source, on, *clauses, json_columns=["event"]))
        found = (done.rows_updated, done.rows_deleted, done.rows_inserted) if done else None
        assert found == (tuple(right)[1:] if right else None), text
        twins.same_for_us(text)
    twins.same_rows()
    spark.catalog.dropTempView("merge_source")
