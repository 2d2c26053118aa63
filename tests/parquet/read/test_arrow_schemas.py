"""Files of pyarrow say which Arrow types they were written from, and come back as those.

A Variant is what the Parquet schema says, whichever of Arrow's types for strings, bytes, decimals
and lists its columns then have.
"""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.parquet.read.test_rules_of_files import METADATA, required
from variantlake.encoding.tree import decode
from variantlake.encoding.variant import Variant
from variantlake.parquet.read.check import check_file
from variantlake.parquet.read.reader import read_table
from variantlake.parquet.read.single_paths import read_paths
from variantlake.shredding.rules import ShreddingRule


def written(kinds: dict[str, pa.DataType], row: dict[str, Any]) -> io.BytesIO:
    """A file of three rows: the row, SQL NULL, and the row again."""
    fields = [pa.field(name, kind, name != "metadata") for name, kind in kinds.items()]
    full = {"metadata": METADATA, **row}
    sink = io.BytesIO()
    pq.write_table(pa.table({"v": pa.array([full, None, full], pa.struct(fields))}), sink)
    return sink


def check(file: io.BytesIO, expected: Any) -> None:
    rows: list[Any] = read_table(file).column("v").to_pylist()
    trees = [row and decode(row["metadata"], row["value"]) for row in rows]
    tree = Variant.of(expected).tree()
    assert trees == [tree, None, tree]
    # pyarrow cannot mark a group as VARIANT.
    assert {finding.rule for finding in check_file(file)} == {ShreddingRule.ANNOTATION.value}


@pytest.mark.parametrize(
    "kind",
    [
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int32(), pa.large_string()),
    ],
    ids=str,
)
def test_strings(kind: pa.DataType) -> None:
    kinds = {"metadata": pa.binary(), "value": pa.binary(), "typed_value": kind}
    file = written(kinds, {"typed_value": "x"})
    check(file, "x")
    assert read_paths(file, {"x": "v"}).column("x").to_pylist() == ["x", None, "x"]


@pytest.mark.parametrize(
    "kind", [pa.decimal32(9, 2), pa.decimal64(9, 2), pa.decimal128(9, 2), pa.decimal256(9, 2)]
)
def test_decimals(kind: pa.DataType) -> None:
    kinds = {"metadata": pa.binary(), "value": pa.binary(), "typed_value": kind}
    file = written(kinds, {"typed_value": Decimal("1.25")})
    rows: list[Any] = read_table(file).column("v").to_pylist()
    assert [row and Variant(**row) for row in rows] == [
        Variant.of(Decimal("1.25")),
        None,
        Variant.of(Decimal("1.25")),
    ]
    assert {finding.rule for finding in check_file(file)} == {ShreddingRule.ANNOTATION.value}


@pytest.mark.parametrize(
    "kind", [pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int32(), pa.binary())], ids=str
)
def test_metadata_and_value(kind: pa.DataType) -> None:
    field = pa.struct([pa.field("value", kind), pa.field("typed_value", pa.int32())])
    kinds = {"metadata": kind, "value": kind, "typed_value": pa.struct([required("a", field)])}
    check(written(kinds, {"typed_value": {"a": {"value": b"\x0c\x05"}}}), {"a": 5})


@pytest.mark.parametrize("name", ["list_", "large_list", "list_view", "large_list_view", "fixed"])
def test_lists(name: str) -> None:
    element = pa.struct([pa.field("value", pa.binary()), pa.field("typed_value", pa.string())])
    field = required("element", element)
    kind = pa.list_(field, 2) if name == "fixed" else getattr(pa, name)(field)
    kinds = {"metadata": pa.binary(), "value": pa.binary(), "typed_value": kind}
    file = written(kinds, {"typed_value": [{"typed_value": "x"}, {"value": b"\x0c\x05"}]})
    check(file, ["x", 5])
    found = read_paths(file, {"x": "v:[1]::int"}).column("x").to_pylist()
    assert found == [5, None, 5]
    assert read_table(file).slice(1).to_pylist() == read_table(file).to_pylist()[1:]
