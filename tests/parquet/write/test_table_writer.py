"""Tables with Variant columns, to files and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import variantlake.parquet
from tests.shredding.strategies import schemas, trees_for
from tests.strategies import MORE
from variantlake.encoding.scalar import Scalar
from variantlake.encoding.tree import Tree, decode, encode, logical_key
from variantlake.encoding.variant import Variant
from variantlake.errors import InvalidPath, InvalidSchema, MalformedFile, MalformedVariant
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.read.check import check_file
from variantlake.parquet.read.reader import iter_batches, read_table
from variantlake.parquet.variant.variant_group import variant_groups
from variantlake.parquet.write.file_writer import WriteOptions
from variantlake.parquet.write.table_writer import write_table
from variantlake.progress import Progress
from variantlake.shredding.arrays import AnyArray
from variantlake.shredding.ddl import format_ddl, parse_ddl
from variantlake.shredding.layout import VARIANT_TYPE
from variantlake.shredding.schema import ShreddingSchema
from variantlake.types import Primitive

FILES = settings(
    max_examples=40 * MORE,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def variants(trees: list[Tree | None]) -> AnyArray:
    rows = [None if tree is None else encode(tree) for tree in trees]
    return pa.array(
        [None if row is None else {"metadata": row[0], "value": row[1]} for row in rows],
        VARIANT_TYPE,
    )


def of(*values: object) -> AnyArray:
    return variants([None if value is None else Variant.of(value).tree() for value in values])


def key_of(row: Any) -> Any:
    return row and logical_key(decode(row["metadata"], row["value"]))


def python_of(row: Any) -> Any:
    return row and Variant(row["metadata"], row["value"]).to_python()


def layouts(file: Path) -> dict[str, str]:
    groups = variant_groups(read_footer(file))
    return {".".join(group.column): format_ddl(group.schema) for group in groups}


@st.composite
def columns(draw: st.DrawFn) -> tuple[ShreddingSchema, list[Tree | None]]:
    schema = draw(schemas())
    return schema, draw(st.lists(st.none() | trees_for(schema.root), max_size=6))


@given(columns())
@FILES
def test_what_is_written_comes_back_and_breaks_no_rule(
    tmp_path: Path, column: tuple[ShreddingSchema, list[Tree | None]]
) -> None:
    schema, trees = column
    file = tmp_path / "t.parquet"
    table = pa.table({"v": variants(trees)})
    written = write_table(table, file, shredding=schema)
    assert written.facts.num_records == len(trees)
    assert variant_groups(read_footer(file))[0].schema == schema
    back = read_table(file)
    assert back.schema.field("v").type == VARIANT_TYPE
    assert [key_of(row) for row in back.column("v").to_pylist()] == [
        None if tree is None else logical_key(tree) for tree in trees
    ]
    assert list(check_file(file)) == []


def test_variants_are_found_at_any_depth(tmp_path: Path) -> None:
    inner = pa.StructArray.from_arrays(
        [of({"k": 1}, None, None), pa.array([1, 2, 3])],
        names=["v", "n"],
        mask=pa.array([False, False, True]),
    )
    lists = pa.ListArray.from_arrays(
        pa.array([0, 2, 2, 3], pa.int32()),
        of({"k": "a"}, None, 5),
        type=pa.list_(pa.field("element", VARIANT_TYPE)),
        mask=pa.array([False, True, False]),
    )
    maps = pa.MapArray.from_arrays(
        pa.array([0, 1, 1, 2], pa.int32()), pa.array(["x", "y"]), of({"k": 2}, [1])
    )  # type: ignore[call-overload]  # stubs: Int64Array only
    table = pa.table({"s": inner, "l": lists, "m": maps, "plain": pa.array([1, 2, 3])})
    file = tmp_path / "t.parquet"
    write_table(
        table,
        file,
        shredding={
            "s.v": "k BIGINT",
            "l.list.element": "k STRING",
            "m.key_value.value": "ARRAY<BIGINT>",
        },
    )
    assert layouts(file) == {
        "s.v": "k BIGINT",
        "l.list.element": "k STRING",
        "m.key_value.value": "ARRAY<BIGINT>",
    }
    back = read_table(file).to_pydict()
    assert [row and python_of(row["v"]) for row in back["s"]] == [{"k": 1}, None, None]
    assert [row and row["n"] for row in back["s"]] == [1, 2, None]
    assert [row and list(map(python_of, row)) for row in back["l"]] == [
        [{"k": "a"}, None],
        None,
        [5],
    ]
    assert [[(k, python_of(v)) for k, v in row] for row in back["m"]] == [
        [("x", {"k": 2})],
        [],
        [("y", [1])],
    ]
    assert back["plain"] == [1, 2, 3]
    assert list(check_file(file)) == []


def test_a_map_keeps_what_it_says_of_its_items(tmp_path: Path) -> None:
    """An array of another type than it says made pyarrow write beyond its memory."""
    kind = pa.map_(pa.string(), cast("Any", pa.field("value", VARIANT_TYPE, nullable=False)))
    (row,) = of({"a": "x"}).to_pylist()
    table = pa.table({"m": pa.array([[("k", row)], None, [], [("j", row), ("k", row)]], kind)})
    file = tmp_path / "f.parquet"
    for shredding in (None, "a STRING"):
        write_table(table, file, shredding=shredding)
        assert read_table(file).equals(table)


@pytest.mark.parametrize("required", [False, True])
def test_what_stands_below_a_null_list_is_no_variant(tmp_path: Path, required: bool) -> None:
    element = pa.field("element", VARIANT_TYPE, nullable=not required)
    hidden = pa.array([{"metadata": b"", "value": b""}], VARIANT_TYPE)
    values: Any = pa.concat_arrays([of({"a": "x"}), hidden, of({"a": "y"})])
    nulls, offsets = pa.array([False, True, False]), pa.array(range(4), pa.int32())
    make: Any = pa.FixedSizeListArray.from_arrays
    make_wide: Any = pa.LargeListArray.from_arrays
    fixed = make(values, type=pa.list_(element, 1), mask=nulls)
    lists = pa.ListArray.from_arrays(offsets, values, type=pa.list_(element), mask=nulls)
    inside = pa.StructArray.from_arrays([fixed], fields=[pa.field("f", fixed.type)], mask=nulls)
    wide = make_wide(offsets.cast(pa.int64()), fixed, type=pa.large_list(fixed.type), mask=nulls)
    table = pa.table({"fixed": fixed, "list": lists, "struct": inside, "wide": wide})
    for rows in (table, table.slice(1)):
        write_table(rows, tmp_path / "f.parquet", shredding="a STRING")
        assert read_table(tmp_path / "f.parquet").to_pylist() == rows.to_pylist()


def test_columns_of_one_dotted_name_are_all_found(tmp_path: Path) -> None:
    inner = of({"a": "x"})
    table = pa.table({"s.v": inner, "s": pa.StructArray.from_arrays([inner], ["v"])})
    file = tmp_path / "f.parquet"
    wanted: list[Any] = ["a STRING", {"s.v": "a STRING"}]
    for shredding in wanted:
        write_table(table, file, shredding=shredding)
        groups = variant_groups(read_footer(file))
        assert [group.column for group in groups] == [("s.v",), ("s", "v")]
        assert {format_ddl(group.schema) for group in groups} == {"a STRING"}
        assert read_table(file).to_pylist() == table.to_pylist()


def test_inference_looks_at_each_column(tmp_path: Path) -> None:
    table = pa.table({"a": of({"x": 1, "y": 1.5}, {"x": 2}), "b": of("s", "t")})
    write_table(table, tmp_path / "t", shredding="infer")
    assert layouts(tmp_path / "t") == {"a": "x BIGINT, y DOUBLE", "b": "STRING"}
    write_table(table, tmp_path / "t", shredding={"a": "infer"})
    assert layouts(tmp_path / "t") == {"a": "x BIGINT, y DOUBLE", "b": "VARIANT"}


def test_nothing_is_shredded_unless_asked_for(tmp_path: Path) -> None:
    write_table(pa.table({"a": of(1)}), tmp_path / "t")
    assert layouts(tmp_path / "t") == {"a": "VARIANT"}


def test_columns_that_are_not_named_stay_as_they_are(tmp_path: Path) -> None:
    table = pa.table({"a": of(1), "b": of(2)})
    write_table(table, tmp_path / "t", variant_columns=["b"], shredding="BIGINT")
    assert layouts(tmp_path / "t") == {"b": "BIGINT"}


@pytest.mark.parametrize(
    "arguments",
    [
        {"variant_columns": ["x"]},
        {"shredding": {"x": "BIGINT"}},
        {"shredding": "no such type"},
        {"shredding": "ID STRING, id STRING"},
    ],
)
def test_columns_and_schemas_that_cannot_be_are_refused(
    tmp_path: Path, arguments: dict[str, Any]
) -> None:
    with pytest.raises(InvalidSchema):
        write_table(pa.table({"a": of(1)}), tmp_path / "t", **arguments)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("shredding", [None, "infer"])
def test_names_that_repeat_are_refused(tmp_path: Path, shredding: str | None) -> None:
    table = pa.Table.from_arrays([of(1), of(2)], names=["v", "v"])
    with pytest.raises(InvalidSchema, match="column names repeat"):
        write_table(table, tmp_path / "t", shredding=shredding)


def test_malformed_bytes_are_refused_with_their_row(tmp_path: Path) -> None:
    rows = [{"metadata": b"\x01\x00\x00", "value": v} for v in (b"\x00", b"\x02\x01\x00\x00\x01")]
    table = pa.table({"a": pa.array(rows, VARIANT_TYPE)})
    for shredding in (None, "x STRING"):
        with pytest.raises(MalformedVariant) as caught:
            write_table(table, tmp_path / "t", shredding=shredding)
        assert caught.value.row == 1
        assert not (tmp_path / "t").exists()


# --- Reading files of others ----------------------------------------------------------------------


def unmarked(tmp_path: Path, **fields: AnyArray) -> Path:
    """A file of pyarrow's own, whose groups bear no mark."""
    file = tmp_path / "unmarked.parquet"
    pq.write_table(pa.table(fields), file)
    return file


def test_unmarked_groups_that_look_like_variants_are_read_as_such(tmp_path: Path) -> None:
    optional = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])
    row = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x05"}
    file = unmarked(tmp_path, v=pa.array([row, None], optional), w=pa.array([1, 2]))
    assert [python_of(row) for row in read_table(file).column("v").to_pylist()] == [5, None]
    rules = {finding.rule for finding in check_file(file)}
    assert any("annotated" in rule for rule in rules)
    assert any("required or optional" in rule for rule in rules)


def test_a_group_is_read_as_a_variant_when_asked_for(tmp_path: Path) -> None:
    other = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("_x", pa.int32())])
    row = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x05", "_x": 1}
    file = unmarked(tmp_path, v=pa.array([row], other))
    assert read_table(file, variant_columns=["v"]).schema.field("v").type == VARIANT_TYPE
    plain = unmarked(tmp_path, v=pa.array([{"a": 1}]))
    assert read_table(plain).column("v").to_pylist() == [{"a": 1}]
    with pytest.raises(MalformedFile, match="unknown field 'a'"):
        read_table(plain, variant_columns=["v"])


def test_columns_are_chosen_by_name_and_in_order(tmp_path: Path) -> None:
    file = tmp_path / "t"
    write_table(pa.table({"a": [1], "v": of({"x": 1}), "b": [2]}), file, shredding="x BIGINT")
    assert read_table(file, ["b", "v"]).column_names == ["b", "v"]
    assert read_table(file, []).num_rows in (0, 1)
    with pytest.raises(InvalidPath, match="no column 'c'"):
        read_table(file, ["c"])


def test_batches_follow_row_groups(tmp_path: Path) -> None:
    table = pa.table({"v": of(*range(10))})
    write_table(table, tmp_path / "t", shredding="BIGINT", options=WriteOptions(row_group_rows=4))
    batches = list(iter_batches(tmp_path / "t", 3))
    assert [batch.num_rows for batch in batches] == [3, 1, 3, 1, 2]
    (last,) = iter_batches(tmp_path / "t", row_groups=[2])
    assert [python_of(row) for row in last.column("v").to_pylist()] == [8, 9]


def test_an_error_names_file_row_and_path(tmp_path: Path) -> None:
    good = {"metadata": b"\x01\x00\x00", "value": b"\x00", "typed_value": None}
    bad = {**good, "typed_value": 1}
    kind = pa.struct(
        [("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.int64())]
    )
    file = tmp_path / "t"
    pq.write_table(pa.table({"v": pa.array([good] * 7 + [bad], kind)}), file, row_group_size=3)
    with pytest.raises(MalformedFile) as caught:
        read_table(file)
    assert (caught.value.file, caught.value.row, caught.value.path) == (str(file), 7, "$")
    rows = [finding.row for finding in check_file(file) if finding.row is not None]
    assert rows == [7]


def test_progress_counts_rows(tmp_path: Path) -> None:
    write_table(pa.table({"v": of(*range(5))}), tmp_path / "t")
    seen: list[Progress] = []
    assert list(check_file(tmp_path / "t", batch_rows=2, progress=seen.append)) == []
    assert seen == [Progress(n, 5, "rows", "checked") for n in (2, 4, 5)]


def test_a_file_that_is_none_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"PAR1 nothing at all PAR1")
    (finding,) = check_file(tmp_path / "t")
    assert (finding.row, finding.column) == (None, "")


def test_scalars_of_every_primitive_survive(tmp_path: Path) -> None:
    trees: list[Tree | None] = [Scalar(Primitive.INT8, 1), None]
    write_table(pa.table({"v": variants(trees)}), tmp_path / "t", shredding=parse_ddl("BIGINT"))
    rows = read_table(tmp_path / "t").column("v").to_pylist()
    assert [row and decode(row["metadata"], row["value"]) for row in rows] == [
        Scalar(Primitive.INT64, 1),
        None,
    ]


def test_the_public_names_are_functions() -> None:
    """A module of the same name would hide its function once it is imported."""
    for name in variantlake.parquet.__all__:
        assert callable(getattr(variantlake.parquet, name))
        assert callable(getattr(variantlake.parquet, name))
    with pytest.raises(AttributeError):
        _ = variantlake.parquet.nonsense
