"""Notes about the values of Variant columns, in the file itself."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variantlake as vl
from tests.parquet.write.test_table_writer import of
from tests.twins.shred import shred
from variantlake.parquet.metadata.annotate import ColumnPath
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.metadata.schema_tree import SchemaNode, with_notes
from variantlake.parquet.metadata.value_notes import NOTES_KEY, NotesCollector, encode_all, notes_of
from variantlake.parquet.read.reader import read_table
from variantlake.parquet.stats.facts import read_facts
from variantlake.parquet.write.file_writer import FileWriter
from variantlake.parquet.write.table_writer import write_table
from variantlake.paths import Path as VariantPath
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.layout import arrow_type
from variantlake.shredding.values import ValueNotes

A = VariantPath.of("a")


def notes_in(file: Path) -> ValueNotes | None:
    return read_facts(file).variants[0].notes


def test_notes_of_many_columns_are_found() -> None:
    """The work follows their number: here a step for each pair would be a thousand million."""
    count = 1 << 15
    leaf = SchemaNode("x", "optional", "INT32", 0, None, (), 0)
    names = [f"c{number}" for number in range(count)]
    groups = tuple(SchemaNode(name, "optional", None, 0, None, (leaf,), None) for name in names)
    root = SchemaNode("schema", "required", None, 0, None, groups, None)
    notes: dict[ColumnPath, ValueNotes] = {
        (name,): ValueNotes(bool(number % 2)) for number, name in enumerate(names)
    }
    expected = list(notes.values())
    notes |= {("c0", "x"): ValueNotes(True), ("c0", "y", "z"): ValueNotes()}
    found = with_notes(root, notes)
    assert [child.notes for child in found.children] == expected
    assert found.notes is None
    assert found.children[0].children[0].notes == ValueNotes(True)
    assert with_notes(root, {}) is root


@pytest.mark.rule(31)
@pytest.mark.parametrize(
    ("value", "lacking"), [(dt.time(1), True), ([dt.time(1)], True), (uuid.UUID(int=1), False)]
)
def test_rule_31_a_file_says_what_its_residuals_hold(
    tmp_path: Path, value: object, lacking: bool
) -> None:
    file = tmp_path / "f.parquet"
    rows = pa.table({"v": of({"a": 1}, {"a": 2, "b": value})})
    write_table(rows, file, shredding="a BIGINT")
    assert notes_in(file) == ValueNotes(lacking)


@pytest.mark.rule(33)
def test_rule_33_integers_come_back_where_they_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "f.parquet"
    texts = ['{"a":7,"b":1}', '{"a":7.5,"b":[2,0.5]}', '{"a":-3,"c":1}', '{"c":2.0}']
    wanted = ["7", "7.5", "-3", None]
    group = _of_texts(texts)["v"].combine_chunks()
    ddl = "a DECIMAL(18,4), b ARRAY<DECIMAL(9,3)>, c DECIMAL(9,1)"
    write_table(pa.table({"v": group, "s": pa.StructArray.from_arrays([group], ["v"])}), file,
                shredding=ddl)  # fmt: skip
    table: Any = read_table(file)
    for column in (table["v"], table["s"].combine_chunks().field("v")):
        rows: Any = column.to_pylist()
        found = [vl.Variant(row["metadata"], row["value"]).to_python() for row in rows]
        shown = [str(row["a"]) if "a" in row else None for row in found]
        assert shown == wanted
        assert repr(found[1]["b"]) == "[2, Decimal('0.5')]"
        assert [repr(row["c"]) for row in found[2:]] == ["Decimal('1.0')", "Decimal('2.0')"]
    (part,) = vl.parquet.read_paths(file, {"b": "v:b::variant"}).columns
    parts: Any = part.to_pylist()
    assert repr(vl.Variant(parts[1]["metadata"], parts[1]["value"]).to_python()) == (
        "[2, Decimal('0.5')]"
    )


def _of_texts(texts: list[str]) -> pa.Table:
    variants = [vl.parse_json(text) for text in texts]
    group = pa.array([{"metadata": v.metadata, "value": v.value} for v in variants], of(1).type)
    return pa.table({"v": group})


@pytest.mark.rule(33)
def test_rule_33_integers_come_back_beside_decimals_that_end_in_a_zero(tmp_path: Path) -> None:
    file = tmp_path / "f.parquet"
    texts = ['{"a":7}', '{"a":12.50}', '{"a":-3.25}', '{"a":0}']
    write_table(_of_texts(texts), file, shredding="a DECIMAL(18,2)")
    rows: Any = read_table(file)["v"].to_pylist()
    found = [vl.Variant(row["metadata"], row["value"]).to_python()["a"] for row in rows]
    assert found == [7, Decimal("12.50"), Decimal("-3.25"), 0]
    assert list(map(str, found)) == ["7", "12.50", "-3.25", "0"]
    file = tmp_path / "g.parquet"
    texts[3] = '{"a":1.00}'
    write_table(_of_texts(texts), file, shredding="a DECIMAL(18,2)")
    rows = read_table(file)["v"].to_pylist()
    shown = [vl.Variant(row["metadata"], row["value"]).to_python()["a"] for row in rows]
    assert all(isinstance(number, Decimal) for number in shown)


def test_rows_without_notes_take_those_of_the_file_away(tmp_path: Path) -> None:
    schema = parse_ddl("a DECIMAL(9,2)")
    rows = pa.record_batch({"v": shred([vl.Variant.of({"a": 7})], schema)})
    typed = pa.schema([pa.field("v", arrow_type(schema))])
    rows = pa.RecordBatch.from_arrays(rows.columns, schema=typed)
    noted: dict[ColumnPath, ValueNotes] = {("v",): ValueNotes(integers=frozenset({A}))}
    batches: list[tuple[str, list[dict[ColumnPath, ValueNotes]]]] = [
        ("all", [noted, noted]),
        ("some", [noted, {}]),
    ]
    for name, given in batches:
        file = tmp_path / name
        with FileWriter(file, typed, variant_columns=[("v",)]) as writer:
            for notes in given:
                writer.write(rows, notes)
        found = dict(read_footer(file).key_value_metadata)
        assert (NOTES_KEY in found) == (name == "all")


def test_a_file_without_notes_tells_only_that_there_is_no_residual(tmp_path: Path) -> None:
    schema = parse_ddl("a BIGINT")
    for name, value, wanted in (("clean", {"a": 1}, ValueNotes()), ("rest", {"a": "x"}, None)):
        column = shred([vl.Variant.of(value), vl.Variant.of({})], schema)
        file = tmp_path / name
        pq.write_table(pa.table({"v": column}), file)
        assert read_facts(file, [("v",)]).variants[0].notes == wanted


def test_what_spark_shreds_holds_nothing_that_spark_lacks(tmp_path: Path) -> None:
    file = tmp_path / "f.parquet"
    column = shred([vl.Variant.of({"a": "x"})], parse_ddl("a BIGINT"))
    table = pa.table({"v": column}).replace_schema_metadata({"org.apache.spark.version": "4.2.0"})
    pq.write_table(table, file)
    assert read_facts(file, [("v",)]).variants[0].notes == ValueNotes()


@pytest.mark.parametrize("text", ["", "x", "{}", "[1]", '[["v",[0,[],[]]]]', '[[["v"],[7]]]'])
def test_notes_that_make_no_sense_are_none(text: str) -> None:
    assert notes_of([(NOTES_KEY, text), (NOTES_KEY, None), ("other", "[]")]) == {}


def test_notes_of_nested_columns_have_their_names() -> None:
    collector = NotesCollector([("l", "list", "element"), ("a.b",)])
    collector.add({("l", "list", "element"): ValueNotes(lacking=True), ("a.b",): ValueNotes()})
    assert notes_of([(NOTES_KEY, encode_all(collector.by_column))]) == collector.by_column
