"""The families of parquet-testing's cases, each with every primitive type: files of pyarrow's own.

parquet-testing has some types and signs in each family; here are all, with their extremes. What is
invalid stands in test_rules_of_files.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.parquet.read.test_rules_of_files import (
    METADATA,
    VALUE,
    cell,
    group,
    required,
    variant_type,
)
from tests.parquet.shredded import restored, storage_of
from variantlake.encoding.arrow_scalars import to_arrow
from variantlake.encoding.scalar import DECIMAL_DIGITS, INTEGER_BITS, Scalar
from variantlake.encoding.tree import Tree, decode
from variantlake.parquet.metadata.annotate import annotate
from variantlake.parquet.read.check import check_file
from variantlake.parquet.read.reader import read_table
from variantlake.types import Primitive

LONGS = (
    Primitive.TIMESTAMP,
    Primitive.TIMESTAMP_NTZ,
    Primitive.TIMESTAMP_NANOS,
    Primitive.TIMESTAMP_NTZ_NANOS,
)
SCALARS = [
    Scalar(Primitive.TRUE, True),
    Scalar(Primitive.FALSE, False),
    *(
        Scalar(primitive, number)
        for primitive, bits in INTEGER_BITS.items()
        for number in (34, -34, -(1 << bits - 1), (1 << bits - 1) - 1)
    ),
    *(Scalar(Primitive.FLOAT, number) for number in (1.5, -1.5, -0.0, float("inf"), 2.0**-149)),
    *(Scalar(Primitive.DOUBLE, n) for n in (14.3, -14.3, -0.0, float("-inf"), 5e-324, 1.7e308)),
    *(
        Scalar(primitive, Decimal((sign, (number,) * digits, -scale)))
        for primitive, digits in DECIMAL_DIGITS.items()
        for sign in (0, 1)
        for number in (1, 9)
        for scale in (0, 4, digits)
    ),
    *(Scalar(Primitive.DATE, days) for days in (0, 20_034, -4_439, -(1 << 31), (1 << 31) - 1)),
    *(
        Scalar(primitive, number)
        for primitive in LONGS
        for number in (0, 1_730_982_834_123_456, -383_167_565_876_544, 1 - (1 << 63), (1 << 63) - 1)
    ),
    *(Scalar(Primitive.TIME, micros) for micros in (0, 45_234_123_456, 86_399_999_999)),
    *(Scalar(Primitive.BINARY, data) for data in (b"", b"\x0a\x0b\x0c\x0d", b"\xff" * 64)),
    *(Scalar(Primitive.STRING, text) for text in ("", "iceberg", "é" * 31 + "x", "é" * 32)),
    *(Scalar(Primitive.UUID, uuid.UUID(int=bits)) for bits in (0, 1 << 127, (1 << 128) - 1)),
]

Layout = tuple[pa.StructType, dict[str, Any], Tree]
"""The type of a column, its row, and what that row reads as."""


def leaf(scalar: Scalar) -> tuple[pa.StructType, dict[str, Any]]:
    """A group that shreds the scalar's type, and the scalar in it."""
    raw = scalar.value.bytes if isinstance(scalar.value, uuid.UUID) else scalar.value
    return group(VALUE, pa.field("typed_value", to_arrow(scalar).type)), {"typed_value": raw}


def unshredded(scalar: Scalar) -> Layout:
    return variant_type(required("value", pa.binary())), {"value": cell(scalar)}, scalar


def in_the_value_of_another_type(scalar: Scalar) -> Layout:
    other = pa.date32() if scalar.type is Primitive.STRING else pa.string()
    kind = variant_type(VALUE, pa.field("typed_value", other))
    return kind, {"value": cell(scalar)}, scalar


def shredded(scalar: Scalar) -> Layout:
    kind, row = leaf(scalar)
    return variant_type(*kind), row, scalar


def in_a_field(scalar: Scalar) -> Layout:
    kind, row = leaf(scalar)
    fields = group(required("a", kind), required("b", kind))
    row = {"typed_value": {"a": row, "b": {}}, "value": cell({"c": scalar})}
    return variant_type(VALUE, pa.field("typed_value", fields)), row, {"a": scalar, "c": scalar}


def in_an_element(scalar: Scalar) -> Layout:
    kind, row = leaf(scalar)
    elements = pa.list_(required("element", kind))
    row = {"typed_value": [row, {"value": cell(scalar)}, row]}
    return variant_type(VALUE, pa.field("typed_value", elements)), row, [scalar] * 3


@pytest.mark.parametrize("scalar", SCALARS, ids=lambda s: f"{s.type.name}-{s.value!s:.20}")
@pytest.mark.parametrize(
    "layout", [unshredded, in_the_value_of_another_type, shredded, in_a_field, in_an_element]
)
def test_every_type_in_every_family(
    tmp_path: Path, layout: Callable[[Scalar], Layout], scalar: Scalar
) -> None:
    kind, row, expected = layout(scalar)
    file = tmp_path / "t.parquet"
    rows = restored(pa.array([{"metadata": METADATA, **row}], storage_of(kind)), kind)
    pq.write_table(pa.table({"v": rows}), file, store_decimal_as_integer=True)
    annotate(file, [("v",)])
    read: list[Any] = read_table(file).column("v").to_pylist()
    (found,) = read
    tree = decode(found["metadata"], found["value"])
    assert tree == expected
    assert repr(tree) == repr(expected)  # exact types, and the sign of a zero
    assert list(check_file(file)) == []
