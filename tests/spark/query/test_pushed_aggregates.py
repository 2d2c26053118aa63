"""Aggregates that tasks of ours begin: the rows, types and names of Spark on unshredded data."""

from __future__ import annotations

import datetime as dt
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError

import variantlake as vl
from tests.spark.judged import Judged, judged_table
from tests.spark.layouts import INTERPRETED, changed
from tests.strategies import MORE
from variantlake.engine.grouped import PartialGroups
from variantlake.expressions.tree import Ref
from variantlake.expressions.typing import aggregate
from variantlake.spark.lake import connect
from variantlake.spark.rule.accelerate import planner_of
from variantlake.spark.scan import driver_groups, pushed_aggregates
from variantlake.spark.scan.aggregate_task import AggregateTask, Groups
from variantlake.spark.scan.pushed_aggregates import Merge, PartialAggregate, bytes_here

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCHEMA = (
    "event VARIANT, k INT, w BIGINT, d DECIMAL(10,2), m DECIMAL(38,2), f DOUBLE, day DATE, "
    "at TIMESTAMP_NTZ, s STRING, o INT, p STRING"
)
SHREDDING = "s STRING, i BIGINT, big BIGINT, q DECIMAL(10,2), f DOUBLE, ok BOOLEAN"
ROWS, FILES = 120, 4
TEXTS = ("", "a", "b", "zz", "Z", "é", "\uffff", "\U0001f600", "x" * 80, "x" * 79 + "y")
FLOATS = (0.0, -0.0, 1.5, -2.5, float("nan"), float("inf"), float("-inf"), 5e-324)
SETTING = pushed_aggregates.MIN_BYTES_SETTING
DRIVER = pushed_aggregates.DRIVER_BYTES_SETTING


EITHER = ({DRIVER: "0"}, {DRIVER: "1000000000", **INTERPRETED})
"""Tasks group, and the driver does. What Spark merges of the groups it compiles the first time."""


class Pushed(Judged):
    """A table whose aggregates tasks of ours may begin."""

    def is_pushed(self, query: str) -> bool:
        pushed = self.is_explained(query)
        assert pushed == _is_pushed(self.ours(query))
        return pushed

    def is_explained(self, query: str) -> bool:
        return bool(self.explained(query)[0]["aggregated"])

    def same(self, query: str, ways: Sequence[Mapping[str, str]] = ({},)) -> bool:
        """Rows, names and types are Spark's under these settings; whether ours begin the groups."""
        judged, right = self.right(query)
        pushed = True
        for way in ways:
            with changed(self.spark, way):
                ours = self.found(query, right)
                pushed = pushed and ours is not None and _is_pushed(ours)
            if judged is not None and ours is not None:
                assert ours.dtypes == judged.dtypes, query
        if pushed and ours is not None:
            with changed(self.spark, {SETTING: "-1"}):
                assert _columns(ours) == _columns(self.ours(query)), query
        return pushed


def _columns(frame: DataFrame) -> list[tuple[object, ...]]:
    return [(each.name, each.dataType, each.nullable, each.metadata) for each in frame.schema]


def _is_pushed(frame: DataFrame) -> bool:
    java: Any = frame
    plan = str(java._jdf.queryExecution().optimizedPlan().toString())
    # Columns of partial rows are called c0 and so on, in scans by tasks as well.
    return "variantlake " not in plan and not re.search(r"MapInArrow [^\[]*\[(?!c\d)", plan)


def _document(chance: random.Random, row: int) -> str | None:
    if chance.random() < 0.05:
        return None
    document = {
        "s": chance.choice((*TEXTS, None)),
        "i": chance.choice((row % 7, -3, None)),
        "big": chance.choice((2**62, -(2**62), 2**53 + 1, 5)),
        "q": chance.choice((1.25, -0.5, 99999999.99, 3)),
        "ok": chance.choice((True, False, None)),
    }
    kept = {key: value for key, value in document.items() if chance.random() < 0.9}
    return json.dumps(kept)


def _rows(chance: random.Random, number: int) -> dict[str, list[Any]]:
    def of(*values: Any) -> list[Any]:
        return [chance.choice(values) for _ in range(ROWS)]

    late, early = (
        dt.datetime.fromisoformat(f"{year}-01-31 00:00:00.000001") for year in ("0001", "2024")
    )
    return {
        "event": [_document(chance, row) for row in range(ROWS)],
        "k": of(None, 1, 2, 3, -(2**31)),
        "w": of(2**63 - 1, -(2**63), 7, None),
        "d": of(Decimal("1.25"), Decimal("-99999999.99"), None),
        "m": of(Decimal("9" * 36 + ".99"), Decimal("0.01"), None),
        "f": of(*FLOATS, None),
        "day": of(dt.date(1500, 1, 1), dt.date(2024, 2, 29), None),
        "at": of(early, late, None),
        "s": of(*TEXTS, None),
        "o": of(number),  # one value in all of a file
        "p": [f"p{number % 2}"] * ROWS,
    }


_TYPES: dict[str, Any] = {
    "event": pa.string(),
    "k": pa.int32(),
    "w": pa.int64(),
    "d": pa.decimal128(10, 2),
    "m": pa.decimal128(38, 2),
    "f": pa.float64(),
    "day": pa.date32(),
    "at": pa.timestamp("us"),
    "s": pa.string(),
    "o": pa.int32(),
    "p": pa.string(),
}
_ARROW = pa.schema(_TYPES)


def made_table(spark: SparkSession, folder: Path, kind: str) -> Pushed:
    """Files of random rows; `odd` has partitions, deleted rows and mapped columns."""
    chance = random.Random(kind)
    parts = [pa.table(_rows(chance, number), schema=_ARROW) for number in range(FILES)]
    made = judged_table(
        spark,
        folder,
        f"judge_of_{kind}",
        parts,
        schema=SCHEMA,
        shredding=SHREDDING,
        columns=_ARROW.names[1:],
        properties={},
        deleted=("k", (2,)) if kind == "odd" else None,
    )
    return Pushed(made.spark, made.lake, made.location, made.judge)


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pushed]:
    return {
        kind: made_table(spark, tmp_path_factory.mktemp(kind), kind) for kind in ("plain", "odd")
    }


@pytest.fixture(params=["plain", "odd"])
def judged(made: dict[str, Pushed], request: pytest.FixtureRequest) -> Pushed:
    return made[request.param]


@pytest.fixture
def forced(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small tables too, whatever their keys."""
    monkeypatch.setattr(pushed_aggregates, "REPEATED", 0)
    with changed(spark, {SETTING: "0"}):
        yield


PUSHED = {
    "rows": "SELECT count(*), count(1) AS n FROM {t}",
    "rows of a condition": "SELECT count(*) FROM {t} WHERE event:i::bigint > 2 OR k IS NULL",
    "no rows": "SELECT count(*), min(k), sum(k), avg(k), sum(d), avg(d) FROM {t} WHERE k = 17",
    "no groups": "SELECT s, count(*) FROM {t} WHERE k = 17 GROUP BY s",
    "NULL groups": "SELECT event:s::string, count(*), count(k) FROM {t} GROUP BY 1",
    "several keys": (
        "SELECT k, event:s::string AS s, event:ok::boolean, min(w) FROM {t} GROUP BY ALL"
    ),
    "keys of doubles": "SELECT f, count(*) FROM {t} GROUP BY f",
    "keys of other types": "SELECT d, day, at, p, o, count(*) FROM {t} GROUP BY d, day, at, p, o",
    "least and greatest": (
        "SELECT k, min(f), max(f), min(day), max(at), min(d), max(m), min(s), max(s), "
        "max(event:s::string), min(event:ok::boolean), max(p) FROM {t} GROUP BY k"
    ),
    "sums of integers": "SELECT p, sum(k), sum(event:i::bigint), avg(k) FROM {t} GROUP BY p",
    "sums of decimals": "SELECT k, sum(d), avg(d), sum(event:q::decimal(10,2)) FROM {t} GROUP BY k",
    "an integer as a wider one": "SELECT sum(event:i::bigint), max(event:i::double) FROM {t}",
    "different values": (
        "SELECT k, count(DISTINCT s), count(DISTINCT event:s::string, k), count(*), "
        "approx_count_distinct(s), min(w) FROM {t} GROUP BY k"
    ),
    "different values alone": "SELECT o, count(DISTINCT o), count(DISTINCT k) FROM {t} GROUP BY o",
    "different values of files": "SELECT count(DISTINCT o), count(o), count(DISTINCT p) FROM {t}",
    "different values of a key": "SELECT o, count(DISTINCT o), count(*) FROM {t} GROUP BY o",
    "different values of files of which some are read": (
        "SELECT count(DISTINCT o), count(o), max(o) FROM {t} WHERE o < 2 OR s = 'a'"
    ),
    "different doubles": "SELECT count(DISTINCT f), sum(DISTINCT k) FROM {t}",
    "conditions of functions": (
        "SELECT k, count(*) FILTER (WHERE s > 'a'), sum(k) FILTER (WHERE event:ok::boolean), "
        "avg(d) FILTER (WHERE s > 'a'), count(DISTINCT s) FILTER (WHERE d > 0) FROM {t} GROUP BY k"
    ),
    "HAVING, ORDER BY and LIMIT": (
        "SELECT s, count(*) AS n FROM {t} GROUP BY s HAVING max(k) > 1 ORDER BY n DESC, s LIMIT 3"
    ),
    "expressions above": "SELECT k + 1, sum(k) / count(*), concat(s, '!') FROM {t} GROUP BY k, s",
    "renamed below": (
        "SELECT x, count(*) FROM (SELECT event:s::string AS x, k AS y FROM {t} WHERE k > 0) "
        "WHERE y < 3 GROUP BY x"
    ),
    "a part of a join": (
        "SELECT a.k, a.n, b.f FROM (SELECT k, count(*) AS n FROM {t} GROUP BY k) a "
        "JOIN (SELECT k, max(f) AS f FROM {t} GROUP BY k) b ON a.k = b.k"
    ),
    "in a WITH": "WITH g AS (SELECT k, count(*) AS n FROM {t} GROUP BY k) SELECT sum(n) FROM g",
    "in a UNION": (
        "SELECT k, count(*) FROM {t} GROUP BY k UNION ALL SELECT 1, count(*) FROM {t} WHERE k = 1"
    ),
    "texts by their bytes": "SELECT count(*) FROM {t} WHERE s >= '\uffff' AND s NOT IN ('a', 'é')",
    "the same key twice": "SELECT k, k AS again, count(k) FROM {t} GROUP BY k, 2",
    "computed keys": (
        "SELECT h, length(s), second(at), count(*), min(length(es)) FROM (SELECT s, at, "
        "event:s::string AS es, hour(timestamp_micros(event:big::bigint)) AS h FROM {t}) "
        "GROUP BY ALL"
    ),
    "different rows": "SELECT DISTINCT s, event:s::string, k AS n, k FROM {t} WHERE NOT (k = 3)",
    "different doubles and decimals": "SELECT DISTINCT f, d, m, day, at FROM {t}",
    "different rows of files": "SELECT DISTINCT o, p FROM {t}",
    "no different rows": "SELECT DISTINCT s, k FROM {t} WHERE k = 17",
    "different rows in order": (
        "SELECT concat(x, '!'), n FROM (SELECT DISTINCT event:s::string AS x, length(s) AS n "
        "FROM {t}) ORDER BY x DESC, n LIMIT 7"
    ),
    "rows of two tables": "SELECT DISTINCT k FROM {t} UNION SELECT DISTINCT o FROM {t}",
    "rows that are in others": (
        "SELECT DISTINCT k, s FROM {t} INTERSECT SELECT DISTINCT o, s FROM {t}"
    ),
    "keys alone": "SELECT s FROM {t} GROUP BY s, k",
    "a number beyond all integers": "SELECT count(*) FROM {t} WHERE w < 9223372036854775808",
    "if and try": "SELECT try_sum(k), count_if(k > 1) FROM {t}",
}

OTHERS = {"rows of two tables", "rows that are in others", "if and try"}
"""What Spark's optimizer makes of these is another aggregate, or none."""

LEFT = {
    "a sum beyond 64 bits": "SELECT sum(w) FROM {t}",
    "a sum of which a part is beyond": "SELECT sum(event:big::bigint) FROM {t} WHERE k = 1",
    "a mean of what no double holds": "SELECT avg(event:big::bigint) FROM {t}",
    "a sum of decimals beyond their digits": "SELECT sum(m) FROM {t}",
    "a sum of doubles": "SELECT sum(f), avg(f) FROM {t}",
    "different constants": "SELECT count(DISTINCT 1) FROM {t}",
    "different doubles added up": "SELECT sum(DISTINCT f) FROM {t}",
    "doubles in a sketch": "SELECT approx_count_distinct(f) FROM {t}",
    "a computed key": "SELECT upper(s), count(*) FROM {t} GROUP BY 1",
    "a collated key": "SELECT s COLLATE UTF8_LCASE AS c, count(*) FROM {t} GROUP BY 1",
    "a condition of Spark's": "SELECT count(*) FROM {t} WHERE upper(s) = 'A'",
    "a random condition": "SELECT count(*) FROM {t} WHERE rand(3) + 1 < 3",
    "a limit below": "SELECT count(*) FROM (SELECT k FROM {t} LIMIT 5)",
    "sets of keys": "SELECT k, s, count(*) FROM {t} GROUP BY ROLLUP (k, s)",
    "other functions": "SELECT bit_xor(k), bool_or(event:ok::boolean) FROM {t}",
    "a cast that may fail": "SELECT max(try_variant_get(event, '$.s', 'int')) FROM {t}",
    "an integer that may not fit": "SELECT max(try_variant_get(event, '$.big', 'int')) FROM {t}",
    "a path in residuals": "SELECT min(event:elsewhere[0]::int), count(event) FROM {t}",
    "different computed rows": "SELECT DISTINCT upper(s) FROM {t}",
    "different rows below a limit": "SELECT DISTINCT 1 FROM (SELECT k FROM {t} LIMIT 5)",
    "different constants as rows": "SELECT DISTINCT 1, k FROM {t}",
    "a subquery": "SELECT count(*) FROM {t} WHERE k = (SELECT max(k) FROM {t})",
}


@pytest.mark.rule(35)
@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize("name", PUSHED)
def test_rule_35_tasks_begin_what_is_proven(judged: Pushed, name: str) -> None:
    assert judged.same(PUSHED[name], EITHER) or name in OTHERS
    assert judged.is_explained(PUSHED[name]) or name in OTHERS


@pytest.mark.rule(35)
@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize("name", LEFT)
def test_rule_35_what_is_not_proven_is_left_to_spark(made: dict[str, Pushed], name: str) -> None:
    assert not made["plain"].same(LEFT[name], EITHER)
    assert not made["plain"].is_explained(LEFT[name])


@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize("name", [*PUSHED, *LEFT])
def test_without_ansi(spark: SparkSession, made: dict[str, Pushed], name: str) -> None:
    """By tasks or by the driver in turns, and interpreted by Spark: both ways above have ANSI."""
    queries = {**PUSHED, **LEFT}
    way = EITHER[list(queries).index(name) % len(EITHER)]
    with changed(spark, {"spark.sql.ansi.enabled": "false", **INTERPRETED}):
        made["odd"].same(queries[name], [way])


@pytest.mark.usefixtures("forced")
def test_parts_of_a_time_are_taken_in_utc_alone(
    spark: SparkSession, made: dict[str, Pushed]
) -> None:
    query = "SELECT hour(timestamp_micros(w)), count(*) FROM {t} WHERE w = 7 GROUP BY 1"
    assert made["plain"].is_pushed(query)
    with changed(spark, {"spark.sql.session.timeZone": "Asia/Kathmandu"}):
        made["plain"].same(query)
        assert not made["plain"].is_pushed(query)
        assert made["plain"].is_pushed("SELECT hour(at), count(*) FROM {t} GROUP BY 1")


def test_small_tables_and_keys_that_hardly_repeat_are_left_to_spark(
    spark: SparkSession, made: dict[str, Pushed], monkeypatch: pytest.MonkeyPatch
) -> None:
    query, single = (
        "SELECT k, max(w) FROM {t} GROUP BY k",
        "SELECT k, s, w, max(f) FROM {t} GROUP BY ALL",
    )
    table = made["plain"]
    assert not table.is_pushed(query)
    with changed(spark, {SETTING: "0", DRIVER: "0"}):
        assert table.is_pushed(query)
        monkeypatch.setattr(pushed_aggregates, "REPEATED", 3)
        assert not table.is_pushed(single)
    monkeypatch.setattr(pushed_aggregates, "MIN_BYTES", 0)
    assert table.is_pushed(query)
    with changed(spark, {SETTING: "-1"}):
        assert not table.is_pushed(query)


def test_the_driver_groups_what_is_neither_small_nor_too_much(
    spark: SparkSession, made: dict[str, Pushed], monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "SELECT k, s, count(DISTINCT w), max(f) FROM {t} GROUP BY ALL"
    table = made["plain"]
    begun: list[int] = []

    def counted(task: AggregateTask, known: PartialGroups | None) -> pa.RecordBatch | None:
        found = driver_groups.groups_here(task, known)
        begun.append(-1 if found is None else found.num_rows)
        return found

    monkeypatch.setattr(pushed_aggregates, "groups_here", counted)
    table.same(query)
    assert not begun
    with changed(spark, {SETTING: "0", DRIVER: "10"}):
        table.same(query)
        assert not begun
    monkeypatch.setattr(pushed_aggregates, "DRIVER_MIN_BYTES", 1)
    table.same(query)
    (rows,) = begun  # the one that is compared, and not that of which only the columns are
    judged = spark.sql(f"SELECT DISTINCT k, s FROM {table.judge}")
    assert rows == judged.count()
    begun.clear()
    monkeypatch.setattr(driver_groups, "MOST_GROUPS", 3)
    table.same("SELECT s, k, max(f) FROM {t} GROUP BY ALL")
    assert begun == [-1]
    assert not table.is_pushed("SELECT s, k, max(f) FROM {t} GROUP BY ALL")
    assert begun == [-1]  # this is remembered
    begun.clear()
    monkeypatch.setattr(driver_groups, "MOST_GROUPS", 1 << 20)
    table.same("SELECT count(DISTINCT w) FROM {t}")
    monkeypatch.setattr(driver_groups, "MOST_VALUES", 3)
    table.same("SELECT k, count(DISTINCT w) FROM {t} GROUP BY k")
    assert begun == [1, -1]


def test_a_file_that_the_driver_cannot_read_is_left_to_spark(
    spark: SparkSession, made: dict[str, Pushed], tmp_path: Path
) -> None:
    del made
    table = vl.Table.create(tmp_path / "t", "k INT, n INT")
    rows = pa.table(
        {"k": [1, 1], "n": [3, 4]}, schema=pa.schema({"k": pa.int32(), "n": pa.int32()})
    )
    table.append(rows)
    (data,) = tmp_path.glob("t/**/*.parquet")
    data.unlink()
    lake = connect(spark)
    with changed(spark, {SETTING: "0", DRIVER: "1000000000"}):
        frame = lake.sql(f"SELECT k, max(n) FROM delta.`{table.uri}` WHERE n > 3 GROUP BY k")
        with pytest.raises(Py4JJavaError, match="FILE_NOT_EXIST"):
            frame.collect()


def test_what_the_log_knows_is_not_read(spark: SparkSession, made: dict[str, Pushed]) -> None:
    table = made["plain"]
    query = "SELECT o, count(*) AS n, min(k), max(d), count(event:i::bigint) FROM {t} GROUP BY o"
    found = table.lake.explain(query.format(t=f"delta.`{table.location}`")).to_dict()["tables"][0]
    assert found["files"] == {"total": FILES, "read": 0, "skipped": 0, "answered_from_log": FILES}
    table.same(query)
    # Of the file with the greatest k that is left only some rows count.
    query = "SELECT count(*), max(k) FROM {t} WHERE o < 2 OR s = 'a'"
    with changed(spark, {SETTING: "0"}):
        found = table.lake.explain(query.format(t=f"delta.`{table.location}`"))
        files = found.to_dict()["tables"][0]["files"]
        assert files == {"total": FILES, "read": 2, "skipped": 0, "answered_from_log": 2}
        assert "grouped before Spark" in str(found)
        table.same(query)


def test_the_active_session_stays(spark: SparkSession, made: dict[str, Pushed]) -> None:
    """Writers look for data sources there: `format("variantlake")` was not found after a query."""
    spark.createDataFrame([(1,)], "a INT")  # makes it the active one
    table, query = made["plain"], "SELECT o, count(*) AS n FROM {t} GROUP BY o"
    found = table.lake.explain(query.format(t=f"delta.`{table.location}`")).to_dict()["tables"][0]
    assert found["files"]["answered_from_log"] == FILES  # rows that a session of our own makes
    assert table.ours(query).count() == FILES
    assert spark.getActiveSession() is spark
    java: Any = spark
    sessions = java._jvm.org.apache.spark.sql.classic.SparkSession
    assert sessions.getActiveSession().get() == java._jsparkSession


def test_partial_rows_are_made_when_the_query_runs(
    spark: SparkSession, made: dict[str, Pushed], tmp_path: Path
) -> None:
    del made
    table = vl.Table.create(tmp_path / "t", "event VARIANT, k INT")
    table.append(
        pa.table({"event": ['{"a": 1}'], "k": pa.array([1], pa.int32())}), json_columns=["event"]
    )
    lake = connect(spark)
    with changed(spark, {SETTING: "0"}):
        frame = lake.sql(f"SELECT k, min(event:a::int) AS a FROM delta.`{table.uri}` GROUP BY k")
        later = frame.where("a = 1").groupBy("k").count()
        assert [tuple(row) for row in later.collect()] == [(1, 1)]
        assert frame.count() == 1


@pytest.mark.usefixtures("forced")
def test_a_query_inside_of_a_statement_reads_rows(
    spark: SparkSession, made: dict[str, Pushed], tmp_path: Path
) -> None:
    table = f"delta.`{made['plain'].location}`"
    target = f"delta.`{tmp_path / 'target'}`"
    lake = made["plain"].lake
    lake.sql(f"CREATE TABLE {target} USING delta AS SELECT count(*) AS n FROM {table}")
    lake.sql(f"INSERT INTO {target} SELECT count(k) AS n FROM {table}")
    found = sorted(row.n for row in spark.sql(f"SELECT n FROM {target}").collect())
    (judged,) = spark.sql(f"SELECT count(k), count(*) FROM {made['plain'].judge}").collect()
    assert found == list(judged)


KEYS = ("k", "s", "event:s::string", "event:ok::boolean", "f", "d", "day", "at", "o", "p")
ARGUMENTS = (*KEYS, "w", "m", "event:i::bigint", "event:q::decimal(10,2)", "event:big::bigint")
NUMBERS = ("k", "d", "o", "event:i::bigint", "event:q::decimal(10,2)")
"""Of others a sum depends on the order of rows, in Spark itself."""
CONDITIONS = (
    *("k > 1", "s >= 'a'", "event:i::bigint <> 3", "event:ok::boolean", "f > 1.5D", "d < 0"),
    *("event:s::string LIKE 'x%'", "k IN (1, NULL, 3)", "day = DATE'2024-02-29'", "p = 'p1'"),
    *("s IS NULL", "k <=> NULL", "o = 1", "w BETWEEN 0 AND 9"),
)


def _random_query(chance: random.Random) -> str:
    def condition(depth: int = 1) -> str:
        if depth and chance.random() < 0.5:
            joined = chance.choice((" AND ", " OR "))
            return f"({condition(depth - 1)}{joined}{condition(depth - 1)})"
        return f"{chance.choice(('', 'NOT '))}({chance.choice(CONDITIONS)})"

    def function() -> str:
        name = chance.choice(("count", "min", "max", "count DISTINCT", "sum", "avg", "try_sum"))
        x = chance.choice(NUMBERS if name in ("sum", "avg", "try_sum") else ARGUMENTS)
        call = f"count(DISTINCT {x})" if name == "count DISTINCT" else f"{name}({x})"
        kept = f" FILTER (WHERE {condition()})" if chance.random() < 0.25 else ""
        return f"{call}{kept}"

    keys = chance.sample(KEYS, chance.choice((0, 1, 1, 2, 3)))
    if keys and chance.random() < 0.2:
        return f"SELECT DISTINCT {', '.join(keys)} FROM {{t}} WHERE {condition(2)}"
    items = [*keys, "count(*)", *(function() for _ in range(chance.randrange(1, 4)))]
    text = f"SELECT {', '.join(f'{item} AS c{at}' for at, item in enumerate(items))} FROM {{t}}"
    text += f" WHERE {condition(2)}" if chance.random() < 0.6 else ""
    text += f" GROUP BY {', '.join(keys)}" if keys else ""
    return text + (" HAVING count(*) > 1" if chance.random() < 0.2 else "")


@pytest.mark.rule(35)
@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_rule_35_random_aggregates_are_those_on_unshredded_data(
    spark: SparkSession, judged: Pushed, ansi: str
) -> None:
    chance = random.Random(f"aggregates {judged.judge} {ansi}")
    pushed = 0
    with changed(spark, {"spark.sql.ansi.enabled": ansi}):
        for _ in range(5 * MORE):
            pushed += judged.same(_random_query(chance), EITHER)
    assert pushed > 0


def test_a_setting_that_is_no_number_of_bytes_is_named(made: dict[str, Pushed]) -> None:
    pushed = made["plain"]
    for setting in (SETTING, DRIVER):
        with (
            changed(pushed.spark, {setting: "64m"}),
            pytest.warns(UserWarning, match=f"{setting} is '64m'"),
        ):
            assert not pushed.is_pushed("SELECT k, count(*) FROM {t} GROUP BY k")
    planner = planner_of(pushed.spark)
    assert planner is not None
    planner._warned.clear()  # of a session that other tests have as well


def test_rows_are_an_answer_only_where_nothing_is_left_to_merge() -> None:
    k, f = (Ref(("x",), None, name) for name in ("int", "double"))

    def made(keys: tuple[Ref, ...], own: int, merge: Merge) -> PartialAggregate:
        groups = Groups(keys, (aggregate("count", None),))
        return PartialAggregate("v", own, groups, (merge,), ())

    rows = Merge("count", "Count", (1,))
    assert made((k,), 1, rows).is_done(5)
    assert made((k,), 1, rows).is_done(0)
    assert not made((k,), 0, rows).is_done(5)  # values that Spark is to tell apart
    assert not made((f,), 1, rows).is_done(5)  # two zeros
    assert not made((k,), 1, Merge("same", "Count", (0,))).is_done(5)
    whole = made((), 0, Merge("count", "Count", (0,)))
    assert whole.is_done(1)
    assert not whole.is_done(0)


def test_the_driver_groups_less_the_more_cores_tasks_would_have() -> None:
    least = pushed_aggregates.DRIVER_MIN_BYTES
    assert bytes_here(None, None, 2) == range(least, (4 << 30) + 1)
    assert bytes_here(None, None, 64) == range(least, (1 << 30) + 1)
    assert not bytes_here(None, None, 0)
    assert bytes_here(5, 7, 2) == bytes_here(5, 7, 0) == range(5, 8)
