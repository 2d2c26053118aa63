"""Ordinary queries of a session with the rule: the same rows, of fewer files."""

from __future__ import annotations

import json
import shutil
import signal
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast
from unittest import mock

import pyarrow as pa
import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import VariantVal

import variantlake as vl
from tests.spark.layouts import PUSHDOWN, changed
from tests.spark.rule.door import accelerated
from tests.strategies import MORE
from variantlake.planning import late_materialization
from variantlake.spark.lake import Lake, connect
from variantlake.spark.rule import accelerate, rule_query
from variantlake.spark.rule import planner as planner_module
from variantlake.spark.rule.accelerate import planner_of
from variantlake.spark.rule.planner import RulePlanner
from variantlake.spark.scan import driver_groups, pushed_aggregates
from variantlake.spark.scan.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted", "rule", "tables")]

FILES, ROWS = 4, 10
OFF = {"spark.variantlake.enabled": "false"}
SCHEMA = "id BIGINT, part STRING, event VARIANT"
SHREDDING = {"event": "kind STRING, n BIGINT, at STRING"}


@pytest.fixture(scope="module")
def rule(spark: SparkSession) -> Iterator[None]:
    # What Spark itself puts into its scans it cannot evaluate without compiling it.
    with changed(spark, {PUSHDOWN: "false"}), accelerated(spark):
        yield


@pytest.fixture(scope="module")
def lake(spark: SparkSession) -> Lake:
    return connect(spark)


def document(file: int, row: int) -> str | None:
    if row == 7:
        return None
    found: dict[str, Any] = {"kind": f"k{file}", "n": file * ROWS + row, "o": {"a": row}}
    found["at"] = f"2024-0{file + 1}-01T00:00:0{row}Z"
    if row == 8:
        found["kind"] = None
    return json.dumps(found)


def rows_of(file: int) -> pa.Table:
    ids = [file * ROWS + row for row in range(ROWS)]
    events = [document(file, row) for row in range(ROWS)]
    return pa.table({"id": ids, "part": [f"p{file % 2}"] * ROWS, "event": events})


def make(folder: Path, **options: Any) -> str:
    """Four files of ten rows."""
    table = vl.Table.create(folder, SCHEMA, shredding=SHREDDING, **options)
    for file in range(FILES):
        table.refresh().append(rows_of(file), json_columns=["event"])
    return str(folder)


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`ev`, and `odd` with partitions, mapped columns and deleted rows; the folder of both.

    `ev_rows` and `odd_rows` are their rows in memory, of which Spark's answer is the right one.
    """
    documents = spark.createDataFrame(pa.concat_tables([rows_of(file) for file in range(FILES)]))
    unshredded = documents.withColumn("event", F.parse_json("event"))
    unshredded.createOrReplaceTempView("ev_rows")
    unshredded.where("id NOT IN (3, 14)").createOrReplaceTempView("odd_rows")
    folder = tmp_path_factory.mktemp("rule")
    make(folder / "ev")
    odd = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    make(folder / "odd", partition_by=["part"], properties=odd)
    vl.Table.open(folder / "odd").delete("id IN (3, 14)")
    for name in ("ev", "odd"):
        spark.sql(f"CREATE TABLE {name} USING delta LOCATION '{folder / name}'")
    spark.sql("CREATE VIEW kinds AS SELECT id, event:kind::string AS kind, event FROM ev")
    yield str(folder)
    spark.sql("DROP VIEW kinds")
    for name in ("ev", "odd"):
        spark.sql(f"DROP TABLE {name}")


def rows(frame: DataFrame) -> Counter[str]:
    return Counter(str([_plain(value) for value in row]) for row in frame.collect())


def _plain(value: Any) -> Any:
    """Variants by what they hold: their dictionaries are those of their writers."""
    if not isinstance(value, VariantVal):
        return value
    return json.dumps(value.toPython(), sort_keys=True, default=str)


def files_read(lake: Lake, frame: DataFrame) -> int | None:
    """Files that are read by the rule's scans; None if the rule reads nothing."""
    found = lake.explain(frame).to_dict()["tables"]
    return sum(table["files"]["read"] for table in found) if found else None


QUERIES = {
    # How many files are read of the four of each table.
    "SELECT event:kind::string FROM {ev} WHERE event:kind::string = 'k1'": 1,
    "SELECT * FROM {ev} WHERE event:n::bigint BETWEEN 12 AND 25": 2,
    "SELECT event:kind::string k, count(*) FROM {ev} WHERE event:n::int > 25 GROUP BY ALL": 2,
    "SELECT event:o.a::int, event:kind::string FROM {ev} WHERE event:kind::string > 'k2'": 1,
    "SELECT count(*) FROM {ev} WHERE event:kind::string IS NULL": 4,
    "SELECT event IS NULL AS e, event:n::bigint FROM {ev} WHERE event:n::bigint < 9 OR id = 7": 1,
    "SELECT try_variant_get(event, '$.kind', 'int'), event:n::double FROM {ev} WHERE id < 5": 1,
    "SELECT a.event:kind::string, b.id FROM {ev} a JOIN {ev} b ON a.event:n::bigint = b.id "
    "WHERE b.event:kind::string = 'k1'": 5,
    "SELECT a.id, b.event:kind::string FROM {ev} a LEFT JOIN {ev} b ON a.id = b.event:n::bigint "
    "AND b.event:kind::string = 'k3'": 5,
    "SELECT id FROM {ev} o WHERE EXISTS (SELECT 1 FROM {ev} i WHERE i.event:n::bigint = o.id + 1 "
    "AND i.event:kind::string = 'k1')": 5,
    "SELECT id FROM {ev} o WHERE id NOT IN (SELECT event:n::bigint FROM {ev} "
    "WHERE event:n::bigint > 33)": 5,
    "SELECT id, (SELECT max(event:n::bigint) FROM {ev} WHERE event:kind::string = 'k0') FROM {ev} "
    "WHERE event:kind::string IN ('k1', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j')": 2,
    "WITH c AS (SELECT event e FROM {ev}) SELECT e:kind::string FROM c WHERE e:n::int = 5 "
    "UNION ALL SELECT event:o.a::string FROM {ev} WHERE event:kind::string = 'k3'": 2,
    "SELECT event:kind::string k, row_number() OVER (PARTITION BY event:kind::string ORDER BY id) "
    "FROM {ev} WHERE event:n::bigint > 15": 3,
    "SELECT count(DISTINCT event:kind::string), sum(event:n::bigint) FROM {ev} "
    "HAVING count(*) > 1": 4,
    "SELECT event:at::timestamp FROM {ev} WHERE event:at::string >= '2024-04-01'": 1,
    "SELECT e.id, t.* FROM {ev} e, LATERAL variant_explode(e.event) t "
    "WHERE e.event:kind::string = 'k2'": 1,
    "SELECT event:kind::string FROM {older} WHERE event:n::bigint < 100": 2,
    "SELECT k FROM (SELECT event:kind::string k FROM {ev} UNION SELECT event:kind::string FROM {ev}"
    " WHERE event:kind::string = 'k1') WHERE k = 'k1'": 2,
    "SELECT DISTINCT event:kind::string FROM {ev} WHERE part = 'p1' ORDER BY 1": 2,
    "SELECT from_json('{{\"x\": 1}}', 'x INT'), event:kind::string FROM {ev} "
    "WHERE event:kind::string = 'k1'": 1,
    "SELECT kind FROM {kinds} WHERE event:n::bigint = 31": 1,
}


def judged(table: str) -> dict[str, str]:
    """What to put into a query for its right answer."""
    return {
        "ev": f"{table}_rows",
        "older": f"(SELECT * FROM {table}_rows WHERE id < 20)",
        "kinds": "(SELECT event:kind::string AS kind, event FROM ev_rows)",
    }


@pytest.mark.rule(42)
@pytest.mark.parametrize(("table", "aqe"), [("ev", "false"), ("odd", "true")])
def test_queries_read_fewer_files_for_the_same_rows(
    spark: SparkSession, table: str, aqe: str
) -> None:
    planner = planner_of(spark)
    assert planner is not None
    ours = {"ev": table, "older": "ev VERSION AS OF 2", "kinds": "kinds"}
    few = table == "odd" and MORE == 1
    for query, files in list(QUERIES.items())[:: 4 if few else 1]:
        right = rows(spark.sql(query.format(**judged(table))))
        with changed(spark, {"spark.sql.adaptive.enabled": aqe}), planner.explaining() as planned:
            assert rows(spark.sql(query.format(**ours))) == right, query
        if table == "ev":
            assert sum(each.plan.read_files for each in planned) == files, query


def test_tables_may_be_named_in_any_way(spark: SparkSession, lake: Lake, tables: str) -> None:
    location = f"{tables}/ev"
    spark.table("ev").createOrReplaceTempView("temporary")
    for frame in (
        spark.table("ev"),
        spark.table("spark_catalog.default.ev"),
        spark.sql(f"SELECT * FROM delta.`{location}`"),
        spark.read.format("delta").load(location),
        spark.read.format("delta").option("versionAsOf", "4").load(location),
        spark.table("temporary"),
        spark.table("kinds"),
        spark.newSession().table("ev"),
    ):
        kept = frame.where("event:kind::string = 'k2'")
        assert files_read(lake, kept) == 1
        assert kept.count() == 8


def frames(spark: SparkSession, ev_name: str, odd: str) -> dict[str, Callable[[], DataFrame]]:
    """DataFrames of two tables, by what is shown of them."""
    ev, kind = spark.table(ev_name), F.expr("event:kind::string")
    n = F.variant_get("event", "$.n", "bigint")
    add = F.udf(lambda value: None if value is None else value + 1, "bigint")
    return {
        "grouped": lambda: ev.groupBy(kind.alias("k")).agg(F.count("*"), F.max(n)),
        "where": lambda: ev.where(n > 25).where(kind.isNotNull()).select("id", kind),
        "renamed": lambda: ev.withColumnRenamed("event", "e").select("e").where("e:n::int = 3"),
        "twice": lambda: ev.select(F.col("event").alias("a"), F.col("event").alias("b")).select(
            F.expr("a:kind::string"), F.expr("b:n::int")
        ),
        "udf": lambda: ev.where(n < 12).select(add(n)),
        "windows": lambda: ev.select(
            "id", F.lag(kind).over(Window.partitionBy("part").orderBy("id")).alias("before")
        ).where("id > 12"),
        "union": lambda: ev.unionByName(spark.table(odd)).where(kind == "k1").select("id", n),
        "self union": lambda: ev.union(ev).where(kind == "k1").select("id"),
        "joined": lambda: ev.alias("a").join(
            spark.table(odd).alias("b"), F.expr("a.event:n::bigint = b.event:n::bigint"), "full"
        ).select("a.id", F.expr("b.event:kind::string")),
        "broadcast": lambda: ev.join(F.broadcast(spark.range(5)), "id").select(kind),
        "ordered": lambda: ev.orderBy(n.desc_nulls_last()).limit(3).select("id"),
        "dropped": lambda: ev.dropDuplicates(["part"]).select("part"),
        "rollup": lambda: ev.rollup("part", kind).count(),
        "pivoted": lambda: ev.groupBy("part").pivot("id", [1, 2]).agg(F.first(kind)),
        "whole": lambda: ev.where(kind == "k1").select(F.to_json("event")),
        "repartitioned": lambda: ev.repartition(3, "id").where(n > 35).select(kind),
    }  # fmt: skip


def test_dataframes_give_the_rows_that_they_give_without(spark: SparkSession) -> None:
    judges = frames(spark, "ev_rows", "odd_rows")
    for name, make_frame in frames(spark, "ev", "odd").items():
        ours, right = make_frame(), judges[name]()
        assert rows(ours) == rows(right), name
        assert ours.schema == right.schema, name


@pytest.mark.rule(42)
@pytest.mark.parametrize(
    "settings",
    [
        {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "America/St_Johns"},
        {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "Pacific/Apia"},
        {"spark.sql.caseSensitive": "true"},
        {"spark.sql.optimizer.dynamicPartitionPruning.enabled": "false"},
        {
            "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer."
            "CombineFilters"
        },
    ],
)
def test_settings_of_the_session_count(spark: SparkSession, settings: dict[str, str]) -> None:
    queries = [
        "SELECT hour(event:at::timestamp) FROM {ev} WHERE event:at::timestamp > '2024-01-31 20:00'",
        "SELECT event:at::string, event:n::string FROM {ev} WHERE event:n::int < 25",
    ]
    with changed(spark, settings):
        for query, table in zip(queries, ("ev", "odd"), strict=True):
            right = rows(spark.sql(query.format(**judged(table))))
            assert rows(spark.sql(query.format(ev=table))) == right


@pytest.mark.rule(41)
def test_what_tells_where_rows_lie_is_left_alone(spark: SparkSession, lake: Lake) -> None:
    kept = spark.table("ev").where("event:kind::string = 'k1'")
    for frame in (
        kept.select(F.input_file_name()),
        kept.select("_metadata.file_name", F.expr("event:n::int")),
        kept.select(F.monotonically_increasing_id(), F.expr("event:n::int")),
        kept.select(F.spark_partition_id(), F.expr("event:n::int")),
        kept.sample(0.5, 3),
        spark.table("ev").sample(0.5, 3).where("event:kind::string = 'k1'"),
        kept.select(F.rand(3), F.expr("event:n::int")),
    ):
        assert files_read(lake, frame) is None
    assert kept.select(F.input_file_name()).distinct().count() == 1
    planner = planner_of(spark)
    assert planner is not None
    assert not planner.warnings


@pytest.mark.rule(41)
def test_files_that_may_be_missing_are_left_to_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_materialization, "MIN_BYTES", 0)  # else Spark reads them anyway
    table = f"delta.`{make(tmp_path / 't')}`"
    (row,) = spark.sql(f"SELECT input_file_name() AS f FROM {table} WHERE id = 20").collect()
    Path(row.f.removeprefix("file:")).unlink()
    query = f"SELECT to_json(event) FROM {table} WHERE event:kind::string >= 'k1'"
    assert "MapInArrow" in plan_text(spark.sql(query))
    for setting in ("ignoreMissingFiles", "ignoreCorruptFiles"):
        with changed(spark, {f"spark.sql.files.{setting}": "true"}):
            assert "MapInArrow" not in plan_text(spark.sql(query))
            if setting == "ignoreMissingFiles":
                assert len(spark.sql(query).collect()) == 16


def test_a_query_without_a_variant_is_sparks(spark: SparkSession, lake: Lake) -> None:
    assert files_read(lake, spark.table("ev").where("id = 3").select("part")) is None
    assert files_read(lake, spark.range(3).toDF("id")) is None
    assert "as Spark reads them" in lake.explain(spark.table("ev").select("id")).note


def test_cached_rows_stay_what_they_were(spark: SparkSession, lake: Lake) -> None:
    cached = spark.table("ev").where("event:kind::string = 'k1'").cache()
    try:
        assert cached.count() == 8
        assert rows(cached.selectExpr("event:n::int AS n").where("n = 12")) == {"[12]": 1}
        assert files_read(lake, cached.selectExpr("event:n::int")) is None
    finally:
        cached.unpersist()


def test_the_switch_and_taking_the_rule_out(spark: SparkSession, lake: Lake) -> None:
    frame = spark.sql("SELECT id FROM ev WHERE event:kind::string = 'k1'")
    with changed(spark, OFF):
        assert files_read(lake, frame) is None
    assert files_read(lake, frame) == 1
    vl.spark.accelerate(spark)  # once more changes nothing
    vl.spark.decelerate(spark)
    assert "vl.spark.accelerate" in lake.explain(frame).note
    assert "typed_value" not in plan_text(frame)
    assert planner_of(spark) is None
    vl.spark.decelerate(spark)
    # A rule whose SparkContext was stopped is not kept.
    stopped = RulePlanner.__new__(RulePlanner)
    stopped._spark = mock.Mock()
    stopped._spark.sparkContext._jsc = None
    extensions = mock.Mock()
    extensions.equals.return_value = False
    accelerate._rules.append(accelerate._Rule(extensions, mock.Mock(), stopped))
    connect(spark, accelerate=True)
    assert stopped not in [each.planner for each in accelerate._rules]
    assert files_read(lake, frame) == 1
    assert "typed_value" in plan_text(frame)


def plan_text(frame: DataFrame) -> str:
    again = frame.select("*")  # a DataFrame is optimized once
    return str(again._jdf.queryExecution().optimizedPlan().toString())


def test_statements_of_delta_do_what_they_do_without(spark: SparkSession, tmp_path: Path) -> None:
    merged = "t.event:n::bigint = s.n WHEN MATCHED THEN UPDATE SET part = 'merged'"
    source = "(SELECT event:n::int + 1 AS n FROM {t} WHERE event:n::int < 9)"
    statements = (
        "DELETE FROM {t} WHERE event:kind::string = 'k0' AND event:n::int < 5",
        "UPDATE {t} SET part = event:kind::string WHERE event:n::int > 30",
        f"MERGE INTO {{t}} t USING {source} s ON {merged}",
        "INSERT INTO {t} SELECT id, 'more', event FROM ev WHERE event:n::int > 33",
        "INSERT OVERWRITE {t} SELECT id, part, event FROM {t} WHERE event:n::int > 3",
        "OPTIMIZE {t}",
        "DELETE FROM {t} WHERE event:n::int = 39 AND part = 'k3'",
        "REORG TABLE {t} APPLY (PURGE)",
    )
    vectors = {"delta.enableDeletionVectors": "true"}
    table = f"delta.`{make(tmp_path / 't', properties=vectors)}`"
    for statement in statements:
        spark.sql(statement.format(t=table))
    there = [n for n in range(FILES * ROWS) if n % ROWS != 7]
    right: list[tuple[int, str | None, int]] = [(n, "more", n) for n in there if n > 33]
    for n in there[5:-1]:
        kind = None if n % ROWS == 8 else "k3"
        part = kind if n > 30 else f"p{n // ROWS % 2}"
        right.append((n, "merged" if n in (6, 9) else part, n))
    with changed(spark, OFF):
        found = spark.sql(f"SELECT id, part, event:n::int AS n FROM {table}").collect()
    assert Counter(map(tuple, found)) == Counter(right)


def test_queries_inside_of_statements_skip_files(spark: SparkSession, tmp_path: Path) -> None:
    planner = planner_of(spark)
    assert planner is not None
    with planner.explaining() as planned:
        spark.sql(
            f"CREATE TABLE delta.`{tmp_path / 'made'}` USING delta AS SELECT event:n::int AS n "
            "FROM ev WHERE event:kind::string = 'k1'"
        )
        spark.table("ev").where("event:kind::string = 'k1'").write.parquet(str(tmp_path / "files"))
    assert [each.plan.read_files for each in planned] == [1, 1]
    assert spark.read.format("delta").load(str(tmp_path / "made")).count() == 8


@pytest.mark.rule(41)
def test_a_query_reads_one_version_of_a_table(spark: SparkSession, tmp_path: Path) -> None:
    location = make(tmp_path / "t")
    frame = spark.sql(f"SELECT max(event:n::int) AS n FROM delta.`{location}`")
    older = spark.sql(f"SELECT max(event:n::int) AS n FROM delta.`{location}` VERSION AS OF 1")
    rows_ = pa.table({"id": [1], "part": ["p"], "event": ['{"n": 99}']})
    vl.Table.open(location).append(rows_, json_columns=["event"])
    assert frame.collect()[0].n == 99  # as Delta Spark: the newest one when it runs
    assert older.collect()[0].n == 9


def test_a_table_that_was_replaced_is_read_as_spark_reads_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    location = make(tmp_path / "t")
    frame = spark.read.format("delta").load(location).where("event:kind::string = 'k1'")
    assert frame.count() == 8
    planner = planner_of(spark)
    assert planner is not None
    shutil.rmtree(location)
    make(tmp_path / "t")
    spark.sql(f"REFRESH TABLE delta.`{location}`")
    again = spark.read.format("delta").load(location).where("event:kind::string = 'k1'")
    assert again.count() == 8


@pytest.mark.rule(41)
def test_a_log_that_was_restored_from_a_backup_is_read_anew(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The same table has other rows in the same version."""
    location, backup = Path(make(tmp_path / "t")), tmp_path / "backup"
    shutil.copytree(location / "_delta_log", backup)
    vl.Table.open(location).append(rows_of(FILES), json_columns=["event"])
    table = spark.read.format("delta").load(str(location))
    assert table.where("event:n::int > 5").count() == 39
    shutil.rmtree(location / "_delta_log")
    shutil.copytree(backup, location / "_delta_log")
    vl.Table.open(location).delete("id < 30")
    table = spark.read.format("delta").load(str(location))
    assert vl.Table.open(location).version == FILES + 1
    assert table.where("event:n::int > 5").count() == 9


def wrong_answer(change: Callable[[Any], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    usual = RulePlanner._to_java

    def put(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(RulePlanner, "_to_java", lambda *given: change(usual(*given)))

    return put


def with_told(change: Callable[[dict[str, Any]], None]) -> Callable[[pytest.MonkeyPatch], None]:
    """An answer whose JSON is another one."""

    def of(answer: Any) -> Any:
        told = json.loads(answer[0])
        change(told)
        answer[0] = json.dumps(told)
        return answer

    return wrong_answer(of)


def failing(owner: Any, name: str) -> Callable[[pytest.MonkeyPatch], None]:
    def put(patch: pytest.MonkeyPatch) -> None:
        def fail(*_: Any, **__: Any) -> Any:
            raise ZeroDivisionError(f"{name} was made to fail")

        patch.setattr(owner, name, fail)

    return put


class _Fails:
    """A part of the rule in the JVM, of which some calls fail."""

    class Java:
        implements: ClassVar = ["java.util.function.BiFunction"]

    def __init__(self, usual: Any, calls: Container[int]) -> None:
        self._usual = usual
        self._calls = calls
        self._made = 0

    def apply(self, one: Any, other: Any) -> Any:
        self._made += 1
        if self._made in self._calls:
            raise ZeroDivisionError("made to fail")
        return self._usual.apply(one, other)


def failing_in_java(
    part: str, calls: Container[int] = range(1, 2)
) -> Callable[[pytest.MonkeyPatch], None]:
    """For the rule that is there; each fault begins with a new one."""

    def put(_: pytest.MonkeyPatch) -> None:
        java: Any = accelerate._rules[-1].java
        field = java.getClass().getDeclaredField(part)
        field.setAccessible(True)
        field.set(java, _Fails(field.get(java), calls))

    return put


def _one_path_less(told: dict[str, Any]) -> None:
    for relation in told["relations"]:
        for column in relation["columns"].values():
            if "paths" in column:
                column["paths"] = 1


FAULTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "callback": failing_in_java("planner"),
    "dump": failing_in_java("dump"),
    "substitution": failing_in_java("substitution"),
    "marks": failing_in_java("substitution", range(1, 99)),
    "marks of an answer": failing_in_java("substitution", range(2, 99)),
    "apply": failing(RulePlanner, "_answer"),
    "plan": failing(planner_module, "node_of"),
    "uses": failing(rule_query, "read_uses"),
    "predicates": failing(rule_query, "table_predicates"),
    "limits": failing(rule_query, "first_rows"),
    "aggregates": failing(rule_query, "partial_aggregates"),
    "open": failing(RulePlanner, "_open"),
    "planning": failing(Tables, "plan"),
    "helper": failing(RulePlanner, "_helper"),
    "joined": failing(RulePlanner, "_with_joined"),
    "pushed": failing(planner_module, "with_pushed"),
    "columns": failing(planner_module, "path_columns"),
    "scan": failing(planner_module, "scan"),
    "answer": wrong_answer(lambda _: "no list"),
    "empty": wrong_answer(lambda answer: answer.subList(0, 0)),
    "no scans": wrong_answer(lambda answer: answer.subList(0, 1)),
    "no JSON": wrong_answer(lambda answer: (answer.__setitem__(0, "{"), answer)[1]),
    "uses of others": with_told(lambda told: told["uses"].append([99999, 0])),
    "no uses": with_told(lambda told: told["uses"].clear()),
    "other use": with_told(lambda told: told["uses"].reverse() or told["uses"][0].reverse()),
    "no aggregates": with_told(lambda told: told.pop("aggregates")),
    "no columns": with_told(lambda told: told["relations"][0]["columns"].clear()),
    "fewer paths": with_told(_one_path_less),
    "all implied": with_told(lambda told: told["implied"].append(0.5)),
}


@pytest.mark.rule(42)
@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_fails_leaves_the_query_as_it_is(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    query = (
        "SELECT a.event:kind::string, a.event:n::int FROM ev a WHERE a.event:n::int > 12 AND a.id "
        "IN (SELECT event:n::bigint FROM ev WHERE event:kind::string <> 'k2')"
    )
    planner = planner_of(spark)
    assert planner is not None
    planner._warned.clear()
    vl.spark.decelerate(spark)  # the JVM remembers what it has said
    vl.spark.accelerate(spark)
    FAULTS[fault](monkeypatch)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = sorted(row.n for row in spark.sql(query).collect())
        assert found == [13, 14, 15, 16, 19, *range(30, 37), 39]
        if fault in ("apply", "scan", "empty"):
            plan_text(spark.sql(query))  # says it no second time
    ours = [each for each in said if "left as Spark runs it" in str(each.message)]
    assert len(ours) == 1, [str(each.message) for each in said]


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
def test_ctrl_c_while_a_query_is_planned_comes_once_more(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, raised: type[BaseException]
) -> None:
    """py4j runs the planner in the thread that waits for the query: Ctrl-C is raised there.

    So is the exit that a handler of SIGTERM asks for.
    """
    planner, session = planner_of(spark), cast("Any", object())
    assert planner is not None

    def interrupted(*_: object) -> None:
        raise raised

    monkeypatch.setattr(RulePlanner, "_answer", interrupted)
    came = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: came.set())
    try:
        assert planner.apply("0 {}", session) is None
        assert came.wait(30)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_query_that_comes_again_is_planned_once(spark: SparkSession, tmp_path: Path) -> None:
    """As long as its tables' versions, its constants and the session's settings are the same."""
    location = make(tmp_path / "t")
    planned: list[object] = []
    usual = RulePlanner._answer

    def answered(*given: Any) -> Any:
        planned.append(given)
        return usual(*given)

    def asked(text: str) -> tuple[int, int]:
        before = len(planned)
        found = len(spark.sql(text.format(f"delta.`{location}`")).collect())
        return found, len(planned) - before

    with mock.patch.object(RulePlanner, "_answer", answered):
        one = "SELECT event:n::int AS n FROM {0} WHERE event:kind::string = 'k1'"
        twice = "SELECT count(*), event:kind::string FROM {0} GROUP BY 2"
        assert [asked(one) for _ in range(3)] == [(8, 1), (8, 0), (8, 0)]
        assert [asked(twice) for _ in range(2)] == [(5, 1), (5, 0)]
        assert asked(one.replace("'k1'", "'k2'")) == (8, 1)
        both = f"{one} UNION ALL {one}"
        assert [asked(both) for _ in range(2)] == [(16, 1), (16, 0)]
        joined = "SELECT 1 FROM {0} a JOIN {0} b ON a.event:n::int = b.event:n::int"
        assert [asked(joined) for _ in range(2)] == [(36, 1), (36, 1)]
        with changed(spark, {"spark.sql.session.timeZone": "Asia/Tokyo"}):
            assert asked(one) == (8, 1)
        assert asked(one) == (8, 0)
        vl.Table.open(location).delete("id = 12")
        assert [asked(one) for _ in range(2)] == [(7, 1), (7, 0)]
        assert asked(one.replace("{0}", "{0} VERSION AS OF 4")) == (8, 1)


def test_aggregates_that_come_again_are_planned_once(spark: SparkSession, tmp_path: Path) -> None:
    """Rows of the log are kept; what reads files reads them for each query."""
    location = make(tmp_path / "t")
    planned, grouped = mock.Mock(), mock.Mock()
    answer, groups = RulePlanner._answer, driver_groups.groups_here

    def answered(*given: Any) -> Any:
        planned()
        return answer(*given)

    def grouping(*given: Any) -> Any:
        grouped()
        return groups(*given)

    def asked(text: str) -> tuple[list[Any], int, int]:
        planned.reset_mock()
        grouped.reset_mock()
        rows = spark.sql(text.format(f"delta.`{location}`")).collect()
        return sorted(map(tuple, rows), key=str), planned.call_count, grouped.call_count

    with (
        mock.patch.object(RulePlanner, "_answer", answered),
        mock.patch.object(pushed_aggregates, "groups_here", grouping),
        changed(spark, {pushed_aggregates.MIN_BYTES_SETTING: "0"}),
    ):
        of_log = "SELECT part, count(*), max(id) FROM {0} GROUP BY part"
        rows = [("p0", 20, 29), ("p1", 20, 39)]
        assert [asked(of_log) for _ in range(3)] == [(rows, 1, 0), (rows, 0, 0), (rows, 0, 0)]
        with mock.patch.object(pushed_aggregates, "MOST_KEPT", 1):
            other = of_log.replace("max", "min")
            rows = [("p0", 20, 0), ("p1", 20, 10)]
            assert [asked(other) for _ in range(2)] == [(rows, 1, 0), (rows, 0, 0)]
        of_files = "SELECT event:kind::string, count(*) FROM {0} GROUP BY 1"
        kinds = [*((f"k{file}", 8) for file in range(FILES)), (None, 8)]
        assert [asked(of_files) for _ in range(2)] == [(kinds, 1, 1), (kinds, 0, 1)]
        vl.Table.open(location).delete("id = 12")
        assert asked(of_log)[:2] == ([("p0", 20, 29), ("p1", 19, 39)], 1)
        assert asked(of_files)[:2] == ([("k0", 8), ("k1", 7), ("k2", 8), ("k3", 8), (None, 8)], 1)


def test_an_aggregate_of_too_many_groups_is_not_begun_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    location = make(tmp_path / "t")
    grouped = mock.Mock(wraps=driver_groups.groups_here)
    text = f"SELECT event:n::int, count(*) FROM delta.`{location}` GROUP BY 1"
    with (
        mock.patch.object(pushed_aggregates, "groups_here", grouped),
        mock.patch.object(driver_groups, "MOST_GROUPS", 3),
        changed(spark, {pushed_aggregates.MIN_BYTES_SETTING: "0"}),
    ):
        assert [len(spark.sql(text).collect()) for _ in range(3)] == [37, 37, 37]
    assert grouped.call_count == 1


def test_warnings_as_errors_fail_no_query(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(RulePlanner, "_open")(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert spark.table("ev").where("event:kind::string = 'k1'").count() == 8


def test_many_threads_query_cache_and_broadcast_at_once(spark: SparkSession) -> None:
    wrong: list[object] = []

    def work(number: int) -> None:
        try:
            session = spark if number % 2 else spark.newSession()
            ev, k = session.table("ev"), f"k{number % FILES}"
            kept = ev.where(f"event:kind::string = '{k}'")
            if number % 4 == 1:
                kept = kept.cache()
            joined = kept.join(F.broadcast(session.range(40)), "id")
            found = joined.selectExpr("event:n::int").count(), kept.count()
            if number % 4 == 1:
                kept.unpersist()
            if found != (8, 8):
                wrong.append((number, found))
        except Exception as error:  # noqa: BLE001 - told by the test
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    assert not wrong
