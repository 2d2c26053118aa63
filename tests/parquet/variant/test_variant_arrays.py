"""Columns of Variants from Python objects, and back; arguments that make no sense are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variantlake as vl
from tests.twins.shred import shred
from variantlake.errors import (
    InvalidPath,
    InvalidSchema,
    InvalidValue,
    MalformedVariant,
    MissingSource,
)
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.layout import VARIANT_TYPE


def test_a_column_and_back() -> None:
    values = [vl.Variant.of({"a": 1}), None, vl.Variant.of(None), vl.parse_json("[1.50]")]
    assert vl.parquet.variants(vl.parquet.variant_array(values)) == values
    column = pa.chunked_array([vl.parquet.variant_array([{"a": 1}, "x"])])
    assert vl.parquet.variants(column) == [vl.Variant.of({"a": 1}), vl.Variant.of("x")]


def test_what_is_no_variant_is_refused() -> None:
    with pytest.raises(InvalidValue, match="no Variant type holds") as caught:
        vl.parquet.variant_array([1, {2}])
    assert caught.value.row == 1
    with pytest.raises(InvalidValue, match="int64"):
        vl.parquet.variants(pa.array([1]))
    parts = [{"metadata": b"\x01\x00\x00", "value": b"\x00"}, {"metadata": b"", "value": b""}]
    with pytest.raises(MalformedVariant, match="metadata is empty") as malformed:
        vl.parquet.variants(pa.array(parts, VARIANT_TYPE))
    assert malformed.value.row == 1


class Extension(pa.ExtensionType):
    """A Variant as other libraries name it."""

    def __init__(self) -> None:
        super().__init__(VARIANT_TYPE, "other.variant")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


def test_the_storage_of_an_extension_type_is_read() -> None:
    values = vl.parquet.variant_array([{"a": 1}, None])
    column = pa.ExtensionArray.from_storage(Extension(), values)
    assert vl.to_json(column).to_pylist() == ['{"a":1}', None]
    assert vl.parquet.variants(column) == vl.parquet.variants(values)


def test_a_schema_without_a_variant_column_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    with pytest.raises(InvalidSchema, match="no Variant column"):
        vl.parquet.write_table(pa.table({"a": [1]}), file, shredding="a INT")
    assert not file.exists()
    vl.parquet.write_table(pa.table({"a": [1]}), file)


def test_arguments_that_would_read_nothing_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    vl.parquet.write_table(pa.table({"v": vl.parquet.variant_array([{"a": 1}])}), file)
    with pytest.raises(InvalidValue, match="batches of 0 rows"):
        list(vl.parquet.iter_batches(file, batch_rows=0))
    with pytest.raises(InvalidValue, match="batches of 0 rows"):
        list(vl.parquet.iter_paths(file, {"a": "v:a"}, batch_rows=0))
    with pytest.raises(InvalidPath, match="mapping"):
        vl.parquet.read_paths(file, cast("Any", ["v:a"]))
    for read in (vl.parquet.read_table, vl.parquet.inspect_file):
        with pytest.raises(MissingSource, match="folder"):
            read(tmp_path)


def test_a_shredded_group_without_annotation_is_inspected(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    column = shred([vl.Variant.of({"a": 1}), vl.Variant.of({"b": 2})], parse_ddl("a BIGINT"))
    pq.write_table(pa.table({"v": column}), file)
    (view,) = vl.parquet.inspect_file(file).variants
    assert (view.column, view.annotated, view.ddl) == (("v",), False, "a BIGINT")
    assert view.root.children[0].typed == 1
    assert vl.parquet.read_paths(file, {"a": "v:a"}).column("a").to_pylist() == [1, None]
