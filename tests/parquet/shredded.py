"""Random shredded rows, built by hand from Python objects: what facts and files are tested on.

A row of a shredding schema is drawn as the dict that Arrow wants, together with nothing else: the
tests count in these dicts what the facts should say. Residuals are any valid Variants; facts do not
look into them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from variantlake.paths import Path
from variantlake.shredding.layout import arrow_type
from variantlake.shredding.schema import Array, Leaf, Node, Object, ShreddingSchema, Untyped
from variantlake.types import EMPTY_METADATA, NULL_VALUE, Kind, ShreddedType

RESIDUALS = st.sampled_from([NULL_VALUE, b"\x04", b"\x0c\x05", b"\x05a", b"\x14\x01\x00\x00\x00"])
FLOATS = st.floats(width=32) | st.sampled_from([0.0, -0.0, float("nan")])
UTC = dt.UTC

TYPED_VALUES: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.BOOLEAN: st.booleans(),
    Kind.INT8: st.integers(-(2**7), 2**7 - 1),
    Kind.INT16: st.integers(-(2**15), 2**15 - 1),
    Kind.INT32: st.integers(-(2**31), 2**31 - 1),
    Kind.INT64: st.integers(-(2**63), 2**63 - 1),
    Kind.FLOAT: FLOATS,
    Kind.DOUBLE: st.floats() | FLOATS,
    Kind.DATE: st.integers(-(2**31), 2**31 - 1),
    Kind.TIME: st.integers(0, 86_400_000_000 - 1),
    Kind.TIMESTAMP: st.integers(-(2**63), 2**63 - 1),
    Kind.TIMESTAMP_NANOS: st.integers(-(2**63), 2**63 - 1),
    Kind.TIMESTAMP_NTZ: st.integers(-(2**63), 2**63 - 1),
    Kind.TIMESTAMP_NTZ_NANOS: st.integers(-(2**63), 2**63 - 1),
    Kind.BINARY: st.binary(max_size=6),
    Kind.STRING: st.text(max_size=6) | st.sampled_from(["\U0010ffff", "\ud7ff", "é" * 3000]),
    Kind.UUID: st.binary(min_size=16, max_size=16),
}


def typed_values(shredded: ShreddedType) -> st.SearchStrategy[Any]:
    """Raw values of a leaf: what facts give as bounds."""
    if shredded.kind is Kind.DECIMAL:
        largest = 10**shredded.precision - 1
        return st.integers(-largest, largest).map(lambda n: decimal(n, shredded.scale))
    return TYPED_VALUES[shredded.kind]


def decimal(unscaled: int, scale: int) -> Decimal:
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def groups(node: Node, *, required: bool) -> st.SearchStrategy[dict[str, Any]]:
    """`value` and `typed_value` of one row; a required one is never missing."""
    residual = RESIDUALS.map(lambda value: {"value": value})
    if isinstance(node, Untyped):
        return residual if required else residual | st.just({"value": None})
    options = [residual.map(lambda group: {**group, "typed_value": None})]
    if not required:
        options.append(st.just({"value": None, "typed_value": None}))
    match node:
        case Leaf(type=shredded):
            typed: st.SearchStrategy[Any] = typed_values(shredded)
        case Object(fields=fields):
            typed = st.fixed_dictionaries(
                {name: groups(child, required=False) for name, child in fields}
            )
            partial = st.tuples(st.just(b"\x02\x00\x00"), typed)
            options.append(partial.map(lambda pair: {"value": pair[0], "typed_value": pair[1]}))
        case Array(element=element):
            typed = st.lists(groups(element, required=True), max_size=3)
    options.append(typed.map(lambda value: {"value": None, "typed_value": value}))
    return st.one_of(options)


def rows(schema: ShreddingSchema) -> st.SearchStrategy[list[dict[str, Any] | None]]:
    """Rows of a Variant column; None is SQL NULL."""
    full = groups(schema.root, required=True).map(lambda g: {"metadata": EMPTY_METADATA, **g})
    return st.lists(full | st.none(), max_size=12)


def column(schema: ShreddingSchema, data: list[dict[str, Any] | None]) -> pa.StructArray:
    """The rows as Arrow."""
    kind = arrow_type(schema)
    array: pa.StructArray = restored(pa.array(data, storage_of(kind)), kind)
    return array


def storage_of(kind: pa.DataType) -> pa.DataType:
    """The type with times as their integers, which raw values are given in."""
    if isinstance(kind, pa.StructType):
        return pa.struct([f.with_type(storage_of(f.type)) for f in kind])
    if isinstance(kind, pa.ListType):
        return pa.list_(kind.value_field.with_type(storage_of(kind.value_type)))
    if isinstance(kind, pa.BaseExtensionType):
        return kind.storage_type
    if pa.types.is_date32(kind):
        return pa.int32()
    return pa.int64() if pa.types.is_temporal(kind) else kind


def restored(array: Any, kind: Any) -> Any:
    if isinstance(kind, pa.StructType):
        children = [restored(array.field(i), f.type) for i, f in enumerate(kind)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())
    if isinstance(kind, pa.ListType):
        values = restored(array.values, kind.value_type)
        return pa.ListArray.from_arrays(array.offsets, values, type=kind, mask=array.is_null())
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, array)
    return array.view(kind) if pa.types.is_temporal(kind) else array


def raw(array: Any) -> Any:
    """The column with times as their integers: Python has no dates beyond the year 9999."""
    if isinstance(array, pa.ExtensionArray):
        return array.storage
    if isinstance(array, pa.StructArray):
        children = [raw(array.field(i)) for i in range(array.type.num_fields)]
        names = [field.name for field in array.type]
        return pa.StructArray.from_arrays(children, names, mask=array.is_null())
    if isinstance(array, pa.ListArray):
        return pa.ListArray.from_arrays(array.offsets, raw(array.values), mask=array.is_null())
    if pa.types.is_temporal(array.type):
        return array.view(pa.int32() if pa.types.is_date32(array.type) else pa.int64())
    return array


def groups_at(data: list[dict[str, Any] | None], path: Path) -> Iterator[dict[str, Any] | None]:
    """The group of each row at `path`; None if something above it is missing."""
    for row in data:
        group: Any = row
        for step in path.steps:
            group = group and group["typed_value"]
            group = group and group[step]
        yield group
