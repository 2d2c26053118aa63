"""Our footer reader agrees with pyarrow's, and takes nothing that is not a footer."""

from __future__ import annotations

import io
import json
import tracemalloc
from contextlib import suppress
from pathlib import Path as File
from typing import Any, BinaryIO

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests import corpora
from tests.strategies import MORE
from variantlake.errors import MalformedFile, MissingSource, UnsupportedFeature
from variantlake.parquet.metadata.footer import (
    MAX_FOOTER_BYTES,
    Footer,
    parse_footer,
    read_footer,
    read_tail,
)
from variantlake.parquet.metadata.schema_tree import MAX_SCHEMA_DEPTH, SchemaNode
from variantlake.parquet.metadata.thrift import CompactReader, ListOf, Struct, Wire
from variantlake.parquet.read.reader import read_table
from variantlake.parquet.stats.facts import facts_of

FOREIGN_FILES = [
    file
    for folder in (corpora.DATA, corpora.SHREDDED_VARIANT, corpora.DELTA_TABLES)
    for file in sorted(folder.glob("**/*.parquet"))
]


@pytest.mark.corpus(corpora.SHREDDED_VARIANT, corpora.DELTA_TABLES)
def test_foreign_files_are_there() -> None:
    assert len(FOREIGN_FILES) > 120


def leaves_of(node: SchemaNode, path: tuple[str, ...] = ()) -> list[tuple[str, SchemaNode]]:
    if not node.is_group:
        return [(".".join(path), node)]
    return [leaf for child in node.children for leaf in leaves_of(child, (*path, child.name))]


def logical_of(column: Any) -> dict[str, Any]:
    """pyarrow's logical type as a dict."""
    return dict(json.loads(column.logical_type.to_json()))


def check_leaf(ours: SchemaNode, path: str, column: Any) -> None:
    assert path == column.path
    assert ours.name == column.name
    assert ours.physical == column.physical_type
    if ours.physical == "FIXED_LEN_BYTE_ARRAY":
        assert ours.type_length == column.length
    logical = logical_of(column)
    kind = logical["Type"].upper()
    if ours.logical is None:
        assert kind == "NONE"
        return
    names = {"INT": "INTEGER", "NULL": "UNKNOWN"}
    assert ours.logical.kind == names.get(kind, kind)
    assert ours.logical.precision == logical.get("precision", 0)
    assert ours.logical.scale == logical.get("scale", 0)
    assert ours.logical.bits == logical.get("bitWidth", 0)
    assert ours.logical.signed == logical.get("isSigned", True)
    assert ours.logical.utc == logical.get("isAdjustedToUTC", False)
    units = {"": "", "milliseconds": "MILLIS", "microseconds": "MICROS", "nanoseconds": "NANOS"}
    assert ours.logical.unit == units[logical.get("timeUnit", "")]


def check_footer(ours: Footer, theirs: pq.FileMetaData) -> None:
    assert ours.num_rows == theirs.num_rows
    assert ours.created_by == (theirs.created_by or "")
    texts = {key.encode(): (value or "").encode() for key, value in ours.key_value_metadata}
    assert texts == (theirs.metadata or {})
    leaves = leaves_of(ours.schema)
    assert len(leaves) == len(ours.leaves) == theirs.num_columns
    for index, (path, node) in enumerate(leaves):
        column = theirs.schema.column(index)
        check_leaf(node, path, column)
        assert node.leaf == index
        assert ours.leaves[index].node is node
        assert ours.leaves[index].max_definition == column.max_definition_level
        assert ours.leaves[index].max_repetition == column.max_repetition_level
    assert len(ours.row_groups) == theirs.num_row_groups
    for index, group in enumerate(ours.row_groups):
        check_row_group(group, theirs.row_group(index))


def check_row_group(ours: Any, theirs: Any) -> None:
    assert ours.num_rows == theirs.num_rows
    assert ours.total_byte_size == theirs.total_byte_size
    for index, chunk in enumerate(ours.columns):
        column = theirs.column(index)
        assert chunk.num_values == column.num_values
        assert chunk.codec == column.compression.replace("LZ4_HADOOP", "LZ4")
        assert chunk.compressed_size == column.total_compressed_size
        assert chunk.uncompressed_size == column.total_uncompressed_size
        assert chunk.page_index == (column.has_column_index and column.has_offset_index)
        statistics = column.statistics
        if statistics is not None:
            if statistics.has_null_count:
                assert chunk.null_count == statistics.null_count
            if statistics.has_min_max and statistics.physical_type == "INT64":
                low = int.from_bytes(chunk.min_value, "little", signed=True)
                assert low == statistics.min_raw
            if statistics.has_min_max and statistics.physical_type == "BYTE_ARRAY":
                raw = statistics.max_raw
                assert chunk.max_value == (raw.encode() if isinstance(raw, str) else raw)


@pytest.mark.parametrize("file", FOREIGN_FILES, ids=lambda file: file.stem[-40:])
def test_footer_equals_that_of_pyarrow(file: File) -> None:
    check_footer(read_footer(file), pq.read_metadata(file))


def all_types() -> pa.Table:
    rows = 50
    columns: dict[str, Any] = {
        "bool": pa.array([i % 2 == 0 for i in range(rows)]),
        "int8": pa.array(range(rows), pa.int8()),
        "uint16": pa.array(range(rows), pa.uint16()),
        "uint64": pa.array(range(rows), pa.uint64()),
        "int64": pa.array([-i if i % 3 else None for i in range(rows)]),
        "float16": pa.array([float(i) for i in range(rows)], pa.float32()).cast(pa.float16()),
        "double": pa.array([i / 4 for i in range(rows)]),
        "string": pa.array([f"s{i}" for i in range(rows)]),
        "binary": pa.array([bytes([i]) for i in range(rows)]),
        "fixed": pa.array([bytes([i] * 3) for i in range(rows)], pa.binary(3)),
        "date": pa.array(range(rows), pa.date32()),
        "time": pa.array(range(rows), pa.time64("us")),
        "time_ms": pa.array(range(rows), pa.time32("ms")),
        "decimal_5": pa.array(range(rows), pa.decimal128(5, 0)),
        "decimal_30": pa.array(range(rows), pa.decimal128(30, 4)),
        "null": pa.nulls(rows),
        "list": pa.array([[i, None] for i in range(rows)]),
        "map": pa.array([[("k", i)] for i in range(rows)], pa.map_(pa.string(), pa.int32())),
        "struct": pa.array([{"a": {"b": i}, "a.b": "x"} for i in range(rows)]),
    }
    for unit in ("ms", "us", "ns"):
        columns[f"timestamp_{unit}"] = pa.array(range(rows), pa.timestamp(unit))
        columns[f"timestamp_{unit}_utc"] = pa.array(range(rows), pa.timestamp(unit, "UTC"))
    return pa.table(columns)


@pytest.mark.parametrize("options", [
    {},
    {"row_group_size": 7, "compression": "zstd", "write_page_index": True},
    {"store_decimal_as_integer": True, "data_page_version": "2.0", "compression": "none"},
    {"version": "1.0", "store_schema": False, "coerce_timestamps": "ms",
     "allow_truncated_timestamps": True},
    {"write_statistics": False, "compression": "gzip"},
], ids=lambda options: "-".join(options) or "defaults")  # fmt: skip
def test_footers_of_pyarrow(options: dict[str, Any], tmp_path: File) -> None:
    pq.write_table(all_types(), tmp_path / "x.parquet", **options)
    check_footer(read_footer(tmp_path / "x.parquet"), pq.read_metadata(tmp_path / "x.parquet"))


def test_footers_of_duckdb(tmp_path: File) -> None:
    table = all_types().drop_columns(["null", "float16"])
    file = tmp_path / "x.parquet"
    with duckdb.connect() as connection:
        connection.register("every_type", table)
        connection.execute(f"COPY every_type TO '{file}' (ROW_GROUP_SIZE 10)")
    check_footer(read_footer(file), pq.read_metadata(file))


def test_converted_types_mean_their_logical_types(tmp_path: File) -> None:
    pq.write_table(all_types(), tmp_path / "x.parquet")
    tail = read_tail(tmp_path / "x.parquet")
    logical = parse_footer(tail.footer).schema
    converted = parse_footer(without_logical_types(tail.footer)).schema
    for (path, ours), (_, old) in zip(leaves_of(logical), leaves_of(converted), strict=True):
        if ours.logical is None or ours.logical.kind in ("FLOAT16", "UNKNOWN", "UUID"):
            continue
        if ours.logical.unit == "NANOS" or (ours.logical.unit and not ours.logical.utc):
            continue  # no converted type for these
        assert old.logical == ours.logical, path


def without_logical_types(footer: bytes) -> bytes:
    """The footer with field 10 of every schema element cut out; it always comes last."""
    reader = CompactReader(footer)
    last = 0
    while True:
        wire, last = reader.field_header(last)
        if last == 2:
            break
        reader.skip(wire)
    out, copied = bytearray(), 0
    _, size = reader.list_header()
    for _ in range(size):
        last = 0
        while True:
            start = reader.position
            wire, last = reader.field_header(last)
            if wire == Wire.STOP:
                break
            reader.skip(wire)
            if last == 10:
                out += footer[copied:start]
                copied = reader.position
    return bytes(out + footer[copied:])


def test_int96_and_old_minima_give_no_bounds(tmp_path: File) -> None:
    file = tmp_path / "x.parquet"
    table = pa.table({"t": pa.array([1, 2], pa.timestamp("ns")), "s": ["a", "b"], "n": [1, 2]})
    pq.write_table(table, file, use_deprecated_int96_timestamps=True)
    tail = read_tail(file)
    stamp, text, number = facts_of(parse_footer(tail.footer), 0).columns
    assert (stamp.bounds.minimum, stamp.bounds.maximum) == (None, None)
    assert (text.bounds.minimum, number.bounds.minimum) == ("a", 1)
    _, text, number = facts_of(parse_footer(without_column_orders(tail.footer)), 0).columns
    assert (text.bounds.minimum, text.bounds.maximum) == (None, None), (
        "strings have no order without one"
    )
    assert (number.bounds.minimum, number.bounds.maximum) == (1, 2), (
        "from the deprecated, signed fields"
    )


def without_column_orders(footer: bytes) -> bytes:
    reader = CompactReader(footer)
    last = 0
    while True:
        start = reader.position
        wire, last = reader.field_header(last)
        assert wire != Wire.STOP
        reader.skip(wire)
        if last == 7:
            return footer[:start] + footer[reader.position :]


# --- Bytes from outside ---------------------------------------------------------------------------


def small_file() -> bytes:
    sink = io.BytesIO()
    kept = ["int8", "double", "string", "decimal_30", "timestamp_us", "list", "struct"]
    table = all_types().select(kept).slice(0, 3)
    pq.write_table(table, sink, row_group_size=2, store_schema=False)
    return sink.getvalue()


SMALL = small_file()


def read_or_refuse(data: bytes) -> None:
    """Either a footer, usable for facts, or MalformedFile; any other error fails."""
    with suppress(MalformedFile):
        facts_of(read_footer(io.BytesIO(data)), len(data))


@settings(max_examples=150 * MORE, deadline=None)
@given(data=st.data())
def test_changed_footers_are_read_or_refused(data: st.DataObject) -> None:
    changed = bytearray(SMALL)
    length = int.from_bytes(SMALL[-8:-4], "little")
    start = len(SMALL) - 8 - length
    for _ in range(data.draw(st.integers(1, 6))):
        position = data.draw(st.integers(start, len(SMALL) - 1))
        changed[position] = data.draw(st.integers(0, 255))
    read_or_refuse(bytes(changed))


def test_cut_footers_are_refused() -> None:
    length = int.from_bytes(SMALL[-8:-4], "little")
    footer = SMALL[-8 - length : -8]
    for size in range(0, length, 5):
        with pytest.raises(MalformedFile):
            parse_footer(footer[:size])


@settings(max_examples=150 * MORE, deadline=None)
@given(junk=st.binary(max_size=200), magic=st.booleans())
@example(junk=b"\x19\xfc\xff\xff\xff\xff\x0f", magic=True)  # a list of 2**32 structs
@example(junk=b"\x1c" * 100, magic=True)  # structs in structs without end
@example(junk=b"\x29" * 100, magic=True)
def test_any_bytes_are_read_or_refused(junk: bytes, magic: bool) -> None:
    end = len(junk).to_bytes(4, "little") + b"PAR1" if magic else b""
    with pytest.raises(MalformedFile):
        read_footer(io.BytesIO(b"PAR1" + junk + end))


def thrift(*fields: tuple[int, int, bytes]) -> bytes:
    """A struct from (id, wire type, encoded value)."""
    out, last = b"", 0
    for field_id, wire, value in fields:
        out += bytes([(field_id - last) << 4 | wire]) + value
        last = field_id
    return out + b"\x00"


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def zigzag(number: int) -> bytes:
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def text(value: str) -> bytes:
    return varint(len(value.encode())) + value.encode()


def struct_list(elements: list[bytes]) -> bytes:
    size = len(elements)
    head = bytes([size << 4 | 12]) if size < 15 else b"\xfc" + varint(size)
    return head + b"".join(elements)


def group(name: str, children: int) -> bytes:
    return thrift((3, 5, zigzag(0)), (4, 8, text(name)), (5, 5, zigzag(children)))


def leaf(name: str, physical: int = 1) -> bytes:
    return thrift((1, 5, zigzag(physical)), (3, 5, zigzag(0)), (4, 8, text(name)))


def footer_of(elements: list[bytes], rows: int = 0) -> bytes:
    return thrift((2, 9, struct_list(elements)), (3, 6, zigzag(rows)))


def test_hand_made_footer_is_read() -> None:
    footer = parse_footer(footer_of([group("root", 2), leaf("a"), group("b", 1), leaf("c")]))
    assert [child.name for child in footer.schema.children] == ["a", "b"]


def with_logical(*members: tuple[int, int, bytes]) -> bytes:
    """A leaf `a` of INT64 with a union of these members as its logical type."""
    union = thrift(*members)
    return thrift((1, 5, zigzag(2)), (3, 5, zigzag(0)), (4, 8, text("a")), (10, 12, union))


def long_form(field_id: int, wire: int, value: bytes) -> bytes:
    """A struct with one field whose id is written out."""
    return bytes([wire]) + zigzag(field_id) + value + b"\x00"


NANOS = thrift((1, 1, b""), (2, 12, thrift((3, 12, b"\x00"))))
PICOS = thrift((1, 1, b""), (2, 12, thrift((4, 12, b"\x00"))))


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (with_logical((8, 12, NANOS)), "TIMESTAMP"),
        (with_logical((8, 12, PICOS)), "UNKNOWN_8"),
        (with_logical((10, 12, thrift((1, 3, b"\x80"), (2, 1, b"")))), ""),
        (with_logical((10, 12, thrift((1, 3, b"\x7f"), (2, 1, b"")))), "UNKNOWN_10"),
        (with_logical((9, 12, b"\x00")), "UNKNOWN_9"),
        (with_logical((15, 12, b"\x00")), "FLOAT16"),
        (leaf("a", 2)[:-1] + b"\x6c" + long_form(999, 12, b"\x00") + b"\x00", "UNKNOWN_999"),
        (leaf("a", 2)[:-1] + b"\x6c" + long_form(20, 8, text("x")) + b"\x00", "UNKNOWN_20"),
    ],
)
def test_a_logical_type_that_we_do_not_know_is_a_name(column: bytes, kind: str) -> None:
    footer = footer_of([group("root", 1), column])
    if not kind:
        with pytest.raises(MalformedFile, match="an integer type of -128 bits"):
            parse_footer(footer)
        return
    (leaf_column,) = parse_footer(footer).leaves
    assert (leaf_column.node.kind, leaf_column.node.physical) == (kind, "INT64")


def test_rows_are_those_of_the_row_groups() -> None:
    data = io.BytesIO()
    pq.write_table(pa.table({"a": [1, 2, 3]}), data)
    tail = read_tail(data)
    counts = [at for at in range(len(tail.footer)) if tail.footer.startswith(b"\x16\x06\x19", at)]
    assert len(counts) == 1
    for rows in (0, 2, 4):
        changed = bytearray(tail.footer)
        changed[counts[0] + 1] = 2 * rows
        assert parse_footer(bytes(changed)).num_rows == 3


def test_a_codec_that_we_do_not_know_concerns_its_own_column(tmp_path: File) -> None:
    file = tmp_path / "f.parquet"
    pq.write_table(pa.table({"a": [1, 2, 3], "b": [4, 5, 6]}), file, compression="none")
    before, after = b"\x19\x18\x01b\x15\x00", b"\x19\x18\x01b\x15\x12"
    assert file.read_bytes().count(before) == 1
    file.write_bytes(file.read_bytes().replace(before, after))
    assert read_table(file, ["a"])["a"].to_pylist() == [1, 2, 3]
    with pytest.raises(UnsupportedFeature, match="column 'b' has the compression UNKNOWN_9"):
        read_table(file)


PARQUET_TESTING = corpora.place("suites/parquet-testing") / "data"


@pytest.mark.corpus(PARQUET_TESTING)
def test_an_encrypted_column_refuses_itself_alone() -> None:
    file = PARQUET_TESTING / "encrypt_columns_plaintext_footer.parquet.encrypted"
    encrypted = {"float_field", "double_field"}
    names = [node.name for node in read_footer(file).schema.children]
    assert encrypted < set(names)
    for name in names:
        if name in encrypted:
            with pytest.raises(UnsupportedFeature, match=f"column '{name}' is encrypted"):
                read_table(file, [name])
        else:
            assert read_table(file, [name]).num_rows == 50
    (chunk,) = {each for each in read_footer(file).row_groups[0].columns if each.first_page < 0}
    assert (chunk.num_values, chunk.null_count, chunk.min_value) == (50, None, None)


@pytest.mark.corpus(PARQUET_TESTING)
def test_a_column_of_an_unknown_logical_type_has_its_physical_type() -> None:
    file = PARQUET_TESTING / "unknown-logical-type.parquet"
    assert [leaf.node.kind for leaf in read_footer(file).leaves] == ["STRING", "UNKNOWN_2555"]
    assert read_table(file).equals(pq.read_table(file))


def test_two_schemas_are_refused_also_after_a_footer_with_the_first() -> None:
    version = (1, 5, zigzag(1))
    first = (2, 9, struct_list([group("root", 1), leaf("a")]))
    assert parse_footer(thrift(version, first, (3, 6, zigzag(0)))).leaves[0].node.name == "a"
    # A field whose id is not greater than the one before has it written out.
    second = b"\x09" + zigzag(2) + struct_list([group("root", 1), leaf("b")])
    with pytest.raises(MalformedFile):
        parse_footer(thrift(version, first)[:-1] + second + b"\x16\x00\x00")


@pytest.mark.parametrize(
    ("footer", "message"),
    [
        (footer_of([]), "before its last group"),
        (footer_of([leaf("a")]), "is its root"),
        (footer_of([group("root", 2), leaf("a")]), "before its last group"),
        (footer_of([group("root", 1), leaf("a"), leaf("b")]), "after its last child"),
        (footer_of([group("root", -1)]), "-1 children"),
        (footer_of([group("root", 1), leaf("a", 9)]), "unknown type 9"),
        (footer_of([group("root", 1), leaf("a", 7)]), "0 bytes a value"),
        (thrift((2, 9, struct_list([group("root", 1), leaf("a")]))), "no count of rows"),
        (footer_of([group("root", 1), thrift((1, 5, b"\x02"))]), "no name"),
        (footer_of([group("root", 1), thrift((1, 5, b"\x02"), (4, 8, text("a")))]), "repetition"),
        (thrift((3, 6, zigzag(0))), "before its last group"),
        (thrift((2, 12, b"\x00")), "expected LIST"),
        (thrift((2, 9, struct_list([group("r", 0)])), (4, 9, struct_list([b"\x00"]))), "row count"),
    ],
)
def test_footers_that_do_not_fit_together_are_refused(footer: bytes, message: str) -> None:
    with pytest.raises(MalformedFile, match=message):
        parse_footer(footer, 1000)


def test_depth_of_the_schema_is_bounded() -> None:
    def chain(depth: int) -> bytes:
        return footer_of([group("g", 1) for _ in range(depth)] + [leaf("a")])

    assert len(parse_footer(chain(MAX_SCHEMA_DEPTH)).leaves) == 1
    facts_of(parse_footer(chain(MAX_SCHEMA_DEPTH)), 0)
    with pytest.raises(MalformedFile, match="nests deeper"):
        parse_footer(chain(MAX_SCHEMA_DEPTH + 2))


def hostile_footers() -> list[bytes]:
    many = 30_000
    return [
        footer_of([group("", many)] + [leaf("")] * many),
        footer_of([b"\x48\x00\x00"] * many),
        thrift((5, 9, struct_list([thrift((1, 8, b"\x00"))] * many))),
        thrift((4, 9, struct_list([b"\x00"] * many))),
        thrift((7, 9, struct_list([b"\x00"] * many))),
        thrift((9, 9, b"\xf1" + varint(many) + b"\x01" * many)),
    ]


@pytest.mark.parametrize("footer", hostile_footers(), ids=range(6))
def test_memory_is_a_multiple_of_the_footer(footer: bytes) -> None:
    tracemalloc.start()
    with suppress(MalformedFile):
        parse_footer(footer)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50 * len(footer) + (1 << 20)


def test_huge_numbers_are_refused() -> None:
    reader = CompactReader(b"\xff" * 9 + b"\x01")
    assert reader.varint() == 2**64 - 1
    for data in (b"\xff" * 9 + b"\x02", b"\xff" * 11, b"\xff"):
        with pytest.raises(MalformedFile):
            CompactReader(data).varint()
    with pytest.raises(MalformedFile, match="does not fit 32 bits"):
        CompactReader(varint(2**33)).integer(32)


@given(number=st.integers(-(2**63), 2**63 - 1))
def test_integers_round_trip(number: int) -> None:
    assert CompactReader(zigzag(number)).integer(64) == number
    # The same by the path for numbers of one byte, and by the general one.
    struct = Struct({1: Wire.I64})
    assert CompactReader(thrift((1, 6, zigzag(number)))).read(struct, Wire.STRUCT) == {1: number}


def test_skipped_values_of_every_wire_type() -> None:
    values: list[tuple[int, int, bytes]] = [
        (1, 1, b""), (2, 2, b""), (3, 3, b"\x07"), (4, 4, zigzag(-300)), (5, 5, zigzag(1)),
        (6, 6, zigzag(2**40)), (7, 7, b"\x00" * 8), (8, 8, text("abc")),
        (9, 9, b"\x21\x01\x02"), (10, 10, b"\x15\x02"), (11, 11, b"\x01\x81\x00\x01"),
        (12, 11, b"\x00"), (13, 12, thrift((1, 5, b"\x02"))), (14, 13, b"\x00" * 16),
    ]  # fmt: skip
    data = thrift(*values, (15, 5, zigzag(77)))
    assert CompactReader(data).read(Struct({15: Wire.I32}), Wire.STRUCT) == {15: 77}
    assert CompactReader(b"\x15\x02\x00").read(Struct({1: Wire.I32}), Wire.STRUCT) == {1: 1}
    with pytest.raises(MalformedFile, match="Thrift type 14"):
        CompactReader(thrift((1, 14, b""))).read(Struct({}), Wire.STRUCT)
    with pytest.raises(MalformedFile, match="expected I32"):
        CompactReader(b"\x16\x02").read(ListOf(Wire.I32), Wire.LIST)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "too few"),
        (b"PAR1", "too few"),
        (b"PAR1" + b"\x00" * 8 + b"PARE", "encrypted"),
        (b"PAR1" + b"\x00" * 12, "does not end with"),
        (b"PAR1" + (99).to_bytes(4, "little") + b"PAR1", "footer of 99 bytes"),
        (b"PAR1" + (1).to_bytes(4, "little") + b"PAR1", "footer of 1 bytes"),
    ],
)
def test_files_that_are_not_parquet_are_refused(data: bytes, message: str, tmp_path: File) -> None:
    file = tmp_path / "x.parquet"
    file.write_bytes(data)
    with pytest.raises(MalformedFile, match=message) as caught:
        read_footer(file)
    assert caught.value.file == str(file)


def test_missing_file(tmp_path: File) -> None:
    with pytest.raises(MissingSource, match="no such file"):
        read_footer(tmp_path / "none.parquet")


class Counting(io.BytesIO):
    """A file that counts what is read of it."""

    taken = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.taken += len(data)
        return data


def test_only_the_tail_is_read() -> None:
    sink = io.BytesIO()
    table = pa.table({"x": [str(i) * 20 for i in range(50_000)]})
    pq.write_table(table, sink, compression="none", use_dictionary=False)
    stream: BinaryIO = Counting(sink.getvalue())
    assert read_footer(stream).num_rows == 50_000
    assert isinstance(stream, Counting)
    assert stream.taken <= 64 << 10 < len(sink.getvalue())


def test_footers_longer_than_the_first_read(tmp_path: File) -> None:
    table = pa.table({f"column {i}": [i] for i in range(1500)})
    pq.write_table(table, tmp_path / "x.parquet")
    assert len(read_tail(tmp_path / "x.parquet").footer) > 64 << 10
    assert len(read_footer(tmp_path / "x.parquet").leaves) == 1500


def test_a_footer_beyond_our_limit_is_refused(tmp_path: File) -> None:
    file = tmp_path / "x.parquet"
    with file.open("wb") as stream:
        stream.truncate(MAX_FOOTER_BYTES + 100)  # sparse
        stream.seek(0, io.SEEK_END)
        stream.write((MAX_FOOTER_BYTES + 1).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(MalformedFile, match="our limit"):
        read_footer(file)
