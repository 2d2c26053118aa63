"""Functions and casts of our expressions give what Spark's give."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.errors import InvalidQuery, InvalidValue, UnsupportedFeature, VariantLakeError
from variantlake.expressions.functions.java_patterns import re2_pattern
from variantlake.quoting import quote_string
from variantlake.sql.select import QueryText

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DDL = (
    "n INT, k BIGINT, sm SMALLINT, s STRING, u STRING, d DOUBLE, f FLOAT, "
    "dec DECIMAL(10,2), dt DATE, ts TIMESTAMP, b BOOLEAN"
)
MOMENT = dt.datetime(2024, 2, 29, 10, 30, 15, 250, dt.UTC)
ROWS = (
    (3, 5, 1, "a", "A", 1.5, 1.5, Decimal("10.25"), dt.date(2024, 1, 1), MOMENT, True),
    (7, -3, 2, "abc%", " ABC ", float("nan"), float("nan"), Decimal("-0.01"),
     dt.date(1969, 12, 31), dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC), False),
    (None,) * 11,
    (2**31 - 1, 2**63 - 1, 2**15 - 1, "", "\t x ", float("inf"), float("-inf"),
     Decimal("99999999.99"), dt.date(9999, 12, 31), dt.datetime(9999, 12, 31, 23, tzinfo=dt.UTC),
     True),
    (0, 0, 0, "10", "1e1\n", -0.0, 0.0, Decimal(0), dt.date(1970, 1, 1),
     dt.datetime(1970, 1, 1, tzinfo=dt.UTC), False),
    (-2, 2, -2, "z😀", "_", 2.0, 2.5, Decimal("2.00"), dt.date(2000, 2, 29),
     dt.datetime(1900, 1, 1, 0, 0, 1, tzinfo=dt.UTC), True),
    (1, 10, 1, "a b_c", "ab", 1e300, 1e30, Decimal("12.34"), dt.date(1582, 10, 4),
     dt.datetime(1582, 10, 4, 12, tzinfo=dt.UTC), True),
)  # fmt: skip
CONDITIONS = (
    "s LIKE '%b%'", "s LIKE 'a_c%'", "s NOT LIKE '_'", "s LIKE ''", "s LIKE '%😀'", "u LIKE '%\n'",
    "u ILIKE '%B%'", "u NOT ILIKE 'a_'", "contains(s, 'b')", "contains(s, '')", "endswith(s, '%')",
    "trim(u) = 'ABC'", "ltrim(u) = 'ABC '", "rtrim(u) = ' ABC'", "trim(u) = '\t x'",
    "floor(d) = 1", "ceil(f) > 2", "floor(d) = 0", "floor(n) = 3", "ceil(d) = 9223372036854775807",
    "n & sm = 1", "k | n = 7", "k ^ n > 0", "~k = -6", "greatest(n, k, sm) = 10",
    "least(s, u) = 'A'", "greatest(dt, DATE'2000-01-01') = dt", "greatest(dec, n) = 7",
    "nvl2(s, n, k) = 3", "d IS DISTINCT FROM f", "n IS DISTINCT FROM NULL", "f = d", "d + f > 3",
    "dec > n", "dec = k", "k IN (n, 2, sm)", "dec IN (n, 2)", "cast(n AS DOUBLE) / 2 = 1.5",
    "cast(dec AS BIGINT) = 12", "cast(dec AS INT) = 0", "cast(k % 100 AS TINYINT) = 7",
    "cast(n AS BOOLEAN)", "cast(b AS INT) + 1 = 2", "cast(n AS STRING) LIKE '%7'",
    "cast(b AS STRING) = 'true'", "cast(dt AS STRING) = '2024-01-01'", "cast(ts AS DATE) = dt",
    "cast(dt AS TIMESTAMP) < ts", "date_add(dt, 1) = DATE'2024-01-02'", "date_sub(dt, sm) < dt",
    "dt - INTERVAL 2 DAY = DATE'2023-12-30'", "dt + INTERVAL '1' DAY > dt",
    "datediff(dt, DATE'2024-01-01') = 0", "dayofyear(dt) = 60",
    "quarter(ts) = 1", "dayofweek(dt) = 2", "year(dt) = 9999", "date_trunc('WEEK', ts) < ts",
    "date_trunc('month', ts) = TIMESTAMP'2024-02-01 00:00:00'", "date_trunc('hour', ts) = ts",
    "date_trunc('quarter', ts) = TIMESTAMP'1969-10-01 00:00:00'", "date_trunc('day', ts) = ts",
    "trunc(dt, 'MM') = DATE'2024-01-01'", "trunc(dt, 'year') = dt", "trunc(dt, 'week') = dt",
    "sign(k) = -1", "signum(d) = 1", "negative(n) = -3", "pmod(k, 7) = 4", "pmod(n, -7) = -4",
    "round(d) = 2", "round(d, 1) = 1.5", "bround(f + d, 1) = 3.0", "round(dec, 1) = 12.3",
    "bround(dec, 1) = 10.2", "round(n, 2) = 7", "ceil(dec) = 11", "floor(dec) = -1",
    "try_divide(k, n) IS NULL", "equal_null(s, u)", "zeroifnull(n) = 0", "nullifzero(n) IS NULL",
    "replace(s, 'b', 'é') = 'aéc%'", "replace(u, 'A') = ''", "instr(s, 'c') = 3",
    "locate('😀', s) = 2", "position('b' IN s) > 0", "right(s, 1) = '%'", "reverse(s) = '😀z'",
    "repeat(s, 2) = 'aa'", "concat_ws('-', s, u) = 'a-A'", "split_part(s, ' ', -1) = 'b_c'",
    "octet_length(s) = 5", "btrim(u) = 'ABC'", "substring(s, -3, 2) = 'bc'", "s RLIKE '^a'",
    "u RLIKE '[0-9]e1$'", "regexp_like(u, '\\\\s')", "last_day(dt) = DATE'2024-01-31'",
    "add_months(dt, -1) = DATE'2000-01-29'", "weekofyear(dt) = 1", "weekday(ts) = 3",
    "extract(WEEK FROM ts) = 9", "extract(DOW FROM dt) = 2", "dayname(dt) = 'Mon'",
    "monthname(dt) = 'Feb'", "unix_seconds(ts) = -1", "unix_timestamp(ts) = 0",
    "unix_millis(ts) % 1000 = 0", "unix_micros(ts) = -1", "unix_date(dt) = 0",
    "dt - INTERVAL 1 MONTH = DATE'2000-01-29'", "ts - INTERVAL 4 YEARS < ts",
    "dt - INTERVAL 2 WEEKS < dt", "cast(dec AS STRING) = '2.00'", "cast(d AS STRING) = '-0.0'",
    "cast(cast(n AS STRING) AS BIGINT) = 7", "try_cast(s AS INT) = 10",
    "try_cast(u AS DOUBLE) = 10", "try_cast(u AS DECIMAL(4,1)) = 10.0", "try_cast(k AS INT) = 5",
    "try_cast(s AS BOOLEAN)", "try_cast(d AS INT) = 1", "try_cast(u AS DATE) IS NULL",
    "cast(cast(dt AS STRING) AS DATE) = dt", "to_date(cast(dt AS STRING)) = dt",
    "try_cast(concat(cast(dt AS STRING), 'T10:00:00Z') AS TIMESTAMP) > ts",
    "lpad(s, 3, 'xy') = 'xya'", "rpad(u, 4, 'é😀') = 'Aé😀é'", "lpad(s, 2) = 'ab'",
    "translate(s, 'abcb', 'xy') = 'xy%'", "rpad(s, -1, 'x') = ''",
    "substring_index(s, ' ', 1) = 'a'", "substring_index(s, 'b', -1) = '_c'", "hex(s) = '3130'",
    "hex(k) = 'FFFFFFFFFFFFFFFD'", "md5(s) = md5(u)", "sha1(s) LIKE '0%'",
    "sha2(s, 256) > sha2(u, 0)",
    "crc32(s) > 2000000000", "bit_length(s) = 40", "trim(BOTH 'ac' FROM s) = 'b_'",
    "trim(LEADING 'a' FROM s) = ''", "regexp_extract(s, '(.)b(_)?', 1) = ' '",
    "regexp_extract(u, '(x)') = ''", "regexp_extract(s, '[a-z]+', 0) = 'abc'",
    "regexp_replace(s, '[ab]', '<$0>') = '<a>'", "regexp_replace(u, '^(.)e', '$1') = '11\n'",
    "regexp_count(s, '[a-c]') = 3", "regexp_substr(s, 'z') IS NULL", "split(s, ' ')[0] = 'a'",
    "try_element_at(split(s, '[ _]'), -1) = 'c'", "get(split(s, '_'), 1) IS NULL",
    "size(split(s, 'b')) = 2",
    "array_contains(split(s, '_'), 'c')", "element_at(split(s, 'b'), 1) = 'a'",
    "date_format(ts, 'yyyy-MM-dd HH:mm:ss.SSSSSS') = '1969-12-31 23:59:59.999999'",
    "date_format(dt, 'E EEEE d/M/y') = 'Mon Monday 1/1/2024'",
    "date_format(ts, 'hh a, MMM MMMM') = '10 AM, Feb February'",
    "date_format(dt, 'DDD D Q') = '060 60 1'",
    "date_format(ts, \"yy''S ss's'\") = '70\\'0 00s'", "from_unixtime(n) = '1970-01-01 00:00:03'",
    "from_unixtime(k % 100, 'HH.mm') = '23.59'",
    "timestampdiff(HOUR, ts, TIMESTAMP'1970-01-01') = 0",
    "datediff(DAY, dt, ts) = 59", "date_part('week', ts) = 9", "date_from_unix_date(n) > dt",
    "positive(dec) = 12.34", "typeof(dec) = 'decimal(10,2)'",
    "typeof(datediff(DAY, dt, dt)) = 'bigint'",
    "to_timestamp(concat(cast(dt AS STRING), 'T10:00:00Z')) > ts",
    "try_add(k, n) IS NULL", "try_subtract(-k, n) < 0", "try_multiply(k, n) IS NULL",
    "try_mod(k, n) IS NULL", "try_add(dec, n) > 10", "try_add(d, f) = 3", "try_add(sm, 1) IS NULL",
)  # fmt: skip
PATTERNS = (
    "^ab", "b$", "a.b", "[ab]+", "^[^a]*$", r"\d+", r"\s", r"\S\W", r"[\w-]", r"[\w-.]", "[a-]",
    "(a|b)c", "(?:a|é)+1?", "a{2}", "a{1,2}b", ".{3}", "^.$", "^.*$", r"\.", r"\-", "x|^$", "",
    r"[^\s]", r"\n$", "a$|b", "é.", "[é😀]", "a??b", r"\t", r"^\s*a", "(a)(b)?$", "[a-c0-9]{2,3}",
    r"\\", r"[\]]", "$", "a^b", "(^a|b$)",
)  # fmt: skip
TEXTS = (
    "ab", "ba", "aab", "a\nb", "b\n", "a\r", "a\u2028", "a\x85b", "\x0b", "aé1",
    "é\n", "-", ".", "_", "a-b.c", "aa1", "\\", "]", "1\n2", "a\n\n", "abc\tab", "x", "ac",
)  # fmt: skip
REFUSED_PATTERNS = (
    r"a\b", "(?i)a", "a}", "a]", "a++", "a**", "[a&&b]", "[[a]b]", r"\p{L}", r"a\z", "(?=a)",
    r"(a)\1", r"[a-\d]", "*a", "(", "a{1001}", "a$b", r"[^\W]", "a{٣}",
)  # fmt: skip
FAILING = (
    "cast(k AS INT) > 0",
    "cast(d AS INT) = 1",
    "cast(n AS TINYINT) = 3",
    "cast(f AS BIGINT) = 1",
    "cast(s AS INT) = 1",
    "cast(u AS DOUBLE) = 1",
    "cast(s AS DATE) = dt",
    "cast(s AS BOOLEAN)",
    "try_add(cast(s AS INT), 1) = 1",
)
LEFT_TO_SPARK = (
    "lower(s) = 'z'", "s RLIKE '(?i)a'", "s LIKE u", "greatest(d, f) > 1", "round(f) = 2",
    "cast(ts AS STRING) = '2.00'", "lpad(s, 100000, 'x') = s", "round(d, -1) = 2",
    "dt + INTERVAL 1 YEAR > dt", "repeat(s, n) = s", "repeat(s, 100000000) = s",
    "replace(s, u, 'x') = s", "last_day(ts) = dt", "round(n, n) = 1", "date_format(dt, 'Y') = '1'",
    "regexp_replace(s, 'a*', '') = s", "regexp_extract(s, '(a|b*)*', 0) = s", "sha2(s, 1) = s",
    "regexp_replace(s, 'a', '$') = s", "regexp_replace(s, 'a', '$1') = s",
    "regexp_count(s, '^a') = 1",
    "regexp_extract(s, '(a)+', 1) = s", "regexp_extract(s, 'a', 1) = s", "split(s, '')[0] = s",
    "split(s, ',')[n] = s", "size(array(n)) = 1", "regexp_extract(u, 'e.$', 0) = s",
    "timestampdiff(MONTH, ts, ts) = 0", "try_add(dt, 1) = dt", "is_variant_null(s)",
)  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> vl.Table:
    table = vl.Table.create(tmp_path_factory.mktemp("functions") / "t", DDL)
    columns = list(zip(*ROWS, strict=True))
    schema = table.schema.to_arrow()
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    table.append(pa.Table.from_arrays(arrays, schema=schema))
    return table.refresh()


def test_functions_give_what_those_of_spark_give(spark: SparkSession, table: vl.Table) -> None:
    counts = [
        f"count(*) FILTER (WHERE {part}) AS {name}{at}"
        for at, each in enumerate(CONDITIONS)
        for name, part in (("true", each), ("false", f"NOT ({each})"))
    ]
    wanted = spark.read.format("delta").load(table.uri).selectExpr(*counts).first()
    assert wanted is not None
    found = table.sql(f"SELECT {', '.join(counts)} FROM t").to_arrow().to_pylist()
    assert found == [wanted.asDict()]


@pytest.mark.parametrize("condition", FAILING)
def test_what_a_type_does_not_hold_is_an_error_as_in_spark(
    spark: SparkSession, table: vl.Table, condition: str
) -> None:
    frame = spark.read.format("delta").load(table.uri)
    with pytest.raises(Exception, match=r"CAST_OVERFLOW|CAST_INVALID_INPUT"):
        frame.where(condition).collect()
    with pytest.raises(VariantLakeError) as error:
        table.sql(f"SELECT n FROM t WHERE {condition}").to_arrow()
    assert not isinstance(error.value, UnsupportedFeature)


@pytest.mark.parametrize("part", ["split(s, 'b')[5]", "element_at(split(s, 'b'), -3)"])
def test_a_part_that_is_not_there_is_an_error_as_in_spark(
    spark: SparkSession, table: vl.Table, part: str
) -> None:
    with pytest.raises(Exception, match="INVALID_ARRAY_INDEX"):
        spark.read.format("delta").load(table.uri).selectExpr(part).collect()
    with pytest.raises(InvalidValue, match="split_at"):
        table.sql(f"SELECT {part} AS x FROM t").to_arrow()
    with pytest.raises(InvalidQuery, match="counted from 1"):
        table.sql("SELECT element_at(split(s, 'b'), 0) AS x FROM t")


def test_a_hash_of_a_variant_needs_a_type(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "event VARIANT")
    with pytest.raises(InvalidQuery, match="event:a::string"):
        table.sql("SELECT md5(event:a) AS x FROM t")


def test_a_null_of_json_is_told_from_no_value_as_in_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = vl.Table.create(tmp_path / "t", "n INT, event VARIANT")
    events: list[object] = [
        {"a": None}, {"a": 1}, {}, {"a": "x"}, None, {"a": [None]}, {"a": {"b": None}}, [None]
    ]  # fmt: skip
    table.append([{"n": number, "event": event} for number, event in enumerate(events)])
    paths = ("event", "event:a", "event:a.b", "event:a[0]")
    tests = [f"is_variant_null({path}) AS x{at}" for at, path in enumerate(paths)]
    frame = spark.read.format("delta").load(table.uri).selectExpr("n", *tests).orderBy("n")
    found = table.sql(f"SELECT n, {', '.join(tests)} FROM t ORDER BY n").to_pylist()
    assert found == [row.asDict() for row in frame.collect()]
    kept = table.sql("SELECT n FROM t WHERE is_variant_null(event:a) AND event:a IS NOT NULL")
    assert kept.to_pylist() == [{"n": 0}]


@pytest.mark.parametrize("condition", LEFT_TO_SPARK)
def test_what_only_spark_gives_is_refused(table: vl.Table, condition: str) -> None:
    with pytest.raises(UnsupportedFeature):
        table.sql(f"SELECT n FROM t WHERE {condition}").to_arrow()


def test_patterns_find_what_those_of_java_find(spark: SparkSession, tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "s STRING")
    table.append([{"s": text} for text in TEXTS])
    counts = [
        f"count_if(s RLIKE {quote_string(pattern)}) AS n{at}" for at, pattern in enumerate(PATTERNS)
    ]
    frame = spark.createDataFrame([(text,) for text in TEXTS], "s STRING").selectExpr(*counts)
    found = table.sql(f"SELECT {', '.join(counts)} FROM t").to_pylist()
    assert found == [row.asDict() for row in frame.collect()]


@pytest.mark.parametrize("pattern", REFUSED_PATTERNS)
def test_patterns_that_java_reads_otherwise_are_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedFeature, match="the regular expression"):
        re2_pattern(pattern)


def test_line_ends_of_windows_before_the_end_are_refused(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "s STRING")
    table.append([{"s": "a\r\n"}])
    assert table.scan("s", where="s RLIKE 'a.?'").count() == 1
    with pytest.raises(UnsupportedFeature, match="line ends of Windows"):
        table.scan("s", where="s RLIKE 'a\r$'").count()


def test_all_and_any(spark: SparkSession, table: vl.Table) -> None:
    text = "SELECT n > 0 AS positive, bool_and(b) AS every, bool_or(b) AS one FROM t GROUP BY 1"
    spark.read.format("delta").load(table.uri).createOrReplaceTempView("t")
    try:
        wanted = {tuple(row) for row in spark.sql(text).collect()}
    finally:
        spark.catalog.dropTempView("t")
    assert {tuple(row.values()) for row in table.sql(text).to_pylist()} == wanted
    with pytest.raises(VariantLakeError):
        table.sql("SELECT bool_and(n) AS x FROM t")


@pytest.mark.parametrize(
    "moved", ["TIMESTAMP'2024-03-31T12:00:00Z' - INTERVAL 1 DAY", "ts + INTERVAL 1 MONTH"]
)
def test_a_zone_that_only_spark_knows_moves_no_timestamp(moved: str) -> None:
    schema = parse_table_ddl(DDL)
    QueryText(schema).condition(f"ts < {moved}")
    with pytest.raises(UnsupportedFeature, match="time zone that only Spark knows"):
        QueryText(schema, utc=False).condition(f"ts < {moved}")
