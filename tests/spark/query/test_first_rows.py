"""ORDER BY … LIMIT and LIMIT: the rows of Spark on unshredded data, from fewer files."""

from __future__ import annotations

import datetime as dt
import json
import random
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import variantlake as vl
from tests.spark.judged import Judged, judged_table
from tests.spark.layouts import changed
from tests.strategies import MORE
from variantlake.spark.lake import connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

SCHEMA = (
    "event VARIANT, u INT, k INT, d DECIMAL(10,2), f DOUBLE, day DATE, at TIMESTAMP_NTZ, "
    "ts TIMESTAMP, s STRING, c CHAR(3), p STRING, o STRUCT<x: INT>"
)
SHREDDING = "s STRING, i BIGINT, q DECIMAL(10,2), f DOUBLE, n STRUCT<x: INT>"
ROWS, FILES = 20, 8
FLOATS = (0.0, -0.0, 1.5, -2.5, float("inf"), float("-inf"), 5e-324)
START = dt.datetime.fromisoformat("2024-01-31 12:00:00")
KEYS = (
    "k", "d", "f", "day", "at", "ts", "s", "c", "p", "o.x", "event:s::string", "event:i::bigint",
    "event:i::int", "event:q::decimal(10,2)", "event:q::int", "event:q::double", "event:f::double",
    "event:n.x::int", "event:r::int", "event:none::int", "k + 1", "CAST(k AS BIGINT)",
    "event:i::string", "try_variant_get(event, '$.r', 'int')", "event:i::decimal(20,0)",
)  # fmt: skip
CONDITIONS = (
    "TRUE", "k >= 40", "k > 45 AND event:i::bigint > 0", "s IS NOT NULL", "p = 'p1'",
    "event:s::string > 'm'", "u % 2 = 0", "event:i::bigint IS NULL", "rand() < 2", "k = 1000",
    "day >= DATE'2024-01-04' OR k IS NULL", "NOT (k < 30)", "o.x < 60",
)  # fmt: skip


def _document(chance: random.Random, number: int, row: int) -> str | None:
    if chance.random() < 0.05:
        return None
    document: dict[str, Any] = {
        "s": chance.choice((f"{'abcdefgz'[number]}{row}", None)) if number != 5 else "same" * 20,
        "i": number * 100 + chance.randrange(120) if number != 3 else None,
        "q": chance.choice((number + 0.25, number, -0.5)),
        "f": float(number) if number % 2 else chance.choice((-1e300, 0.0, 2.5e0)),
        "n": {"x": number * 10 + row % 3},
        # A number in some files, in others a text that is one, and both in one of them.
        "r": str(number) if number in (2, 3) and row % 2 else number,
    }
    return json.dumps({key: value for key, value in document.items() if chance.random() < 0.95})


def _rows(chance: random.Random, number: int) -> dict[str, list[Any]]:
    def of(make: Any, nulls: float = 0.1) -> list[Any]:
        has_nulls = number in (1, 4)
        return [None if has_nulls and chance.random() < nulls else make(row) for row in range(ROWS)]

    moments = of(
        lambda row: START + dt.timedelta(hours=number, microseconds=chance.randrange(10**9) + row)
    )
    nan = float("nan")
    return {
        "event": [_document(chance, number, row) for row in range(ROWS)],
        "u": [number * ROWS + row for row in range(ROWS)],
        "k": of(lambda row: number * 20 + row, 0.5),
        "d": of(lambda _: Decimal(number * 7) + Decimal(chance.randrange(1000)) / 100),
        "f": of(lambda row: nan if number == 2 and row == 3 else chance.choice(FLOATS) + number),
        "day": of(lambda row: dt.date(2024, 1, number + 1 + row % 2)),
        "at": moments,
        "ts": [None if each is None else each.replace(tzinfo=dt.UTC) for each in moments],
        "s": of(lambda row: "é" * 40 + str(row) if number == 6 else f"{number}{row}"),
        "c": of(lambda _: f"{number}"),
        "p": [(None, "p1", "p2")[number % 3]] * ROWS,
        "o": of(lambda row: {"x": number * 20 + row}),
    }


_TYPES: dict[str, Any] = {
    "event": pa.string(),
    "u": pa.int32(),
    "k": pa.int32(),
    "d": pa.decimal128(10, 2),
    "f": pa.float64(),
    "day": pa.date32(),
    "at": pa.timestamp("us"),
    "ts": pa.timestamp("us", "UTC"),
    "s": pa.string(),
    "c": pa.string(),
    "p": pa.string(),
    "o": pa.struct([("x", pa.int32())]),
}
_ARROW = pa.schema(_TYPES)


def make(spark: SparkSession, folder: Path, kind: str) -> Judged:
    """Files whose rows lie one after another; `odd` has partitions, deletions, mapped columns."""
    chance = random.Random(kind)
    parts = [pa.table(_rows(chance, number), schema=_ARROW) for number in range(FILES)]
    columns = [name for name in _ARROW.names if name not in ("event", "c")]
    return judged_table(
        spark,
        folder,
        f"first_rows_of_{kind}",
        parts,
        schema=SCHEMA,
        shredding=SHREDDING,
        columns=["rpad(c, 3, ' ') AS c", *columns],
        properties={"delta.dataSkippingNumIndexedCols": "2"} if kind == "bare" else {},
        deleted=("u", (0, 1, 2, 63, 150)) if kind == "odd" else None,
    )


KINDS = ("plain", "odd", "bare")


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Judged]:
    return {kind: make(spark, tmp_path_factory.mktemp(kind), kind) for kind in KINDS}


READ = {
    "SELECT u, k FROM {t} ORDER BY k DESC, u LIMIT 3": 1,
    "SELECT u, k FROM {t} ORDER BY k DESC NULLS FIRST, u LIMIT 3": 2,
    "SELECT u, k FROM {t} ORDER BY k, u LIMIT 3": 2,
    "SELECT k FROM {t} ORDER BY k LIMIT 3": 1,
    "SELECT k FROM {t} ORDER BY k LIMIT 3 OFFSET 10": 2,
    "SELECT k FROM {t} ORDER BY k, u + 0 LIMIT 3": 2,
    "SELECT u, k FROM {t} ORDER BY k NULLS LAST, u LIMIT 3": 1,
    "SELECT u, k FROM {t} ORDER BY k NULLS LAST, u LIMIT 3 OFFSET 25": 2,
    "SELECT u FROM {t} ORDER BY event:n.x::int DESC, u LIMIT 2": 1,
    "SELECT u FROM {t} ORDER BY event:i::int DESC, u LIMIT 2": 1,
    "SELECT u, event:q::int FROM {t} ORDER BY event:q::double DESC, u LIMIT 2": 2,
    "SELECT u FROM {t} ORDER BY at DESC, u LIMIT 2": 1,
    "SELECT u FROM {t} ORDER BY ts DESC, u LIMIT 2": 1,
    "SELECT u FROM {t} ORDER BY day DESC, u LIMIT 2": 2,
    "SELECT u FROM {t} ORDER BY d DESC, u LIMIT 1": 1,
    "SELECT u FROM {t} ORDER BY s DESC, u LIMIT 2": 1,
    "SELECT u FROM {t} ORDER BY o.x DESC, u LIMIT 2": 1,
    "SELECT k FROM {t} WHERE k >= 60 ORDER BY k LIMIT 1": 1,
    "SELECT u FROM (SELECT k AS x, u FROM {t}) ORDER BY x DESC, u LIMIT 2": 1,
    "WITH a AS (SELECT k AS x, u FROM {t} WHERE k IS NOT NULL) SELECT u FROM a "
    "ORDER BY x DESC, u LIMIT 2": 1,
    "SELECT max(k) FROM (SELECT k FROM {t} ORDER BY k DESC LIMIT 3)": 1,
    "SELECT count(*) FROM (SELECT * FROM {t} LIMIT 5)": 1,
    "SELECT count(*) FROM (SELECT * FROM {t} LIMIT 5 OFFSET 20)": 2,
    "SELECT count(*) FROM (SELECT * FROM {t} WHERE k >= 50 LIMIT 5)": 1,
    "SELECT count(*) FROM (SELECT * FROM {t} LIMIT 0)": 0,
    # Spark reads such a table twice, once for the first rows.
    "WITH a AS (SELECT k, u FROM {t}) (SELECT * FROM a ORDER BY k, u LIMIT 2) UNION ALL TABLE a": (
        2 + FILES
    ),
}
"""Queries, and how many files of the plain table each reads."""

ALL = (
    "SELECT u FROM {t} ORDER BY k + 1, u LIMIT 2",
    "SELECT u FROM {t} WHERE upper(s) = 'X' ORDER BY k, u LIMIT 2",
    "SELECT u FROM {t} WHERE rand(3) + 1 < 3 ORDER BY k, u LIMIT 2",
    "SELECT k, count(*) FROM {t} GROUP BY k ORDER BY k LIMIT 2",
    "SELECT DISTINCT k FROM {t} ORDER BY k LIMIT 2",
    "SELECT a.u FROM {t} a JOIN {t} b ON a.u = b.u ORDER BY a.k, a.u LIMIT 2",
    "SELECT row_number() OVER (ORDER BY u) AS n, k FROM {t} ORDER BY k, u LIMIT 2",
    "SELECT u FROM {t} ORDER BY c DESC, u LIMIT 2",
    "SELECT u FROM {t} ORDER BY s COLLATE UTF8_LCASE, u LIMIT 2",
    "SELECT count(*) FROM (SELECT * FROM (SELECT * FROM {t} OFFSET 3) WHERE k > 60 LIMIT 5)",
    "SELECT count(*) FROM (SELECT * FROM {t} WHERE event:r::int = 2 LIMIT 5)",
    "SELECT u FROM {t} x WHERE u = (SELECT u FROM {t} y WHERE y.k = x.k ORDER BY u LIMIT 1)",
)
"""Queries that read all files of a table in one place: nothing proves where the first rows are."""


@pytest.mark.rule(37)
@pytest.mark.parametrize("query", READ)
def test_rule_37_files_that_cannot_matter_are_not_read(made: dict[str, Judged], query: str) -> None:
    for table in made.values():
        table.agree(query)
    assert made["plain"].read(query) == READ[query]


@pytest.mark.rule(37)
@pytest.mark.parametrize("query", ALL)
def test_rule_37_what_is_not_proven_is_read(made: dict[str, Judged], query: str) -> None:
    for kind in ("plain", "odd"):
        made[kind].agree(query)
    assert made["plain"].read(query) == FILES * query.count("{t}")


def random_query(chance: random.Random) -> str:
    terms = [
        f"{key}{chance.choice(('', ' ASC', ' DESC'))}"
        f"{chance.choice(('', '', ' NULLS FIRST', ' NULLS LAST'))}"
        for key in chance.choices(KEYS, k=chance.choice((1, 1, 2, 3)))
    ]
    shown = [term.split(" ASC")[0].split(" DESC")[0].split(" NULLS")[0] for term in terms]
    whole = chance.random() < 0.5
    order = ", ".join([*terms, "u"] if whole else terms)
    items = ", ".join(f"{key} AS c{at}" for at, key in enumerate(shown))
    items += ", u, to_json(event)" if whole and chance.random() < 0.5 else ", u" if whole else ""
    where = f"WHERE {chance.choice(CONDITIONS)}" if chance.random() < 0.6 else ""
    limit = f"LIMIT {chance.choice((1, 2, 5, 30, 200))}"
    limit += f" OFFSET {chance.choice((1, 7, 40))}" if chance.random() < 0.2 else ""
    query = f"SELECT {items} FROM {{t}} {where} ORDER BY {order} {limit}"
    return chance.choice(
        (
            query,
            query,
            f"SELECT * FROM ({query}) WHERE c0 IS NOT NULL",
            f"WITH q AS ({query}) SELECT * FROM q UNION ALL SELECT * FROM q",
            f"SELECT count(*), min(c0) FROM ({query})",
            f"WITH t AS (SELECT * FROM {{t}}) {query.replace('{t}', 't')}",
        )
    )


@pytest.mark.rule(37)
@pytest.mark.parametrize("seed", range(6 * MORE))
def test_rule_37_random_first_rows_are_those_on_unshredded_data(
    made: dict[str, Judged], seed: int
) -> None:
    chance = random.Random(seed)
    made[KINDS[seed % 3]].agree(random_query(chance))


@pytest.mark.rule(37)
@pytest.mark.parametrize("seed", range(6 * MORE))
def test_rule_37_a_limit_alone_gives_rows_of_the_table(made: dict[str, Judged], seed: int) -> None:
    chance = random.Random(seed)
    where = f"WHERE {chance.choice(CONDITIONS)}"
    rows = chance.choice((1, 19, 20, 21, 70, 150, 500))
    offset = chance.choice((0, 0, 3, 20))
    table = made[KINDS[seed % 3]]
    table.agree(f"SELECT count(*) FROM (SELECT * FROM {{t}} {where} LIMIT {rows})")
    query = f"SELECT u, k, event:i::bigint FROM {{t}} {where} LIMIT {rows} OFFSET {offset}"
    table.agree(
        f"SELECT count(*), count(DISTINCT u) FROM ({query}) WHERE "
        f"u IN (SELECT u FROM {{t}} {where})".replace("{t}", "{{t}}")
        .format()
        .replace("{{", "{")
    )


def test_first_rows_of_a_table_by_expressions(made: dict[str, Judged]) -> None:
    table = made["plain"]
    number: Any = vl.path("event", "$.n.x").int()
    ordered = table.lake.table(table.location).where("u < 100").orderBy(number.desc(), "u")
    last = ordered.limit(2)
    query = f"SELECT u FROM {table.judge} WHERE u < 100 ORDER BY {number.text} DESC, u LIMIT 2"
    assert last.select("u").collect() == table.spark.sql(query).collect()
    assert table.lake.explain(last.select("u")).to_dict()["tables"][0]["files"]["read"] == 1
    assert (ordered.count(), last.count(), last.limit(0).count()) == (100, 2, 0)
    again = table.lake.explain(table.lake.table(table.location).orderBy(number).limit(1))
    assert again.to_dict()["tables"][0]["limit"]["text"].startswith("ORDER BY event:n.x::int ASC")


def test_without_ansi(spark: SparkSession, made: dict[str, Judged]) -> None:
    with changed(spark, {"spark.sql.ansi.enabled": "false"}):
        for seed in range(3 * MORE):
            made["odd"].agree(random_query(random.Random(f"ansi {seed}")))


def test_an_older_version_is_limited_by_its_own_files(made: dict[str, Judged]) -> None:
    table = made["plain"]
    query = "SELECT u, k FROM {t} ORDER BY k DESC, u LIMIT 2"
    old = query.format(t=f"delta.`{table.location}` VERSION AS OF 3")
    assert [row.u for row in table.lake.sql(old).collect()] == [59, 58]
    assert table.lake.explain(old).to_dict()["tables"][0]["files"]["read"] == 1


def test_an_empty_table_has_no_first_rows(spark: SparkSession, tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "event VARIANT, k INT")
    for query in ("ORDER BY k LIMIT 3", "ORDER BY event:a::int DESC LIMIT 3", "LIMIT 3"):
        assert connect(spark).sql(f"SELECT * FROM delta.`{table.uri}` {query}").collect() == []


def test_explain_says_what_is_left_out_and_why(made: dict[str, Judged]) -> None:
    (found,) = made["plain"].explained("SELECT event:n.x::int FROM {t} ORDER BY 1 DESC LIMIT 2")
    order = "ORDER BY event:n.x::int DESC NULLS LAST LIMIT 2"
    reach = "event:n.x::int >= 70"
    assert found["limit"] == {"text": order, "reach": reach}
    assert found["skipped_by"] == [{"predicate": reach, "files": 7}]
    query = f"SELECT k FROM delta.`{made['plain'].location}` LIMIT 2"
    assert "LIMIT 2: 7 files" in str(made["plain"].lake.explain(query))
