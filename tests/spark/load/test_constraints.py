"""The SQL that a table demands of new rows is evaluated by Spark, on paths of Variants too."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import variantlake as vl
from tests.delta.tables import create_table
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.delta.schema.table_schema import StructField, StructType
from variantlake.errors import InvalidQuery, InvalidSchema, InvalidValue, UnsupportedFeature
from variantlake.storage.opening import open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]


def _with(schema: StructType, column: str, **metadata: Any) -> StructType:
    """The schema with metadata on one column; `_` in a key stands for a point."""
    keys = {key.replace("_", ".", 1): value for key, value in metadata.items()}

    def changed(field: StructField) -> StructField:
        return replace(field, metadata=keys) if field.name == column else field

    return StructType(tuple(map(changed, schema.fields)))


@pytest.fixture
def table(tmp_path: Path) -> Snapshot:
    schema = parse_table_ddl("event VARIANT, n INT, k INT, day STRING, twice BIGINT")
    schema = _with(schema, "twice", delta_generationExpression="n * 2")
    schema = _with(schema, "day", CURRENT_DEFAULT="concat('2026-', '01')")
    schema = _with(
        schema, "n", delta_invariants=json.dumps({"expression": {"expression": "n < 100"}})
    )
    metadata = {field.name: dict(field.metadata) for field in schema.fields}
    assert metadata["day"] == {"CURRENT.DEFAULT": "concat('2026-', '01')"}
    schema = StructType(
        tuple(
            replace(field, metadata={"CURRENT_DEFAULT": "concat('2026-', '01')"})
            if field.name == "day"
            else field
            for field in schema.fields
        )
    )
    properties = {
        "delta.constraints.positive": "n > 0",
        "delta.constraints.kind": "variant_get(event, '$.kind', 'string') IN ('a', 'b')",
    }
    create_table(open_store(tmp_path), schema, properties=properties)
    return Snapshot.read(tmp_path)


def _frame(spark: SparkSession, sql: str) -> DataFrame:
    return spark.sql(sql)


def test_defaults_and_generated_columns_are_filled_in(spark: SparkSession, table: Snapshot) -> None:
    from variantlake.spark.load.constraints import evaluated

    frame = _frame(spark, """SELECT '{"kind": "a"}' AS event, id AS n FROM range(1, 3)""")
    found, json_columns = evaluated(frame, table, ["event"])
    assert json_columns == frozenset()
    assert found.columns == ["event", "n", "day", "twice"]
    assert found.schema["twice"].dataType.simpleString() == "bigint"
    rows = found.selectExpr("n", "day", "twice", "event:kind::string AS kind").collect()
    assert [tuple(row) for row in rows] == [(1, "2026-01", 2, "a"), (2, "2026-01", 4, "a")]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (
            """parse_json('{"kind": "a"}') AS event, 0 AS n""",
            r"CHECK constraint 'positive' \(n > 0\)",
        ),
        ("""parse_json('{"kind": "a"}') AS event, CAST(NULL AS INT) AS n""", "positive"),
        ("""parse_json('{"kind": "c"}') AS event, 1 AS n""", "CHECK constraint 'kind'"),
        ("""parse_json('{}') AS event, 1 AS n""", "CHECK constraint 'kind'"),
        ("1 AS n", "CHECK constraint 'kind'"),
        ("""parse_json('{"kind": "b"}') AS event, 100 AS n""", "the invariant of column 'n'"),
        (
            """parse_json('{"kind": "b"}') AS event, 3 AS n, 5L AS twice""",
            r"the generated column 'twice' \(`twice` <=> \(n \* 2\)\): {\"n\":3",
        ),
    ],
)
def test_a_row_that_breaks_a_rule_is_refused_with_the_rule(
    spark: SparkSession, table: Snapshot, row: str, sentence: str
) -> None:
    from variantlake.spark.load.constraints import evaluated, refusals

    found, _ = evaluated(_frame(spark, f"SELECT {row}"), table)
    with pytest.raises(InvalidValue, match=sentence), refusals():
        found.collect()
    with pytest.raises(ValueError, match="something else"), refusals():
        raise ValueError("something else")


def test_rules_are_checked_whatever_spark_optimizes_away(
    spark: SparkSession, table: Snapshot
) -> None:
    from variantlake.spark.load.constraints import evaluated

    bad = _frame(spark, """SELECT parse_json('{"kind": "a"}') AS event, -1 AS n, 'x' AS day""")
    found, _ = evaluated(bad, table)
    with pytest.raises(Exception, match="positive"):
        found.select("day").collect()


def test_a_table_without_expressions_leaves_the_frame_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    from variantlake.spark.load.constraints import evaluated

    create_table(open_store(tmp_path), parse_table_ddl("event VARIANT"))
    frame = _frame(spark, "SELECT '1' AS event")
    assert evaluated(frame, Snapshot.read(tmp_path), ["event"]) == (frame, frozenset({"event"}))


GENERATED = _with(
    parse_table_ddl("event VARIANT, k INT"),
    "k",
    delta_generationExpression="variant_get(event, '$.k', 'int')",
)


def test_delta_spark_evaluates_a_column_generated_from_a_variant(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    create_table(open_store(tmp_path), GENERATED)
    insert = f"INSERT INTO delta.`{tmp_path}`"
    delta_spark.sql(insert + """ (event) SELECT parse_json('{"k": 5}')""")
    assert [row.k for row in delta_spark.table(f"delta.`{tmp_path}`").collect()] == [5]
    with pytest.raises(Exception, match="DELTA_VIOLATE_CONSTRAINT"):
        delta_spark.sql(insert + """ SELECT parse_json('{"k": 5}'), 6""")


def test_a_variant_is_not_generated_and_has_no_default(tmp_path: Path) -> None:
    schema = parse_table_ddl("a VARIANT, n INT")
    for metadata, message in [
        ({"delta_generationExpression": "parse_json('1')"}, "'a' is generated"),
    ]:
        with pytest.raises(InvalidSchema, match=message):
            create_table(open_store(tmp_path), _with(schema, "a", **metadata))


def test_rows_are_evaluated_on_their_way_into_the_table(
    spark: SparkSession, table: Snapshot
) -> None:
    import variantlake as vl

    lake = vl.spark.connect(spark)
    good = spark.sql("""SELECT '{"kind": "a"}' AS event, CAST(id AS INT) AS n FROM range(1, 4)""")
    assert lake.append(table.store.uri, good, json_columns=["event"]).version == 1
    bad = spark.sql("""SELECT '{"kind": "z"}' AS event, 7 AS n""")
    with pytest.raises(InvalidValue, match="breaks the CHECK constraint 'kind'"):
        lake.append(table.store.uri, bad, json_columns=["event"])
    name = f"delta.`{table.store.uri}`"
    rows = spark.sql(f"SELECT n, day, twice FROM {name} ORDER BY n").collect()
    assert [tuple(row) for row in rows] == [(n, "2026-01", 2 * n) for n in (1, 2, 3)]
    assert table.refresh().version == 1
    with pytest.raises(UnsupportedFeature, match="the table uses the feature"):
        vl.Table.open(table.store.uri).append(pa.table({"n": pa.array([1], pa.int32())}))


def test_a_constraint_is_added_once_every_row_fulfils_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = vl.spark.connect(spark)
    table = vl.Table.create(tmp_path, "event VARIANT, n INT")
    rows = pa.table(
        {"event": ['{"k": "a"}', '{"k": "b"}', None], "n": pa.array([1, 2, 3], "int32")}
    )
    table.append(rows, json_columns=["event"])
    kinds = "variant_get(event, '$.k', 'string') IN ('a', 'b')"
    with pytest.raises(InvalidValue, match=r"CHECK constraint 'kinds'.*\"n\":3"):
        lake.add_constraint(tmp_path, "kinds", kinds)
    with pytest.raises(InvalidValue, match=r"NOT NULL of column 'event'"):
        lake.set_not_null(tmp_path, "event")
    with pytest.raises(InvalidQuery, match="'kinds' is not a condition on a row"):
        lake.add_constraint(tmp_path, "kinds", "missing > 0")
    for text in ("n", "count(*) > 0", "n > 0 AS x", "explode(array(true))", "n > 0, n > 1"):
        with pytest.raises(InvalidQuery, match=r"not a condition on a row: \["):
            lake.add_constraint(tmp_path, "kinds", text)
    for text in ("rand() < 2", "n IN (SELECT 1)", "EXISTS (SELECT 1)", "(SELECT max(2)) > 1"):
        with pytest.raises(InvalidQuery, match="'kinds' has a subquery"):
            lake.add_constraint(tmp_path, "kinds", text)
    assert table.refresh().version == 1
    assert lake.add_constraint(tmp_path, "Kinds", f"event IS NULL OR {kinds}").version == 2
    assert lake.set_not_null(tmp_path, "n").version == 3
    assert table.refresh().properties["delta.constraints.kinds"] == f"event IS NULL OR {kinds}"
    with pytest.raises(InvalidValue, match="has a constraint 'kinds'"):
        lake.add_constraint(tmp_path, "kinds", "n > 0")
    bad = spark.sql("""SELECT parse_json('{"k": "c"}') AS event, 4 AS n""")
    with pytest.raises(InvalidValue, match="'kinds'"):
        lake.append(tmp_path, bad)
    # Delta Spark keeps to them, and drops them.
    for values in ('parse_json(\'{"k": "c"}\'), 4', "NULL, NULL"):
        with pytest.raises(Exception, match=r"DELTA_(VIOLATE|NOT_NULL)"):
            spark.sql(f"INSERT INTO delta.`{tmp_path}` SELECT {values}")
    spark.sql(f"ALTER TABLE delta.`{tmp_path}` DROP CONSTRAINT kinds")
    assert lake.append(tmp_path, bad).version == 5
