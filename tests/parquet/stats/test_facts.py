"""What facts say of a file is what its rows hold."""

from __future__ import annotations

import math
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path as File
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import variantlake as vl
from tests import corpora
from tests.parquet import shredded
from tests.shredding.strategies import schemas
from tests.strategies import MORE
from variantlake.errors import MalformedFile
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.stats.facts import (
    UNKNOWN,
    FileFacts,
    PathFacts,
    facts_of,
    read_facts,
    row_group_facts,
)
from variantlake.parquet.write.file_writer import FileWriter, WriteOptions
from variantlake.paths import Path
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.layout import arrow_type
from variantlake.shredding.schema import Array, Leaf, Node, Object, ShreddingSchema, Untyped
from variantlake.types import NULL_VALUE, Kind, ShreddedType

DELTA_TABLES = corpora.DELTA_TABLES
FLOATS = {Kind.FLOAT, Kind.DOUBLE}


def as_float(value: Any, kind: Kind) -> Any:
    """Values of FLOAT columns as they are stored."""
    return pa.scalar(value, pa.float32()).as_py() if kind is Kind.FLOAT else value


def check_bounds(facts: PathFacts, values: list[Any], kind: Kind, *, from_rows: bool) -> None:
    """The bounds enclose the values; if they say they are exact, they are."""
    values = [as_float(value, kind) for value in values]
    numbers = [v for v in values if not (isinstance(v, float) and math.isnan(v))]
    has_nan = len(numbers) < len(values)
    if not values or kind is Kind.BOOLEAN:
        assert (facts.bounds.minimum, facts.bounds.maximum) == (None, None)
    for value in numbers:
        assert facts.bounds.minimum is None or facts.bounds.minimum <= value
        assert facts.bounds.maximum is None or facts.bounds.maximum >= value
    if numbers and kind is not Kind.BOOLEAN:
        assert not facts.bounds.minimum_exact or facts.bounds.minimum == min(numbers)
        assert not facts.bounds.maximum_exact or facts.bounds.maximum == max(numbers)
    if from_rows:
        if numbers and kind is not Kind.BOOLEAN and not has_nan:
            assert facts.bounds.minimum is not None
            assert facts.bounds.maximum is not None
        if has_nan:
            assert facts.bounds.maximum is None
        zeros = [v for v in numbers if v == 0 and isinstance(v, float)]
        negative_zero = any(math.copysign(1, zero) < 0 for zero in zeros)
        assert facts.plain_floats == (kind in FLOATS and not has_nan and not negative_zero)
    else:
        assert not facts.plain_floats
    for bound, sign in ((facts.bounds.minimum, -1), (facts.bounds.maximum, 1)):
        if bound == 0 and isinstance(bound, float):
            assert math.copysign(1, bound) == sign


def check(facts: FileFacts, schema: ShreddingSchema, data: list[Any], *, from_rows: bool) -> None:
    """Compare facts of one Variant column `v` with a count by hand."""
    (variant,) = facts.variants
    assert facts.num_records == len(data)
    assert variant.column == ("v",)
    assert variant.schema == schema
    assert variant.nulls == sum(row is None for row in data)
    assert [(p.path, p.node) for p in variant.paths] == list(schema.nodes())
    for path in variant.paths:
        present = [g for g in shredded.groups_at(data, path.path) if g is not None]
        typed = [g["typed_value"] for g in present if g.get("typed_value") is not None]
        nulls = sum(g["value"] == NULL_VALUE for g in present)
        residuals = sum(g["value"] not in (None, NULL_VALUE) for g in present)
        known = [(nulls, residuals)] if from_rows else [(nulls, residuals), (UNKNOWN, UNKNOWN)]
        assert (path.nulls, path.residuals) in known
        if from_rows or isinstance(path.node, Leaf | Untyped):
            assert path.typed == len(typed)
        else:
            assert path.typed == UNKNOWN
        if not nulls or not residuals:
            assert path.nulls == nulls, "a footer tells these apart unless both occur"
            assert path.clean == (residuals == 0)
        if isinstance(path.node, Leaf):
            check_bounds(path, typed, path.node.type.kind, from_rows=from_rows)
        else:
            assert (path.bounds.minimum, path.bounds.maximum) == (None, None)
        if isinstance(path.node, Array):
            inside = clean_inside(path.node.element, [one for group in typed for one in group])
            bits = sum(clean << number for number, clean in enumerate(inside))
            assert path.clean_inside == bits
        else:
            assert path.clean_inside == 0


def clean_inside(node: Node, groups: list[Any]) -> Iterator[bool]:
    """Whether each node in an array has no residual but Variant nulls; `groups` are elements."""
    yield all(group.get("value") in (None, NULL_VALUE) for group in groups)
    typed = [value for group in groups if (value := group.get("typed_value")) is not None]
    if isinstance(node, Object):
        for name, child in node.fields:
            yield from clean_inside(child, [v[name] for v in typed if v[name] is not None])
    if isinstance(node, Array):
        yield from clean_inside(node.element, [one for group in typed for one in group])


@settings(max_examples=30 * MORE, deadline=None)
@given(data=st.data(), rows_of_group=st.sampled_from([2, 5, 100]))
def test_facts_equal_a_count_by_hand(data: st.DataObject, rows_of_group: int) -> None:
    schema = data.draw(schemas())
    rows = data.draw(shredded.rows(schema))
    column = shredded.column(schema, rows)
    table_schema = pa.schema([pa.field("v", column.type)])
    with tempfile.TemporaryDirectory() as folder:
        file = File(folder) / "x.parquet"
        options = WriteOptions(row_group_rows=rows_of_group)
        writer = FileWriter(file, table_schema, variant_columns=[("v",)], options=options)
        batch = pa.RecordBatch.from_arrays([column], schema=table_schema)
        for start in range(0, len(rows), 3):
            writer.write(batch.slice(start, 3))
        written = writer.close()
        check(written.facts, schema, rows, from_rows=True)
        assert written.size == file.stat().st_size == written.facts.size
        from_footer = read_facts(file)
        check(from_footer, schema, rows, from_rows=False)
        footer = read_footer(file)
        assert facts_of(footer, written.size) == from_footer
        start = 0
        for group, facts in zip(footer.row_groups, row_group_facts(footer), strict=True):
            part = rows[start : start + group.num_rows]
            start += group.num_rows
            assert facts.row_groups == 1
            check(facts, schema, part, from_rows=False)


ORDINARY: list[tuple[str, pa.DataType, list[Any], Any, Any]] = [
    ("byte", pa.int8(), [-3, None, 5], -3, 5),
    ("short", pa.int16(), [300, -300], -300, 300),
    ("integer", pa.int32(), [7], 7, 7),
    ("long", pa.int64(), [-(2**63), 2**63 - 1], -(2**63), 2**63 - 1),
    ("float", pa.float32(), [0.5, -1.5], -1.5, 0.5),
    ("double", pa.float64(), [0.0, 1.0], -0.0, 1.0),
    ("boolean", pa.bool_(), [True, False], None, None),
    ("date", pa.date32(), [0, 20000], 0, 20000),
    ("timestamp", pa.timestamp("us", "UTC"), [-1, 5], -1, 5),
    ("timestamp_ntz", pa.timestamp("us"), [-1, 5], -1, 5),
    ("string", pa.string(), ["b", "é", "a"], "a", "é"),
    ("binary", pa.binary(), [b"\xff", b"\x00"], b"\x00", b"\xff"),
    ("decimal_9", pa.decimal128(9, 2), [Decimal("-1.50"), Decimal("2.25")], "-1.50", "2.25"),
    ("decimal_18", pa.decimal128(18, 0), [Decimal(10**17)], str(10**17), str(10**17)),
    ("decimal_38", pa.decimal128(38, 10), [Decimal("-0.0000000001"), Decimal(1)], "-1E-10", "1"),
    ("nothing", pa.string(), [None, None], None, None),
    ("no_rows", pa.string(), [], None, None),
]


@pytest.mark.parametrize(
    ("kind", "values", "low", "high"),
    [case[1:] for case in ORDINARY],
    ids=[case[0] for case in ORDINARY],
)
@pytest.mark.parametrize("in_struct", [False, True])
def test_ordinary_columns_have_the_bounds_of_their_values(  # noqa: PLR0917  # a table of cases
    kind: pa.DataType, values: list[Any], low: Any, high: Any, in_struct: bool, tmp_path: File
) -> None:
    if isinstance(low, str) and pa.types.is_decimal(kind):
        low, high = Decimal(low), Decimal(high)
    temporal = pa.types.is_temporal(kind)
    raw_kind = (pa.int32() if pa.types.is_date(kind) else pa.int64()) if temporal else kind
    array: Any = pa.array(values, raw_kind)
    array = array.view(kind) if temporal else array
    if in_struct:
        array = pa.StructArray.from_arrays([array], fields=[pa.field("x", kind)])
    schema = pa.schema([pa.field("c", array.type)])
    with FileWriter(tmp_path / "x.parquet", schema) as writer:
        writer.write(pa.table([array], schema=schema))
        written = writer.close()
    for facts in (written.facts, read_facts(tmp_path / "x.parquet")):
        (column,) = facts.columns
        assert column.column == (("c", "x") if in_struct else ("c",))
        assert column.type == kind
        assert column.nulls == values.count(None)
        assert (column.bounds.minimum, column.bounds.maximum) == (low, high)
        assert column.bounds.minimum_exact == column.bounds.maximum_exact == (low is not None)
        assert facts.column(column.column) == column


def test_arrays_and_maps_are_one_column_without_bounds(tmp_path: File) -> None:
    schema = pa.schema(
        [
            pa.field("l", pa.list_(pa.struct([("a", pa.int32())]))),
            pa.field("m", pa.map_(pa.string(), pa.int64())),
            pa.field("s", pa.struct([pa.field("l", pa.list_(pa.date32()))])),
        ]
    )
    rows: list[dict[str, Any]] = [
        {"l": [{"a": 1}, None], "m": [("k", 1)], "s": {"l": []}},
        {"l": None, "m": None, "s": None},
        {"l": [], "m": [], "s": {"l": None}},
    ]
    with FileWriter(tmp_path / "x.parquet", schema) as writer:
        writer.write(pa.Table.from_pylist(rows, schema=schema))
        written = writer.close()
    assert [(c.column, c.nulls, c.bounds.minimum) for c in written.facts.columns] == [
        (("l",), 1, None),
        (("m",), 1, None),
        (("s", "l"), 2, None),
    ]
    for column in read_facts(tmp_path / "x.parquet").columns:
        assert column.nulls == UNKNOWN
        assert column.type == written.facts.column(column.column).type  # type: ignore[union-attr]  # same columns


@pytest.mark.rule(8)
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize(
    ("value", "plain"), [(float("nan"), False), (-0.0, False), (0.0, True), (None, True)], ids=str
)
def test_rule_8_our_writer_looks_for_nan_and_negative_zero(
    tmp_path: File, kind: pa.DataType, value: float | None, plain: bool
) -> None:
    column = pa.array([1.0, value, 3.0], kind)
    with FileWriter(tmp_path / "x.parquet", pa.schema([("d", kind)])) as writer:
        writer.write(pa.table({"d": column}))
        (found,) = writer.close().facts.columns
    assert found.plain_floats is plain


def test_a_maximum_of_doubles_with_nan_is_unknown_to_the_writer(tmp_path: File) -> None:
    schema = pa.schema([pa.field("d", pa.float64())])
    with FileWriter(tmp_path / "x.parquet", schema) as writer:
        writer.write(pa.table({"d": [1.0, float("nan"), 3.0]}))
        (column,) = writer.close().facts.columns
    assert (column.bounds.minimum, column.bounds.maximum, column.plain_floats) == (1.0, None, False)


def test_a_row_group_without_bounds_leaves_the_file_without(tmp_path: File) -> None:
    table = pa.table({"s": ["a", "x" * 6000]})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=1)
    footer = read_footer(tmp_path / "x.parquet")
    (column,) = facts_of(footer, 0).columns
    assert (column.bounds.minimum, column.bounds.maximum) == (None, None)
    first, second = row_group_facts(footer)
    assert first.columns[0].bounds.maximum == "a"
    assert second.columns[0].bounds.maximum is None


def test_long_strings_have_cut_bounds_when_we_write_them(tmp_path: File) -> None:
    schema = pa.schema([pa.field("s", pa.string())])
    with FileWriter(tmp_path / "x.parquet", schema) as writer:
        writer.write(pa.table({"s": ["m" * 9000, "m" * 5000 + "z"]}))
        (column,) = writer.close().facts.columns
    assert column.bounds.minimum == "m" * 1024
    assert column.bounds.maximum == "m" * 1023 + "n"
    assert (column.bounds.minimum_exact, column.bounds.maximum_exact) == (False, False)


some_texts = st.lists(
    st.builds(
        lambda text, times: text * times,
        st.text("ab\U0010ffff", min_size=1, max_size=2),
        st.sampled_from([0, 1, 600, 1023, 1100, 2100, 6000]),
    )
    | st.none(),
    min_size=1,
    max_size=8,
)


@settings(max_examples=30 * MORE, deadline=None)
@given(texts=some_texts, rows=st.integers(1, 4), batch=st.integers(1, 3))
@example(texts=["b", "a" * 6000, "c", "d" * 6000, None, "x"], rows=2, batch=1)
def test_bounds_enclose_strings_of_any_length(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str | None], rows: int, batch: int
) -> None:
    table = pa.table({"s": pa.array(texts, pa.string())})
    options = WriteOptions(row_group_rows=rows)
    path = tmp_path_factory.getbasetemp() / "long.parquet"
    with FileWriter(path, table.schema, options=options) as writer:
        for part in table.to_batches(max_chunksize=batch):
            writer.write(part)
        (column,) = writer.close().facts.columns
    present = [text for text in texts if text is not None]
    if not present:
        assert (column.bounds.minimum, column.bounds.maximum) == (None, None)
        return
    low, high = min(present), max(present)
    assert isinstance(column.bounds.minimum, str)
    assert (
        column.bounds.minimum == low if column.bounds.minimum_exact else column.bounds.minimum < low
    )
    assert column.bounds.minimum == low or len(low) > 1024
    if column.bounds.maximum is None:
        assert high.startswith("\U0010ffff" * 1024)
    else:
        assert isinstance(column.bounds.maximum, str)
        assert (
            column.bounds.maximum == high
            if column.bounds.maximum_exact
            else column.bounds.maximum > high
        )


@pytest.mark.corpus(corpora.DELTA_TABLES)
def test_unmarked_variants_are_found_where_the_caller_names_them() -> None:
    folder = DELTA_TABLES / "spark-variant-checkpoint"
    file = next(folder.glob("part-00000-16c852df*.parquet"))
    assert read_facts(file).variants == ()
    (variant,) = read_facts(file, [("v",)]).variants
    assert variant.schema == ShreddingSchema(Untyped())
    assert (variant.nulls, variant.paths[0].residuals) == (0, 50)
    nested = ("struct_of_variants", "v")
    assert [v.column for v in read_facts(file, [("v",), nested]).variants] == [("v",), nested]
    inside = ("array_of_variants", "list", "element")
    assert read_facts(file, [inside]).variants == ()


@pytest.mark.corpus(corpora.DELTA_TABLES)
def test_foreign_bounds_of_strings_are_not_taken_for_whole_values() -> None:
    folder = corpora.DELTA_TABLES / "variant-stats-no-checkpoint"
    file = next(folder.glob("*.parquet"))
    variant = read_facts(file).variant(("nv", "v"))
    assert variant is not None
    known = {each.path: each for each in variant.paths}
    name, number = known[Path.of("name")], known[Path.of("id")]
    assert (name.bounds.minimum, name.bounds.maximum, name.bounds.minimum_exact) == (
        "11",
        "20",
        False,
    )
    assert (number.bounds.minimum, number.bounds.maximum, number.bounds.minimum_exact) == (
        10,
        19,
        True,
    )


def test_files_of_duckdb(tmp_path: File) -> None:
    file = tmp_path / "x.parquet"
    documents = [f'{{"a": {i}, "s": "k{i}", "n": null}}' for i in range(10)]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE x (i INT, d DECIMAL(18, 2), v VARIANT)")
        rows = [(i, i / 4, document) for i, document in enumerate(documents)]
        connection.executemany("INSERT INTO x VALUES (?, ?, ?::JSON::VARIANT)", rows)
        connection.execute("INSERT INTO x VALUES (NULL, NULL, NULL)")
        connection.execute(f"COPY x TO '{file}'")
    facts = read_facts(file)
    assert [(c.column, c.nulls, c.bounds.minimum, c.bounds.maximum) for c in facts.columns] == [
        (("i",), 1, 0, 9),
        (("d",), 1, Decimal(0), Decimal("2.25")),
    ]
    (variant,) = facts.variants
    assert variant.nulls == 1
    text = next(each for each in variant.paths if each.path == Path.of("s"))
    assert text.clean
    assert (text.bounds.minimum, text.bounds.maximum) == ("k0", "k9")


@pytest.mark.rule(9, 12)
@pytest.mark.parametrize(
    ("changed", "counts", "clean_inside"),
    [
        ({}, (2, 0), 1),
        ({"max_exact": True}, (2, 0), 1),
        # What was cut to 00 may be any value that begins so.
        ({"max_exact": False}, (UNKNOWN, UNKNOWN), 0),
        ({"min_value": None, "max_value": None}, (UNKNOWN, UNKNOWN), 0),
        ({"null_count": None}, (UNKNOWN, UNKNOWN), 1),
        ({"max_value": b"\x00\x00"}, (UNKNOWN, UNKNOWN), 0),
        ({"min_value": b"\x0c", "max_value": b"\x0c"}, (0, 2), 0),
    ],
    ids=str,
)
def test_rule_9_a_footer_tells_variant_nulls_by_whole_bounds_alone(
    tmp_path: File, changed: dict[str, Any], counts: tuple[int, int], clean_inside: int
) -> None:
    """Of a field, and of the elements of an array: EXACTNESS, rules 9 and 12."""
    null = {"value": NULL_VALUE, "typed_value": None}
    fields = {"a": null, "l": {"value": None, "typed_value": [null, null]}}
    row = {"metadata": b"\x01\x00\x00", "value": None, "typed_value": fields}
    column = pa.array([row, row], arrow_type(parse_ddl("a BIGINT, l ARRAY<BIGINT>")))
    pq.write_table(pa.table({"v": column}), tmp_path / "x.parquet")
    footer = read_footer(tmp_path / "x.parquet")
    (group,) = footer.row_groups
    chunks = tuple(
        replace(chunk, **changed) if chunk.max_value == NULL_VALUE else chunk
        for chunk in group.columns
    )
    assert sum(chunk.max_value == NULL_VALUE for chunk in group.columns) == 2
    footer = replace(footer, row_groups=(replace(group, columns=chunks),))
    (variant,) = facts_of(footer, 1, [("v",)]).variants
    known = {each.path: each for each in variant.paths}
    own, array = known[Path.of("a")], known[Path.of("l")]
    assert (own.nulls, own.residuals) == counts
    assert array.clean_inside == clean_inside


def test_all_null_column_and_empty_file_are_clean(tmp_path: File) -> None:
    schema = parse_ddl("a STRING, b STRUCT<c: BIGINT>")
    table_schema = pa.schema([pa.field("v", arrow_type(schema))])
    with FileWriter(tmp_path / "x.parquet", table_schema, variant_columns=[("v",)]) as writer:
        empty = writer.close().facts
    assert (empty.num_records, empty.row_groups, empty.variants[0].nulls) == (0, 0, 0)
    assert all(path.clean for path in empty.variants[0].paths)
    with FileWriter(tmp_path / "y.parquet", table_schema, variant_columns=[("v",)]) as writer:
        writer.write(pa.table([pa.nulls(4, table_schema.field(0).type)], schema=table_schema))
        facts = writer.close().facts
    assert facts.variants[0].nulls == 4
    assert all(path.clean and not path.typed for path in facts.variants[0].paths)
    assert read_facts(tmp_path / "y.parquet").variants[0].nulls == 4


def test_read_facts_names_the_file(tmp_path: File) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1" * 5)
    with pytest.raises(MalformedFile) as caught:
        read_facts(tmp_path / "bad.parquet")
    assert caught.value.file == str(tmp_path / "bad.parquet")


def test_uuids_in_arrays_are_written_beside_rows_without_an_array(tmp_path: File) -> None:
    number = uuid.UUID(int=7)
    rows = [vl.Variant.of(None), vl.Variant.of([{"a": number}])]
    schema = ShreddingSchema(Array(Object((("a", Leaf(ShreddedType(Kind.UUID))),))))
    file = tmp_path / "uuids.parquet"
    table = pa.table({"v": vl.parquet.variant_array(rows)})
    vl.parquet.write_table(table, file, shredding=schema)
    (column,) = vl.parquet.read_table(file).columns
    values = [each.to_python() for each in vl.parquet.variants(column) if each is not None]
    assert values == [None, [{"a": number}]]
