"""The names of columns without an alias are Spark's."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import variantlake as vl
from variantlake.errors import UnsupportedFeature

DDL = (
    "n BIGINT, i INT, d DOUBLE, s STRING, dt DATE, ts TIMESTAMP, b BOOLEAN, m DECIMAL(10,2), "
    "event VARIANT, st STRUCT<x: INT>"
)
NAMED = (
    "n", "t.n", "st.x", "`n`", "(n)", "N", "event:a", "event:a.b::int", "event:l[0]::int", "n::int",
    "cast(s AS INT)", "int(s)", "bigint(n)", "date(ts)", "1", "1.50", "'x'", "true", "NULL", "-1",
    "n + 1", "n - i * 2", "(n + i) * 2", "-n + 1", "-(n + 1)", "n / 2", "n % 2", "n div 2",
    "n + .5", "cast(n AS DOUBLE)", "(st.x)", "cast((st.x) AS STRING)", "cast(n + 1 AS STRING)",
    "n & i", "n | i", "n ^ i", "~n", "n = 1", "n <> 1", "n != 1", "n <=> NULL", "n IS NULL",
    "n = 1 AND i = 2 AND b", "n = 1 AND i = 2 OR b", "NOT b", "NOT (n = 1)", "b IS NOT TRUE",
    "n IN (1, 2)", "n NOT IN (1)", "n BETWEEN 1 AND 2", "n NOT BETWEEN 1 AND 2", "s LIKE 'x%'",
    "s NOT LIKE 'x'", "s ILIKE 'X%'", "s NOT ILIKE 'X'", "s RLIKE 'x'", "rlike(s, 'x')",
    "n IS DISTINCT FROM 1", "n IS NOT DISTINCT FROM 1", "equal_null(n, 1)", "s = 'it''s'",
    "s || 'x' || 'y'", "concat(s, 'x')", "concat_ws('-', s, s)", "upper(S)", "UPPER(lower(s))",
    "ucase(s)", "length(s)", "len(s)", "char_length(s)", "substring(s, 1, 2)", "substring(s, 2)",
    "substr(s, 1, 2)", "substr(s, 2)", "left(s, 1)", "right(s, 1)", "trim(s)", "ltrim(s)",
    "rtrim(s)", "btrim(s)", "lpad(s, 2)", "rpad(s, 2, 'x')", "replace(s, 'x', 'y')",
    "translate(s, 'a', 'b')", "repeat(s, 2)", "reverse(s)", "split_part(s, '-', 1)",
    "substring_index(s, '-', 1)", "instr(s, 'x')", "locate('x', s)", "position('x' IN s)",
    "contains(s, 'x')", "endswith(s, 'x')", "startswith(s, 'x')", "octet_length(s)", "md5(s)",
    "sha2(s, 256)", "crc32(s)", "hex(s)", "regexp_like(s, 'x')", "regexp_replace(s, 'x', 'y')",
    "regexp_count(s, 'x')", "regexp_substr(s, 'x')", "abs(n)", "sign(n)", "signum(n)",
    "negative(n)", "round(d)", "round(m, 1)",
    "round(n, 1)", "coalesce(s)", "cast(cast(n AS INT) AS STRING)", "int(event:n)", "n::bigint",
    "(n::bigint)::bigint", "greatest(n, n)", "ceil(n)", "event:a::variant",
    "bround(d)", "ceil(d)", "ceiling(d)", "floor(m)",
    "sqrt(n)", "isnan(d)", "mod(n, 2)", "pmod(n, 2)", "greatest(n, i, 1)", "least(n, i)",
    "try_add(n, 1)", "try_divide(n, 1)", "try_mod(n, 2)", "coalesce(n, i, 0)", "nvl(s, 'x')",
    "ifnull(s, 'x')", "nullif(n, 1)", "nvl2(s, 1, 2)", "zeroifnull(n)", "if(n > 1, n, i)",
    "CASE WHEN n > 1 THEN 'a' WHEN n = 1 THEN 'b' ELSE 'c' END", "CASE n WHEN 1 THEN 'a' END",
    "year(dt)", "month(ts)", "day(ts)", "quarter(ts)", "weekofyear(ts)", "dayofweek(ts)",
    "hour(ts)", "last_day(dt)", "add_months(dt, 1)", "to_date(s)", "unix_seconds(ts)",
    "timestamp_micros(n)", "current_date()", "now()", "typeof(n)", "is_variant_null(event:a)",
    "event:n::int + n", "event:s::string = 'x'", "lower(event:s)", "event:a IS NULL",
    "try_cast(s AS INT) + 1", "event:n::decimal(10,2) + 1", "upper(event::string)",
    "variant_get(event, '$.n', 'int') + 1", "try_variant_get(event, '$.n', 'int')",
)  # fmt: skip
NAMED_AGGREGATES = (
    "count(*)", "count(1)", "COUNT(n)", "count(event:a)", "count(DISTINCT event:s::string)",
    "count(DISTINCT n + 1)", "sum(event:n::int)", "max(t.n)", "max(st.x)", "sum(n) + 1",
    "sum(n) / count(*)", "max(n) - min(n)", "count(*) FILTER (WHERE n > 1)", "count_if(n > 1)",
    "min(event:a.b::int) FILTER (WHERE b)", "sum(if(b, 1, 0))", "bool_or(n > 1)",
    "sum(CASE WHEN b THEN 1 ELSE 0 END)", "sum(variant_get(event, '$.n', 'int'))",
    "avg(event:n::decimal(4,2))", "max(length(s))", "sum(Event:N::bigint)",
)  # fmt: skip
UNNAMED = (
    "n + 1e0", "n + 1L", "dt + 1", "dt - 1", "date_add(dt, 1)", "extract(YEAR FROM dt)",
    "date_trunc('month', ts)", "date_format(ts, 'yyyy')", "event:`n`::int + 1", "n IS NOT NULL",
    "event:a['b']::int + 1", "trim(BOTH 'x' FROM s)", "rtrim('x', s)",
    "s LIKE 'x' ESCAPE '!'", "s LIKE ANY ('a', 'b')", "split(s, ',')[0]", "isnull(n)",
    "ts + INTERVAL 1 DAY", "dt = DATE'2024-01-01'", "datediff(DAY, dt, dt)", "positive(n)",
)  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> vl.Table:
    return vl.Table.create(tmp_path_factory.mktemp("names") / "t", DDL)


def test_names_without_an_alias_are_those_of_spark(spark: SparkSession, table: vl.Table) -> None:
    spark.read.format("delta").load(table.uri).createOrReplaceTempView("t")
    try:
        for texts in (NAMED, NAMED_AGGREGATES):
            wanted = spark.sql(f"SELECT {', '.join(texts)} FROM t").columns
            found = [table.sql(f"SELECT {text} FROM t").schema.names[0] for text in texts]
            assert found == wanted
    finally:
        spark.catalog.dropTempView("t")


@pytest.mark.parametrize("text", UNNAMED)
def test_a_name_that_is_not_known_is_asked_for(table: vl.Table, text: str) -> None:
    with pytest.raises(UnsupportedFeature, match="without a name of its own") as error:
        table.sql(f"SELECT {text} FROM t")
    assert error.value.hint == "give it one: … AS name"
    assert table.sql(f"SELECT {text} AS name FROM t").schema.names == ["name"]


def test_items_over_a_query_in_from_are_named_by_its_columns(table: vl.Table) -> None:
    text = (
        "SELECT upper(k), q.k || 'x', max(x + 1) FROM (SELECT s AS k, event:n::int AS x FROM t) q"
    )
    names = table.sql(f"{text} GROUP BY k").schema.names
    assert names == ["upper(k)", "concat(k, x)", "max((x + 1))"]
