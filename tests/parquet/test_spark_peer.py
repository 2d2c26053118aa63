"""Files that Spark wrote shredded are read by us exactly, and files of ours by Spark."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.parquet.alike import ROWS, write_alike
from variantlake.encoding.json import parse_json
from variantlake.encoding.scalar import Scalar
from variantlake.encoding.variant import Variant
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.read.check import check_file
from variantlake.parquet.read.inspect import inspect_file
from variantlake.parquet.read.reader import read_table
from variantlake.parquet.variant.variant_group import variant_groups
from variantlake.parquet.write.table_writer import write_table
from variantlake.shredding.layout import VARIANT_TYPE
from variantlake.shredding.schema import Untyped
from variantlake.types import Primitive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

# A value of each type that Spark has, as SQL and with the type that it casts to.
SPARK_VALUES = {
    "true": "boolean",
    "1Y": "tinyint",
    "-300S": "smallint",
    "70000": "int",
    "5000000000L": "bigint",
    "1.5F": "float",
    "-2.25D": "double",
    "12.34BD": "decimal(9,2)",
    "-123456789.1234BD": "decimal(18,4)",
    "1234567890123456789.0123456789BD": "decimal(38,10)",
    "'é😀'": "string",
    "repeat('long', 40)": "string",
    "X'00FF'": "binary",
    "DATE'2024-02-29'": "date",
    "TIMESTAMP'2024-02-29 12:34:56.789012+02:00'": "timestamp",
    "TIMESTAMP_NTZ'2024-02-29 12:34:56.789012'": "timestamp_ntz",
}

DOCUMENTS = [
    '{"a": 1, "b": ["x", "y"], "c": {"d": "s", "e": 1.5}}',
    '{"a": "q", "b": ["x", 2, null, {}], "c": {"d": null, "z": [1]}, "é": {"w": 1}}',
    '{"a": null, "b": [], "c": {}}',
    '{"b": {"not": "a list"}, "c": [1]}',
    '{"\U0001f600": 1, "\uffff": 2, "a": 12345678901}',
    '[{"a": 1, "b": "x"}, {"a": "1"}, 5, null]',
    "[]",
    "{}",
    "null",
    '"text"',
    "12.50",
    "1e300",
    "true",
    str(10**30),
]


@contextmanager
def settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Spark with other settings; the old ones come back."""
    old = {name: spark.conf.get(name, None) for name in values}
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, before in old.items():
            if before is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, before)


def shredded_by(ddl: str | None, *, annotated: bool = True) -> dict[str, str]:
    """Spark's settings to shred by a schema, or by inference."""
    values = {
        "spark.sql.variant.writeShredding.enabled": "true",
        "spark.sql.parquet.variant.annotateLogicalType.enabled": str(annotated).lower(),
        "spark.sql.variant.inferShreddingSchema": str(ddl is None).lower(),
    }
    return (
        values if ddl is None else {**values, "spark.sql.variant.forceShreddingSchemaForTest": ddl}
    )


def written(spark: SparkSession, query: str, folder: Path) -> tuple[Path, list[Any]]:
    """The one file of a query's rows, and the rows as Spark has them in memory."""
    frame = spark.sql(query).coalesce(1)
    rows = frame.collect()
    frame.write.parquet(str(folder))
    (file,) = folder.glob("*.parquet")
    return file, rows


def of_spark(value: Any) -> Any:
    """Spark's rows as those of Arrow, VariantVal as Variant."""
    from pyspark.sql import Row
    from pyspark.sql.types import VariantVal

    match value:
        case VariantVal():
            return Variant(value.metadata, value.value)
        case Row():
            return {name: of_spark(child) for name, child in value.asDict().items()}
        case list():
            return [of_spark(child) for child in value]
        case dict():
            return {key: of_spark(child) for key, child in value.items()}
    return value


def of_arrow(value: Any) -> Any:
    """What `to_pylist` gives, with Variants; maps are dicts."""
    match value:
        case {"metadata": metadata, "value": data}:
            return Variant(metadata, data)
        case dict():
            return {name: of_arrow(child) for name, child in value.items()}
        case list() if value and isinstance(value[0], tuple):
            return {key: of_arrow(child) for key, child in value}
        case list():
            return [of_arrow(child) for child in value]
    return value


def rules_broken(file: Path, columns: tuple[str, ...] = ()) -> list[str]:
    """What check finds; Spark 4.2 orders fields as Java orders strings, by UTF-16."""
    found = [finding.message for finding in check_file(file, variant_columns=columns)]
    return [message for message in found if "fields are ordered" not in message]


def rows_of(documents: list[str]) -> str:
    """A query for (i, v); the last row is SQL NULL."""
    values = ", ".join(
        f"({i}, '{json.dumps(text, ensure_ascii=False)[1:-1]}')" for i, text in enumerate(documents)
    )
    return f"SELECT i, parse_json(t) AS v FROM VALUES {values}, (-1, NULL) AS d(i, t)"


@pytest.mark.parametrize(
    "ddl",
    [
        "struct<a bigint, b array<string>, c struct<d string, e decimal(5,2)>>",
        "struct<a variant, b variant>",
        "array<struct<a int, b string>>",
        "array<bigint>",
        "string",
        "decimal(38,2)",
        "struct<x struct<y array<array<date>>>>",
        None,
    ],
    ids=["object", "untyped", "objects", "array", "string", "decimal", "absent", "inferred"],
)
def test_files_of_spark(spark: SparkSession, tmp_path: Path, ddl: str | None) -> None:
    with settings(spark, shredded_by(ddl)):
        file, rows = written(spark, rows_of(DOCUMENTS), tmp_path / "t")
    (group,) = variant_groups(read_footer(file))
    assert ddl is None or not isinstance(group.schema.root, Untyped)
    table = read_table(file)
    assert table.schema.field("v").type == VARIANT_TYPE
    assert of_arrow(table.column("v").to_pylist()) == [of_spark(row.v) for row in rows]
    assert rules_broken(file) == []


def test_inference_of_spark_shreds_what_is_regular(spark: SparkSession, tmp_path: Path) -> None:
    query = """SELECT parse_json(concat('{"a":', id, ',"b":["x"],"c":{"d":"', id, '"}}')) AS v
               FROM range(100)"""
    with settings(spark, shredded_by(None)):
        file, rows = written(spark, query, tmp_path / "t")
    (group,) = variant_groups(read_footer(file))
    assert not isinstance(group.schema.root, Untyped)
    found = of_arrow(read_table(file).column("v").to_pylist())
    assert found == [of_spark(row.v) for row in rows]
    assert rules_broken(file) == []


@pytest.mark.parametrize(("literal", "name"), SPARK_VALUES.items(), ids=list(SPARK_VALUES))
def test_every_type_of_spark(spark: SparkSession, tmp_path: Path, literal: str, name: str) -> None:
    query = f"""SELECT CAST({literal} AS VARIANT) AS v,
                       to_variant_object(named_struct('a', {literal}, 'b', array({literal}))) AS o
                UNION ALL SELECT parse_json('null'), parse_json('{{"a": null}}')"""
    with settings(spark, shredded_by(name)):
        leaf, rows = written(spark, query, tmp_path / "leaf")
    with settings(spark, shredded_by(f"struct<a {name}, b array<{name}>>")):
        nested, _ = written(spark, query, tmp_path / "nested")
    for file in (leaf, nested):
        table = read_table(file)
        for column in ("v", "o"):
            found = of_arrow(table.column(column).to_pylist())
            assert found == [of_spark(row[column]) for row in rows]
        # By the classes of the specification 1.50 is 1.5: the text has the scale as well.
        assert [v.to_json() for v in of_arrow(table.column("v").to_pylist())] == [
            of_spark(row.v).to_json() for row in rows
        ]
        assert rules_broken(file) == []


@pytest.mark.parametrize("annotated", [True, False])
@pytest.mark.parametrize(
    ("column", "expression"),
    {
        "c": "v",
        "c.x": "named_struct('x', v, 'y', i)",
        "c.list.element": "array(v, NULL, v)",
        "c.key_value.value": "map('k', v, 'n', NULL)",
    }.items(),
    ids=["top", "struct", "array", "map"],
)
def test_variants_of_spark_within_other_columns(
    spark: SparkSession, tmp_path: Path, column: str, expression: str, annotated: bool
) -> None:
    query = f"SELECT i, {expression} AS c FROM ({rows_of(DOCUMENTS)})"
    with settings(spark, shredded_by("struct<a bigint, b array<string>>", annotated=annotated)):
        file, rows = written(spark, query, tmp_path / "t")
    # A group that nothing marks is found by its members, or by its name.
    for named in ((), (column,)):
        table = read_table(file, variant_columns=named)
        assert [of_arrow(row) for row in table.to_pylist()] == [of_spark(row) for row in rows]
        assert rules_broken(file, named) == ([] if annotated else ["the group has no logical type"])
        (view,) = inspect_file(file, variant_columns=named).variants
        assert (".".join(view.column), view.annotated) == (column, annotated)


# --- Ours, read by Spark --------------------------------------------------------------------------

SCALARS: dict[Scalar, str] = {
    Scalar(Primitive.TRUE, True): "boolean",
    Scalar(Primitive.FALSE, False): "boolean",
    Scalar(Primitive.INT8, -5): "tinyint",
    Scalar(Primitive.INT16, 300): "smallint",
    Scalar(Primitive.INT32, -70000): "int",
    Scalar(Primitive.INT64, 5_000_000_000): "bigint",
    Scalar(Primitive.FLOAT, 1.5): "float",
    Scalar(Primitive.DOUBLE, -2.25): "double",
    Scalar(Primitive.DECIMAL4, Decimal("12.30")): "decimal(9,2)",
    Scalar(Primitive.DECIMAL8, Decimal("-123456789.1234")): "decimal(18,4)",
    Scalar(Primitive.DECIMAL16, Decimal("1234567890123456789.0123456789")): "decimal(38,10)",
    Scalar(Primitive.STRING, "é😀"): "string",
    Scalar(Primitive.STRING, "long" * 40): "string",
    Scalar(Primitive.BINARY, b"\x00\xff"): "binary",
    Scalar(Primitive.DATE, 19_782): "date",
    Scalar(Primitive.TIMESTAMP, 1_709_202_896_789_012): "timestamp",
    Scalar(Primitive.TIMESTAMP_NTZ, 1_709_210_096_789_012): "timestamp_ntz",
}


def column_of(values: list[Variant | None]) -> pa.Array[Any]:
    rows: list[Any] = [v and {"metadata": v.metadata, "value": v.value} for v in values]
    return pa.array(rows, VARIANT_TYPE)


@pytest.mark.parametrize("shredded", [False, True], ids=["unshredded", "shredded"])
def test_spark_reads_every_type_of_ours(
    spark: SparkSession, tmp_path: Path, shredded: bool
) -> None:
    from pyspark.sql.functions import expr

    roots: dict[str, list[Variant | None]] = {}
    for i, scalar in enumerate(SCALARS):
        tree = {"a": scalar, "b": [scalar, {"c": scalar}]}
        roots[f"v{i}"] = [Variant.of(scalar), Variant.of(None), None]
        roots[f"o{i}"] = [Variant.of(tree), Variant.of({"a": [scalar], "b": None, "z": 1}), None]
    schemas = {
        name: ddl
        for i, kind in enumerate(SCALARS.values())
        for name, ddl in {f"v{i}": kind, f"o{i}": f"a {kind}, b ARRAY<{kind}>"}.items()
    }
    file = tmp_path / "t.parquet"
    table = pa.table({"i": [0, 1, 2], **{name: column_of(v) for name, v in roots.items()}})
    write_table(table, file, shredding=schemas if shredded else None)
    frame = spark.read.parquet(str(file))
    assert {frame.schema[name].dataType.simpleString() for name in roots} == {"variant"}
    rows = frame.orderBy("i").collect()
    for name, values in roots.items():
        assert [of_spark(row[name]) for row in rows] == values, name
    requested = (
        {name: expr(f"to_json({name})") for name in roots}
        | {
            f"t{i}": expr(f"variant_get(v{i}, '$', '{kind}')")
            for i, kind in enumerate(SCALARS.values())
        }
        | {
            f"u{i}": expr(f"variant_get(o{i}, '$.b[1].c', '{kind}')")
            for i, kind in enumerate(SCALARS.values())
        }
    )
    first, *_ = answers = (
        frame.orderBy("i")
        .select([column.alias(name) for name, column in requested.items()])
        .collect()
    )
    for name, values in roots.items():
        texts = [value and value.to_json() for value in values]
        assert [row[name] for row in answers] == texts, name
    for i, scalar in enumerate(SCALARS):
        wanted = Variant.of(scalar).to_python()
        if isinstance(wanted, dt.datetime):
            wanted = wanted.replace(tzinfo=None)  # Spark gives local times; the session is in UTC
        for name in (f"t{i}", f"u{i}"):
            assert comparable(first[name]) == wanted, (name, scalar)


def comparable(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value


@pytest.mark.parametrize(
    "shredding",
    [
        None,
        "infer",
        "a BIGINT, b ARRAY<STRING>, c STRUCT<d: STRING, e: DECIMAL(5,2)>",
        "a VARIANT, b VARIANT",
        "ARRAY<STRUCT<a: INT, b: STRING>>",
        "ARRAY<VARIANT>",
        "STRING",
    ],
)
def test_spark_reads_documents_of_ours(
    spark: SparkSession, tmp_path: Path, shredding: str | None
) -> None:
    values: list[Variant | None] = [*map(parse_json, DOCUMENTS), None]
    column = column_of(values)
    lists = pa.ListArray.from_arrays(pa.array(range(len(values) + 1), pa.int32()), column)
    structs = pa.StructArray.from_arrays([column], ["x"])
    file = tmp_path / "t.parquet"
    table = pa.table({"i": range(len(values)), "v": column, "l": lists, "s": structs})
    write_table(table, file, shredding=shredding)
    frame = spark.read.parquet(str(file)).orderBy("i")
    rows = frame.collect()
    assert [of_spark(row.v) for row in rows] == values
    assert [of_spark(row.l) for row in rows] == [[value] for value in values]
    assert [of_spark(row.s) for row in rows] == [{"x": value} for value in values]
    texts = frame.selectExpr("to_json(v) AS v").collect()
    for row, value in zip(texts, values, strict=True):
        # Spark 4.2 puts back the fields of a shredded object in the order of UTF-16.
        assert unordered(row.v) == unordered(None if value is None else value.to_json())


def unordered(text: str | None) -> Any:
    """JSON whose objects have no order and whose numbers are text."""
    return text and json.loads(text, parse_int=str, parse_float=str)


@pytest.mark.parametrize("condition", ["true", "number >= 2500", "number % 1000 = 7", "id > 'c'"])
def test_spark_reads_texts_written_without_what_they_share(
    spark: SparkSession, tmp_path: Path, condition: str
) -> None:
    """DELTA_BYTE_ARRAY, with pages and rows of pages left out."""
    ids = write_alike(tmp_path / "x.parquet")
    keep = {
        "true": [True] * ROWS,
        "number >= 2500": [number >= 2500 for number in range(ROWS)],
        "number % 1000 = 7": [number % 1000 == 7 for number in range(ROWS)],
        "id > 'c'": [text is not None and text > "c" for text in ids],
    }[condition]
    path = "variant_get(event, '$.id', 'string')"
    frame = spark.read.parquet(str(tmp_path / "x.parquet")).where(condition)
    found = frame.selectExpr("number", "id", path).orderBy("number").collect()
    assert any(keep)
    assert [tuple(row) for row in found] == [
        (number, text, text) for number, text in enumerate(ids) if keep[number]
    ]
