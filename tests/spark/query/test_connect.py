"""Queries and appends through a real Spark Connect server: right, from columns, skipping files."""

from __future__ import annotations

import datetime as dt
import importlib.util
import json
import os
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import variantlake as vl
from tests import corpora
from tests.dml.changed import documents, new_table
from tests.dml.changed import text as document
from tests.spark.layouts import (
    CLEAN,
    INTERPRETED,
    MIXED,
    OTHER_TYPES,
    PLAINLY,
    UNSHREDDED,
    Shape,
    changed,
    judge,
    make,
    rows,
)
from tests.spark.query import test_first_rows as first_rows
from tests.spark.session.test_kernel_scan import made_of_odd_types
from tests.strategies import MORE
from variantlake.delta.log.log_segment import commit_path
from variantlake.delta.log.snapshot import Snapshot
from variantlake.spark.session.versions import UNTRIED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("interpreted")]

PORT = "spark.connect.grpc.binding.port"


@pytest.fixture(scope="module")
def server(spark: SparkSession) -> Iterator[str]:
    """Spark Connect's service in the JVM that is there: a second one costs half a minute."""
    if importlib.util.find_spec("grpc_status") is None:
        corpora.missing("pyspark[connect]")
    java: Any = spark
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    java._jvm.org.apache.spark.SparkEnv.get().conf().set(PORT, str(port))
    service = java._jvm.org.apache.spark.sql.connect.service.SparkConnectService
    service.start(java._jsc.sc())
    yield f"sc://localhost:{port}"
    none = java._jvm.scala.Option.empty()
    service.stop(none, none)


SHAPE = Shape((CLEAN, OTHER_TYPES, UNSHREDDED, MIXED), partitioned=True)
QUERIES = {
    "columns": "SELECT event:id::bigint AS i, k FROM {t} WHERE p = 'first' AND k > 3",
    "unnamed": """
        SELECT upper(event:kind::string), (event:n.x::bigint), count(*) FROM {t} GROUP BY 1, 2""",
    "cte": """
        WITH c AS (
            SELECT event:id::bigint, (SELECT max(b.event:t::bigint) FROM {t} b) AS m FROM {t})
        SELECT '{{é😀}}' AS `}}`, c.id + 1, m FROM c -- {{event:id}}
        WHERE c.id < 5""",
    "join": """
        SELECT cast(a.event:id AS bigint) i, try_variant_get(b.event, '$.kind', 'int') FROM {t} a
        JOIN {t} b ON a.event:id::bigint = b.event:id::bigint - 100
        WHERE CASE WHEN a.event:kind::string = 'good' THEN a.event:t::smallint > 0 END""",
    "star": "SELECT * FROM {t} e WHERE e.event:id::bigint = 105 AND '{{}}' <> '}}'",
    "null-tests": """
        SELECT k, event IS NULL, e.event IS NOT NULL n, event:kind::string FROM {t} e
        WHERE event IS NOT NULL AND event:id::bigint < 5 OR event IS NULL""",
    "null-test-of-a-join": """
        SELECT a.k, count(*), count_if(b.event IS NULL) FROM {t} a
        LEFT JOIN {t} b ON a.k = b.k + 7 AND b.event IS NOT NULL AND b.event:kind::string = 'good'
        WHERE a.event IS NOT NULL GROUP BY a.k""",
    "deep": f"SELECT event:id::bigint AS i FROM {{t}} WHERE {'(' * 90}k > 3{')' * 90}",
    "beside": "SELECT event:id::bigint, count(event) AS n FROM {t} GROUP BY 1",
    "union": "SELECT event:id::bigint AS i FROM {t} UNION ALL SELECT event:t::bigint FROM {t}",
    "sides": """
        SELECT a.event:id::bigint AS i, b.event:kind::string AS s FROM {t} a
        LEFT JOIN {t} b ON a.k = b.k AND b.p = 'first' AND a.p > 'a'
        WHERE a.event:id::bigint < 9""",
    "derived": """
        WITH c AS (SELECT event:id::bigint AS id, p FROM {t})
        SELECT * FROM c WHERE p = 'first' AND id NOT IN (
            SELECT b.event:id::bigint - 100 FROM {t} b WHERE p > 'g')""",
    "one-whole": """
        SELECT a.event, b.event:id::bigint AS i FROM {t} a JOIN {t} b USING (k, p)
        WHERE p = 'first' AND a.k < 3""",
}
READ_BY_COLUMNS = (
    *("columns", "unnamed", "cte", "join", "union", "deep"),
    *("sides", "derived", "one-whole", "null-tests", "null-test-of-a-join"),
)
FILES_READ = {"columns": [1], "sides": [2, 1], "derived": [1, 1], "one-whole": [1, 4]}
"""Of four, by each table of a query."""
OTHERS = {
    "version": "SELECT count(*) AS n FROM {t} VERSION AS OF 0",
    "time": "SELECT count(event:id::int) AS n FROM {t} TIMESTAMP AS OF '2200-01-01'",
    "view": "CREATE OR REPLACE TEMP VIEW mine AS SELECT event:id::bigint AS i FROM {t}",
    "of-view": "SELECT count(i) FROM mine",
    "nope": "SELECT nope FROM {t}",
}


GROUPED = """
    WITH chosen AS (
        SELECT event:kind::string AS kind, event:id::bigint AS n, k FROM judge_connect
        WHERE event:id::bigint < 105),
    sums AS (SELECT kind, sum(n) AS s FROM chosen GROUP BY kind)
    SELECT kind, s, n, k, n * 2 AS twice FROM sums JOIN chosen USING (kind)
"""
"""What the client makes of a DataFrame with paths."""


class Client:
    """A process that is a client of the server: each call is a session. It starts when called.

    Work with settings of its own is compiled by Spark, other work is interpreted.
    """

    def __init__(self, remote: str, errors: Path) -> None:
        self._remote = remote
        self._errors = errors
        self._process: subprocess.Popen[str] | None = None

    def __call__(self, work: dict[str, Any]) -> dict[str, Any]:
        """What a session finds. Fails with what the client wrote if it ends before."""
        process = self._process = self._process or self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        usual = {"texts": {}, "remote": self._remote, "settings": INTERPRETED}
        process.stdin.write(json.dumps(usual | work) + "\n")
        process.stdin.flush()
        end = threading.Timer(600, process.kill)
        end.start()
        try:
            found: dict[str, Any] | None = next(
                (json.loads(line) for line in process.stdout if line.startswith("{")), None
            )
        finally:
            end.cancel()
        if found is None:
            self.stop()
            pytest.fail(self._errors.read_text(errors="replace")[-2000:])
        return found

    def _started(self) -> subprocess.Popen[str]:
        environment = {name: value for name, value in os.environ.items() if "SPARK_" not in name}
        with self._errors.open("w") as errors:
            return subprocess.Popen(
                [sys.executable, "-m", "tests.spark.connect_client"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=corpora.REPOSITORY,
                env=environment | {"PYSPARK_PYTHON": sys.executable},
            )

    def stop(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.communicate(timeout=60)
            self._process = None


@pytest.fixture(scope="module")
def client(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    client = Client(server, tmp_path_factory.mktemp("client") / "stderr")
    yield client
    client.stop()


ROWS = """
    SELECT id AS n, IF(id % 7 = 0, NULL, parse_json(concat('{"a": ', id, ', "b": "x"}'))) AS event,
      concat('{"c": ', id, IF(id = 10, '', '}')) AS other
    FROM range(0, 1000, 1, 3)"""


def test_appends_of_a_connect_client(spark: SparkSession, client: Client, tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    vl.Table.create(table, "n BIGINT, event VARIANT, other VARIANT")
    texts = {"json_columns": ["other"]}
    good = f"SELECT * FROM ({ROWS}) WHERE n <> 10"
    loads = [
        {"query": good, "table": table, "options": texts | {"load_id": "one"}},
        {"query": good, "table": table, "options": texts | {"load_id": "one"}},
        {"query": ROWS, "table": table, "options": texts},
        {"query": ROWS, "table": table, "options": texts | {"mode": "null"}},
        {"query": ROWS, "table": table, "options": {}},
        {"query": f"{ROWS} WHERE id < 0", "table": table, "options": texts},
    ]
    found = client({"appends": loads})["appends"]
    assert found[:2] == [[1, 999, 0], [1, 0, 0]]
    assert found[2].startswith("InvalidJson: ")
    assert found[3] == [2, 1000, 1]
    assert found[4].startswith("InvalidJson: ")
    assert found[5] == [2, 0, 0]
    stored = spark.read.format("delta").load(table)
    columns = ["n", "to_json(event) AS event", "to_json(other) AS other"]
    wanted = spark.sql(ROWS).selectExpr(*columns[:2], "to_json(try_parse_json(other)) AS other")
    twice = wanted.union(wanted.where("n <> 10"))
    mine, theirs = (
        sorted((tuple(row) for row in frame.collect()), key=str)
        for frame in (stored.selectExpr(*columns), twice)
    )
    assert mine == theirs
    schema = Snapshot.read(table).properties["variantlake.shredding.event"]
    assert "a" in schema
    assert "b" in schema


def test_streams_of_a_connect_client(client: Client, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a").write_text('{"id": 1}\n{"id": 2}\n{"id": 3}\n')
    tables = [str(tmp_path / name) for name in ("first", "second")]
    work = {"source": str(tmp_path / "in"), "tables": tables, "checkpoint": str(tmp_path / "c")}
    try:
        client({"stream": work})
    except pytest.fail.Exception as error:
        # Spark gives the Python worker of a stream ten seconds to start, however busy the machine
        # is. The same stream started again goes on from its checkpoints.
        if "PythonWorkerFactory" not in str(error):
            raise
        client({"stream": work})
    found: list[list[Any]] = [
        vl.Table.open(table).scan("event:id::int AS id").to_arrow()["id"].to_pylist()
        for table in tables
    ]
    assert [sorted(each) for each in found] == [[1, 2, 3], [2, 3]]
    assert list(vl.Table.open(tables[1]).snapshot.transactions) == ["copy"]


def test_changes_of_a_connect_client(client: Client, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=20)
    name = f"delta.`{table.uri}`"
    texts = {
        "delete": f"DELETE FROM {name} WHERE length(day) = 2 AND event:n::int % 10 = 3",
        "update": f"UPDATE {name} SET event = parse_json('{{\"u\":1}}') WHERE event:n::int = 4",
        "merge": f"""MERGE INTO {name} t USING (SELECT id, 'm' AS day, parse_json('[]') AS event
            FROM range(19, 21)) s ON t.event:n::bigint = s.id
            WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *""",
        "refused": f"DELETE FROM {name} WHERE nope = 1",
    }
    found = client({"texts": {key: {"sql": sql} for key, sql in texts.items()}})
    assert found["texts"]["refused"].startswith("InvalidQuery: ")
    assert "__vl_" not in found["texts"]["refused"]
    assert documents(table) == {n: document(n) for n in range(19) if n % 10 != 3} | {
        4: '{"u":1}',
        20: "[]",
    }


def test_upkeep_of_a_connect_client(client: Client, tmp_path: Path) -> None:
    table = new_table(tmp_path / "t", rows=40, partition_by="day")
    table.set_clustering("event:user::string")
    before = table.digest()
    said = client({"kept": [table.uri]})["kept"][0]
    # Executors rewrote: the files of one day, those that overlap, those whose layout changed.
    assert said[0] == 2
    assert all(said[1:4])
    versions = [each.version for each in table.refresh().history()]
    assert said[4] < said[5] == versions[0]
    for version in versions[:-1]:
        assert vl.Table.open(table.uri, version).digest() == before


def test_constraints_of_a_connect_client(client: Client, tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "event VARIANT, n INT")
    table.append(pa.table({"event": ["{}"], "n": pa.array([1], "int32")}), json_columns=["event"])
    refused = ["rand() < 2", "n IN (SELECT 1)", "(SELECT max(2)) > n"]
    taken = ["event IS NOT NULL -- or not", "exists(array(n), x -> x = n)"]
    work = {"table": table.uri, "texts": [*refused, "n", *taken]}
    *said, first, second = client({"constraints": [work]})["constrained"][0]
    assert all("has a subquery, or is not deterministic" in each for each in said[:3])
    assert "is not a condition on a row" in said[3]
    assert (first, second) == (2, 3)


def test_overwrites_of_a_connect_client(client: Client, tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    made = vl.Table.create(table, "event VARIANT, n BIGINT", shredding={"event": "a BIGINT"})
    rows = pa.table({"event": ['{"a": 1}', '{"a": 2}'], "n": [1, 2]})
    made.append(rows, json_columns=["event"])
    said = client({"overwrites": [table]})["overwritten"]
    assert said == [["CommitConflict", "CommitConflict", "CommitConflict", "1"]]


def test_names_of_a_connect_client(client: Client, tmp_path: Path) -> None:
    source, registered, other = tmp_path / "a.ndjson", tmp_path / "known", tmp_path / "other"
    source.write_text('{"a": 1}\n{"a": 2}\n')
    vl.Table.create(registered, "event VARIANT")
    setup = [
        "CREATE DATABASE connect_names",
        f"CREATE TABLE connect_names.t (event VARIANT) USING delta LOCATION '{tmp_path / 't'}'",
    ]
    found = ["connect_names.t", "spark_catalog.`connect_names`.t", "known", f"delta.`{other}`"]
    missing = ["nobodyknows", "connect_names.nobodyknows", "dbfs:/nobodyknows"]
    names = {"setup": setup, "source": str(source), "registered": str(registered)}
    try:
        placed = client({"names": names | {"tables": found + missing}})["placed"]
    finally:
        client({"names": names | {"setup": ["DROP DATABASE connect_names CASCADE"], "tables": []}})
    assert placed[:4] == [[2, 3, 1], [3, 4, 1], [2, 3, 1], [2, 3, 1]]
    assert {error for errors in placed[4:] for error in errors} == {"NotADeltaTable", "StoreFailed"}
    assert not list(corpora.REPOSITORY.glob("*nobodyknows*"))
    assert vl.Table.open(tmp_path / "t").version == 6


@pytest.mark.rule(11)
def test_queries_of_a_connect_client(spark: SparkSession, client: Client, tmp_path: Path) -> None:
    table = make(spark, tmp_path / "a {b} table", SHAPE)
    judge(spark, "judge_connect", SHAPE)
    new_year_2200 = dt.datetime(2200, 1, 1, tzinfo=dt.UTC).timestamp()
    os.utime(Path(table) / commit_path(0), (new_year_2200, new_year_2200))
    texts = {name: query.format(t=f"delta.`{table}`") for name, query in (QUERIES | OTHERS).items()}
    # Spark alone does not know the table, as without Delta's jar.
    settings = {"spark.sql.runSQLOnFiles": "false"}
    work = {"queries": texts, "explain": list(QUERIES), "table": table, "settings": settings}
    found = client(work)
    with changed(spark, PLAINLY):
        for name, query in QUERIES.items():
            theirs = spark.sql(query.format(t="judge_connect"))
            assert found["rows"][name] == dict(rows(theirs)), name
            assert found["columns"][name] == theirs.columns, name
        assert found["read"] == dict(rows(spark.sql("SELECT event, k, p FROM judge_connect")))
        grouped = dict(rows(spark.sql(GROUPED)))
    assert found["grouped"] == [grouped, grouped]
    for name, report in found["explain"].items():
        physical = any(path["physical"] for scan in report["tables"] for path in scan["paths"])
        assert physical == (name in READ_BY_COLUMNS), (name, report)
        assert physical or all(scan["whole_variants"] for scan in report["tables"]), name
    assert found["rows"]["version"] == {"(79,)": 1}
    assert found["rows"]["of-view"] == {"(75,)": 1}
    assert found["rows"]["nope"].startswith("InvalidQuery: [UNRESOLVED_COLUMN")
    assert found["n"] == 79
    assert found["left"] == 1, "the view under CREATE VIEW, and none of a query that is gone"
    assert found["settings"] == [], "changed in the user's session"
    for name, wanted in FILES_READ.items():
        read = [scan["files"]["read"] for scan in found["explain"][name]["tables"]]
        assert read == wanted, name
    spark.catalog.dropTempView("judge_connect")


def test_a_server_newer_than_those_that_were_tried(
    spark: SparkSession, client: Client, tmp_path: Path
) -> None:
    """Its queries give the same, natively and of all files."""
    table = make(spark, tmp_path / "t", SHAPE)
    judge(spark, "judge_connect", SHAPE)
    new_year_2200 = dt.datetime(2200, 1, 1, tzinfo=dt.UTC).timestamp()
    os.utime(Path(table) / commit_path(0), (new_year_2200, new_year_2200))  # the client asks for it
    texts = {"columns": QUERIES["columns"].format(t=f"delta.`{table}`")}
    work = {"queries": texts, "explain": ["columns"], "table": table, "newest": [4, 0]}
    found = client(work)
    theirs = spark.sql(QUERIES["columns"].format(t="judge_connect"))
    assert found["rows"]["columns"] == dict(rows(theirs))
    (scan,) = found["explain"]["columns"]["tables"]
    assert not any(path["physical"] for path in scan["paths"])
    assert scan["whole_variants"] == ["event"]
    assert UNTRIED in scan["note"]
    assert scan["files"] == {"total": 4, "read": 4, "skipped": 0}


@pytest.mark.rule(18)
def test_random_queries_of_several_selects(client: Client, tmp_path: Path) -> None:
    requested = {"folder": str(tmp_path), "seed": 0, "texts": 3 * MORE}
    _, skipped, _ = client({"joins": requested})["joins"]
    assert skipped > 0


FIRST_ROWS = {
    "SELECT u, k FROM {t} ORDER BY k DESC, u LIMIT 3": 1,
    "SELECT x.u AS n FROM {t} x WHERE k IS NOT NULL ORDER BY x.event:n.x::int DESC, n LIMIT 2": 1,
    "SELECT k AS z, u FROM {t} ORDER BY z NULLS LAST, u LIMIT 3 OFFSET 2": 1,
    "SELECT max(k) AS m FROM (SELECT k FROM {t} ORDER BY k DESC LIMIT 3)": 1,
    "SELECT count(*) AS n FROM (SELECT u FROM {t} LIMIT 5)": 1,
    "SELECT -k AS k, u FROM {t} ORDER BY k, u LIMIT 3": 8,
}
"""Queries, and how many of eight files each reads."""


@pytest.mark.rule(37)
def test_rule_37_first_rows_of_a_connect_client(
    spark: SparkSession, client: Client, tmp_path: Path
) -> None:
    kinds = {kind: first_rows.make(spark, tmp_path / kind, kind) for kind in ("plain", "odd")}
    queries = [
        *FIRST_ROWS,
        *(first_rows.random_query(random.Random(seed)) for seed in range(4 * MORE)),
    ]
    texts: dict[str, dict[str, Any]] = {}
    for kind, table in kinds.items():
        name = f"delta.`{table.location}`"
        for at, query in enumerate(queries):
            shown = f"SELECT replace(to_json(struct(*)), '-0.0', '0.0') FROM ({query})"
            texts[f"{kind} {at}"] = {"sql": shown.replace("{t}", name)}
            if kind == "plain" and query in FIRST_ROWS:
                texts[f"explain {at}"] = {"explain": query.replace("{t}", name)}
    found = client({"texts": texts})["texts"]
    with changed(spark, PLAINLY):
        for kind, table in kinds.items():
            for at, query in enumerate(queries):
                text = texts[f"{kind} {at}"]["sql"]
                judged = text.replace(f"delta.`{table.location}`", table.judge)
                answer = found[f"{kind} {at}"]
                try:
                    assert answer == dict(rows(spark.sql(judged))), query
                except PySparkException:
                    assert isinstance(answer, str), query
    for at, read in enumerate(FIRST_ROWS.values()):
        assert found[f"explain {at}"]["tables"][0]["files"]["read"] == read, queries[at]


TEXTS: dict[str, tuple[dict[str, Any], str]] = {
    # What a client is asked, and the same for Spark alone over the documents.
    "registered-name": (
        {
            "sql": """SELECT my.events.event:kind::string, my.events.k FROM my.events
                WHERE my.events.event:id::int > 3""",
            "tables": {"my.events": "{table}"},
        },
        "SELECT event:kind::string, k FROM judge_texts WHERE event:id::int > 3",
    ),
    "path-as-qualifier": (
        {"sql": "SELECT {t}.k, {t}.* FROM {t} WHERE {t}.event:id::bigint < 5"},
        "SELECT k, * FROM judge_texts WHERE event:id::bigint < 5",
    ),
    "sample": (
        {"sql": "SELECT t.event:id::bigint FROM t TABLESAMPLE (100 PERCENT)", "tables": "t"},
        "SELECT event:id::bigint FROM judge_texts",
    ),
    "keywords-as-aliases": (
        {
            "sql": """SELECT date.event:id::bigint AS i FROM t date WHERE date.k < 3
                MINUS SELECT first.event:t::bigint FROM t AS first""",
            "tables": "t",
        },
        """SELECT event:id::bigint AS i FROM judge_texts WHERE k < 3
            MINUS SELECT event:t::bigint FROM judge_texts""",
    ),
    "constants-are-looked-up": (
        {"sql": "SELECT event:id::bigint, p FROM {t} WHERE k < 9 OR p > 'i'", "scans": 1},
        "SELECT event:id::bigint, p FROM judge_texts WHERE k < 9 OR p > 'i'",
    ),
    "constants-of-whole-rows": ({"read": "{table}", "scans": 1}, "SELECT * FROM judge_texts"),
    "rows-found-first": (
        {"sql": "SELECT event, p FROM {t} WHERE event:id::bigint IN (5, 107, 205)", "late": 0},
        "SELECT event, p FROM judge_texts WHERE event:id::bigint IN (5, 107, 205)",
    ),
    "natural-join-of-found-rows": (
        {
            "sql": """SELECT event:n FROM {t} NATURAL JOIN (SELECT 3 AS k, 'first' AS p)
                WHERE event:id::bigint < 9""",
            "late": 0,
        },
        "SELECT event:n FROM judge_texts WHERE event:id::bigint < 9 AND k = 3 AND p = 'first'",
    ),
    "data-source": ({"source": "{table}"}, "SELECT * FROM judge_texts"),
    "zone": (
        {
            "sql": "SELECT event:d::timestamp FROM {t} WHERE k = 3 AND p = 'first'",
            "settings": {"spark.sql.session.timeZone": "Asia/Tokyo"},
            "select": ["unix_millis(d)"],
        },
        "SELECT 1704326400000 - 9 * 3600000 AS d",
    ),
    "view": (
        {
            "sql": "CREATE OR REPLACE TEMP VIEW texts AS SELECT event, k FROM {t}",
            "then": "SELECT event:kind::string FROM texts WHERE k > 3",
        },
        "SELECT event:kind::string FROM judge_texts WHERE k > 3",
    ),
    "create": (
        {
            "sql": """CREATE TABLE delta.`{table} made` USING delta AS
                SELECT event:id::int AS i, p FROM {t} WHERE p = 'first' -- and a comment""",
            "then": "SELECT * FROM delta.`{table} made`",
        },
        "SELECT event:id::int, p FROM judge_texts WHERE p = 'first'",
    ),
    "insert": (
        {
            "sql": """INSERT OVERWRITE delta.`{table} made` (p, i)
                SELECT b.p, event:kind::int FROM delta.`{table} made` b JOIN {t} a ON a.k = b.i
                WHERE try_cast(a.event:kind AS INT) = 7 AND b.i > 1""",
            "then": "SELECT * FROM delta.`{table} made`",
        },
        """SELECT a.event:kind::int, b.p FROM judge_texts a JOIN judge_texts b
            ON a.k = b.event:id::int AND b.p = 'first'
            WHERE try_cast(a.event:kind AS INT) = 7 AND b.event:id::int > 1""",
    ),
    "explain": (
        {"sql": "EXPLAIN SELECT event:id::int FROM {t}", "select": ["plan LIKE '== Phys%'"]},
        "SELECT true",
    ),
}


@pytest.mark.rule(10)
def test_texts_of_every_form(spark: SparkSession, client: Client, tmp_path: Path) -> None:
    table = make(spark, tmp_path / "a {b}#? %41 é+ table", SHAPE)
    odd = made_of_odd_types(tmp_path / "odd")
    deleted = f"delta.`{tmp_path / 'deleted %41'}`"
    spark.sql(
        f"CREATE TABLE {deleted} (event VARIANT, k INT) USING delta "
        "TBLPROPERTIES ('delta.enableDeletionVectors'='true')"
    )
    document = "parse_json(concat('{\"id\":', id, '}')), int(id)"
    spark.sql(f"INSERT INTO {deleted} SELECT {document} FROM range(0, 60, 1, 3)")
    spark.sql(f"DELETE FROM {deleted} WHERE k % 2 = 1")
    judge(spark, "judge_texts", SHAPE)
    texts: dict[str, dict[str, Any]] = {
        "deleted": {"sql": f"SELECT event:id::int FROM {deleted} WHERE k > 5", "scans": 1},
        "odd-types": {"read": odd, "select": ["event:id::int", "k", "p", "s.v:kind::string"]},
        "odd-paths": {"sql": f"SELECT event:id::int i, event:kind::string, p FROM delta.`{odd}`"},
    }
    for name, (text, _) in TEXTS.items():
        tables = {"t": "{table}"} if text.get("tables") == "t" else text.get("tables", {})
        filled = json.dumps(text | {"tables": tables}).replace("{table}", table)
        texts[name] = json.loads(filled.replace("{t}", f"delta.`{table}`"))
    found = client({"texts": texts})["texts"]
    with changed(spark, PLAINLY):
        for name, (_, plain) in TEXTS.items():
            assert found[name] == dict(rows(spark.sql(plain))), name
    spark.catalog.dropTempView("judge_texts")
    assert found["deleted"] == {f"({k},)": 1 for k in range(6, 60, 2)}
    rows_of_odd = [(i, i, "a" if i % 10 < 5 else None, f"k{i % 3}") for i in range(20)]
    assert found["odd-types"] == {repr(row): 1 for row in rows_of_odd}
    assert found["odd-paths"] == {repr((i, kind, p)): 1 for i, _, p, kind in rows_of_odd}


CHARS = (
    "SELECT id, c, s FROM {t}",
    "SELECT id FROM {t} WHERE c = 'ab'",
    "SELECT id FROM {t} WHERE c IN ('abcde', 'ab  ') AND NOT c > 'ab'",
    "SELECT id FROM {t} WHERE c BETWEEN 'ab' AND 'ab'",
    "SELECT id FROM {t} WHERE c LIKE 'ab %' AND e:k::string = 'good'",
    "SELECT a.id, b.e:k::string AS k FROM {t} a LEFT JOIN {t} b ON a.c = b.c AND b.c = 'ab'",
)
COLLATED = (
    "SELECT id FROM {t} WHERE variant_get(e, '$.k', 'string collate utf8_lcase') = 'GOOD'",
    "SELECT concat(t.e:k::string, w.k) AS v FROM {t} t JOIN global_temp.w w USING (id)",
    "SELECT t.id FROM {t} t JOIN global_temp.w w ON t.e:k::string = w.k",
    "SELECT id FROM {t} WHERE try_variant_get(e, '$.k', 'time') IS NULL",
)


def test_chars_and_collations_of_a_connect_client(
    spark: SparkSession, client: Client, tmp_path: Path
) -> None:
    name = f"delta.`{tmp_path / 't'}`"
    spark.sql(
        f"CREATE TABLE {name} (id INT, c CHAR(5), s STRUCT<a: CHAR(3)>, e VARIANT) USING delta"
    )
    for row in ("1, 'ab', named_struct('a', 'x')", "2, 'abcde', NULL", "3, 'ab\\u0001', NULL"):
        spark.sql(f'INSERT INTO {name} SELECT {row}, parse_json(\'{{"k": "good"}}\')')
    spark.sql("CREATE GLOBAL TEMP VIEW w AS SELECT 1 AS id, 'GOOD' COLLATE utf8_lcase AS k")
    texts = {query: {"sql": query.format(t=name)} for query in (*CHARS, *COLLATED)}
    found = client({"texts": texts})["texts"]
    with changed(spark, PLAINLY):
        for query in (*CHARS, *COLLATED):
            assert found[query] == dict(rows(spark.sql(query.format(t=name)))), query
    spark.catalog.dropGlobalTempView("w")


def test_backslashes_of_a_connect_client_are_what_its_session_says(
    spark: SparkSession, client: Client, tmp_path: Path
) -> None:
    table = vl.Table.create(tmp_path / "t", "event VARIANT, p STRING", partition_by=["p"])
    for text in ("a\\b", "a\\\\b", "a\b", "it's"):
        row = pa.table({"event": [json.dumps({"s": text})], "p": [text]})
        table = table.refresh()
        table.append(row, json_columns=["event"])
    queries = [
        f"SELECT to_json(event), p FROM {{}} WHERE {value} = '{text}'"
        for value in ("event:s::string", "p")
        for text in ("a\\b", "a\\\\b")
    ]
    for said in ("false", "true"):
        settings = {"spark.sql.parser.escapedStringLiterals": said}
        texts = {
            query: {"sql": query.format(f"delta.`{table.uri}`"), "settings": settings}
            for query in queries
        }
        found = client({"texts": texts})["texts"]
        with changed(spark, {**PLAINLY, **settings}):
            for query in queries:
                right = dict(rows(spark.sql(query.format(f"delta.`{table.uri}`"))))
                assert found[query] == right, (said, query)
                assert len(right) == 1


def test_dots_and_brackets_in_backticks_part_keys(
    spark: SparkSession, client: Client, tmp_path: Path
) -> None:
    """Spark splices what stands between backticks into the path."""
    shredding = {"event": "`a.b` INT, a STRUCT<b: INT>, `x[0]` INT, x ARRAY<INT>, `c d` INT"}
    table = vl.Table.create(tmp_path / "t", "event VARIANT", shredding=shredding)
    document = {"a.b": 1, "a": {"b": 2}, "x[0]": 3, "x": [4], "c d": 5}
    table.append(pa.table({"event": [json.dumps(document)]}), json_columns=["event"])
    right = {"a.b": 2, "x[0]": 4, "c d": 5}
    for key, value in right.items():
        query = f"SELECT event:`{key}`::int AS x FROM {{}}"
        text = query.format(f"delta.`{table.uri}`")
        assert client({"texts": {"q": {"sql": text}}})["texts"]["q"] == {f"({value},)": 1}
        with changed(spark, PLAINLY):
            assert rows(spark.sql(text)) == {f"({value},)": 1}
    opened = vl.Table.open(table.uri)
    assert opened.sql("SELECT event:`c d`::int AS x FROM t").to_arrow()["x"].to_pylist() == [5]
    assert opened.sql("SELECT event:['a.b']::int AS x FROM t").to_arrow()["x"].to_pylist() == [1]
