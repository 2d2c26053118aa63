"""Single paths as typed columns: the same values as on the rebuilt Variants."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path as FilePath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.shredding.strategies import keys, leaf_types, schemas, trees_for
from tests.strategies import MORE
from variantlake.encoding.scalar import Scalar
from variantlake.encoding.tree import Tree, decode, encode, logical_key
from variantlake.encoding.variant import Variant
from variantlake.errors import (
    InvalidPath,
    InvalidSchema,
    InvalidValue,
    UnknownVariantType,
    VariantLakeError,
)
from variantlake.parquet.read.single_paths import iter_paths, read_paths
from variantlake.parquet.variant.variant_arrays import variant_array
from variantlake.parquet.write.file_writer import WriteOptions
from variantlake.parquet.write.table_writer import write_table
from variantlake.paths import Path
from variantlake.shredding.arrays import AnyArray
from variantlake.shredding.fit import fit, raws_of
from variantlake.shredding.layout import VARIANT_TYPE
from variantlake.shredding.schema import Array, Node, Object, ShreddingSchema
from variantlake.types import Primitive, ShreddedType


def variants(trees: list[Tree | None]) -> AnyArray:
    rows = [None if tree is None else encode(tree) for tree in trees]
    return pa.array(
        [None if row is None else {"metadata": row[0], "value": row[1]} for row in rows],
        VARIANT_TYPE,
    )


def write(file: FilePath, shredding: Any, *values: object) -> FilePath:
    trees = [None if value is None else Variant.of(value).tree() for value in values]
    write_table(pa.table({"v": variants(trees)}), file, shredding=shredding)
    return file


def column(file: FilePath, path: str, **options: Any) -> list[Any]:
    return read_paths(file, {"x": path}, **options).column("x").to_pylist()


def python(row: Any) -> Any:
    return row and Variant(row["metadata"], row["value"]).to_python()


# --- The same as on the rebuilt Variant, whatever the layout --------------------------------------


def paths_for(node: Node) -> st.SearchStrategy[tuple[str | int, ...]]:
    """Paths that mostly lead somewhere."""
    anywhere = st.lists(keys | st.integers(0, 2), max_size=3).map(tuple)
    options: list[st.SearchStrategy[tuple[str | int, ...]]] = [st.just(()), anywhere]
    if isinstance(node, Object):
        options += [
            st.tuples(st.just(name), paths_for(child)).map(lambda pair: (pair[0], *pair[1]))
            for name, child in node.fields
        ]
    elif isinstance(node, Array):
        options += [
            st.tuples(st.integers(0, 2), paths_for(node.element)).map(lambda p: (p[0], *p[1]))
        ]
    return st.one_of(options)


@st.composite
def requests(draw: st.DrawFn) -> tuple[ShreddingSchema, list[Tree | None], Path]:
    schema = draw(schemas())
    trees = draw(st.lists(st.none() | trees_for(schema.root), max_size=5))
    return schema, trees, Path(draw(paths_for(schema.root)))


def at(tree: Tree | None, path: Path) -> Tree | None:
    for step in path.steps:
        if isinstance(tree, dict) and isinstance(step, str):
            tree = tree.get(step)
        elif isinstance(tree, list) and isinstance(step, int) and step < len(tree):
            tree = tree[step]
        else:
            return None
    return None if isinstance(tree, Scalar) and tree.type is Primitive.NULL else tree


@given(requests(), leaf_types)
@settings(
    max_examples=30 * MORE,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_path_gives_what_the_variant_holds_there(
    tmp_path: FilePath,
    request_: tuple[ShreddingSchema, list[Tree | None], Path],
    requested: ShreddedType,
) -> None:
    schema, trees, path = request_
    file = tmp_path / "t.parquet"
    write_table(pa.table({"v": variants(trees)}), file, shredding=schema)
    expected = [at(tree, path) for tree in trees]
    text = f"v:{path.normalized()[1:]}" if path.steps else "v"
    table = read_paths(
        file, {"v": f"{text}::variant", "t": f"{text}::{requested.ddl}"}, on_mismatch="null"
    )
    found = [row and decode(row["metadata"], row["value"]) for row in table.column("v").to_pylist()]
    assert [None if tree is None else logical_key(tree) for tree in found] == [
        None if tree is None else logical_key(tree) for tree in expected
    ]
    raws = [fit(tree, requested) if isinstance(tree, Scalar) else None for tree in expected]
    typed = table.column("t").combine_chunks()
    assert typed.type == requested.arrow
    texts = [raw.encode() if isinstance(raw, str) else raw for raw in raws]
    assert repr(raws_of(typed)) == repr(texts)


# --- Types ----------------------------------------------------------------------------------------


def test_the_stored_type_is_the_default(tmp_path: FilePath) -> None:
    file = write(tmp_path / "t", "a BIGINT", {"a": 1, "b": 2}, {"a": None}, {}, None)
    table = read_paths(file, {"a": "v:a", "b": "v:b", "v": "v"})
    assert table.schema.types == [pa.int64(), VARIANT_TYPE, VARIANT_TYPE]
    assert table.column("a").to_pylist() == [1, None, None, None]
    assert [python(row) for row in table.column("b").to_pylist()] == [2, None, None, None]
    whole = [python(row) for row in table.column("v").to_pylist()]
    assert whole == [{"a": 1, "b": 2}, {"a": None}, {}, None]


def test_exact_numbers_convert_where_their_value_stays(tmp_path: FilePath) -> None:
    file = write(tmp_path / "t", "a BIGINT", {"a": 1}, {"a": Decimal("2.50")})
    assert column(file, "v:a::decimal(18,2)") == [Decimal("1.00"), Decimal("2.50")]
    with pytest.raises(InvalidValue, match="does not fit BIGINT") as caught:
        column(file, "v:a")
    assert (caught.value.row, caught.value.path) == (1, "$['a']")
    assert column(file, "v:a", on_mismatch="null") == [1, None]


def test_objects_are_no_scalars(tmp_path: FilePath) -> None:
    file = write(tmp_path / "t", "a STRUCT<b: INT>", {"a": {"b": 1}}, {"a": 5})
    with pytest.raises(InvalidValue, match="object does not fit"):
        column(file, "v:a::bigint")
    assert column(file, "v:a::bigint", on_mismatch="null") == [None, 5]


def test_elements_of_arrays(tmp_path: FilePath) -> None:
    file = write(
        tmp_path / "t", "a ARRAY<STRING>", {"a": ["x", "y"]}, {"a": []}, {"a": ["z", None]}
    )
    assert column(file, "v:a[1]") == ["y", None, None]
    assert column(file, "v:a[0]") == ["x", None, "z"]


def test_all_row_groups_are_read(tmp_path: FilePath) -> None:
    table = pa.table({"v": variants([Scalar(Primitive.INT8, i) for i in range(5)])})
    options = WriteOptions(row_group_rows=2)
    write_table(table, tmp_path / "t", shredding="BIGINT", options=options)
    assert column(tmp_path / "t", "v") == [0, 1, 2, 3, 4]
    assert [b.num_rows for b in iter_paths(tmp_path / "t", {"x": "v"}, 1)] == [1] * 5


@pytest.mark.parametrize(
    ("path", "error"),
    [("w:a", InvalidPath), ("v:a::nonsense", InvalidSchema), ("v:[", InvalidPath)],
)
def test_requests_that_cannot_be_understood(
    tmp_path: FilePath, path: str, error: type[Exception]
) -> None:
    file = write(tmp_path / "t", None, 1)
    with pytest.raises(error) as caught:
        column(file, path)
    assert isinstance(caught.value, VariantLakeError)
    assert caught.value.file == str(file)


def test_paths_start_at_a_variant_column(tmp_path: FilePath) -> None:
    file = tmp_path / "t"
    variant = variant_array([1])
    pq.write_table(pa.table({"l": [[1]], "s": [{"n": 1}], "v": variant, "n": [1]}), file)
    for name in ("l", "s", "n"):
        with pytest.raises(InvalidPath, match="no Variant column") as caught:
            column(file, f"{name}:a")
        assert "'v'" in caught.value.hint


@pytest.mark.parametrize("shredding", [None, "a BIGINT, b STRING", "a STRUCT<x: INT>"])
def test_an_unknown_type_fails_only_where_it_is_asked_for(
    tmp_path: FilePath, shredding: str | None
) -> None:
    known = Variant.of({"a": 1, "b": 2})
    unknown = bytes([21 << 2]) + b"zz"
    value = bytes([0x02, 0x02, 0x00, 0x01, 0x00, 0x03, 0x05]) + unknown + b"\x0c\x02"
    rows = [{"metadata": known.metadata, "value": v} for v in (known.value, value)]
    file = tmp_path / "t.parquet"
    write_table(pa.table({"v": pa.array(rows, VARIANT_TYPE)}), file, shredding=shredding)
    assert column(file, "v:b::int") == [2, 2]
    assert column(file, "v:a::variant")[1]["value"] == unknown
    with pytest.raises(UnknownVariantType) as caught:
        column(file, "v:a::bigint")
    assert (caught.value.file, caught.value.row, caught.value.path) == (str(file), 1, "$['a']")
