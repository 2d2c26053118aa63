"""CREATE TABLE, LIKE, AS SELECT and REPLACE TABLE beside Delta Spark, and without its jar."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.types import VariantVal

import variantlake as vl
from tests.spark.layouts import UNADAPTED, changed
from variantlake.errors import (
    CommitConflict,
    InvalidQuery,
    InvalidSchema,
    InvalidValue,
    NotADeltaTable,
    UnsupportedFeature,
)
from variantlake.spark.lake import Lake, connect
from variantlake.spark.load.append import append
from variantlake.spark.load.append_target import NewTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

STATEMENTS = """
CREATE TABLE {t} (id INT NOT NULL COMMENT 'x', b STRING DEFAULT 'q',
    c INT GENERATED ALWAYS AS (id + 1), vc VARCHAR(3))
    USING delta PARTITIONED BY (b) COMMENT 'it''s' TBLPROPERTIES ('x'='y',
    'delta.feature.allowColumnDefaults'='supported', 'delta.enableRowTracking'='true')
INSERT INTO {t} (id, vc) VALUES (1, 'abc')
CREATE OR REPLACE TABLE {t} USING delta PARTITIONED BY (p) COMMENT 'cc' TBLPROPERTIES ('z'='1')
    AS SELECT 1 AS a, 'x' AS p UNION ALL SELECT 2, NULL
CREATE OR REPLACE TABLE {t} USING delta AS SELECT a + 1 AS a, p FROM {t}
INSERT INTO {t} VALUES (7, 'y')
REPLACE TABLE {t} (id BIGINT, v VARIANT, day DATE) USING delta CLUSTER BY (id)
    DEFAULT COLLATION UTF8_BINARY
INSERT INTO {t} VALUES (1, parse_json('{{"a": [1, null]}}'), DATE'2026-01-01')
CREATE OR REPLACE TABLE {t} USING delta AS SELECT id, v, v:a[0]::int AS n FROM {t}
CREATE OR REPLACE TABLE {t} USING delta AS SELECT id AS z FROM range(0)
CREATE OR REPLACE TABLE {t} (a INT COMMENT 'of a', vc VARCHAR(3) COMMENT 'short') USING delta
CREATE OR REPLACE TABLE {t} USING delta OPTIONS ('o' = 'p') TBLPROPERTIES ('q' = 'r')
    AS SELECT a, vc, a + 1 AS b FROM {t}
REPLACE TABLE {t} (s STRUCT<a: INT COMMENT 'it''s a', b: ARRAY<STRUCT<x: INT COMMENT 'x'>>>)
    USING delta
INSERT INTO {t} SELECT named_struct('a', 1, 'b', array(named_struct('x', 2)))
CREATE OR REPLACE TABLE {t} USING delta AS SELECT s, s.a AS a, s.b AS b, s.b[0].x AS x FROM {t}
""".strip()

OURS_ALONE = ("delta.enableVariantShredding",)


def _statements() -> list[str]:
    return re.split(r"\n(?! )", STATEMENTS)


@pytest.fixture(scope="module")
def lake(delta_spark: SparkSession) -> Lake:
    return connect(delta_spark)


@pytest.fixture(scope="module")
def pair(delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two tables with the same statements: by us, and by Delta Spark, whose has a name."""
    folder = tmp_path_factory.mktemp("create")
    ours, theirs = folder / "ours", folder / "theirs"
    lake = connect(delta_spark)
    for statement in _statements():
        lake.sql(statement.format(t=f"delta.`{ours}`"))
        text = statement.format(t="beside_ours")
        place = f"USING delta LOCATION '{theirs}'"
        with changed(delta_spark, UNADAPTED):
            delta_spark.sql(text.replace("USING delta", place) if "CREATE TABLE" in text else text)
    delta_spark.sql("DROP TABLE beside_ours")
    return ours, theirs


def _history(table: Path) -> list[tuple[str | None, dict[str, Any], bool]]:
    found = []
    for entry in reversed(vl.Table.open(table).history()):
        parameters = dict(entry.info["operationParameters"])
        properties = json.loads(parameters.get("properties", "{}"))
        assert not [k for k in properties if k.startswith("variantlake.learned.")]
        own = {k for k in properties if k in OURS_ALONE or k.startswith("variantlake.")}
        kept = {k: v for k, v in properties.items() if k not in own}
        parameters["properties"] = {k: "" if "Column" in k else v for k, v in kept.items()}
        found.append((entry.operation, parameters, entry.info["isBlindAppend"]))
    return found


def test_the_history_is_that_of_delta_spark(pair: tuple[Path, Path]) -> None:
    ours, theirs = map(_history, pair)
    assert ours == theirs
    assert ours[-7][0] == "CREATE OR REPLACE TABLE AS SELECT"


def _shown(row: Sequence[Any]) -> str:
    """A row, its Variants by their JSON."""
    return str([each.toJson() if isinstance(each, VariantVal) else each for each in row])


def test_all_versions_have_the_rows_and_columns_of_delta_spark(
    delta_spark: SparkSession, pair: tuple[Path, Path]
) -> None:
    for version in range(len(_statements())):
        tables = [vl.Table.open(path, version) for path in pair]
        fields = [
            [(f.name, f.type, f.nullable, f.metadata) for f in table.schema.fields]
            for table in tables
        ]
        assert fields[0] == fields[1], version
        partitions = [table.snapshot.metadata.partition_columns for table in tables]
        assert partitions[0] == partitions[1]
        assert tables[0].snapshot.metadata.description == tables[1].snapshot.metadata.description
        both = " UNION ALL ".join(
            f"SELECT {at} AS __of, * FROM delta.`{path}` VERSION AS OF {version}"
            for at, path in enumerate(pair)
        )
        with changed(delta_spark, UNADAPTED):
            rows = delta_spark.sql(both).collect()
        shown = [sorted(_shown(row[1:]) for row in rows if row[0] == at) for at in (0, 1)]
        assert shown[0] == shown[1], version
        assert tables[0].scan().count() == len(shown[0])


def test_rows_stay_tracked_and_ids_go_on(pair: tuple[Path, Path]) -> None:
    """Delta Spark keeps row tracking through REPLACE, whose properties do not name it."""
    ours = vl.Table.open(pair[0]).snapshot
    assert ours.properties["delta.enableRowTracking"] == "true"
    marks = [
        json.loads(vl.Table.open(p).snapshot.domains["delta.rowTracking"].configuration)
        for p in pair
    ]
    assert marks[0]["rowIdHighWaterMark"] == marks[1]["rowIdHighWaterMark"]


def test_a_table_like_another_has_all_but_its_rows(
    delta_spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    delta_spark.sql(
        f"CREATE TABLE delta.`{source}` (id INT NOT NULL COMMENT 'x', b STRING, vc VARCHAR(3),"
        " c INT GENERATED ALWAYS AS (id + 1)) USING delta PARTITIONED BY (b) COMMENT 'hello'"
        " TBLPROPERTIES ('x'='y', 'delta.columnMapping.mode'='name',"
        " 'delta.enableDeletionVectors'='true', 'delta.enableRowTracking'='true')"
    )
    delta_spark.sql(f"ALTER TABLE delta.`{source}` ADD CONSTRAINT cc CHECK (id > 0)")
    delta_spark.sql(f"INSERT INTO delta.`{source}` (id, b) VALUES (1, 'p')")
    for name, run in (("ours", lake.sql), ("theirs", delta_spark.sql)):
        run(
            f"CREATE TABLE delta.`{tmp_path / name}` LIKE delta.`{source}`"
            " USING delta TBLPROPERTIES ('r'='1')"
        )
    ours, theirs = (vl.Table.open(tmp_path / name).snapshot for name in ("ours", "theirs"))
    assert _history(tmp_path / "ours") == _history(tmp_path / "theirs")
    assert ours.schema == theirs.schema
    assert set(ours.protocol.writer_features or ()) == set(theirs.protocol.writer_features or ())
    assert ours.protocol.reader_features == theirs.protocol.reader_features
    names = [
        vl.Table.open(tmp_path / each).properties["delta.rowTracking.materializedRowIdColumnName"]
        for each in ("ours", "source")
    ]
    assert names[0] != names[1]
    delta_spark.sql(f"INSERT INTO delta.`{tmp_path / 'ours'}` (id, b) VALUES (2, 'q')")
    assert vl.Table.open(tmp_path / "ours").scan(["id", "c"]).to_arrow().to_pylist() == [
        {"id": 2, "c": 3}
    ]


def test_without_the_jar_a_table_is_made_at_a_place(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    """A session whose catalog is Spark's own: names are for this lake."""
    place = tmp_path / "it's"
    with changed(delta_spark, {"spark.sql.catalog.spark_catalog": ""}):
        lake = connect(delta_spark)
        text = str(place).replace("'", "\\'")
        lake.sql(f"CREATE TABLE Plain USING delta LOCATION '{text}' AS SELECT 5 AS n")
        assert [tuple(row) for row in lake.sql("SELECT n FROM plain").collect()] == [(5,)]
        lake.sql(
            "CREATE OR REPLACE TABLE plain USING delta PARTITIONED BY (n)"
            " AS SELECT n + 0 AS n, 1 AS m FROM plain"
        )
        assert vl.Table.open(place).snapshot.partition_columns == ("n",)
        lake.sql("CREATE TABLE IF NOT EXISTS plain (a INT) USING delta")
        assert vl.Table.open(place).version == 1
        with pytest.raises(UnsupportedFeature, match="needs a place") as caught:
            lake.sql("CREATE TABLE nowhere (a INT) USING delta")
        assert "LOCATION" in str(caught.value.hint)


def test_a_table_with_numbers_is_replaced_by_one_without(lake: Lake, tmp_path: Path) -> None:
    name = f"delta.`{tmp_path / 't'}`"
    lake.sql(f"CREATE TABLE {name} (id BIGINT GENERATED ALWAYS AS IDENTITY, n INT)")
    lake.append(tmp_path / "t", lake.sql("SELECT explode(array(3, 4)) AS n"))
    lake.sql(f"CREATE OR REPLACE TABLE {name} AS SELECT id, n FROM {name} WHERE n = 4")
    assert [(row.id is not None, row.n) for row in lake.read(tmp_path / "t").collect()] == [
        (True, 4)
    ]
    assert not vl.Table.open(tmp_path / "t").schema.fields[0].metadata


def test_paths_of_variants_cluster_a_new_table(lake: Lake, tmp_path: Path) -> None:
    for number, more in enumerate(("(v VARIANT, n INT)", "AS SELECT parse_json('1') AS v, 1 AS n")):
        clause = "CLUSTER BY (v:a::int, n)"
        at = (more, clause) if number == 0 else (clause, more)
        lake.sql(f"CREATE TABLE delta.`{tmp_path / str(number)}` {' '.join(at)}")
        table = vl.Table.open(tmp_path / str(number))
        assert table.properties["variantlake.clusterBy"] == "v:a::int, n"
        assert "clustering" not in table.snapshot.features


def test_rows_that_others_added_meanwhile_are_not_replaced(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"delta.`{tmp_path / 't'}`"
    lake.sql(f"CREATE TABLE {name} AS SELECT 1 AS a")

    def meanwhile(*args: Any, **options: Any) -> Any:
        vl.Table.open(tmp_path / "t").append([{"a": 2}])
        return append(*args, **options)

    monkeypatch.setattr("variantlake.spark.lake.new_tables.append", meanwhile)
    with pytest.raises(CommitConflict, match="added file"):
        lake.sql(f"CREATE OR REPLACE TABLE {name} AS SELECT a FROM {name}")
    assert vl.Table.open(tmp_path / "t").scan().count() == 2


@pytest.mark.parametrize("verb", ["CREATE", "CREATE OR REPLACE", "append"])
def test_rows_of_a_new_table_obey_its_constraints(
    lake: Lake, spark: SparkSession, tmp_path: Path, verb: str
) -> None:
    place = tmp_path / "t"
    rule = {"delta.constraints.c": "id > 5"}
    if "REPLACE" in verb:
        vl.Table.create(place, "id INT")

    def write(number: int) -> None:
        if verb == "append":
            frame = spark.createDataFrame([(number,)], "id INT")
            append(spark, frame, place, new=NewTable(properties=rule))
            return
        said = ", ".join(f"'{name}' = '{text}'" for name, text in rule.items())
        query = f"TBLPROPERTIES ({said}) AS SELECT {number} AS id"
        lake.sql(f"{verb} TABLE delta.`{place}` USING delta {query}")

    with pytest.raises(InvalidValue, match=r"CHECK constraint 'c' \(id > 5\)"):
        write(1)
    assert place.exists() == ("REPLACE" in verb)
    write(6)
    assert vl.Table.open(place).scan().to_pylist() == [{"id": 6}]


REFUSED = [
    ("CREATE TABLE {t} AS SELECT 1 AS a", CommitConflict, "there is a table already"),
    ("CREATE TABLE {t} (b INT)", CommitConflict, "there is a table already"),
    ("CREATE TABLE {n} (b INT) AS SELECT 1", InvalidQuery, "takes its columns from the query"),
    ("CREATE TABLE {n} (b INT) LOCATION '/x'", InvalidQuery, "has no LOCATION"),
    ("CREATE TABLE {n} (b INT, t DATE) PARTITIONED BY (years(t))", UnsupportedFeature, "partition"),
    ("CREATE TABLE {n} (b INT) CLUSTERED BY (b) INTO 3 BUCKETS", UnsupportedFeature, "CLUSTERED"),
    ("CREATE TABLE {n} (v VARIANT, a INT) PARTITIONED BY (v)", InvalidSchema, "Variant"),
    ("CREATE TABLE {n} AS SELECT nope", InvalidQuery, "nope"),
    ("CREATE TABLE {n} (b INT) DEFAULT COLLATION UTF8_LCASE", UnsupportedFeature, "UTF8_LCASE"),
    ("CREATE TABLE {n} (b INT PRIMARY KEY)", InvalidSchema, "expected ','"),
    ("REPLACE TABLE {n} (b INT)", NotADeltaTable, "not a Delta"),
    ("REPLACE TABLE {n} AS SELECT 1 AS a", NotADeltaTable, "not a Delta"),
]


@pytest.mark.parametrize(("statement", "error", "says"), REFUSED)
def test_what_cannot_be_made_is_refused_and_leaves_nothing(
    lake: Lake, tmp_path: Path, statement: str, error: type[Exception], says: str
) -> None:
    lake.sql(f"CREATE TABLE delta.`{tmp_path / 't'}` (a INT)")
    with pytest.raises(error, match=says):
        lake.sql(statement.format(t=f"delta.`{tmp_path / 't'}`", n=f"delta.`{tmp_path / 'new'}`"))
    assert not (tmp_path / "new").exists()
    assert vl.Table.open(tmp_path / "t").version == 0
