"""CHAR and VARCHAR in Spark, which pads and compares them by the metadata of columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.layouts import UNADAPTED, changed, rows
from variantlake.errors import InvalidValue
from variantlake.spark.lake import Lake, connect
from variantlake.spark.streaming.registration import register
from variantlake.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

COLUMNS = """id INT, c CHAR(5), d CHAR(3), v VARCHAR(3), s STRUCT<a: CHAR(4), b: VARCHAR(2)>,
    l ARRAY<CHAR(3)>, m MAP<CHAR(2), CHAR(4)>, e VARIANT"""
VALUES = (
    """SELECT 1, 'ab', 'ab', 'ab ', named_struct('a', 'x', 'b', 'y '), array('p', NULL),
        map('k', 'v'), parse_json('{"k": "ab"}')""",
    """SELECT 2, 'abcde', 'ab ', 'ab', named_struct('a', 'xxxx', 'b', 'y'), array('ppp'),
        map('kk', 'vvvv'), parse_json('{"k": "ab   "}')""",
    "SELECT 3, 'ab\\u0001', NULL, 'ab', NULL, NULL, NULL, NULL",
    "SELECT 4, '', 'abc', '', NULL, NULL, NULL, parse_json('{\"k\": \"\"}')",
)
CONDITIONS = (
    "c = 'ab'", "c = 'ab        '", "c <> 'ab'", "NOT c = 'ab' OR v = 'ab'", "c < 'ab'",
    "c >= 'ab'", "c IN ('ab', 'abcde  ')", "c IN ('ab', NULL)", "c BETWEEN 'ab' AND 'ab'",
    "c LIKE 'ab %'", "startswith(c, 'ab  ')", "c = ''", "c = d", "d < c", "s.a = 'x'",
    "s.a = 'x   '", "l[0] = 'p'", "m['k '] = 'v   '", "cast(c AS STRING) = 'ab'",
    "e:k::string = c", "e:k::string = 'ab' AND c = 'ab'", "c = 'ab' AND length(c) = 5",
    "c IN (SELECT d FROM {t})", "s = named_struct('a', 'x   ', 'b', 'y ')",
)  # fmt: skip
QUERIES = (
    "SELECT * FROM {t}",
    "SELECT c || '.', upper(d), s.a, e:k::string AS k FROM {t}",
    "SELECT a.id, b.id AS other FROM {t} a JOIN {t} b ON a.c = b.d",
    "SELECT a.id FROM {t} a JOIN VALUES ('ab'), ('abcde') w(x) ON a.c = x",
    "SELECT id FROM (SELECT id, c AS k FROM {t} UNION ALL SELECT id, d FROM {t}) WHERE k = 'ab'",
)


def assert_same(ours: DataFrame, theirs: DataFrame, what: str) -> None:
    assert [f.metadata for f in ours.schema.fields] == [f.metadata for f in theirs.schema.fields]
    assert ours.schema == theirs.schema, what
    with changed(theirs.sparkSession, UNADAPTED):
        right = rows(theirs)
    assert rows(ours) == right, what


@pytest.fixture(scope="module")
def lake(delta_spark: SparkSession) -> Lake:
    return connect(delta_spark)


@pytest.fixture(scope="module")
def table(delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("chars") / "t"
    delta_spark.sql(f"CREATE TABLE delta.`{folder}` ({COLUMNS}) USING delta")
    for values in VALUES:
        delta_spark.sql(f"INSERT INTO delta.`{folder}` {values}")
    return f"delta.`{folder}`"


@pytest.mark.rule(29)
@pytest.mark.parametrize("padding", ["true", "false"])
def test_a_char_is_what_it_is_for_spark(
    delta_spark: SparkSession, lake: Lake, table: str, padding: str
) -> None:
    texts = [f"SELECT id FROM {{t}} WHERE {condition}" for condition in CONDITIONS]
    with changed(delta_spark, {"spark.sql.readSideCharPadding": padding}):
        for text in [*QUERIES, *texts] if padding == "true" else [*QUERIES[:2], *texts[:12]]:
            query = text.format(t=table)
            assert_same(lake.sql(query), delta_spark.sql(query), query)


def test_frames_know_their_chars(delta_spark: SparkSession, lake: Lake, table: str) -> None:
    register(delta_spark)
    path = table.split("`")[1]
    theirs = delta_spark.table(table)
    for ours in (lake.read(path), delta_spark.read.format("variantlake").load(path)):
        assert_same(ours, theirs, "whole")
        assert_same(ours.where("c = 'ab'"), theirs.where("c = 'ab'"), "a condition")


def test_files_are_skipped_by_padded_strings(lake: Lake, table: str) -> None:
    (read,) = lake.explain(f"SELECT id FROM {table} WHERE c = 'abcde'").tables
    assert read.scan.read_files < read.scan.total_files == 4


def test_partitions_of_chars(delta_spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    name = f"delta.`{tmp_path / 't'}`"
    delta_spark.sql(
        f"CREATE TABLE {name} (id INT, c CHAR(5), e VARIANT) USING delta PARTITIONED BY (c)"
    )
    delta_spark.sql(f"INSERT INTO {name} VALUES (1, 'ab', NULL), (2, NULL, NULL), (3, 'b', NULL)")
    for condition in ("c = 'ab'", "c > 'ab'", "c LIKE 'ab  %'", "c IS NULL", "id > 0"):
        query = f"SELECT id, c FROM {name} WHERE {condition}"
        assert_same(lake.sql(query), delta_spark.sql(query), query)


def test_an_append_checks_lengths(delta_spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", COLUMNS)
    names = "SELECT {} AS c, {} AS v, named_struct('a', {}) AS s, array({}) AS l"
    lake.append(table.uri, delta_spark.sql(names.format("'ab   '", "'abc  '", "'x'", "'p'")))
    for long in (
        ("'abcdef'", "''", "''", "''"),
        ("''", "'abc d'", "''", "''"),
        ("''", "''", "'xxxxx'", "''"),
        ("''", "''", "''", "'pppp'"),
    ):
        with pytest.raises(InvalidValue, match="holds up to"):
            lake.append(table.uri, delta_spark.sql(names.format(*long)))
        with pytest.raises(InvalidValue, match="holds up to"):
            lake.overwrite(table.uri, delta_spark.sql(names.format(*long)))
    query = f"SELECT c, v, s, l FROM delta.`{table.uri}`"
    assert_same(lake.sql(query), delta_spark.sql(query), query)
    assert [tuple(row) for row in lake.sql(f"SELECT c, v FROM delta.`{table.uri}`").collect()] == [
        ("ab   ", "abc")
    ]
