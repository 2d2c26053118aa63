"""What is read: files and columns; what is left behind: nothing."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from py4j.clientserver import ClientServerConnection
from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

import variantlake as vl
from tests import corpora
from tests.spark.layouts import (
    CLEAN,
    MIXED,
    OTHER_TYPES,
    UNSHREDDED,
    File,
    Shape,
    changed,
    judge,
    make,
    rows,
)
from variantlake.errors import (
    AbsolutePathRefused,
    InvalidQuery,
    MissingDependency,
    MissingSource,
    NotADeltaTable,
)
from variantlake.shredding import layout
from variantlake.spark.lake import Lake, connect
from variantlake.spark.session.classic_files import HelperSession, ListedFile, is_for_one_task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


SMALL = ListedFile("f", 100_000, 0)
LARGE = ListedFile("f", 100 << 20, 0)


@pytest.fixture(scope="module")
def lake(spark: SparkSession) -> Lake:
    return connect(spark)


@pytest.fixture(scope="module")
def shape() -> Shape:
    return Shape((CLEAN, OTHER_TYPES, UNSHREDDED, MIXED), partitioned=True)


@pytest.fixture(scope="module")
def table(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, shape: Shape
) -> Iterator[str]:
    # A folder that looks like a partition, a glob and an escape.
    folder = tmp_path_factory.mktemp("lake") / "day=1 {a,b}* %20"
    judge(spark, "judge_reading", shape)
    yield make(spark, folder, shape)
    spark.catalog.dropTempView("judge_reading")


def executed(frame: DataFrame) -> str:
    java: Any = frame._jdf
    return str(java.queryExecution().executedPlan().toString())


def scans(lake: Lake, query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = lake.explain(query).to_dict()["tables"]
    return found


# --- read -----------------------------------------------------------------------------------------


def test_read_gives_the_table_with_its_variants(
    spark: SparkSession, lake: Lake, table: str
) -> None:
    frame = lake.read(table)
    assert frame.dtypes == [("event", "variant"), ("k", "int"), ("p", "string")]
    assert rows(frame.selectExpr("event:id::string", "k", "p")) == rows(
        spark.sql("SELECT event:id::string, k, p FROM judge_reading")
    )


def test_a_table_without_files_has_no_rows(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    path = make(spark, tmp_path / "empty", Shape(()))
    assert lake.read(path).collect() == []
    assert lake.sql(f"SELECT event:a::int, k FROM delta.`{path}`").collect() == []
    assert lake.sql(f"SELECT count(*) FROM delta.`{path}`").collect()[0][0] == 0


def test_a_column_that_files_lack_is_null(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    columns = {"event": "variant", "late": "variant", "k": "integer", "s": "string"}
    path = make(spark, tmp_path / "t", Shape((CLEAN,), columns=columns))
    found = lake.sql(
        f"SELECT count(*), count(late), count(late:a::int), count(s) FROM delta.`{path}` "
        "WHERE event:id::bigint < 5"
    )
    assert tuple(found.collect()[0]) == (5, 0, 0, 0)


@pytest.mark.corpus(corpora.DELTA_TABLES)
def test_tables_of_others_are_read(spark: SparkSession, lake: Lake) -> None:
    tables = corpora.DELTA_TABLES
    path = tables / "spark-shredded-variant-preview-delta"
    query = (
        f"SELECT v:key::int a, to_json(v) j, struct_of_variants.v:key::int b FROM delta.`{path}`"
    )
    assert rows(lake.sql(query)) == rows(spark.sql(query))


def test_names_for_tables(lake: Lake, table: str) -> None:
    frame = lake.sql(
        "SELECT e.event:id::int i, T.k FROM t JOIN T e USING (k) "
        "WHERE e.event:id::int = 7 AND t.event:id::int = 7",
        tables={"T": table},
    )
    assert [tuple(row) for row in frame.collect()] == [(7, 7)]


def paths() -> tuple[Any, Any]:
    """As columns, which type checkers do not know them for."""
    return vl.path("event", "$.kind").string(), vl.path("event", "$.id").bigint()


def test_a_table_by_expressions(spark: SparkSession, lake: Lake, table: str) -> None:
    kind, number = paths()
    chosen = lake.table(table).where((kind == "good") & (number < 20)).where("k > 2")
    ours = chosen.select(number, kind.alias("the kind"), "k")
    assert ours.columns == ["id", "the kind", "k"]
    assert ours.sparkSession is spark
    assert rows(ours) == rows(
        spark.sql(
            "SELECT event:id::bigint, event:kind::string, k FROM judge_reading "
            "WHERE event:kind::string = 'good' AND event:id::bigint < 20 AND k > 2"
        )
    )
    assert lake.explain(ours).to_dict()["tables"][0]["files"]["skipped"] == 2
    assert lake.table(table, version=0).columns == ["event", "k", "p"]


def test_a_table_by_expressions_is_an_ordinary_dataframe(
    spark: SparkSession, lake: Lake, table: str
) -> None:
    kind, number = paths()
    last = vl.Table.open(table).history(1)[0].timestamp / 1000
    newest = dt.datetime.fromtimestamp(last, dt.UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    chosen = lake.table(table, timestamp=newest).where(number < 105)
    frame = chosen.select(kind, number.alias("n"), "k")
    made = frame.groupBy("kind").agg(sf.sum("n").alias("s")).join(frame, "kind").orderBy("k")
    made = made.withColumn("twice", made["n"] * 2)
    expected = rows(
        spark.sql(
            "WITH c AS (SELECT event:kind::string AS kind, event:id::bigint AS n, k "
            "FROM judge_reading WHERE event:id::bigint < 105), "
            "s AS (SELECT kind, sum(n) AS s FROM c GROUP BY kind) "
            "SELECT kind, s, n, k, n * 2 AS twice FROM s JOIN c USING (kind)"
        )
    )
    assert rows(made) == rows(made) == expected
    report = lake.explain(frame).to_dict()["tables"][0]
    assert report["files"]["skipped"] == 1
    assert all(path["physical"] for path in report["paths"])


def test_explain_says_what_was_meant(lake: Lake, table: str) -> None:
    (scan,) = scans(lake, f"SELECT event:knd::string, event:n.X::int FROM delta.`{table}`")
    meant = {path["path"]: path["did_you_mean"] for path in scan["paths"]}
    assert meant["event:knd::string"][0] == "event:kind"
    assert meant["event:n.X::int"][0] == "event:n.x"


def test_parameters(spark: SparkSession, lake: Lake, table: str) -> None:
    query = "SELECT k FROM {t} WHERE event:id::int = :id"
    try:
        expected = rows(spark.sql(query.format(t="judge_reading"), {"id": 107}))
    except AnalysisException:
        # Delta Spark 4.4's parser drops the parameters of PySpark 4.2: then Spark refuses ours too.
        with pytest.raises(InvalidQuery, match="UNBOUND_SQL_PARAMETER"):
            lake.sql(query.format(t=f"delta.`{table}`"), {"id": 107})
    else:
        assert rows(lake.sql(query.format(t=f"delta.`{table}`"), {"id": 107})) == expected


# --- skipping and columns -------------------------------------------------------------------------


def test_files_are_skipped_by_partition_values(lake: Lake, table: str) -> None:
    (scan,) = scans(lake, f"SELECT event:id::int FROM delta.`{table}` WHERE p = 'first'")
    assert scan["files"] == {"total": 4, "read": 1, "skipped": 3}


def test_files_are_skipped_by_footers_of_files_without_tags(lake: Lake, table: str) -> None:
    (scan,) = scans(
        lake, f"SELECT event:kind::string FROM delta.`{table}` WHERE event:id::bigint = 105"
    )
    # The unshredded file may hold anything.
    assert scan["files"] == {"total": 4, "read": 2, "skipped": 2}
    assert scan["skipped_by"] == [{"predicate": "event:id::bigint = 105", "files": 2}]


@pytest.mark.rule(18)
def test_a_condition_above_a_limit_skips_nothing(lake: Lake, table: str) -> None:
    (scan,) = scans(
        lake,
        f"SELECT * FROM (SELECT event FROM delta.`{table}` LIMIT 50) WHERE event:id::bigint = 105",
    )
    assert scan["skipped_by"] == [{"predicate": "LIMIT 50", "files": 2}]


@pytest.mark.rule(18)
def test_the_null_supplying_side_of_an_outer_join_is_not_skipped(lake: Lake, table: str) -> None:
    left, right = scans(
        lake,
        f"SELECT 1 FROM delta.`{table}` a LEFT JOIN delta.`{table}` b "
        "ON a.k = b.k WHERE a.event:id::bigint = 105 AND b.event:id::bigint IS NULL",
    )
    assert (left["files"]["skipped"], right["files"]["skipped"]) == (2, 0)


@pytest.mark.rule(18)
def test_a_condition_skips_through_a_cte_that_is_used_once(lake: Lake, table: str) -> None:
    cte = f"WITH c AS (SELECT event:id::bigint AS i, k FROM delta.`{table}`)"
    (once,) = scans(lake, f"{cte} SELECT k FROM c WHERE i = 105")
    one, all_rows = scans(lake, f"{cte} SELECT k FROM c WHERE i = 105 UNION ALL SELECT k FROM c")
    assert [each["files"]["skipped"] for each in (once, one, all_rows)] == [2, 2, 0]


def test_a_single_layout_is_filtered_inside_of_the_files(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    path = make(spark, tmp_path / "t", Shape((CLEAN,)))
    plan = executed(
        lake.sql(
            f"SELECT event:kind::string, count(*) FROM delta.`{path}` "
            "WHERE event:n.x::bigint BETWEEN 3 AND 9 GROUP BY 1"
        )
    )
    assert "variant" not in plan.replace("variantlake", "")
    assert (
        "PushedFilters: [IsNotNull(event.typed_value.n.typed_value.x.typed_value), Greater" in plan
    )
    assert "ReadSchema: struct<event:struct<typed_value:struct<" in plan


@pytest.mark.rule(13)
def test_rule_13_a_condition_through_a_cast_is_filtered_inside_of_the_files(
    lake: Lake, tmp_path: Path
) -> None:
    source, path = tmp_path / "m.ndjson", tmp_path / "t"
    values = [1, 2.5, -3, 3, 3.75, None, 12]  # one decimal column
    source.write_text("".join(json.dumps({"m": m}) + "\n" for m in values), encoding="utf-8")
    lake.ingest(path, source)
    wanted = {"event:m::bigint >= 3": 3, "event:m::int < 3": 3, "event:m::double > 2.5D": 3}
    for condition, count in wanted.items():
        frame = lake.sql(f"SELECT count(*) FROM delta.`{path}` WHERE {condition}")
        assert frame.collect()[0][0] == count, condition
        pushed = next(part for part in executed(frame).split("PushedFilters: ")[1:])
        assert "ThanOrEqual(event.typed_value.m.typed_value," in pushed.split("]")[0], condition


@pytest.mark.rule(8)
@pytest.mark.parametrize("writer", ["Spark", "pyarrow"])
def test_nan_and_negative_zero_are_found_although_statistics_leave_them_out(
    spark: SparkSession, lake: Lake, tmp_path: Path, writer: str
) -> None:
    # JSON has neither; a text that casts to them would not be a column. Spark gives up statistics
    # with NaN, pyarrow leaves it out of them.
    path = tmp_path / "t"
    make(spark, path, Shape((File("a", [{"d": 1.5}], None),)))
    (file,) = path.glob("*.parquet")
    if writer == "Spark":
        settings = {
            "spark.sql.variant.writeShredding.enabled": "true",
            "spark.sql.variant.forceShreddingSchemaForTest": "d double",
        }
        with changed(spark, settings):
            spark.sql(
                "SELECT to_variant_object(named_struct('d', d)) AS event, 1 AS k "
                "FROM VALUES (1.0D), (double('NaN')), (3.0D), (-0.0D) AS t(d)"
            ).coalesce(1).write.parquet(str(tmp_path / "scratch"))
        (part,) = (tmp_path / "scratch").glob("part-*")
        part.replace(file)
    else:
        events = vl.parquet.variant_array([{"d": d} for d in (1.0, float("nan"), 3.0, -0.0)])
        ones = pa.array([1] * 4, pa.int32())
        vl.parquet.write_table(pa.table({"event": events, "k": ones}), file, shredding="d DOUBLE")
    log = path / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    actions[-1]["add"] |= {"size": file.stat().st_size, "stats": '{"numRecords":4}'}
    log.write_text("\n".join(map(json.dumps, actions)), encoding="utf-8")
    log.with_suffix(".crc").unlink(missing_ok=True)

    def count(condition: str) -> int:
        query = f"SELECT count(*) FROM delta.`{path}` WHERE {condition}"
        assert scans(lake, query)[0]["paths"][0]["physical"] == 1
        found: int = lake.sql(query).collect()[0][0]
        return found

    assert count("event:d::double > 2") == 2
    assert count("event:d::double > 4") == 1
    assert count("event:d::double = 0.0D") == 1
    assert count("event:d::double = double('NaN')") == 1
    assert count("NOT (event:d::double = 1.0D)") == 3


@pytest.mark.rule(39)
def test_rule_39_old_dates_and_instants_are_found_although_spark_moves_literals(
    lake: Lake, tmp_path: Path
) -> None:
    # Midnight of 15 October in Central Europe is on the 14th in UTC, which the old calendar lacks.
    first = dt.datetime(1582, 10, 14, 23, tzinfo=dt.UTC)
    times = [first + dt.timedelta(hours=hours) for hours in (-30, 0, 2, 12)]
    made = vl.Table.create(
        tmp_path / "t", "event VARIANT", shredding={"event": "t TIMESTAMP, d DATE"}
    )
    documents = [{"t": time, "d": time.date()} for time in times]
    made.append(pa.table({"event": vl.parquet.variant_array(documents)}))

    def count(condition: str) -> int:
        query = f"SELECT event:t::timestamp FROM delta.`{made.uri}` WHERE {condition}"
        assert all(path["physical"] for path in scans(lake, query)[0]["paths"])
        return len(lake.sql(query).collect())

    assert count("event:t::timestamp >= timestamp'1582-10-14 23:00:00'") == 3
    assert count("event:t::timestamp = timestamp'1582-10-14 23:00:00'") == 1
    assert count("event:t::timestamp < timestamp'1582-10-14 00:00:00'") == 1
    assert count("event:d::date = date'1582-10-14'") == 1
    assert count("event:d::date >= date'1582-10-14'") == 3


@pytest.mark.rule(8)
def test_rule_8_ordinary_floats_that_are_nan_or_zero_are_found(lake: Lake, tmp_path: Path) -> None:
    made = vl.Table.create(tmp_path / "t", "k INT, f DOUBLE, s STRUCT<g: FLOAT>")
    values = [1.5, float("nan"), 3.0, -0.0, None]
    made.append(
        pa.table(
            {
                "k": pa.array(range(5), pa.int32()),
                "f": pa.array(values, pa.float64()),
                "s": pa.array([{"g": value} for value in values], pa.struct([("g", pa.float32())])),
            }
        )
    )

    def found(condition: str) -> list[int]:
        rows = lake.sql(f"SELECT k FROM delta.`{tmp_path / 't'}` WHERE {condition}").collect()
        return sorted(row["k"] for row in rows)

    for column in ("f", "s.g"):
        assert found(f"{column} > 4") == [1]
        assert found(f"{column} >= 3e0") == [1, 2]
        assert found(f"{column} = double('NaN')") == [1]
        assert found(f"{column} = 0.0D") == [3]
        assert found(f"{column} <= 0.0D") == [3]
        assert found(f"{column} <> 1.5D") == [1, 2, 3]
        assert found(f"NOT ({column} <= 3)") == [1]
        assert found(f"{column} IN (3.0D, 7D)") == [2]
        assert found(f"{column} < 2.5D") == [0, 3]
    for condition, filters in {
        "f < 2.5D AND f > 1": ["LessThan(f,2.5)"],
        "f <= 2.5D AND 2 <= f AND f <> 7": ["LessThanOrEqual(f,2.5)"],
        "f = 3 AND NOT (f < 2)": ["EqualTo(f,3.0)"],
        "f IN (3.0D, 7D) AND f >= 2": ["In(f, [3.0,7.0])"],
        "f = 0 OR f < -0.0D": [],
    }.items():
        plan: Any = lake.sql(f"SELECT k FROM delta.`{tmp_path / 't'}` WHERE {condition}")._jdf
        pushed = str(plan.queryExecution().executedPlan())
        (text,) = re.findall(r"PushedFilters: \[(.*?)\], ReadSchema", pushed)
        assert text.removeprefix("IsNotNull(f), ") == ", ".join(filters)


@pytest.mark.rule(5)
def test_rule_5_columns_of_another_writer_that_differ_by_case_are_told_apart(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = [json.dumps({"id": i, "ID": f"upper{i}", "k": i, "K": -i}) for i in range(10)]
    made = vl.Table.create(tmp_path / "t", "event VARIANT", shredding={"event": "VARIANT"})
    made.append(pa.table({"event": documents}), json_columns=["event"])
    (file,) = (tmp_path / "t").glob("*.parquet")
    with monkeypatch.context() as patch:
        patch.setattr(layout, "check_writable", lambda _: None)  # we never write such a file
        events = vl.parquet.variant_array([json.loads(text) for text in documents])
        twins = "id BIGINT, ID STRING, k BIGINT, `\u212a` STRING"
        vl.parquet.write_table(pa.table({"event": events}), file, shredding=twins)
    log = tmp_path / "t" / "_delta_log" / f"{1:020}.json"
    actions = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for action in actions:
        if "add" in action:
            del action["add"]["tags"]
            action["add"] |= {"size": file.stat().st_size, "stats": '{"numRecords":10}'}
    log.write_text("\n".join(map(json.dumps, actions)), encoding="utf-8")
    log.with_suffix(".crc").unlink(missing_ok=True)
    query = f"""SELECT event:id::bigint, event:ID::string, event:k::bigint,
        event:['\u212a']::string FROM delta.`{tmp_path / "t"}` WHERE event:ID::string > 'upper7'"""
    assert sorted(map(tuple, lake.sql(query).collect())) == [
        (8, "upper8", 8, None),
        (9, "upper9", 9, None),
    ]
    # Spark's pruning of columns would take one key for the other, so that these are read whole.
    assert all(path["whole"] for path in scans(lake, query)[0]["paths"])
    alone = (
        f"SELECT event:ID::string FROM delta.`{tmp_path / 't'}` WHERE event:ID::string > 'upper7'"
    )
    assert sorted(row[0] for row in lake.sql(alone).collect()) == ["upper8", "upper9"]
    assert not any(path["whole"] for path in scans(lake, alone)[0]["paths"])


# --- the session ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "one"), [([SMALL], True), ([SMALL] * 3, True), ([SMALL] * 4, False), ([LARGE], False)]
)
def test_one_task_reads_few_small_files(files: list[ListedFile], one: bool) -> None:
    assert is_for_one_task(files) is one


def test_rows_of_few_small_files_are_aggregated_without_an_exchange(
    lake: Lake, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = f"SELECT count(*), max(event:id::int) FROM delta.`{table}` WHERE event:id::int < 250"
    found = lake.sql(query)
    assert "Exchange" not in executed(found)
    monkeypatch.setattr("variantlake.spark.session.classic_files.ONE_TASK_BYTES", 0)
    apart = lake.sql(query)
    assert "Exchange" in executed(apart)
    assert rows(found) == rows(apart)


def test_a_query_crosses_into_the_jvm_few_times(
    lake: Lake, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = f"SELECT event:id::int FROM delta.`{table}` WHERE p = 'a'"
    lake.sql(query)
    sent = []
    plain = ClientServerConnection.send_command

    def send(connection: Any, command: str) -> Any:
        if not command.startswith("m\n"):  # Python forgets an object
            sent.append(command)
        return plain(connection, command)

    monkeypatch.setattr(ClientServerConnection, "send_command", send)
    lake.sql(query)
    assert 4 <= len(sent) <= 12


@pytest.mark.rule(11)
def test_nothing_is_left_in_the_users_session(spark: SparkSession, lake: Lake, table: str) -> None:
    before = {row["key"]: row["value"] for row in spark.sql("SET").collect()}
    database = spark.conf.get("spark.sql.globalTempDatabase")
    views = {item.name for item in spark.catalog.listTables(database)}  # of CREATE VIEW, perhaps
    frame = lake.sql(f"SELECT event:id::int FROM delta.`{table}` WHERE event:id::int > 203")
    lake.read(table)
    lake.explain(f"SELECT event:id::int FROM delta.`{table}`")
    assert {row["key"]: row["value"] for row in spark.sql("SET").collect()} == before
    assert {item.name for item in spark.catalog.listTables(database)} == views
    assert frame.sparkSession is spark
    # The views are gone and the query runs all the same, twice.
    assert frame.count() == frame.count() == 11


@pytest.mark.rule(11)
def test_joins_with_tables_of_the_user(spark: SparkSession, lake: Lake, table: str) -> None:
    spark.createDataFrame([("good", 1), ("ugly", 2)], "kind STRING, n INT").createOrReplaceTempView(
        "kinds"
    )
    found = lake.sql(
        f"SELECT n, count(*) c FROM delta.`{table}` t JOIN kinds ON event:kind::string = kind "
        "GROUP BY n ORDER BY n"
    )
    assert [tuple(row) for row in found.collect()] == [(1, 33), (2, 10)]
    spark.catalog.dropTempView("kinds")


def test_a_view_over_a_table_can_be_made(spark: SparkSession, lake: Lake, table: str) -> None:
    lake.sql(f"CREATE OR REPLACE TEMP VIEW mine AS SELECT event, k FROM delta.`{table}`")
    assert spark.sql("SELECT count(*) FROM mine WHERE event:id::int = 105").collect()[0][0] == 1
    spark.catalog.dropTempView("mine")


def test_statements_without_tables_of_ours_are_sparks(lake: Lake) -> None:
    assert lake.sql("SELECT 1 AS one").collect()[0]["one"] == 1
    assert "Spark runs it" in lake.explain("SELECT 1").note


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELEC 1", "PARSE_SYNTAX_ERROR"),
        ("SELECT nope FROM {t}", "UNRESOLVED_COLUMN"),
        ("SELECT event:id::nope FROM {t}", "UNSUPPORTED_DATATYPE"),
        ("SELECT k:id::int FROM {t}", "NOT_VARIANT"),
        ('SELECT event:["id"]::int FROM {t}', "PARSE_SYNTAX_ERROR"),
    ],
)
def test_refusals_are_one_sentence_of_sparks(
    lake: Lake, table: str, query: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InvalidQuery, match=message) as caught:
        lake.sql(query.format(t=f"delta.`{table}`"))
    with pytest.raises(InvalidQuery, match=message):
        lake.explain(query.format(t=f"delta.`{table}`"))
    assert "\n" not in caught.value.message
    assert "__vl_" not in caught.value.message
    assert "SQLQueryContextLogger" not in capfd.readouterr().err


def test_a_location_without_a_log(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises((NotADeltaTable, MissingSource)):
        lake.sql(f"SELECT * FROM delta.`{tmp_path}`")
    with pytest.raises((NotADeltaTable, MissingSource)):
        lake.read(tmp_path / "nowhere")


def test_what_a_setting_refuses_is_not_left_to_delta_spark(
    delta_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, clone = tmp_path / "source", f"delta.`{tmp_path / 'clone'}`"
    vl.Table.create(source, "id INT").append(pa.table({"id": pa.array([1], pa.int32())}))
    delta_spark.sql(f"CREATE TABLE {clone} SHALLOW CLONE delta.`{source}`")
    monkeypatch.setenv("VARIANTLAKE_ABSOLUTE_PATHS", "allow")
    assert connect(delta_spark).sql(f"SELECT id FROM {clone}").collect() == [(1,)]
    monkeypatch.setenv("VARIANTLAKE_ABSOLUTE_PATHS", "refuse")
    lake = connect(delta_spark)
    for query in ("SELECT * FROM", "SELECT _metadata.file_path FROM"):
        with pytest.raises(AbsolutePathRefused, match="by an absolute path"):
            lake.sql(f"{query} {clone}").collect()


def test_a_version_that_is_not_there(lake: Lake, table: str) -> None:
    assert lake.sql(f"SELECT count(*) FROM delta.`{table}` VERSION AS OF 0").collect()[0][0] == 79
    with pytest.raises(MissingSource):
        lake.sql(f"SELECT * FROM delta.`{table}@v7`")


def test_a_store_that_spark_has_no_file_system_for_is_named(spark: SparkSession) -> None:
    file = ListedFile("az://bucket/a.parquet", 10, 0)
    with pytest.raises(MissingDependency, match="hadoop-aws") as caught:
        HelperSession(spark).read_parquet([file], StructType(), StructType())
    assert caught.value.file == file.path
    assert 'scheme "az"' in caught.value.message
