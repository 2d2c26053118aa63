"""Queries in expressions: what they give is put in as constants, and the rows are Spark's."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

import variantlake as vl
from variantlake.engine import subqueries
from variantlake.errors import InvalidQuery, InvalidValue, UnsupportedFeature

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DDL = "id BIGINT, n INT, d DOUBLE, f FLOAT, p DECIMAL(6,2), day DATE, at TIMESTAMP, event VARIANT"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> vl.Table:
    """Two files of six rows; `n`, `d`, `p`, `day`, `at` and a path have NULLs."""
    made = vl.Table.create(
        tmp_path_factory.mktemp("subqueries") / "t", DDL, shredding={"event": "kind STRING"}
    )
    doubles = (0.0, -0.0, float("nan"), None, 1.5, 3.0)
    for start in (0, 6):
        made.refresh().append(
            [
                {
                    "id": start + k,
                    "n": None if k == 3 else k - 2,
                    "d": doubles[k],
                    "f": 1.5 * k,
                    "p": None if k == 4 else Decimal(k) + Decimal("0.25"),
                    "day": None if k == 1 else date(2024, 1, start + k + 1),
                    "at": None if k == 2 else datetime(2024, 1, 1, 0, 0, k, tzinfo=UTC),
                    "event": {"kind": None if k == 5 else f"ké{k}", "tags": [k]},
                }
                for k in range(6)
            ]
        )
    return made.refresh()


CONDITIONS = [
    "id IN (SELECT n FROM t)",
    "n NOT IN (SELECT n FROM t)",
    "n NOT IN (SELECT n FROM t WHERE id < 2)",
    "n NOT IN (SELECT n FROM t WHERE false)",
    "n IN (SELECT p FROM t)",
    "d IN (SELECT d FROM t WHERE id IN (1, 2))",
    "d NOT IN (SELECT d FROM t WHERE id IN (1, 2))",
    "at IN (SELECT at FROM t WHERE id < 4)",
    "event:kind::string NOT IN (SELECT event:kind::string FROM t WHERE id < 3)",
    "day IN (SELECT max(day) FROM t GROUP BY n)",
    "id IN (SELECT id FROM t ORDER BY id DESC LIMIT 2 OFFSET 1)",
    "id = 7 OR NOT (n IN (SELECT n FROM t) AND id > 3)",
    "n = (SELECT max(n) FROM t) AND id > (SELECT avg(id) FROM t)",
    "id BETWEEN (SELECT min(n) FROM t) AND (SELECT count(*) FROM t) - 8",
    "p = (SELECT max(p) FROM t WHERE id < 3)",
    "at < (SELECT max(at) FROM t)",
    "n = (SELECT n FROM t WHERE false)",
    "EXISTS (SELECT * FROM t WHERE id = 3)",
    "NOT EXISTS (SELECT event FROM t WHERE id > 30) AND id < 2",
    "EXISTS (SELECT id FROM t LIMIT 1 OFFSET 12)",
]
QUERIES = [
    "SELECT id, (SELECT max(id) FROM t) AS top, id - (SELECT avg(n) FROM t) AS m FROM t",
    "SELECT n, count(*) AS c FROM t GROUP BY ALL HAVING n IN (SELECT n FROM t WHERE id > 8)",
    "SELECT k FROM (SELECT id AS k FROM t WHERE n IN (SELECT n FROM t WHERE id < 3)) WHERE k > 1",
    "SELECT n + 1 AS m, count(*) AS c FROM t WHERE id < 0 GROUP BY ALL",
    "SELECT count(*) AS c FROM t WHERE id < 0 GROUP BY ALL",
    "SELECT id FROM t ORDER BY id DESC LIMIT 3 OFFSET 2",
    "SELECT id FROM t ORDER BY id OFFSET 10",
    "SELECT n, count(*) AS c FROM t GROUP BY n ORDER BY n LIMIT 2 OFFSET 1",
]


def test_conditions_of_queries_skip_files(table: vl.Table) -> None:
    for condition in ("id IN (SELECT n FROM t)", "id <= (SELECT max(n) FROM t)"):
        assert table.sql(f"SELECT id FROM t WHERE {condition}").explain().read_files == 1


@pytest.mark.parametrize(
    ("condition", "named"),
    [
        ("CASE WHEN id IN (SELECT n FROM t) THEN id = 1 END", r"IN \(SELECT …\) in an expression"),
        ("(id IN (SELECT n FROM t)) IS NULL", r"IN \(SELECT …\) in an expression"),
        ("EXISTS (SELECT 1 FROM t i WHERE i.id = o.n)", "by itself: the table has no column 'o'"),
        ("id IN (SELECT id FROM other)", "by itself: there is no table 'other'"),
        ("f IN (SELECT f FROM t)", "FLOAT"),
        ("id IN (SELECT event FROM t)", "stands for values needs a type"),
        ("id IN (SELECT n FROM t UNION SELECT 1)", "in an expression"),
        ("event:kind::string IN (SELECT n FROM t)", "comparison"),
    ],
)
def test_what_spark_has_to_run_is_refused_by_name(
    table: vl.Table, condition: str, named: str
) -> None:
    with pytest.raises((UnsupportedFeature, InvalidQuery), match=named) as caught:
        table.sql(f"SELECT id FROM t o WHERE {condition}")
    assert caught.value.hint


def test_a_query_of_with_is_read_once(table: vl.Table) -> None:
    text = "WITH w AS (SELECT id FROM t) SELECT id FROM w WHERE id IN (SELECT id FROM w)"
    with pytest.raises(UnsupportedFeature, match="more than once"):
        table.sql(text)


def test_many_values_are_refused(table: vl.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subqueries, "MOST_VALUES", 6)
    query = "SELECT count(*) AS n FROM t WHERE id IN (SELECT id FROM t WHERE id < {})"
    assert table.sql(query.format(6)).to_pylist() == [{"n": 6}]
    with pytest.raises(UnsupportedFeature, match="more than 6 different values"):
        table.sql(query.format(7))


def test_several_rows_stand_for_no_value(table: vl.Table) -> None:
    with pytest.raises(InvalidQuery, match="gives several rows"):
        table.sql("SELECT id FROM t WHERE id = (SELECT id FROM t)")
    with pytest.raises(InvalidQuery, match="a query of 2 columns"):
        table.sql("SELECT id FROM t WHERE id IN (SELECT id, n FROM t)")


def test_what_cannot_be_computed_is_not_called_a_cast(table: vl.Table) -> None:
    for text in ("n + 2147483647", "id / n"):
        with pytest.raises(InvalidValue, match="cannot be cast or computed") as caught:
            table.sql(f"SELECT {text} AS x FROM t").to_arrow()
        assert "larger type" in str(caught.value.hint)


@pytest.mark.spark
@pytest.mark.usefixtures("interpreted")
def test_they_give_sparks_rows(spark: SparkSession, table: vl.Table) -> None:
    rows = vl.spark.connect(spark).read(table.uri)
    texts = rows.withColumn("event", F.to_json("event")).collect()
    schema = ", ".join(
        f"{field.name} {field.dataType.simpleString().replace('variant', 'string')}"
        for field in rows.schema
    )
    local = spark.createDataFrame(texts, schema).withColumn("event", F.parse_json("event"))
    local.createOrReplaceTempView("t")
    try:
        # Planned and run as one, which takes a tenth of the time.
        every = [f"SELECT {at} AS at, id FROM t WHERE {c}" for at, c in enumerate(CONDITIONS)]
        right = {(row.at, row.id) for row in spark.sql(" UNION ALL ".join(every)).collect()}
        for at, condition in enumerate(CONDITIONS):
            found = table.sql(f"SELECT id FROM t WHERE {condition}").to_pylist()
            assert {(at, row["id"]) for row in found} == {
                each for each in right if each[0] == at
            }, condition
        for text in QUERIES:
            judged = [tuple(map(str, row)) for row in spark.sql(text).collect()]
            ours = [tuple(map(str, row.values())) for row in table.sql(text).to_pylist()]
            assert Counter(ours) == Counter(judged), text
            assert ours == judged or "ORDER BY" not in text, text
    finally:
        spark.catalog.dropTempView("t")
