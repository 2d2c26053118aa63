"""ALTER TABLE beside Delta Spark: the same history, the same columns, the same rows."""

from __future__ import annotations

import json
import operator
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import variantlake as vl
from tests.spark.layouts import rows
from variantlake.delta.protocol.clustering import clustering_columns
from variantlake.errors import (
    InvalidQuery,
    InvalidSchema,
    InvalidValue,
    UnsupportedFeature,
    VariantLakeError,
)
from variantlake.spark.lake import Lake, connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

COLUMNS = """id BIGINT NOT NULL, a INT, s STRUCT<x: INT, y: STRING>,
    l ARRAY<STRUCT<q: INT, r: INT>>, m MAP<INT, STRUCT<k: INT, j: INT>>, v VARIANT,
    arr ARRAY<INT>, mp MAP<INT, ARRAY<FLOAT>>,
    f FLOAT, t TINYINT, d DECIMAL(10, 2), vc VARCHAR(3), p STRING"""
ROW = """1, 2, struct(3, 'y'), array(struct(1, 2)), map(1, struct(1, 2)), parse_json('{"a": 1}'),
    array(1, 2), map(1, array(float(1.5))), float(0.1), 1Y, 1.25, 'abc', 'p'"""
PROPERTIES = "'delta.columnMapping.mode'='name', 'delta.enableTypeWidening'='true'"

STATEMENTS = """
ALTER TABLE {t} RENAME COLUMN a TO b
ALTER TABLE {t} RENAME COLUMN S.x TO xx
ALTER TABLE {t} RENAME COLUMN l.element.q TO qq
ALTER TABLE {t} RENAME COLUMN m.value.k TO `k k`
ALTER TABLE {t} RENAME COLUMN p TO pp
ALTER TABLE {t} RENAME COLUMN v TO w
ALTER TABLE {t} DROP COLUMN IF EXISTS nope
ALTER TABLE {t} DROP COLUMN s.xx
ALTER TABLE {t} DROP COLUMNS (b, l.element.qq)
ALTER TABLE {t} ADD CONSTRAINT cId CHECK (id > 0)
ALTER TABLE {t} DROP CONSTRAINT CID
ALTER TABLE {t} ALTER COLUMN id COMMENT 'it''s'
ALTER TABLE {t} ALTER COLUMN s.y COMMENT 'hello'
ALTER TABLE {t} ALTER COLUMN s COMMENT 'st'
COMMENT ON TABLE {t} IS 'what it is'
COMMENT ON TABLE {t} IS NULL
ALTER TABLE {t} ALTER COLUMN w FIRST
ALTER TABLE {t} ALTER COLUMN w AFTER id
ALTER TABLE {t} ALTER COLUMN m.value.j FIRST
ALTER TABLE {t} ALTER COLUMN id DROP NOT NULL
ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.allowColumnDefaults'='supported', 'x.y'='1')
ALTER TABLE {t} ALTER COLUMN id SET DEFAULT 2 + 3
ALTER TABLE {t} ALTER COLUMN id DROP DEFAULT
ALTER TABLE {t} UNSET TBLPROPERTIES ('x.y')
ALTER TABLE {t} ADD COLUMN z INT AFTER id
ALTER TABLE {t} ADD COLUMNS (y INT COMMENT 'c' FIRST, s.n INT FIRST, o ARRAY<STRUCT<a: INT>>)
ALTER TABLE {t} ALTER COLUMN z TYPE BIGINT
ALTER TABLE {t} ALTER COLUMN s.n TYPE BIGINT
ALTER TABLE {t} ALTER COLUMN s.n TYPE DECIMAL(22,2)
ALTER TABLE {t} ALTER COLUMN arr.element TYPE BIGINT
ALTER TABLE {t} ALTER COLUMN mp.key TYPE BIGINT
ALTER TABLE {t} ALTER COLUMN mp.value.element TYPE DOUBLE
ALTER TABLE {t} ALTER COLUMN f TYPE DOUBLE
ALTER TABLE {t} ALTER COLUMN t TYPE INT
ALTER TABLE {t} ALTER COLUMN d TYPE DECIMAL(14,3)
ALTER TABLE {t} ALTER COLUMN vc TYPE VARCHAR(6)
ALTER TABLE {t} ALTER COLUMN vc TYPE STRING
ALTER TABLE {t} ALTER COLUMN y TYPE BIGINT, s.y COMMENT 'both', t FIRST
ALTER TABLE {t} ALTER COLUMN y DROP NOT NULL, id SET DEFAULT concat(1, 2)
ALTER TABLE {t} ALTER COLUMN id DROP DEFAULT, z COMMENT 'z'
ALTER TABLE {t} CHANGE COLUMN t t BIGINT COMMENT 'tt' AFTER id
ALTER TABLE {t} CHANGE Y y BIGINT FIRST
ALTER TABLE {t} CHANGE COLUMN z z BIGINT
ALTER TABLE {t} ADD COLUMN n2 INT, n3 INT FIRST
ALTER TABLE {t} DROP COLUMN n2, n3
""".strip().splitlines()

_SAME = """m MAP<INT, STRUCT<`k k`: INT, j: INT>>, arr ARRAY<BIGINT>, mp MAP<BIGINT, ARRAY<DOUBLE>>,
    t BIGINT, z BIGINT, f DOUBLE, d DECIMAL(14,3), vc STRING, pp STRING"""
STATEMENTS += [
    f"""ALTER TABLE {{t}} REPLACE COLUMNS (id BIGINT COMMENT 'ident', Y BIGINT, w VARIANT,
    s STRUCT<y: STRING COMMENT 'in', n: DECIMAL(23,2), more: INT>,
    l ARRAY<STRUCT<r2: INT, R: INT>>, {_SAME}, o ARRAY<STRUCT<a: INT>>, extra INT COMMENT 'x')""",
    f"""ALTER TABLE {{t}} REPLACE COLUMNS (w VARIANT, id BIGINT,
    s STRUCT<n: DECIMAL(23,2), y: STRING>, l ARRAY<STRUCT<r: INT>>, {_SAME}, extra BIGINT)""",
]

REFUSED = """
ALTER TABLE {t} RENAME COLUMN nope TO c
ALTER TABLE {t} RENAME COLUMN id TO D
ALTER TABLE {t} DROP COLUMN nope
ALTER TABLE {t} DROP COLUMN pp
ALTER TABLE {t} DROP COLUMN s.nope
ALTER TABLE {t} ALTER COLUMN z TYPE INT
ALTER TABLE {t} ALTER COLUMN z TYPE DOUBLE
ALTER TABLE {t} ALTER COLUMN z TYPE STRING
ALTER TABLE {t} ALTER COLUMN id SET DEFAULT 'abc'
ALTER TABLE {t} ADD COLUMN z INT
ALTER TABLE {t} DROP CONSTRAINT nope
ALTER TABLE {t} ALTER COLUMN nope COMMENT 'x'
ALTER TABLE {t} ALTER COLUMN z AFTER nope
ALTER TABLE {t} ALTER COLUMN z COMMENT 'x', nope COMMENT 'y'
ALTER TABLE {t} ALTER COLUMN z COMMENT 'x', z FIRST
ALTER TABLE {t} CHANGE COLUMN z zz BIGINT
ALTER TABLE {t} CHANGE COLUMN z z INT
ALTER TABLE {t} CLUSTER BY (z)
ALTER TABLE {t} REPLACE COLUMNS (id BIGINT, pp STRING, other INT)
ALTER TABLE {t} REPLACE COLUMNS (id BIGINT NOT NULL, pp STRING)
ALTER TABLE {t} REPLACE COLUMNS (id STRING, pp STRING)
ALTER TABLE {t} REPLACE COLUMNS (id BIGINT, ID BIGINT, pp STRING)
""".strip().splitlines()

_NEW_NAME = re.compile(r"col-[0-9a-f-]{36}")


@pytest.fixture(scope="module")
def lake(delta_spark: SparkSession) -> Lake:
    return connect(delta_spark)


@pytest.fixture(scope="module")
def pair(delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two tables of Delta Spark with all statements: by us, and by Delta Spark."""
    folder = tmp_path_factory.mktemp("alter")
    ours, theirs = folder / "ours", folder / "theirs"
    lake = connect(delta_spark)
    for table, run in ((ours, lake.sql), (theirs, delta_spark.sql)):
        name = f"delta.`{table}`"
        delta_spark.sql(
            f"CREATE TABLE {name} ({COLUMNS}) USING delta PARTITIONED BY (p)"
            f" TBLPROPERTIES ({PROPERTIES})"
        )
        delta_spark.sql(f"INSERT INTO {name} SELECT {ROW}")
        for statement in STATEMENTS:
            assert run(statement.format(t=name)).collect() == []
    return ours, theirs


def _history(table: Path) -> list[tuple[str | None, Any]]:
    found = []
    for entry in reversed(vl.Table.open(table).history()):
        parameters = {}
        for key, value in entry.info["operationParameters"].items():
            text = _NEW_NAME.sub("col", value) if isinstance(value, str) else value
            parameters[key] = json.loads(text) if str(text)[:1] in "[{" else text
            if entry.operation == "CHANGE COLUMNS":  # in no order that Delta Spark promises
                parameters[key] = sorted(parameters[key], key=operator.itemgetter("name"))
        found.append((entry.operation, parameters))
    return found[2:]


def test_the_history_is_that_of_delta_spark(pair: tuple[Path, Path]) -> None:
    ours, theirs = map(_history, pair)
    # What IF EXISTS passes over is no commit of either.
    for mine, other in zip(ours, theirs, strict=True):
        mine[1].pop("properties", None), other[1].pop("properties", None)
        assert mine == other


def test_the_columns_and_rows_are_those_of_delta_spark(
    delta_spark: SparkSession, lake: Lake, pair: tuple[Path, Path]
) -> None:
    ours, theirs = (vl.Table.open(table) for table in pair)
    texts = [_NEW_NAME.sub("col", t.snapshot.metadata.schema_string) for t in (ours, theirs)]
    assert json.loads(texts[0]) == json.loads(texts[1])
    assert ours.snapshot.metadata.partition_columns == ("pp",)
    assert (
        ours.properties["delta.columnMapping.maxColumnId"]
        == (theirs.properties["delta.columnMapping.maxColumnId"])
    )
    answers = [
        rows(read(f"SELECT * FROM delta.`{table}`"))
        for table in pair
        for read in (delta_spark.sql, lake.sql)
    ]
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.parametrize("statement", REFUSED)
def test_what_delta_spark_refuses(
    delta_spark: SparkSession, lake: Lake, pair: tuple[Path, Path], statement: str
) -> None:
    with pytest.raises(VariantLakeError):
        lake.sql(statement.format(t=f"delta.`{pair[0]}`"))
    with pytest.raises(Exception, match=r"\[|Cannot|cannot|calling|not supported"):
        delta_spark.sql(statement.format(t=f"delta.`{pair[1]}`"))


def test_a_table_is_clustered_by_other_columns_as_by_delta_spark(
    delta_spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    for name, run in (("ours", lake.sql), ("theirs", delta_spark.sql)):
        table = f"delta.`{tmp_path / name}`"
        delta_spark.sql(
            f"CREATE TABLE {table} (a INT, b INT, v VARIANT) USING delta TBLPROPERTIES"
            " ('delta.columnMapping.mode'='name')"
        )
        for change in ("CLUSTER BY (a, b)", "CLUSTER BY (b)", "CLUSTER BY NONE"):
            run(f"ALTER TABLE {table} {change}")
    ours, theirs = (vl.Table.open(tmp_path / name) for name in ("ours", "theirs"))
    assert [e.info["operationParameters"] for e in ours.history(3)] == [
        e.info["operationParameters"] for e in theirs.history(3)
    ]
    assert ours.snapshot.features == theirs.snapshot.features
    assert ours.snapshot.domains == theirs.snapshot.domains
    assert clustering_columns(vl.Table.open(tmp_path / "ours", 1).snapshot.domains) != ()
    with pytest.raises(InvalidSchema, match="no order"):
        lake.sql(f"ALTER TABLE delta.`{tmp_path / 'ours'}` CLUSTER BY (v)")


def test_spark_checks_what_rows_must_fulfil(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    listed = {"delta.feature.allowColumnDefaults": "supported"}
    table = vl.Table.create(tmp_path, "s STRUCT<x: INT>, n INT", properties=listed)
    table.append(pa.table({"n": pa.array([1, None], pa.int32()), "s": [{"x": 1}, None]}))
    lake.register("checked", tmp_path)
    with pytest.raises(InvalidValue, match="NOT NULL of column 'n'"):
        lake.sql("ALTER TABLE checked ALTER COLUMN n SET NOT NULL")
    with pytest.raises(InvalidValue, match="CHECK constraint 'c'"):
        lake.sql("ALTER TABLE checked ADD CONSTRAINT c CHECK (s.x > 0)")
    with pytest.raises(InvalidQuery, match="the default of column 'n' is no constant"):
        lake.sql("ALTER TABLE checked ALTER COLUMN n SET DEFAULT s.x")
    lake.sql("ALTER TABLE checked ALTER COLUMN n SET DEFAULT int(substr('x17', 2))")
    lake.append(tmp_path, spark.sql("SELECT struct(5 AS x) AS s"))
    assert table.refresh().scan("n", "n = 17").count() == 1
    assert lake.alter("checked", "ADD CONSTRAINT c CHECK (s IS NULL OR s.x > 0)").version == 4
    with pytest.raises(UnsupportedFeature, match="needs column mapping"):
        lake.sql("ALTER TABLE checked DROP COLUMN n")


def test_two_writers_give_out_the_numbers_of_one_column(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    vl.Table.create(
        tmp_path,
        "id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 3 INCREMENT BY 2), n INT DEFAULT 4,"
        " g INT GENERATED ALWAYS AS (n + 1), v VARIANT, back BIGINT GENERATED BY DEFAULT AS"
        " IDENTITY (INCREMENT BY -1)",
    )
    frame = spark.sql("SELECT int(id) AS n, parse_json('{}') AS v FROM range(0, 6, 1, 2)")
    for _ in range(2):
        lake.append(tmp_path, frame)
        spark.sql(f"INSERT INTO delta.`{tmp_path}` (n) VALUES (7), (8)")
        lake.append(tmp_path, spark.sql("SELECT 5L AS back"))
    with pytest.raises(InvalidSchema, match="gives out its numbers itself"):
        lake.append(tmp_path, spark.sql("SELECT 5L AS id"))
    found = lake.read(tmp_path).collect()
    ids = [row.id for row in found]
    assert len(ids) == len(set(ids)) == 18
    assert all(number >= 3 and number % 2 for number in ids)
    assert all(row.g == row.n + 1 for row in found)
    given = [row.back for row in found if row.back != 5]
    assert len(given) == len(set(given)) == 16
