"""Values that Spark lacks, and integers in columns of decimals, by every way into Spark."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import variantlake as vl
from tests.parquet.write.test_table_writer import of
from tests.spark.layouts import PLAINLY, changed
from variantlake.spark.lake import Lake, connect
from variantlake.spark.streaming.registration import register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

ROWS = 12
ODD: dict[str, Any] = {
    "time": dt.time(1, 2, 3),
    "nanoseconds": np.datetime64(1_000_000_005, "ns"),
    "uuid": uuid.UUID(int=5),
    "nested": [{"at": dt.time(4)}],
}


@pytest.fixture(scope="module")
def lake(spark: SparkSession) -> Lake:
    return connect(spark)


def documents(odd: object) -> list[dict[str, Any]]:
    return [
        {"id": i, "kind": f"k{i % 3}", "mixed": "x" if i == 3 else i}
        | ({"odd": odd} if i % 2 else {})
        for i in range(ROWS)
    ]


@pytest.fixture(scope="module", params=ODD)
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Documents and a NULL, shredded by inference."""
    folder = tmp_path_factory.mktemp("odd") / request.param
    made = vl.Table.create(folder, "event VARIANT, k INT, s STRUCT<v: VARIANT>")
    rows = documents(ODD[request.param])
    variants = of(*rows, None)
    inner = pa.StructArray.from_arrays([variants], ["v"])
    made.append(
        pa.table({"event": variants, "k": pa.array(range(ROWS + 1), pa.int32()), "s": inner})
    )
    return str(folder)


@pytest.mark.rule(31)
def test_rule_31_whole_variants_are_read_whatever_residuals_hold(lake: Lake, table: str) -> None:
    wanted = [vl.Variant.of(row).to_python() for row in documents(ODD[Path(table).name])]
    name = f"delta.`{table}`"
    for frame in (
        lake.sql(f"SELECT event, k FROM {name}"),
        lake.sql(f"SELECT event, k, event:zzz::string FROM {name} WHERE event:id::int >= 0"),
        lake.sql(f"SELECT s.v AS event, k FROM {name}"),
        lake.read(table).select("event", "k"),
        lake.table(table).select("event", "k"),
    ):
        rows = sorted((row.k, row.event) for row in frame.collect() if row.event is not None)
        found = [vl.Variant(v.metadata, v.value).to_python() for _, v in rows]
        assert found == wanted


QUERIES: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "present": ("SELECT count(*) FROM {t} WHERE event IS NOT NULL", [(ROWS,)]),
    "absent": ("SELECT k FROM {t} WHERE event IS NULL", [(ROWS,)]),
    "count": ("SELECT count(event), count(*) FROM {t}", [(ROWS, ROWS + 1)]),
    "path": (
        "SELECT count(*) FROM {t} WHERE event IS NOT NULL AND event:kind::string = 'k1'",
        [(ROWS // 3,)],
    ),
    "residual": ("SELECT count(event:mixed::string) FROM {t}", [(ROWS,)]),
    "missing": ("SELECT count(event:zzz::string) FROM {t}", [(0,)]),
    "guarded": ("SELECT schema_of_variant(event:id) FROM {t} WHERE k = 1", [("BIGINT",)]),
}


@pytest.mark.rule(31)
@pytest.mark.parametrize("name", QUERIES)
def test_rule_31_queries_of_other_values_are_answered(lake: Lake, table: str, name: str) -> None:
    query, wanted = QUERIES[name]
    assert [tuple(row) for row in lake.sql(query.format(t=f"delta.`{table}`")).collect()] == wanted


@pytest.mark.rule(31)
@pytest.mark.parametrize("name", ["present", "absent", "path"])
def test_a_test_for_null_reads_no_variant(lake: Lake, table: str, name: str) -> None:
    query = QUERIES[name][0].format(t=f"delta.`{table}`")
    (scan,) = lake.explain(query).to_dict()["tables"]
    tests = [path for path in scan["paths"] if path["path"] == "event IS NOT NULL"]
    # A condition on a path says that there is one.
    assert [(path["physical"], path["whole"]) for path in tests] == [(1, 0)] * (name != "path")
    assert not scan["whole_variants"]
    frame: Any = lake.sql(query)
    assert "MapInArrow" not in str(frame._jdf.queryExecution().executedPlan().toString())


@pytest.mark.rule(31)
def test_rule_31_deleted_rows_stay_deleted(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    made = vl.Table.create(
        tmp_path / "t", "event VARIANT, k INT", properties={"delta.enableDeletionVectors": "true"}
    )
    rows = documents(dt.time(1))
    made.append(pa.table({"event": of(*rows), "k": pa.array(range(ROWS), pa.int32())}))
    spark.sql(f"DELETE FROM delta.`{tmp_path / 't'}` WHERE k < 4")
    found = lake.sql(f"SELECT event FROM delta.`{tmp_path / 't'}` WHERE event IS NOT NULL")
    ids = {vl.Variant(v.metadata, v.value).to_python()["id"] for (v,) in found.collect()}
    assert ids == set(range(4, ROWS))


# --- Integers in columns of decimals --------------------------------------------------------------

NUMBERS = ['{"n":7,"a":[1,2.5]}', '{"n":7.5,"a":[]}', '{"n":-3,"d":2.50}', '{"n":0,"d":1.0}']


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("numbers") / "t"
    ddl = "n DECIMAL(18,2), a ARRAY<DECIMAL(18,2)>, d DECIMAL(9,2)"
    made = vl.Table.create(folder, "event VARIANT, k INT", shredding={"event": ddl})
    made.append(
        pa.table({"event": NUMBERS, "k": pa.array(range(4), pa.int32())}), json_columns=["event"]
    )
    return str(folder)


def _of_source(spark: SparkSession, _: Lake, table: str) -> DataFrame:
    register(spark)
    return spark.read.format("variantlake").load(table)


WAYS: dict[str, Callable[[SparkSession, Lake, str], DataFrame]] = {
    "sql": lambda _, lake, table: lake.sql(f"SELECT * FROM delta.`{table}`"),
    "condition": lambda _, lake, table: lake.sql(
        f"SELECT * FROM delta.`{table}` WHERE event:n::double > -9"
    ),
    "read": lambda _, lake, table: lake.read(table),
    "table": lambda _, lake, table: lake.table(table).select("event", "k"),
    "source": _of_source,
}


@pytest.mark.rule(33)
@pytest.mark.parametrize("way", WAYS)
def test_rule_33_integers_are_integers_where_their_type_shows(
    spark: SparkSession, lake: Lake, numbers: str, way: str
) -> None:
    spark.sql(
        f"SELECT parse_json(col) event FROM VALUES {_values()} AS t(col)"
    ).createOrReplaceTempView("judged")
    wanted = spark.table("judged")
    found = WAYS[way](spark, lake, numbers)
    for text in ("schema_of_variant(event)", "schema_of_variant(event:n)", "to_json(event)"):
        assert _column(found, text) == _column(wanted, text)
    total = "schema_of_variant_agg(event:n)"
    assert found.selectExpr(total).collect() == wanted.selectExpr(total).collect()
    shown = {row.k: row.event.toPython() for row in found.collect()}
    assert [repr(shown[k]["n"]) for k in range(4)] == ["7", "Decimal('7.5')", "-3", "0"]
    assert repr(shown[0]["a"]) == "[1, Decimal('2.5')]"


@pytest.mark.rule(33)
def test_rule_33_a_python_function_sees_integers(
    spark: SparkSession, lake: Lake, numbers: str
) -> None:
    spark.udf.register("shown", lambda v: repr(v.toPython()["n"]), "string")
    frame = lake.sql(f"SELECT shown(event) AS s FROM delta.`{numbers}` ORDER BY k")
    assert [row.s for row in frame.collect()] == ["7", "Decimal('7.5')", "-3", "0"]


@pytest.mark.rule(33)
def test_rule_33_paths_as_variants_are_too(lake: Lake, numbers: str) -> None:
    frame = lake.sql(f"SELECT event:n AS n, event:a[0] AS a FROM delta.`{numbers}` WHERE k = 0")
    (row,) = frame.collect()
    assert (row.n.toPython(), row.a.toPython()) == (7, 1)
    assert isinstance(row.n.toPython(), int)


def _values() -> str:
    return ", ".join(f"('{text}')" for text in NUMBERS)


def _column(frame: DataFrame, text: str) -> list[Any]:
    return sorted(json.dumps(row[0]) for row in frame.selectExpr(text).collect())


# --- Keys in another order ------------------------------------------------------------------------

BELOW, ABOVE = "\uff21", "\U0001f600"
WIDE = {f"k{i:02}": i for i in range(30)} | {BELOW: 1, ABOVE: 2}
KEYS = {
    "a path": f"SELECT event:['{ABOVE}']::int FROM {{t}}",
    "a condition": f"SELECT id FROM {{t}} WHERE event:['{ABOVE}']::int = 2",
    "below": f"SELECT event:n['{ABOVE}']::int, event:a[0]['{ABOVE}']::int FROM {{t}}",
    "text": "SELECT to_json(event), event:n::string FROM {t}",
    "exploded": "SELECT id, e.pos, e.key FROM {t}, LATERAL variant_explode(event) e",
}


@pytest.mark.rule(40)
def test_rule_40_spark_finds_keys_above_u_ffff(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    documents = [WIDE, {"n": WIDE}, {"a": [WIDE]}, {BELOW: 1, ABOVE: 2, "b": 3}, {"b": 4}]
    texts = [json.dumps(document) for document in documents]
    judged = spark.createDataFrame(list(enumerate(texts)), "id INT, j STRING")
    judged.selectExpr("id", "parse_json(j) AS event").createOrReplaceTempView("keys_judge")
    rows = pa.table({"id": pa.array(range(5), pa.int32()), "event": texts})
    made = [
        vl.Table.create(tmp_path / f"{number}", "id INT, event VARIANT", shredding=shredding)
        for number, shredding in enumerate(({}, {"event": "b BIGINT"}))
    ]
    for table in made:
        table.append(rows, json_columns=["event"])
        for query in KEYS.values():
            found = lake.sql(query.format(t=f"delta.`{table.uri}`")).collect()
            with changed(spark, PLAINLY):
                expected = spark.sql(query.format(t="keys_judge")).collect()
            assert sorted(map(str, found)) == sorted(map(str, expected))
    spark.catalog.dropTempView("keys_judge")
    name = f"delta.`{made[0].uri}`"
    edited = f"SELECT variant_set(event, '$.new', parse_json('5')) AS event FROM {name}"
    (text,) = lake.sql(
        f"SELECT to_json(event) AS j FROM ({edited}) WHERE event:b::int = 3"
    ).collect()
    assert list(json.loads(text.j)) == ["b", "new", ABOVE, BELOW]
    lake.sql(f"DELETE FROM {name} WHERE event:['{ABOVE}']::int = 2")
    assert sorted(row.id for row in lake.read(made[0].uri).select("id").collect()) == [1, 2, 4]
