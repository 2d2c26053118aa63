"""`Table.scan` gives what Spark gives on the unshredded data, in rows, values and names."""

from __future__ import annotations

import datetime as dt
import itertools
import tempfile
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import corpora
from tests.spark.layouts import (
    PLAINLY,
    SHAPES,
    changed,
    judge,
    make,
)
from tests.strategies import MORE
from variantlake import Table, Variant
from variantlake.errors import InvalidValue, UnsupportedFeature
from variantlake.expressions.casts.values import _CASTS, cast_raw
from variantlake.expressions.typing import spark_type
from variantlake.quoting import quote_string
from variantlake.types import Kind, ShreddedType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def tables(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    found = {}
    for name, shape in SHAPES.items():
        found[name] = make(spark, tmp_path_factory.mktemp("scan") / "a table", shape)
        judge(spark, f"scan_{name}", shape)
    yield found
    for name in SHAPES:
        spark.catalog.dropTempView(f"scan_{name}")


def shown(value: Any) -> Any:
    """A value as text that tells types apart; Variants as JSON."""
    if isinstance(value, dict) and value.keys() == {"metadata", "value"}:
        return Variant(value["metadata"], value["value"]).to_json()
    if isinstance(value, bytearray):
        return repr(bytes(value))
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return repr(value.astimezone(dt.UTC).replace(tzinfo=None))
    return repr(value)


def ours(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(
        tuple(map(shown, row.values())) for batch in table.to_batches() for row in batch.to_pylist()
    )


def theirs(spark: SparkSession, query: str) -> tuple[list[str], Counter[tuple[Any, ...]]]:
    with changed(spark, PLAINLY):
        frame = spark.sql(query)
        variants = [kind == "variant" for _, kind in frame.dtypes]
        text = frame.toDF(*(f"c{at}" for at in range(len(variants)))).selectExpr(
            *(f"to_json(c{at})" if is_variant else f"c{at}" for at, is_variant in
              enumerate(variants))
        )  # fmt: skip
        rows = [
            tuple(
                value if is_variant and value is not None else shown(value)
                for value, is_variant in zip(row, variants, strict=True)
            )
            for row in text.collect()
        ]
    return frame.columns, Counter(rows)


SELECTS = {
    "columns": "event:id::bigint, event:kind::string, k",
    "names": "EVENT:n.x::int, variant_get(event, '$.t', 'int'), K, event:arr[0]::string",
    "try": "try_variant_get(event, '$.kind', 'int') AS a, try_cast(event:mixed AS bigint) AS b",
    "strings": "event:mixed::string AS m, event:n::string AS n, event:price::string AS p",
    "numbers": "try_cast(event:price AS decimal(10,2)) AS p, try_cast(event:price AS double) AS d, "
    "try_variant_get(event, '$.price', 'int') AS i",
    "texts": "try_cast(event:d AS date) AS d, try_cast(event:ok AS string) AS o, "
    "try_cast(event:ok AS int) AS i",
    "variants": "event, event:n AS n, event:n.x AS x",
    "odd-keys": "event:n['odd key']::int, event:ID::string, event:nobody.knows::int",
    "doubles": "try_cast(event:dbl AS double) AS d, try_cast(event:dbl AS bigint) AS i",
}
CONDITIONS = {
    "none": "",
    "range": "event:id::bigint BETWEEN 3 AND 104",
    "text": "event:kind::string = 'good' AND k > 3",
    "in": "event:kind::string IN ('bad', 'ugly') OR try_cast(event:id AS int) IN (1, NULL)",
    "null": "event:kind::string IS NULL OR NOT (k >= 5)",
    "not-null": "event:n.x::string IS NOT NULL AND event:kind::string NOT LIKE 'go%'",
    "prefix": "startswith(event:kind::string, 'g') AND k <> 7",
    "decimals": "try_cast(event:price AS decimal(12,3)) >= 2.5 AND event:id::bigint < 103",
    "null-safe": "event:kind::string <=> NULL OR try_cast(event:t AS bigint) <=> 1005",
    "booleans": "try_cast(event:ok AS boolean)",
    "computed": "event:id::bigint + k > 110 AND k % 2 = 1 OR event:id::bigint * 2 <= 8",
    "columns": "event:id::bigint - 100 = k OR event:kind::string < try_cast(event:mixed AS string)",
    "functions": "length(event:kind::string) = 4 AND coalesce(try_cast(event:t AS bigint), k) > 5",
    "case": "CASE WHEN k > 5 THEN event:kind::string = 'good' "
    "ELSE try_cast(event:ok AS boolean) END",
    "computed-doubles": "try_cast(event:dbl AS double) * 2 >= try_cast(event:dbl AS double)",
    "computed-in": "k IN (event:id::int, 7) AND NOT (k + 1 <=> event:n.x::int)",
}


LITERALS = ("'a'", "''", "'it''s'", "''''", '"b"', '"x""y"', "'c\"\"d'")


@given(st.lists(st.sampled_from(LITERALS), min_size=1, max_size=4), st.sampled_from(["", " "]))
@settings(max_examples=15 * MORE)
def test_quotes_in_texts(spark: SparkSession, texts: list[str], between: str) -> None:
    """Texts in a row are one, and a doubled quote is a quote."""
    text = between.join(texts)
    (right,) = spark.sql(f"SELECT {text} AS s").collect()[0]
    with tempfile.TemporaryDirectory() as folder:
        table = Table.create(folder, "s STRING, event VARIANT")
        table.append([{"s": right, "event": {"a": right}}, {"s": right + ".", "event": {}}])
        for column in ("s", "event:a::string"):
            assert table.scan("s", f"{column} = {text}").to_pylist() == [{"s": right}]
        assert table.delete(f"s = {text}").rows_deleted == 1


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", SELECTS)
def test_selected_values(
    spark: SparkSession, tables: dict[str, str], name: str, shape: str
) -> None:
    found = Table.open(tables[shape]).scan(SELECTS[name]).to_arrow()
    columns, rows = theirs(spark, f"SELECT {SELECTS[name]} FROM scan_{shape}")
    assert found.column_names == columns
    assert ours(found) == rows


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", CONDITIONS)
def test_rows_that_fulfil_a_condition(
    spark: SparkSession, tables: dict[str, str], name: str, shape: str
) -> None:
    where = CONDITIONS[name]
    scan = Table.open(tables[shape]).scan("event, k", where or None)
    _, rows = theirs(spark, f"SELECT event, k FROM scan_{shape} WHERE {where or 'true'}")
    assert ours(scan.to_arrow()) == rows
    assert scan.count() == sum(rows.values())


def test_texts_are_written_as_spark_reads_them(spark: SparkSession) -> None:
    """Those of `vl.path`; the local engine reads them back in `test_table_scan`."""
    texts = ["".join(each) for each in itertools.product("a'\"\\%", repeat=3)]
    (row,) = spark.sql(f"SELECT {', '.join(map(quote_string, texts))}").collect()
    assert list(row) == texts


@pytest.mark.rule(1)
def test_a_guard_keeps_errors_out(tables: dict[str, str]) -> None:
    """Rule 1: a cast that fails counts only if the answer depends on it."""
    table = Table.open(tables["mixed"])
    run_task = "event:kind::string = 'bad' AND event:price::decimal(10, 2) > 3"
    assert table.scan("k", run_task).count() > 0
    with pytest.raises(InvalidValue, match="event:price"):
        table.scan("event:price::decimal(10,2)").to_arrow()


def test_partition_columns(spark: SparkSession, tables: dict[str, str]) -> None:
    scan = Table.open(tables["mixed"]).scan("p, k", "p IS NOT NULL AND p >= 'g'")
    _, rows = theirs(spark, "SELECT p, k FROM scan_mixed WHERE p >= 'g'")
    assert ours(scan.to_arrow()) == rows
    assert scan.explain().read_files == 1


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
def test_conformance_tables_are_read_as_delta_spark_reads_them(
    delta_spark: SparkSession, name: str
) -> None:
    table = CONFORMANCE / name
    frame = delta_spark.read.format("delta").load(str(table))
    variant = next(column for column, kind in frame.dtypes if kind == "variant")
    plain = [column for column, kind in frame.dtypes if kind in ("variant", "bigint", "int")]
    found = Table.open(table).scan(", ".join(plain)).to_arrow()
    _, rows = theirs(delta_spark, f"SELECT {', '.join(plain)} FROM delta.`{table}`")
    assert ours(found) == rows
    assert Table.open(table).scan("*", f"{variant} IS NOT NULL").count() == sum(
        delta_spark.sql(f"SELECT {variant} FROM delta.`{table}` WHERE {variant} IS NOT NULL")
        .groupBy()
        .count()
        .collect()[0]
    )


def test_mapped_columns_and_deleted_rows(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "t"
    delta_spark.sql(
        f"CREATE TABLE delta.`{table}` (event VARIANT, k INT, st STRUCT<a: INT, v: VARIANT>, "
        "p DATE) USING delta PARTITIONED BY (p) TBLPROPERTIES "
        "('delta.columnMapping.mode'='name', 'delta.enableDeletionVectors'='true', "
        "'delta.enableVariantShredding'='true', 'delta.enableTypeWidening'='true')"
    )
    delta_spark.sql(
        f"""INSERT INTO delta.`{table}` SELECT parse_json(concat('{{"id":', id, '}}')), int(id),
        named_struct('a', int(id), 'v', parse_json(string(id))),
        date_add(date'2024-01-01', int(id % 2)) FROM range(0, 400, 1, 1)"""
    )
    delta_spark.sql(f"DELETE FROM delta.`{table}` WHERE k % 3 = 0 AND p = '2024-01-01'")
    for old, new in {"event": "doc", "st.a": "b", "k": "`key no`"}.items():
        delta_spark.sql(f"ALTER TABLE delta.`{table}` RENAME COLUMN {old} TO {new}")
    delta_spark.sql(f"ALTER TABLE delta.`{table}` ALTER COLUMN `key no` TYPE BIGINT")
    opened = Table.open(table)
    for where in ("doc:id::int < 50", "`key no` >= 390 AND p = '2024-01-01'", "p > '2024-01-01'"):
        found = opened.scan("doc, doc:id::int AS i, `key no`, p", where).to_arrow()
        _, rows = theirs(
            delta_spark,
            f"SELECT doc, doc:id::int AS i, `key no`, p FROM delta.`{table}` WHERE {where}",
        )
        assert ours(found) == rows
    nested = opened.scan("st", "doc:id::int = 7").to_arrow().to_pylist()
    assert nested[0]["st"]["b"] == 7


def test_shredded_variants_in_structs(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Spark shreds them too, and NULL structs and other types stand among the typed values."""
    table = f"delta.`{tmp_path / 't'}`"
    delta_spark.sql(
        f"CREATE TABLE {table} (id INT, st STRUCT<v: VARIANT, n: INT>) USING delta "
        "TBLPROPERTIES ('delta.enableVariantShredding'='true', 'delta.columnMapping.mode'='id')"
    )
    shredded = {
        "spark.sql.variant.writeShredding.enabled": "true",
        "spark.sql.variant.forceShreddingSchemaForTest": "a bigint, b struct<c string>",
    }
    with changed(delta_spark, shredded):
        delta_spark.sql(
            f"""INSERT INTO {table} SELECT int(id), if(id % 5 = 1, NULL, named_struct('v',
            parse_json(if(id % 7 = 3, '"s"',
            concat('{{"a":', id, ',"b":{{"c":"x', id % 3, '"}}}}'))),
            'n', int(id))) FROM range(0, 100, 1, 1)"""
        )
    (file,) = (each for each in (tmp_path / "t").rglob("*.parquet"))
    assert "typed_value" in str(pq.read_schema(file))
    opened = Table.open(tmp_path / "t")
    for text in (
        "SELECT id, st.v:a::int AS a, st.v:b.c::string AS c, st.v:b AS b FROM {}",
        "SELECT id FROM {} WHERE st.v:a::bigint > 90 OR st.v:b.c::string = 'x1' AND st.n < 9",
        "SELECT st.v:b.c::string AS c, count(*) AS n, max(st.v:a::int) AS top FROM {} GROUP BY 1",
        "SELECT count(st.v) AS n, min(st.v:a::int) AS least FROM {}",
        "SELECT id FROM {} WHERE st.v IS NULL",
    ):
        found = opened.sql(text.format("t")).to_arrow()
        assert ours(found) == theirs(delta_spark, text.format(table))[1], text


# --- Casts ----------------------------------------------------------------------------------------

TEXTS = [
    "1", "-5", "+7", " 12 ", "\t3\n", "1.5", "1e3", ".5", "5.", "", "x", "1x", "NaN", "-Infinity",
    "inf", "INFINITY", "true", " T ", "No", "0", "2024-01-31", "2024-02-30", " 2024-12-01 ",
    "99999999999999999999", "127", "128", "-129", "1e400", "1e-400", "00012", "0.005", "-0.005",
    "12345678.995", "٣", "1_000", "- 1", "--1", "e5", "2026-01-31T23:59:59Z",
    " 2026-01-31 23:59:59.123456789+05:30 ", "1969-12-31T23:59:59.999999-18:00",
    "2026-01-31T12:00Z", "2026-01-31T12:00:00.1", "2026-02-30T12:00:00Z", "2026-01-31T24:00:00Z",
    "0001-01-01T00:00:00+18:00", "9999-12-31T23:59:59-18:00", "2026-01-31T12:60:00Z",
    "2026-01-31T12:00:60Z", "2026-01-31T12:00:00+18:01", "2026-01-31T12:00:00+00:60", "0000-01-01",
    "0000-01-01T00:00:00Z", "2026-13-01T00:00:00+01:00", "2026-01-31T12:00:00-00:30",
    "2026-01-31T12:00:00 Z", "2026-01-31T12:00:00.Z", "2026-01-31t12:00:00Z", "\x7f8", "true\x7f",
    "z😀", "\uff15",
]  # fmt: skip
RAWS: dict[str, list[Any]] = {
    "string": TEXTS,
    "bigint": [0, 1, -1, 127, 128, -129, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 16777217],
    "boolean": [True, False],
    "double": [0.0, -0.0, 1.0, 1.9, -1.9, 127.9, 128.0, 1e10, 1e300, 5e-324, 2.0**63, -(2.0**63),
               float("nan"), float("inf"), 0.1, 1e7, 123456789.125, 2147483647.5, 0.125, 1.005,
               2.675, -99999999.995, 99999999.995, 99999999.994, 0.1 + 0.2, 1e22, 1e15 + 0.3],
    "float": [0.0, 1.5, -2.5, 0.125, 9.994999885559082, 3.4028234663852886e38, 0.10000000149011612,
              16777216.0],
    "decimal(10,2)": [Decimal("1.50"), Decimal("-0.01"), Decimal("100.00"), Decimal("127.99")],
    "date": [0, 19782, -141427, 2932896],
    "binary": [b"", b"abc", "é".encode()],
}  # fmt: skip
MAKE = {"date": "date_from_unix_date(raw)"}
SCHEMAS = {"date": "int"}
ASKED = ["tinyint", "smallint", "int", "bigint", "float", "double", "decimal(10,2)",
         "decimal(38,10)", "string", "boolean", "date", "timestamp", "timestamp_ntz"]  # fmt: skip

GET = {"date": "unix_date({})", "timestamp": "unix_micros({})",
       "timestamp_ntz": "unix_micros(to_utc_timestamp({}, current_timezone()))"}  # fmt: skip


@pytest.mark.parametrize("stored", RAWS)
def test_casts_are_those_of_spark(spark: SparkSession, stored: str) -> None:
    values = RAWS[stored]
    frame = spark.createDataFrame(
        [(value,) for value in values], f"raw {SCHEMAS.get(stored, stored)}"
    )
    variants = frame.selectExpr(f"cast({MAKE.get(stored, 'raw')} AS variant) AS v")
    gets = [
        GET.get(requested, "{}").format(f"try_variant_get(v, '$', '{requested}')")
        for requested in ASKED
    ]
    rows = variants.selectExpr(*gets).collect()
    own = spark_type(stored)
    assert own is not None
    tried = 0
    for value, row in zip(values, rows, strict=True):
        for requested, expected in zip(ASKED, row, strict=True):
            target = spark_type(requested)
            assert target is not None
            try:
                found = cast_raw(value, own, target)
            except UnsupportedFeature:
                continue
            tried += 1
            assert repr(found) == repr(expected), (value, requested)
    assert tried


def test_every_cast_of_the_table_is_tried() -> None:
    stored = {ShreddedType.parse(name).kind for name in RAWS}
    requested = {ShreddedType.parse(name).kind for name in ASKED}
    pairs = set(itertools.product(stored, requested))
    narrow = {Kind.INT8, Kind.INT16, Kind.INT32}  # Spark's Variants have no narrow integers
    untried = {pair for pair in _CASTS if pair not in pairs and pair[0] not in narrow}
    assert untried == {(Kind.UUID, Kind.STRING)}  # Spark has no UUID
