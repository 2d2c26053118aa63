"""What FileWriter writes: layout, sizes, and rows that every reader gives back."""

from __future__ import annotations

import json
import random
import tempfile
from pathlib import Path as File
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parquet import shredded
from tests.shredding.strategies import schemas
from tests.strategies import MORE
from tests.twins.shred import shred
from variantlake.encoding.json import parse_json
from variantlake.encoding.variant import Variant
from variantlake.errors import InvalidSchema, InvalidValue, MalformedFile, MissingSource
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.stats.facts import read_facts
from variantlake.parquet.variant.variant_group import variant_groups
from variantlake.parquet.write.file_writer import FileWriter, WriteOptions, WrittenFile
from variantlake.shredding.arrays import map_array
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.layout import VARIANT_TYPE, arrow_type, map_type

SCHEMA = parse_ddl(
    "kind STRING, n BIGINT, d DOUBLE, p DECIMAL(9,2), big DECIMAL(30,2), flag BOOLEAN, "
    "tags ARRAY<STRING>, at STRUCT<x: INT, y: VARIANT>"
)


def documents(count: int) -> list[Variant | None]:
    """Documents that fit SCHEMA more or less; every seventh is SQL NULL."""
    chance = random.Random(7)
    out: list[Variant | None] = []
    for i in range(count):
        document: dict[str, Any] = {
            "kind": chance.choice(["commit", "identity", None, 5]),
            "n": i * 10**10,
            "p": i % 100 + 0.25,
            "flag": i % 2 == 0,
            "tags": ["en", None, "é"][: i % 4],
            "at": {"x": i % 100, "y": {"deep": [i]}},
            "extra": f"residual {i}",
        }
        if i % 3 == 0:
            del document["kind"]
        out.append(None if i % 7 == 6 else parse_json(json.dumps(document)))
    return out


DOCUMENTS = documents(400)


def table(rows: int = 400) -> pa.Table:
    values = DOCUMENTS[:rows]
    event = shred(values, SCHEMA)
    schema = pa.schema([pa.field("event", event.type), pa.field("id", pa.int64(), False)])
    return pa.table([event, pa.array(range(len(values)), pa.int64())], schema=schema)


def pylist(array: Any) -> list[Any]:
    """`to_pylist`; the stubs have it for flat types only."""
    values: list[Any] = array.to_pylist()
    return values


def write(file: File, data: pa.Table, **options: Any) -> WrittenFile:
    columns = [("event",)] if "event" in data.column_names else []
    writer = FileWriter(file, data.schema, variant_columns=columns, options=WriteOptions(**options))
    for batch in data.to_batches(max_chunksize=60):
        writer.write(batch)
    return writer.close()


def test_pyarrow_reads_back_what_was_written(tmp_path: File) -> None:
    written = write(tmp_path / "x.parquet", table())
    assert pq.read_table(tmp_path / "x.parquet").equals(table())
    assert written.path == str(tmp_path / "x.parquet")
    assert written.size == (tmp_path / "x.parquet").stat().st_size
    assert written.facts.num_records == 400


def test_duckdb_reads_the_variants(tmp_path: File) -> None:
    write(tmp_path / "x.parquet", table())
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW x AS SELECT * FROM '{tmp_path}/x.parquet'")
        rows = connection.execute("SELECT event::JSON FROM x ORDER BY id").fetchall()
        types = connection.execute("DESCRIBE x").fetchall()
    assert [row[1] for row in types] == ["VARIANT", "BIGINT"]
    expected = [v if v is None else json.loads(v.to_json()) for v in DOCUMENTS]
    assert [row if row is None else json.loads(row) for (row,) in rows] == expected


@settings(max_examples=40 * MORE, deadline=None)
@given(data=st.data())
def test_any_shredded_rows_come_back(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    rows = data.draw(shredded.rows(schema))
    column = shredded.column(schema, rows)
    arrow = pa.schema([pa.field("v", column.type)])
    with tempfile.TemporaryDirectory() as folder:
        file = File(folder) / "x.parquet"
        with FileWriter(file, arrow, variant_columns=[("v",)]) as writer:
            writer.write(pa.table([column], schema=arrow))
        (found,) = variant_groups(read_footer(file))
        assert found.schema == schema
        assert found.annotated
        options: dict[str, Any] = {"arrow_extensions_enabled": True}  # UUID as such
        back = pq.ParquetFile(file, **options).read().column("v").combine_chunks()
        # As text, because NaN is not equal to itself.
        assert str(pylist(shredded.raw(back))) == str(pylist(shredded.raw(column)))


# --- Layout ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", ["zstd", "snappy", "none"])
def test_every_leaf_has_the_compression_and_a_page_index(compression: str, tmp_path: File) -> None:
    write(tmp_path / "x.parquet", table(), compression=compression, row_group_rows=150)
    footer = read_footer(tmp_path / "x.parquet")
    assert [group.num_rows for group in footer.row_groups] == [150, 150, 100]
    codec = {"none": "UNCOMPRESSED"}.get(compression, compression.upper())
    for group in footer.row_groups:
        for chunk in group.columns:
            assert chunk.codec == codec
            assert chunk.page_index
    theirs = pq.read_metadata(tmp_path / "x.parquet").row_group(0)
    for index in range(theirs.num_columns):
        assert theirs.column(index).has_column_index
        assert theirs.column(index).has_offset_index


def test_decimals_are_stored_as_integers_where_they_fit(tmp_path: File) -> None:
    write(tmp_path / "x.parquet", table(3))
    (found,) = variant_groups(read_footer(tmp_path / "x.parquet"))
    types = {str(path): node.parquet_type for path, node in found.nodes()}
    assert types["$['p']"] == "INT32 DECIMAL(9,2)"
    assert types["$['big']"] == "FIXED_LEN_BYTE_ARRAY(13) DECIMAL(30,2)"
    assert types["$['at']['x']"] == "INT32"


def test_row_groups_are_bounded_by_bytes(tmp_path: File) -> None:
    data = pa.table({"s": [random.Random(i).randbytes(1000).hex() for i in range(500)]})
    limit = 100_000
    write(tmp_path / "x.parquet", data, row_group_bytes=limit)
    sizes = [g.total_byte_size for g in read_footer(tmp_path / "x.parquet").row_groups]
    assert len(sizes) >= 8
    assert max(sizes) < 1.5 * limit
    assert min(sizes[:-1]) > limit / 2


def test_row_groups_stay_bounded_when_sizes_are_uneven(tmp_path: File) -> None:
    data = pa.table({"s": ["x" * 100_000] * 20 + ["y"] * 10_000})
    limit = 300_000
    options = WriteOptions(row_group_bytes=limit)
    with FileWriter(tmp_path / "x.parquet", data.schema, options=options) as writer:
        writer.write(data)
    groups = read_footer(tmp_path / "x.parquet").row_groups
    assert sum(group.num_rows for group in groups) == 10_020
    assert max(group.num_rows for group in groups[:4]) <= 4
    assert pq.read_table(tmp_path / "x.parquet").equals(data)


def test_dictionaries_where_values_repeat(tmp_path: File) -> None:
    rows, pick = 3000, random.Random(5)
    data = pa.table(
        {
            "repeated": ["a", "b", "c"] * (rows // 3),
            "unique": [f"{i * 7919 % 2**31:08x}" for i in range(rows)],
            "alike": [f"bafy{pick.getrandbits(99):x}" if i % 5 else None for i in range(rows)],
            "bytes": [f"id-\0\0\0{pick.getrandbits(200)}".encode() for _ in range(rows)],
            "alike_at_both_ends": [
                f"https://x.org/u/{pick.randrange(9**5)}?version=4" for _ in range(rows)
            ],
            "rising": range(rows),
            "double": [i / 7 for i in range(rows)],
            "list": [[f"{i}", "x"] for i in range(rows)],
            "rare": pa.array([None] * (rows - 1) + ["x"]),
            "a.b": ["x"] * rows,
            "a": [{"b": i} for i in range(rows)],
            "when": pa.array(range(rows), pa.timestamp("us", "UTC")),
            "map": pa.array([[("k", i)] for i in range(rows)], pa.map_(pa.string(), pa.int64())),
        }
    )
    write(tmp_path / "x.parquet", data)
    group = pq.read_metadata(tmp_path / "x.parquet").row_group(0)
    encodings: dict[str, set[str]] = {}
    for index in range(group.num_columns):
        column = group.column(index)
        encodings.setdefault(column.path_in_schema, set()).update(column.encodings)
    with_dictionary = {name for name, used in encodings.items() if "RLE_DICTIONARY" in used}
    assert with_dictionary == {"repeated", "rare", "a.b", "map.key_value.key"}
    packed = {name for name, used in encodings.items() if "DELTA_BINARY_PACKED" in used}
    assert packed == {"rising", "when", "map.key_value.value"}
    lengths = {name for name, used in encodings.items() if "DELTA_LENGTH_BYTE_ARRAY" in used}
    assert lengths == {"unique", "alike_at_both_ends", "list.list.element"}
    starts = {name for name, used in encodings.items() if "DELTA_BYTE_ARRAY" in used}
    assert starts == {"alike", "bytes"}
    assert pq.read_table(tmp_path / "x.parquet").to_pylist() == data.to_pylist()


def test_dictionaries_where_only_all_rows_show_that_values_repeat(tmp_path: File) -> None:
    """A few thousand users of many events are hardly seen twice in a small sample."""
    rows, pick = 40_000, random.Random(3)
    users = [f"did:plc:{pick.randrange(10_000):024d}" for _ in range(rows)]
    long = [f"{pick.randrange(10_000):0600d}" for _ in range(rows)]
    data = pa.table(
        {
            "user": users,
            "inner": [{"user": user} for user in users],
            "listed": [[user] for user in users],
            "beyond_the_limit_of_a_dictionary": long,
        }
    )
    write(tmp_path / "x.parquet", data)
    group = pq.read_metadata(tmp_path / "x.parquet").row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    with_dictionary = {
        column.path_in_schema for column in columns if "RLE_DICTIONARY" in column.encodings
    }
    assert with_dictionary == {"user", "inner.user"}
    assert pq.read_table(tmp_path / "x.parquet").equals(data)


def test_dictionaries_where_the_first_rows_take_turns(tmp_path: File) -> None:
    """Five thousand users, one after the other: none of the first rows has the user of another."""
    rows = 20_000
    users = [f"user {row % 5000}" for row in range(rows)]
    orders = [f"order {row}" for row in range(rows)]
    data = pa.table({"user": users, "inner": [{"user": user} for user in users], "order": orders})
    write(tmp_path / "x.parquet", data)
    group = pq.read_metadata(tmp_path / "x.parquet").row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    assert {
        column.path_in_schema for column in columns if "RLE_DICTIONARY" in column.encodings
    } == {"user", "inner.user"}
    assert pq.read_table(tmp_path / "x.parquet").equals(data)


def test_pages_are_small_enough_to_skip(tmp_path: File) -> None:
    data = pa.table({"n": range(50_000)})
    write(tmp_path / "x.parquet", data, page_rows=5000, page_bytes=1 << 20)
    with duckdb.connect() as connection:
        sql = f"SELECT count(*) FROM '{tmp_path}/x.parquet' WHERE n BETWEEN 7000 AND 7999"
        assert connection.execute(sql).fetchall() == [(1000,)]


# --- Nulls that pyarrow trips over ----------------------------------------------------------------


def test_holes_below_null_rows_are_filled(tmp_path: File) -> None:
    metadata = pa.array([b"\x01\x00\x00", None], pa.binary())
    value = pa.array([b"\x00", None], pa.binary())
    column = pa.StructArray.from_arrays(
        [metadata, value], fields=list(VARIANT_TYPE), mask=pa.array([False, True])
    )
    listed = pa.ListArray.from_arrays(
        pa.array([0, 2, 2, 2], pa.int32()),
        column,
        type=pa.list_(VARIANT_TYPE),
        mask=pa.array([False, True, False]),
    )
    number = pa.field("value", pa.int64(), nullable=False)
    keys, items, last = pa.array(["j", "k"]), pa.array([1, None]), pa.array([False, True])
    places = pa.array([0, 1, 2], pa.int32())
    numbers = pa.ListArray.from_arrays(places, items, type=pa.list_(number), mask=last)
    kind = map_type(pa.field("key", pa.string(), nullable=False), number)
    mapped: Any = map_array(kind, [0, 1, 2], [keys, items], last)
    for array in (column, listed, pa.StructArray.from_arrays([listed], ["l"]), numbers, mapped):
        schema = pa.schema([pa.field("v", array.type)])
        with FileWriter(tmp_path / "x.parquet", schema) as writer:
            writer.write(pa.table([array], schema=schema))
        back = pq.read_table(tmp_path / "x.parquet").column(0)
        assert pylist(back) == pylist(array)


REQUIRED = pa.field("value", pa.struct([("a", pa.int64())]), nullable=False)
REQUIRED_LIST = pa.field("element", pa.list_(pa.int64()), nullable=False)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        (pa.field("x", pa.int64(), nullable=False), [1, None]),
        (pa.field("x", pa.list_(pa.int64()), nullable=False), [[1], None]),
        (pa.field("x", pa.struct([("a", pa.int64())]), nullable=False), [{"a": 1}, None]),
        (
            pa.field("x", pa.struct([pa.field("a", pa.int64(), nullable=False)])),
            [{"a": 1}, {"a": None}],
        ),
        (
            pa.field("x", pa.list_(pa.struct([pa.field("a", pa.string(), nullable=False)]))),
            [[], [{"a": None}]],
        ),
        (
            pa.field("x", pa.list_(REQUIRED_LIST)),
            [[[1]], [None]],
        ),
        (pa.field("x", pa.list_(REQUIRED, 1)), [[{"a": 1}], [None]]),
        (
            pa.field("x", map_type(pa.field("key", pa.string(), False), REQUIRED)),
            [[("j", {"a": 1}), ("k", {"a": 1})], [("l", None)]],
        ),
    ],
    ids=["leaf", "list", "struct", "in-struct", "in-list", "list-in-list", "fixed-size", "map"],
)
def test_missing_required_values_are_refused(
    field: pa.Field[pa.DataType], values: list[Any], tmp_path: File
) -> None:
    schema = pa.schema([field])
    batch = pa.RecordBatch.from_arrays([pa.array(values, field.type)], schema=schema)
    writer = FileWriter(tmp_path / "x.parquet", schema)
    with pytest.raises(InvalidValue, match=r"column 'x': field .* is required") as caught:
        writer.write(batch)
    assert caught.value.row == 1
    writer.abort()


def test_of_rows_that_are_refused_none_is_written(tmp_path: File) -> None:
    schema = pa.schema([pa.field("x", pa.int64(), nullable=False)])
    parts = [pa.record_batch([pa.array(values)], schema=schema) for values in ([1], [None])]
    with FileWriter(tmp_path / "x.parquet", schema) as writer:
        with pytest.raises(InvalidValue):
            writer.write(pa.Table.from_batches(parts))
        assert writer.close().facts.num_records == 0


def test_dictionary_arrays_are_written(tmp_path: File) -> None:
    kind = pa.dictionary(pa.int32(), pa.string())
    inner = pa.field("s", kind, nullable=False)
    codes = pa.array(["a", None, "a"]).dictionary_encode()
    array = pa.StructArray.from_arrays([codes], fields=[inner], mask=pa.array([False, True, False]))
    schema = pa.schema([pa.field("x", array.type)])
    with FileWriter(tmp_path / "x.parquet", schema) as writer:
        writer.write(pa.table([array], schema=schema))
        (column,) = writer.close().facts.columns
    assert (column.column, column.nulls, column.bounds.minimum) == (("x", "s"), 1, "a")
    assert pq.read_table(tmp_path / "x.parquet").column(0).to_pylist() == pylist(array)
    assert read_facts(tmp_path / "x.parquet").columns[0].nulls == 1  # so does the footer count


def test_texts_of_every_arrow_type_are_written(tmp_path: File) -> None:
    texts = ["a", None, "é" * 20, "a"]
    view: Any = pa.array(texts, pa.string_view())
    codes = view.cast(pa.string()).dictionary_encode()
    lists = pa.array([["a"], None, [], [None]], pa.list_(pa.string_view()))
    kind = pa.map_(pa.string_view(), pa.dictionary(pa.int8(), pa.string()))
    mapped: Any = pa.array([[("a", "b")], None, [], [("c", None)]], kind)
    names = ["view", "codes", "lists", "map"]
    codes_of_nothing = pa.array([0], pa.int8())
    none: Any = pa.DictionaryArray.from_arrays(
        codes_of_nothing, pa.array([], pa.string()), safe=False
    )
    empty = pa.StructArray.from_arrays([none], ["x"], mask=pa.array([True]))
    with FileWriter(tmp_path / "x.parquet", pa.schema([pa.field("x", empty.type)])) as writer:
        writer.write(pa.table({"x": empty}))
    assert pq.read_table(tmp_path / "x.parquet").to_pylist() == [{"x": None}]
    group = pa.StructArray.from_arrays([view, codes, lists, mapped], names)
    table = pa.table([view, codes, lists, mapped, group], names=[*names, "group"])
    with FileWriter(
        tmp_path / "x.parquet", table.schema, options=WriteOptions(row_group_rows=3)
    ) as writer:
        writer.write(table.slice(0, 1))
        writer.write(table.slice(1))
    assert pq.read_table(tmp_path / "x.parquet").to_pylist() == table.to_pylist()


# --- Life of a writer -----------------------------------------------------------------------------


def test_an_empty_file_is_a_file(tmp_path: File) -> None:
    written = write(tmp_path / "x.parquet", table(0))
    assert written.facts.num_records == 0
    back = pq.read_table(tmp_path / "x.parquet")
    assert back.num_rows == 0
    assert back.schema.equals(table(1).schema)
    with duckdb.connect() as connection:
        sql = f"SELECT event FROM '{tmp_path}/x.parquet'"
        assert connection.execute(sql).fetchall() == []


@pytest.mark.parametrize("rows", [0, 400])
def test_abort_removes_the_partial_file(rows: int, tmp_path: File) -> None:
    data = table(rows)
    options = WriteOptions(row_group_rows=100)
    writer = FileWriter(tmp_path / "x.parquet", data.schema, options=options)
    writer.write(data)
    assert (tmp_path / "x.parquet").exists()
    writer.abort()
    writer.abort()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InvalidValue, match="closed"):
        writer.write(data)
    with pytest.raises(InvalidValue, match="closed"):
        writer.close()


def test_an_exception_aborts(tmp_path: File) -> None:
    with (
        pytest.raises(InvalidSchema),
        FileWriter(tmp_path / "x.parquet", table().schema) as writer,
    ):
        writer.write(pa.table({"id": [1]}))
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_finished_is_removed(
    tmp_path: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("variantlake.parquet.write.file_writer.annotate", fail)
    writer = FileWriter(tmp_path / "x.parquet", table().schema, variant_columns=[("event",)])
    writer.write(table(5))
    with pytest.raises(OSError, match="disk full"):
        writer.close()
    assert list(tmp_path.iterdir()) == []


def test_a_closed_file_survives_abort(tmp_path: File) -> None:
    data = table(5)
    with FileWriter(tmp_path / "x.parquet", data.schema) as writer:
        writer.write(data)
        writer.close()
        writer.abort()
    assert pq.read_table(tmp_path / "x.parquet").num_rows == 5


def test_rows_of_another_schema_are_refused(tmp_path: File) -> None:
    with FileWriter(tmp_path / "x.parquet", table().schema) as writer:
        with pytest.raises(InvalidSchema, match="rows of the schema"):
            writer.write(pa.table({"id": [1]}))
        writer.write(table(2))


@pytest.mark.parametrize(
    ("schema", "columns", "error"),
    [
        (pa.schema([("a", pa.int64()), ("a", pa.int64())]), [], InvalidSchema),
        (pa.schema([("a", pa.int64())]), [("b",)], InvalidSchema),
        (pa.schema([("a", pa.int64())]), [("a", "b")], InvalidSchema),
        (pa.schema([("a", pa.list_(VARIANT_TYPE))]), [("a", "element")], InvalidSchema),
        (pa.schema([("a", pa.int64())]), [("a",)], MalformedFile),
        (pa.schema([("a", pa.struct([("value", pa.binary())]))]), [("a",)], MalformedFile),
    ],
)
def test_columns_that_are_no_variants_are_refused(
    schema: pa.Schema, columns: list[tuple[str, ...]], error: type[Exception], tmp_path: File
) -> None:
    with pytest.raises(error):
        FileWriter(tmp_path / "x.parquet", schema, variant_columns=columns)
    assert list(tmp_path.iterdir()) == []


def test_missing_folder(tmp_path: File) -> None:
    with pytest.raises(MissingSource, match="no such folder"):
        FileWriter(tmp_path / "none" / "x.parquet", table().schema)


@pytest.mark.parametrize("name", ["row_group_bytes", "row_group_rows", "page_bytes", "page_rows"])
def test_options_are_checked(name: str) -> None:
    bounds: dict[str, Any] = {name: 0}
    with pytest.raises(InvalidValue, match=name):
        WriteOptions(**bounds)


def test_variant_columns_in_lists_and_maps_are_marked(tmp_path: File) -> None:
    kind = arrow_type(parse_ddl("a BIGINT"))
    row = {"metadata": b"\x01\x00\x00", "value": b"\x00", "typed_value": None}
    schema = pa.schema(
        [
            pa.field("l", pa.list_(kind)),
            pa.field("m", pa.map_(pa.string(), kind)),
            pa.field("s", pa.struct([pa.field("v", kind)])),
        ]
    )
    data = pa.Table.from_pylist(
        [{"l": [row, None], "m": [("k", row)], "s": {"v": row}}, {}], schema=schema
    )
    columns = [("l", "list", "element"), ("m", "key_value", "value"), ("s", "v")]
    with FileWriter(tmp_path / "x.parquet", schema, variant_columns=columns) as writer:
        writer.write(data)
        facts = writer.close().facts
    assert [v.column for v in facts.variants] == [("s", "v")]
    assert facts.variants[0].nulls == 1
    assert [c.column for c in facts.columns] == [("l",), ("m",)]
    with duckdb.connect() as connection:
        types = connection.execute(f"DESCRIBE SELECT * FROM '{tmp_path}/x.parquet'").fetchall()
    assert [row[1] for row in types] == [
        "VARIANT[]",
        "MAP(VARCHAR, VARIANT)",
        "STRUCT(v VARIANT)",
    ]


def test_dictionaries_where_only_the_whole_row_group_shows_that_values_repeat(
    tmp_path: File,
) -> None:
    """Of the first 40,960 rows more than half have a user of their own, of all rows fewer."""
    rows, pick = 120_000, random.Random(4)
    users = [f"did:plc:{pick.randrange(40_000):024d}" for _ in range(rows)]
    data = pa.table({"user": users})
    write(tmp_path / "x.parquet", data)
    column = pq.read_metadata(tmp_path / "x.parquet").row_group(0).column(0)
    assert "RLE_DICTIONARY" in column.encodings
    assert column.total_uncompressed_size < 120_000 * 20
    assert pq.read_table(tmp_path / "x.parquet").equals(data)
