"""Columns with Variants inside of structs, arrays and maps, and what may not be lost in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variantlake as vl
from variantlake.errors import (
    InvalidJson,
    InvalidSchema,
    InvalidValue,
    MalformedVariant,
    VariantLakeError,
)
from variantlake.parquet.variant.variant_arrays import variant_array, variants

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DDL = "st STRUCT<a INT, v VARIANT>, av ARRAY<VARIANT>, deep MAP<STRING, ARRAY<STRUCT<v VARIANT>>>"
VARIANT: Any = variant_array([None]).type
NODES = pa.map_(pa.string(), pa.list_(pa.struct([("v", VARIANT)])))


def variant(text: str) -> dict[str, bytes]:
    found = vl.parse_json(text)
    return {"metadata": found.metadata, "value": found.value}


ROWS: list[dict[str, Any]] = [
    {"st": {"a": 1, "v": variant('{"k": [1]}')}, "av": [variant("1"), None], "deep": None},
    {"st": None, "av": [], "deep": [("x", [{"v": variant('"s"')}, None]), ("y", None)]},
    {"st": {"a": None, "v": None}, "av": None, "deep": [("z", [{"v": None}])]},
]


def data(rows: list[dict[str, Any]]) -> pa.Table:
    types = {
        "st": pa.struct([("v", VARIANT), ("a", pa.int64())]),
        "av": pa.list_(VARIANT),
        "deep": NODES,
    }
    return pa.table({name: pa.array([row[name] for row in rows], types[name]) for name in types})


@pytest.mark.parametrize("mode", ["none", "name"])
def test_variants_anywhere_come_back(tmp_path: Path, mode: str) -> None:
    table = vl.Table.create(tmp_path, DDL, properties={"delta.columnMapping.mode": mode})
    table.append(data(ROWS * 2).slice(1, 4))  # slices share what stands beside them
    found = vl.Table.open(tmp_path)
    assert found.scan().to_arrow().to_pylist() == (ROWS * 2)[1:5]
    (add,) = found.snapshot.add_files()
    names = {field.name: field.physical_name for field in found.schema.fields}
    nulls = json.loads(add.stats or "")["nullCount"]
    assert list(nulls[names["st"]].values()) == [3, 3]
    marked = [
        column.path
        for column in map(pq.ParquetFile(tmp_path / add.path).schema.column, range(8))
        if column.path.endswith("metadata")
    ]
    assert len(marked) == 3


def test_fields_that_are_left_out_are_null(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path, DDL)
    table.append(pa.table({"st": pa.array([{"a": 1}]), "av": pa.array([[]], pa.list_(VARIANT))}))
    rows = vl.Table.open(tmp_path).scan().to_arrow().to_pylist()
    assert rows == [{"st": {"a": 1, "v": None}, "av": [], "deep": None}]


BROKEN = {"metadata": b"\x01\0\0", "value": b"\xff\xff"}
STRICT = "s STRUCT<a INT NOT NULL>, l ARRAY<STRUCT<a INT NOT NULL>>, m MAP<STRING, STRUCT<a INT>>"
ONE = pa.struct([("a", pa.int32())])


@pytest.mark.parametrize(
    ("column", "array", "error", "sentence"),
    [
        ("av", pa.array([[], [BROKEN]], pa.list_(VARIANT)), MalformedVariant, "row 1"),
        ("st", pa.array([{"v": "text"}]), InvalidJson, "column 'st.v'"),
        ("st", pa.array([{"a": 1, "b": 2}]), InvalidSchema, "struct<a: integer, v: variant>"),
        ("av", pa.array([1]), InvalidSchema, "array<variant>; int64 cannot"),
        ("deep", pa.array([[1]]), InvalidSchema, "list<item: int64> cannot"),
        ("s", pa.array([{"a": 1, "b": 2}]), InvalidSchema, "'s' is struct<a: integer>"),
        ("s", pa.array([None, {"a": None}], ONE), InvalidValue, "row 1: column 's.a' is NOT NULL"),
        ("l", pa.array([[], [{"a": 1}, {"a": None}]], pa.list_(ONE)), InvalidValue, "row 1"),
        ("m", pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())), InvalidSchema, "int32"),
    ],
)
def test_nothing_is_dropped_or_made_up(
    tmp_path: Path, column: str, array: Any, error: type[VariantLakeError], sentence: str
) -> None:
    table = vl.Table.create(tmp_path, f"{DDL}, {STRICT}")
    required = {"s": pa.array([{"a": 1}] * len(array), ONE)}
    with pytest.raises(error, match=sentence):
        table.append(pa.table({**required, column: array}))
    assert table.refresh().version == 0


def test_a_null_above_a_field_that_is_not_null(tmp_path: Path) -> None:
    """Spark gives a NULL of such a struct with NULLs below it."""
    table = vl.Table.create(tmp_path, STRICT)
    one = pa.struct([pa.field("a", pa.int32(), nullable=False)])
    below = pa.array([None, 1, None, 2], pa.int32())
    column = pa.Array.from_buffers(one, 4, [pa.py_buffer(b"\x0e")], 1, 0, [below])
    with pytest.raises(InvalidValue, match=r"row 2: column 's\.a' is NOT NULL"):
        table.append(pa.table({"s": column}))
    table.append(pa.table({"s": column.take(pa.array([0, 1, 3]))}))
    assert [row["s"] for row in table.scan("s").to_pylist()] == [None, {"a": 1}, {"a": 2}]


@pytest.mark.spark
@pytest.mark.usefixtures("interpreted")
def test_frames_with_variants_anywhere(delta_spark: SparkSession, tmp_path: Path) -> None:
    frame = delta_spark.sql(
        """SELECT named_struct('a', int(id), 'v', parse_json(concat('{"k":', id, '}'))) AS st,
        array(parse_json('1'), NULL) AS av,
        map('x', array(named_struct('v', parse_json('"s"')))) AS deep FROM range(3)"""
    )
    vl.Table.create(tmp_path, DDL)
    vl.spark.connect(delta_spark).append(tmp_path, frame)
    found = delta_spark.read.format("delta").load(str(tmp_path))
    shown = ["to_json(struct(*)) AS row"]
    assert sorted(found.selectExpr(*shown).collect()) == sorted(frame.selectExpr(*shown).collect())


@pytest.mark.spark
@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("mode", ["name", "id"])
def test_fields_go_by_physical_names_at_every_depth(
    delta_spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    """Dropped, moved, renamed and new fields: what stands at a place says nothing."""
    at = f"delta.`{tmp_path}`"
    inner = "STRUCT<gone: INT, a: INT, b: INT, v: VARIANT>"
    delta_spark.sql(
        f"CREATE TABLE {at} (s {inner}, l ARRAY<{inner}>, m MAP<STRING, {inner}>) USING delta "
        f"TBLPROPERTIES ('delta.columnMapping.mode'='{mode}')"
    )
    one = "named_struct('gone', 0, 'a', 1, 'b', 2, 'v', parse_json('{\"k\": 1}'))"
    delta_spark.sql(f"INSERT INTO {at} SELECT {one}, array({one}), map('k', {one})")
    places = ("s", "l.element", "m.value")
    gone, new = ([f"{where}.{name}" for where in places] for name in ("gone", "new STRING"))
    delta_spark.sql(f"ALTER TABLE {at} DROP COLUMNS ({', '.join(gone)})")
    for where in places:
        delta_spark.sql(f"ALTER TABLE {at} RENAME COLUMN {where}.a TO c")
        delta_spark.sql(f"ALTER TABLE {at} RENAME COLUMN {where}.b TO a")
        delta_spark.sql(f"ALTER TABLE {at} RENAME COLUMN {where}.c TO b")
    firsts = ", ".join(f"{where}.a FIRST" for where in places)
    delta_spark.sql(f"ALTER TABLE {at} ALTER COLUMN {firsts}")
    delta_spark.sql(f"ALTER TABLE {at} ADD COLUMNS ({', '.join(new)})")
    value = {"metadata": b"\x01\x01\0\x01k", "value": b"\x02\x01\0\0\x02\x0c\x01"}  # Spark's own
    node = {"a": 2, "b": 1, "v": value, "new": None}
    (row,) = vl.Table.open(tmp_path).scan().to_arrow().to_pylist()
    assert row == {"s": node, "l": [node], "m": [("k", node)]}
    table = vl.Table.open(tmp_path)
    table.append(table.scan().to_arrow())
    theirs = delta_spark.read.format("delta").load(str(tmp_path)).selectExpr("to_json(struct(*))")
    assert len(theirs.collect()) == 2
    assert len(theirs.distinct().collect()) == 1


def test_a_struct_with_the_names_of_a_variant_is_no_variant(tmp_path: Path) -> None:
    rows = pa.table({"id": [1], "of": [{"metadata": "text", "value": 1.5}]})
    table = vl.Table.create(tmp_path / "t", "id BIGINT, event VARIANT")
    table.append(rows, merge_schema=True)
    assert table.refresh().scan(["id", "of"]).to_arrow().to_pylist() == rows.to_pylist()
    table.append(rows.rename_columns(["id", "event"]))
    (stored,) = variants(table.scan("event", where="of IS NULL").to_arrow()["event"])
    assert stored is not None
    assert stored.to_python() == {"metadata": "text", "value": 1.5}
    for shredded in ({"metadata": b"", "value": b"", "typed_value": 1}, {"metadata": b""}):
        with pytest.raises(InvalidSchema, match="'event' is a VARIANT; it is given as"):
            table.append(pa.table({"event": [shredded]}))
