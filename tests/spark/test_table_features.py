"""Tables whose features a scan has to obey, with Delta Spark as the judge of the same table.

Column mapping, deletion vectors, widened types, partitions: in every group of files, physical and
native, and in every mixture of them.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

import variantlake as vl
from tests import corpora
from tests.spark.layouts import COMPILED, UNADAPTED, changed, rows
from tests.spark.query.test_reading import executed
from variantlake.delta.log.log_segment import commit_path
from variantlake.errors import InvalidQuery
from variantlake.planning import late_materialization
from variantlake.spark.lake import Lake, connect
from variantlake.spark.scan import pushed_aggregates
from variantlake.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]


@pytest.fixture(scope="module")
def lake(delta_spark: SparkSession) -> Lake:
    return connect(delta_spark)


def assert_same(
    spark: SparkSession, lake: Lake, query: str, ways: Sequence[Mapping[str, str]] = ({},)
) -> None:
    """Delta Spark answers once, we under each of the settings."""
    theirs = spark.sql(query)
    with changed(spark, UNADAPTED):
        right = rows(theirs)
    for way in ways:
        with changed(spark, way):
            ours = lake.sql(query)
            assert ours.schema == theirs.schema
            assert rows(ours) == right, f"{query}, {way}"


@pytest.fixture
def grouped(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """Settings with which our tasks, and the driver, group rows of small tables too."""
    monkeypatch.setattr(pushed_aggregates, "REPEATED", 0)
    least, most = pushed_aggregates.MIN_BYTES_SETTING, pushed_aggregates.DRIVER_BYTES_SETTING
    return [{least: "0", most: bytes_of_driver} for bytes_of_driver in ("0", "1000000000")]


def create(spark: SparkSession, table: Path, columns: str, properties: str, more: str = "") -> None:
    spark.sql(
        f"CREATE TABLE delta.`{table}` ({columns}) USING delta {more} TBLPROPERTIES ({properties})"
    )


DOCUMENT = """parse_json(concat('{"id":', id, ',"kind":"k', id % 5, '","n":{"x":', id * 2,
    if(id % 3 = 0, ',"odd key":null', ''), '}}'))"""


# --- Column mapping and deletion vectors ----------------------------------------------------------

MAPPED = """event VARIANT, k INT, st STRUCT<a: INT, `odd b`: STRING, v: VARIANT>,
    l ARRAY<STRUCT<q: INT>>, p DATE"""
RENAMED = {"event": "doc", "st.a": "aa", "p": "the day", "l.element.q": "r"}
MAPPED_ROWS = f"""{DOCUMENT}, int(id), named_struct('a', int(id), 'odd b', concat('b', id),
    'v', parse_json(concat('{{"id":', id, '}}'))), array(named_struct('q', int(id))),
    date_add(date'2024-01-01', int(id % 3))"""


@pytest.fixture(scope="module", params=["name", "id"])
def mapped(
    request: pytest.FixtureRequest,
    delta_spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> str:
    """Columns renamed at each depth, files shredded and not, deleted rows in some of them."""
    table = tmp_path_factory.mktemp("mapped") / "t"
    create(
        delta_spark,
        table,
        MAPPED,
        f"'delta.columnMapping.mode'='{request.param}', 'delta.enableDeletionVectors'='true', "
        "'delta.enableVariantShredding'='true'",
        "PARTITIONED BY (p)",
    )
    insert = f"INSERT INTO delta.`{table}` SELECT {MAPPED_ROWS} FROM range"
    delta_spark.sql(f"{insert}(0, 300, 1, 1)")
    for old, new in RENAMED.items():
        delta_spark.sql(f"ALTER TABLE delta.`{table}` RENAME COLUMN {old} TO `{new}`")
    delta_spark.sql(
        f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.enableVariantShredding'='false')"
    )
    delta_spark.sql(f"{insert}(300, 330, 1, 1)")
    delta_spark.sql(f"DELETE FROM delta.`{table}` WHERE k % 7 = 3 AND `the day` <> '2024-01-03'")
    return str(table)


QUERIES = {
    "everything": "SELECT * FROM {t}",
    "paths": "SELECT doc:id::int i, k, doc:n['odd key']::string s, `the day` FROM {t}",
    "conditions": """SELECT doc:id::bigint FROM {t}
        WHERE doc:id::int BETWEEN 20 AND 310 AND doc:kind::string IN ('k1', 'k3') AND k > 30""",
    "inside-structs": """SELECT st.v:id::int i, st.aa, st.`odd b`, l[0].r FROM {t}
        WHERE st.aa > 100 AND `the day` >= '2024-01-02'""",
    "conditions-in-structs": """SELECT k, st.aa FROM {t}
        WHERE st.AA BETWEEN 20 AND 310 AND NOT (st.`odd b` = 'b105' OR st.aa IS NULL)
          AND (st.aa IN (25, 101, 105, 106, 320) OR startswith(st.`odd b`, 'b30'))""",
    "groups": "SELECT `the day`, doc:kind::string, count(*) FROM {t} GROUP BY ALL",
    "counts": "SELECT count(*), count(doc), count(doc:n.x::int), max(k) FROM {t}",
    "one-row": "SELECT k FROM {t} WHERE doc:id::int = 3 OR doc:id::int = 4",
    "self-join": """SELECT count(*) FROM {t} a JOIN {t} b ON a.doc:id::int = b.doc:id::int + 1
        WHERE b.`the day` = '2024-01-01'""",
}  # fmt: skip


@pytest.mark.rule(24)
@pytest.mark.parametrize("name", QUERIES)
def test_mapped_columns_and_deleted_rows(
    delta_spark: SparkSession, lake: Lake, mapped: str, name: str
) -> None:
    assert_same(delta_spark, lake, QUERIES[name].format(t=f"delta.`{mapped}`"))


def test_conditions_on_renamed_fields_of_structs_skip_in_the_files(
    delta_spark: SparkSession, lake: Lake, mapped: str
) -> None:
    condition = "st.aa > 321 AND st.`odd b` <> 'b325' AND k < 328"
    query = f"SELECT k FROM delta.`{mapped}` WHERE {condition}"
    (found,) = lake.explain(query).to_dict()["tables"]
    assert {"predicate": "st.aa > 321", "files": 3} in found["skipped_by"]
    assert {row.k for row in lake.sql(query).collect()} == {322, 323, 324, 326, 327}
    with changed(delta_spark, {"spark.sql.maxMetadataStringLength": "10000"}):
        plan = executed(lake.sql(query))
    pushed = [part.split("]")[0] for part in plan.split("PushedFilters: [")[1:]]
    assert pushed
    for filters in pushed:
        for expected in (",321)", "b325", ",328)"):
            assert expected in filters


@pytest.mark.parametrize("columns", ["doc, `the day`, l", "doc:n, k, st.aa, st.v:id::int AS i"])
def test_mapped_columns_and_deleted_rows_where_our_kernels_read(
    delta_spark: SparkSession,
    lake: Lake,
    mapped: str,
    columns: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(late_materialization, "MIN_BYTES", 0)
    query = f"SELECT {columns} FROM delta.`{mapped}` WHERE doc:kind::string = 'k1' AND k > 5"
    assert lake.explain(query).to_dict()["tables"][0]["rows_found_by"]
    assert_same(delta_spark, lake, query)


def test_read_applies_them_too(delta_spark: SparkSession, lake: Lake, mapped: str) -> None:
    theirs = delta_spark.read.format("delta").load(mapped)
    ours = lake.read(mapped)
    assert ours.schema == theirs.schema
    assert rows(ours) == rows(theirs)


def test_explain_shows_the_names_of_the_query(lake: Lake, mapped: str) -> None:
    query = f"SELECT doc:nope::int FROM delta.`{mapped}` WHERE doc:id::int < 9 AND k < 12"
    report = lake.explain(query)
    assert "col-" not in str(report).replace("part-", "")
    (scan,) = report.to_dict()["tables"]
    assert scan["files"]["skipped"] > 0
    assert "doc:id::int" in {use["path"] for use in scan["paths"]}


@pytest.mark.rule(24)
def test_rule_24_columns_that_took_each_others_names(
    delta_spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    table = f"delta.`{tmp_path / 't'}`"
    columns = "k INT, j INT, e VARIANT, f VARIANT"
    create(delta_spark, tmp_path / "t", columns, "'delta.enableVariantShredding'='true'")
    other = DOCUMENT.replace("id,", "id + 1000,", 1)
    delta_spark.sql(
        f"""INSERT INTO {table}
            SELECT int(id), int(id) + 1000, {DOCUMENT}, {other} FROM range(0, 100, 1, 1)"""
    )
    delta_spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.columnMapping.mode'='name')")
    for one, two in (("k", "j"), ("e", "f")):
        for old, new in ((one, "x"), (two, one), ("x", two)):
            delta_spark.sql(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
    for condition in ("k > 1050", "e:id::int > 1050", "j < 49", "f:id::int < 49"):
        query = f"SELECT k, j, e:id::int a, f:id::int b FROM {table} WHERE {condition}"
        assert lake.sql(query).count() == 49
        assert_same(delta_spark, lake, query)
        assert Table.open(tmp_path / "t").scan("k", condition).to_arrow().num_rows == 49


@pytest.mark.rule(15)
def test_rule_15_no_row_is_matched_by_the_text_of_a_path(
    delta_spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    """Deleted rows stay deleted in a folder whose name means something to URIs."""
    table = tmp_path / "a %41 {b}#? é"
    create(delta_spark, table, "event VARIANT", "'delta.enableDeletionVectors'='true'")
    delta_spark.sql(f"INSERT INTO delta.`{table}` SELECT {DOCUMENT} FROM range(0, 200, 1, 2)")
    delta_spark.sql(f"DELETE FROM delta.`{table}` WHERE variant_get(event, '$.id', 'int') % 2 = 0")
    found = lake.sql(f"SELECT count(*), sum(event:id::int % 2) FROM delta.`{table}`")
    assert tuple(found.collect()[0]) == (100, 100)


@pytest.mark.rule(1)
@pytest.mark.parametrize(
    "condition",
    [
        "k > 0 AND variant_get(event, '$.x', 'date') > '2023-01-01'",
        "cast(s AS int) < k",
        "1 / k > 0",
    ],
)
def test_rule_1_a_condition_is_not_evaluated_for_deleted_rows(
    delta_spark: SparkSession, lake: Lake, tmp_path: Path, condition: str
) -> None:
    create(
        delta_spark,
        tmp_path / "t",
        "event VARIANT, k INT, s STRING, __vl_file INT",
        "'delta.enableDeletionVectors'='true'",
    )
    delta_spark.sql(
        f"""INSERT INTO delta.`{tmp_path / "t"}`
            SELECT parse_json(IF(id = 3, '{{"x": {{}}}}', '{{"x": "2024-01-01"}}')),
                   int(id) - 3, IF(id = 3, 'bad', '0'), int(id) FROM range(0, 9, 1, 1)"""
    )
    delta_spark.sql(f"DELETE FROM delta.`{tmp_path / 't'}` WHERE k = 0")
    query = f"SELECT k, __vl_file FROM delta.`{tmp_path / 't'}` WHERE {condition}"
    # A column of the table may have the name of the files' numbers.
    assert sorted(map(tuple, lake.sql(query).collect())) == [(k, k + 3) for k in range(1, 6)]


@pytest.fixture
def compiled(delta_spark: SparkSession) -> Iterator[None]:
    with changed(delta_spark, COMPILED):
        yield


@pytest.mark.usefixtures("compiled")
def test_random_deletes_and_queries(delta_spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    """Vectors that grow, over files of several row groups, against Delta Spark."""
    rng, table = random.Random(7), tmp_path / "t"
    create(
        delta_spark,
        table,
        "event VARIANT, k INT",
        "'delta.enableDeletionVectors'='true', 'delta.enableVariantShredding'='true'",
    )
    delta_spark.sql(
        f"INSERT INTO delta.`{table}` SELECT {DOCUMENT}, int(id % 97) FROM range(0, 6000, 1, 2)"
    )
    for _ in range(3):
        low = rng.randrange(6000)
        delta_spark.sql(
            f"DELETE FROM delta.`{table}` WHERE k = {rng.randrange(97)} OR "
            f"variant_get(event, '$.id', 'int') BETWEEN {low} AND {low + rng.randrange(900)}"
        )
        terms = [
            f"doc:id::int BETWEEN {low - 50} AND {low + 1000}",
            f"doc:kind::string = 'k{rng.randrange(6)}'",
            f"k > {rng.randrange(97)}",
        ]
        where = " AND ".join(rng.sample(terms, 2))
        assert_same(
            delta_spark,
            lake,
            f"SELECT doc:id::int, k, doc:n.x::string FROM (SELECT event AS doc, k "
            f"FROM delta.`{table}`) WHERE {where}",
        )


# --- Types that grew ------------------------------------------------------------------------------


def test_files_from_before_a_type_was_widened(
    delta_spark: SparkSession, lake: Lake, tmp_path: Path, grouped: list[dict[str, str]]
) -> None:
    table = tmp_path / "t"
    create(
        delta_spark,
        table,
        "event VARIANT, b BYTE, i INT, f FLOAT, d DATE, m DECIMAL(5,2), st STRUCT<x: SHORT>, p INT",
        "'delta.enableTypeWidening'='true', 'delta.feature.timestampNtz'='supported'",
        "PARTITIONED BY (p)",
    )
    delta_spark.sql(
        f"INSERT INTO delta.`{table}` SELECT {DOCUMENT}, tinyint(id), int(id * 100000), "
        "float(id / 3), date_add(date'2024-01-01', int(id)), cast(id * 1.25 AS decimal(5,2)), "
        "named_struct('x', smallint(id)), int(id % 2) FROM range(50)"
    )
    wider = {"b": "INT", "i": "BIGINT", "f": "DOUBLE", "d": "TIMESTAMP_NTZ", "m": "DECIMAL(12,4)",
             "st.x": "INT", "p": "BIGINT"}  # fmt: skip
    for column, type_ in wider.items():
        delta_spark.sql(f"ALTER TABLE delta.`{table}` ALTER COLUMN {column} TYPE {type_}")
    delta_spark.sql(
        f"INSERT INTO delta.`{table}` SELECT {DOCUMENT}, int(id * 1000), id * 10000000000, id / 3, "
        "timestamp_ntz'2024-01-01 10:00:00', cast(id * 1.125 AS decimal(12,4)), "
        "named_struct('x', int(id * 10000)), id % 2 FROM range(50)"
    )
    for query in (
        "SELECT * FROM {t}",
        "SELECT event:id::int, st.x FROM {t} WHERE i >= 4000000 AND b < 45 AND m > 3.5 AND p = 0",
        "SELECT event:id::int FROM {t} WHERE st.x < 20 AND d > timestamp_ntz'2024-01-09 11:00:00'",
    ):
        assert_same(delta_spark, lake, query.format(t=f"delta.`{table}`"))
    for query in (
        "SELECT DISTINCT b, i, d, m, p FROM {t}",
        "SELECT p, count(*), sum(b), sum(i), sum(m), avg(b), max(f) FROM {t} GROUP BY p",
        "SELECT min(b), max(i), min(f), max(d), min(d), max(m), sum(p), avg(m) FROM {t}",
        "SELECT f, count(*), count(DISTINCT m), max(event:id::int) AS id FROM {t} GROUP BY f",
        "SELECT count(*), max(event:kind::string) AS k FROM {t} WHERE m = 3.75 AND b < 45",
    ):
        assert_same(delta_spark, lake, query.format(t=f"delta.`{table}`"), grouped)


# --- Partitions -----------------------------------------------------------------------------------

PARTITION_VALUES: dict[str, tuple[str, list[str | None]]] = {
    "s": ("string", ["a", "it's 100%", "b", None, "x\x01\n\\ é😀", "__HIVE_DEFAULT_PARTITION__"]),
    "i": ("integer", ["-5", "2147483647", None, None, "0", "7"]),
    "l": ("long", ["-5", "9223372036854775807", None, None, "0", "7"]),
    "d": ("date", ["2024-02-29", "0001-01-01", None, None, "9999-12-31", "1582-10-15"]),
    "t": (
        "timestamp",
        [
            "2024-03-31 02:30:00",
            "2024-03-31T01:30:00.123456Z",
            None,
            None,
            "1900-01-01 00:00:00",
            None,
        ],
    ),
    "n": (
        "timestamp_ntz",
        ["2024-03-31 02:30:00.5", "1900-01-01 00:00:00", None, None, None, None],
    ),
    "m": ("decimal(10,2)", ["1.10", "-99999999.99", None, None, "0.00", "1.1"]),
    "o": ("boolean", ["true", "false", None, None, "true", "false"]),
    "x": ("binary", ["abc", "\x01\x02", "b", None, "é", "z"]),
    "f": ("double", ["1.5", "NaN", None, None, "-0.0", "1.0E300"]),
}


def partitioned_table(
    root: Path, columns: dict[str, str], values: list[dict[str, str | None]]
) -> str:
    """A table of two rows (`k` 0 and 1) for each of the partition values."""
    log = root / "_delta_log"
    log.mkdir(parents=True)
    pq.write_table(pa.table({"k": pa.array([0, 1], pa.int32())}), root / "first.parquet")
    features = ["timestampNtz"]
    fields = [
        {"name": name, "type": type_, "nullable": True, "metadata": {}}
        for name, type_ in {"k": "integer", **columns}.items()
    ]
    actions: list[dict[str, Any]] = [
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": features,
                "writerFeatures": features,
            }
        },
        {
            "metaData": {
                "id": "0",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": list(columns),
                "configuration": {},
                "createdTime": 0,
            }
        },
    ]
    size = (root / "first.parquet").stat().st_size
    for number, partition in enumerate(values):
        shutil.copy(root / "first.parquet", root / f"{number}.parquet")
        add = {
            "path": f"{number}.parquet",
            "size": size,
            "modificationTime": 0,
            "dataChange": True,
            "partitionValues": partition,
        }
        actions.append({"add": add})
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)), encoding="utf-8")
    return str(root)


@pytest.mark.rule(15)
def test_partition_values_of_every_type(
    delta_spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    columns = {name: type_ for name, (type_, _) in PARTITION_VALUES.items()}
    values = [{name: texts[at] for name, (_, texts) in PARTITION_VALUES.items()} for at in range(6)]
    table = partitioned_table(tmp_path / "t", columns, values)
    zone = "spark.sql.session.timeZone"
    for name in ("UTC", "Europe/Berlin"):
        delta_spark.conf.set(zone, name)
        try:
            for query in (
                "SELECT k, s, i, l, string(d), string(t), string(n), m, o, hex(x), string(f)",
                "SELECT k, i, string(t) WHERE t > '2020-01-01' OR f IS NULL",
                "SELECT count(*), s WHERE s LIKE 'a%' OR m > 1 GROUP BY s",
                "SELECT k, string(d) WHERE o AND k = 1 AND i <> 7",
            ):
                select, _, where = query.partition(" WHERE ")
                text = f"{select} FROM delta.`{table}`" + (f" WHERE {where}" if where else "")
                assert_same(delta_spark, lake, text)
        finally:
            delta_spark.conf.set(zone, "UTC")


@pytest.mark.rule(35)
def test_rule_35_groups_by_partition_values_of_every_type(
    delta_spark: SparkSession, lake: Lake, tmp_path: Path, grouped: list[dict[str, str]]
) -> None:
    columns = {name: type_ for name, (type_, _) in PARTITION_VALUES.items()}
    values = [{name: texts[at] for name, (_, texts) in PARTITION_VALUES.items()} for at in range(6)]
    table = f"delta.`{partitioned_table(tmp_path / 't', columns, values)}`"
    for name, type_ in columns.items():
        # As text, in which NaN is itself.
        shown = f"hex({name})" if type_ == "binary" else f"string({name})"
        rows_of = f"(SELECT {name}, count(*) AS rows, max(k) AS k FROM {table} GROUP BY {name})"
        assert_same(delta_spark, lake, f"SELECT {shown}, rows, k FROM {rows_of}", grouped)
        different = f"(SELECT DISTINCT {name} FROM {table} WHERE k = 1)"
        assert_same(delta_spark, lake, f"SELECT {shown} FROM {different}", grouped)
        least = f"(SELECT min({name}) AS {name}, count(DISTINCT {name}) AS count FROM {table})"
        assert_same(delta_spark, lake, f"SELECT {shown}, count FROM {least}", grouped)


def test_an_empty_partition_value_is_null(lake: Lake, tmp_path: Path) -> None:
    """For every type, as the protocol says; Delta Spark writes none, and reads '' as a string."""
    table = partitioned_table(tmp_path / "t", {"s": "string", "x": "binary"}, [{"s": "", "x": ""}])
    assert lake.sql(f"SELECT s, x FROM delta.`{table}` WHERE s IS NULL").count() == 2
    assert lake.sql(f"SELECT s FROM delta.`{table}` WHERE s = ''").count() == 0


@pytest.mark.rule(15)
def test_a_thousand_partitions_are_one_scan(lake: Lake, tmp_path: Path) -> None:
    values: list[dict[str, str | None]] = [{"p": str(number)} for number in range(1000)]
    table = partitioned_table(tmp_path / "t", {"p": "integer"}, values)
    frame = lake.sql(f"SELECT count(*), sum(k), sum(p) FROM delta.`{table}` WHERE p >= 100")
    assert tuple(frame.collect()[0]) == (1800, 900, 2 * sum(range(100, 1000)))
    java: Any = frame._jdf
    assert str(java.queryExecution().sparkPlan().toString()).count("FileScan") == 1
    join = f"""SELECT count(*) FROM delta.`{table}` t
        JOIN (SELECT explode(sequence(5, 9)) AS p) s USING (p)"""
    assert lake.sql(join).collect()[0][0] == 10


# --- Tables of others -----------------------------------------------------------------------------

CONFORMANCE = corpora.DELTA_TABLES


@pytest.mark.corpus(corpora.DELTA_TABLES)
@pytest.mark.parametrize(
    "name",
    [
        "spark-shredded-variant-preview-delta",
        "spark-variant-checkpoint",
        "variant-stats-no-checkpoint",
        "variant-stats-state-reconstruction",
    ],
)
def test_conformance_tables(delta_spark: SparkSession, lake: Lake, name: str) -> None:
    table = CONFORMANCE / name
    assert_same(delta_spark, lake, f"SELECT * FROM delta.`{table}`")
    theirs = delta_spark.read.format("delta").load(str(table))
    assert rows(lake.read(table)) == rows(theirs)


def test_time_travel_by_a_timestamp_in_the_text(
    delta_spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    """With Delta Spark's parser in the session, where Spark binds no parameters."""
    create(delta_spark, tmp_path / "t", "event VARIANT", "'delta.appendOnly'='false'")
    delta_spark.sql(f"INSERT INTO delta.`{tmp_path / 't'}` SELECT {DOCUMENT} FROM range(3)")
    at = f"delta.`{tmp_path / 't'}` TIMESTAMP AS OF"
    new_year = dt.datetime(2100, 1, 1, tzinfo=dt.UTC).timestamp()
    os.utime(tmp_path / "t" / commit_path(1), (new_year, new_year))
    reader = delta_spark.read.format("delta")
    for end, count in (("", 3), (".000999", 3), (".001", None), (" +00:00", 3), (" -00:01", None)):
        text = f"2100-01-01 00:00:00{end}"
        if count is None:
            with pytest.raises(InvalidQuery, match="after the table's newest version"):
                lake.sql(f"SELECT count(*) FROM {at} '{text}'")
            with pytest.raises(PySparkException, match="DELTA_TIMESTAMP_GREATER_THAN_COMMIT"):
                reader.option("timestampAsOf", text).load(str(tmp_path / "t"))
        else:
            assert lake.sql(f"SELECT count(*) FROM {at} '{text}'").collect()[0][0] == count
            assert reader.option("timestampAsOf", text).load(str(tmp_path / "t")).count() == count
    with pytest.raises(InvalidQuery, match="that old"):
        lake.sql(f"SELECT count(*) FROM {at} '2001-01-01'")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_empty_commit_changes_nothing(
    delta_spark: SparkSession, lake: Lake, tmp_path: Path, version: int
) -> None:
    place = tmp_path / "t"
    create(delta_spark, place, "n INT", "'delta.appendOnly'='false'")
    for number in range(3):
        delta_spark.sql(f"INSERT INTO delta.`{place}` VALUES ({number})")
    (place / commit_path(version)).write_bytes(b"")
    for checksum in (place / "_delta_log").glob("*.crc"):
        checksum.unlink()
    theirs = rows(delta_spark.read.format("delta").load(str(place)))
    assert len(theirs) == 2
    assert rows(lake.read(place)) == theirs
    assert vl.Table.open(place).append(pa.table({"n": pa.array([7], pa.int32())})).version == 4
    assert rows(lake.read(place)) == rows(delta_spark.read.format("delta").load(str(place)))
