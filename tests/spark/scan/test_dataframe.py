"""DataFrames of whole tables: which columns may be NULL, and what only kernels can widen."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

from tests.spark.layouts import UNADAPTED, changed, rows
from tests.spark.query.test_reading import executed
from variantlake.errors import UnsupportedFeature
from variantlake.spark.lake import Lake, connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

REQUIRED = """id INT NOT NULL, c CHAR(3) NOT NULL, e VARIANT NOT NULL, n INT, d DOUBLE NOT NULL,
    s STRUCT<a: INT NOT NULL, b: STRUCT<c: INT NOT NULL>> NOT NULL, p STRING NOT NULL, q INT"""
ROWS = """SELECT int(id), 'ab', parse_json(concat('{"x":', id, '}')), int(null), id / 2,
    named_struct('a', 1, 'b', named_struct('c', 5)), 'p', int(id % 2) FROM range"""


@pytest.fixture(scope="module")
def lake(delta_spark: SparkSession) -> Lake:
    return connect(delta_spark)


def required(spark: SparkSession, table: Path, mode: str) -> str:
    spark.sql(
        f"CREATE TABLE delta.`{table}` ({REQUIRED}) USING delta PARTITIONED BY (p, q) TBLPROPERTIES"
        f" ('delta.enableDeletionVectors'='true', 'delta.columnMapping.mode'='{mode}')"
    )
    return str(table)


def columns(frame: DataFrame) -> Any:
    """Without the metadata, of which Delta Spark gives its own of mapped columns."""
    return _without_metadata(json.loads(frame.schema.json())["fields"])


def _without_metadata(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_metadata(v) for key, v in value.items() if key != "metadata"}
    return [_without_metadata(item) for item in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def answers() -> dict[str, Counter[str]]:
    """Delta Spark's rows, asked for once: the tables of all modes have the same."""
    return {}


@pytest.mark.parametrize("mode", ["none", "id"])
def test_required_columns_are_not_nullable(
    delta_spark: SparkSession,
    lake: Lake,
    tmp_path: Path,
    answers: dict[str, Counter[str]],
    mode: str,
) -> None:
    table = required(delta_spark, tmp_path / "t", mode)

    def right_of(text: str, frame: DataFrame) -> Counter[str]:
        if text not in answers:
            with changed(delta_spark, UNADAPTED):
                answers[text] = rows(frame)
        return answers[text]

    def theirs() -> DataFrame:
        return delta_spark.read.format("delta").load(table)

    assert columns(lake.read(table)) == columns(theirs())
    delta_spark.sql(f"INSERT INTO delta.`{table}` {ROWS}(0, 6, 1, 1)")
    delta_spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 2")
    ours = lake.read(table)
    assert columns(ours) == columns(theirs())
    assert [item.nullable for item in ours.schema] == [*[False] * 3, True, *[False] * 3, True]
    for condition in ("id >= 3", "p = 'p' AND q = 1", "c = 'ab'", "d < 1", "e IS NULL", "s.a = 1"):
        found = rows(ours.where(condition))
        assert found == right_of(condition, theirs().where(condition)), condition
    assert "GreaterThanOrEqual(id,3)" in executed(ours.where("id >= 3")) or mode == "id"
    for query in QUERIES:
        text = query.format(t=f"delta.`{table}`")
        frame, right = lake.sql(text), delta_spark.sql(text)
        assert columns(frame) == columns(right), query
        assert rows(frame) == right_of(query, right), query
        assert columns(lake.sql(f"SELECT * FROM ({text})")) == columns(right), query
    filtered = lake.sql(f"SELECT id FROM delta.`{table}`").where("id >= 3")
    assert "GreaterThanOrEqual(id,3)" in executed(filtered) or mode == "id"


QUERIES = (
    "SELECT * FROM {t}",
    "SELECT id, n, s.a, s.b.c, s.b FROM {t} WHERE id > 1",
    "SELECT id + 1 AS i, coalesce(n, id) AS c, array(id, q) AS a, array(id) AS b FROM {t}",
    "SELECT struct(id, n) AS s, map(id, d) AS m, if(q = 1, id, 0) AS j FROM {t}",
    "SELECT e:x::int AS x, id, d FROM {t} WHERE e:x::int > 1",
    "SELECT e IS NULL AS gone, id IS NOT NULL AS there, e IS NOT NULL AS full FROM {t}",
    "SELECT a.id, b.id AS other, b.e:x::int AS x FROM {t} a LEFT JOIN {t} b ON a.id = b.q",
    "SELECT id, count(*) AS c, max(d) AS m, min(e:x::int) AS x FROM {t} GROUP BY id",
    "SELECT p, q, count(id) AS c, sum(id) AS s FROM {t} GROUP BY ROLLUP (p, q)",
    "SELECT DISTINCT p, c FROM {t}",
    "SELECT id FROM {t} UNION ALL SELECT n FROM {t}",
    "WITH w AS (SELECT id, s FROM {t}) SELECT w.id, w.s.a FROM w WHERE w.id = 3",
    "SELECT id, rank() OVER (ORDER BY id) AS r, lag(id) OVER (ORDER BY id) AS l FROM {t}",
    "SELECT (SELECT max(id) FROM {t}) AS m, id IN (SELECT n FROM {t}) AS i FROM {t}",
    "SELECT id FROM {t} ORDER BY id DESC LIMIT 2",
)


def add(table: Path, name: str, columns: pa.Table, stats: dict[str, Any] | None) -> dict[str, Any]:
    pq.write_table(columns, table / name)
    size = (table / name).stat().st_size
    action = {"path": name, "partitionValues": {}, "size": size, "modificationTime": 1}
    return {"add": {**action, "dataChange": True, "stats": stats and json.dumps(stats)}}


def write(table: Path, fields: list[dict[str, Any]], feature: str, *adds: dict[str, Any]) -> None:
    features = {"readerFeatures": [feature], "writerFeatures": [feature]}
    metadata = {
        "id": "t", "format": {"provider": "parquet", "options": {}}, "partitionColumns": [],
        "schemaString": json.dumps({"type": "struct", "fields": fields}), "configuration": {},
    }  # fmt: skip
    actions: list[dict[str, Any]] = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    ]
    actions += [{"metaData": metadata}, *adds]
    (table / "_delta_log").mkdir()
    lines = "\n".join(map(json.dumps, actions))
    (table / "_delta_log" / "00000000000000000000.json").write_text(lines)


@pytest.mark.parametrize("stats", [None, {"numRecords": 2, "nullCount": {"id": 1, "n": 0}}])
def test_a_null_in_a_required_column_is_an_error(
    lake: Lake, tmp_path: Path, stats: dict[str, Any] | None
) -> None:
    file = pa.table({"id": pa.array([1, None], pa.int32()), "n": pa.array([1, 2], pa.int32())})
    field = {"type": "integer", "metadata": {}}
    fields = [{"name": name, "nullable": name != "id", **field} for name in ("id", "n")]
    write(tmp_path, fields, "timestampNtz", add(tmp_path, "f.parquet", file, stats))
    frame = lake.read(tmp_path)
    assert not frame.schema["id"].nullable
    assert rows(frame.select("n")) == rows(lake.sql(f"SELECT n FROM delta.`{tmp_path}`"))
    name = f"delta.`{tmp_path}`"
    of_text = lake.sql(f"SELECT * FROM {name}")
    assert columns(of_text) == columns(frame)
    # The files are asked for rows of the condition alone.
    assert rows(of_text.where("id = 1").select("n")) == rows(
        lake.sql(f"SELECT n FROM {name} WHERE id = 1")
    )
    assert rows(lake.sql(f"SELECT n FROM {name} WHERE id = 1")) == rows(
        frame.select("n").where("n = 1")
    )
    for query in (
        *(frame, frame.where("id = 0"), frame.groupBy("id").count()),
        *(of_text, lake.sql(f"SELECT max(id + n) AS m FROM {name}")),
        lake.sql(f"SELECT id, count(*) AS c FROM {name} GROUP BY id"),
        lake.sql(f"SELECT DISTINCT id FROM {name}"),
    ):
        with pytest.raises(PySparkException, match=r"column id of .*, which is NOT NULL"):
            query.collect()


def test_integers_that_spark_does_not_widen_are_read_by_kernels(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = {"toType": "decimal(4,1)", "fromType": "byte"}
    old = pa.table({"d": pa.array([1, -2], pa.int8()), "n": pa.array([1, 2], pa.int32())})
    fields = [
        {"name": "d", "type": "decimal(4,1)", "nullable": True,
         "metadata": {"delta.typeChanges": [change]}},
        {"name": "n", "type": "integer", "nullable": True, "metadata": {}},
    ]  # fmt: skip
    write(tmp_path, fields, "typeWidening", add(tmp_path, "f.parquet", old, None))
    assert sorted((str(d), n) for d, n in lake.read(tmp_path).collect()) == [
        ("-2.0", 2),
        ("1.0", 1),
    ]
    query = f"SELECT {{}} FROM delta.`{tmp_path}` WHERE {{}}"
    assert [row.n for row in lake.sql(query.format("n", "d < 0")).collect()] == [2]
    monkeypatch.setitem(vars(lake._session.helper), "has_kernels", False)
    with pytest.raises(UnsupportedFeature, match="column 'd' was widened"):
        lake.read(tmp_path)
    assert [row.n for row in lake.sql(query.format("n", "n = 1")).collect()] == [1]
