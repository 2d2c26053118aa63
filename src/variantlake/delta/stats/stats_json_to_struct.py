"""Statistics and partition values as columns: `stats_parsed` and `partitionValues_parsed`.

The bounds of a Variant column are themselves a Variant column, unshredded, as the protocol has it.
Spec: PROTOCOL, "Checkpoints", "Statistics for Variant Columns".
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from variantlake.delta.schema.table_schema import (
    DataType,
    PrimitiveType,
    StructType,
    VariantType,
    arrow_type,
)
from variantlake.delta.stats import z85
from variantlake.delta.stats.partition_values import partition_constant
from variantlake.delta.stats.stats_reader import INTEGERS, find_in, parse_stats, raw_value
from variantlake.delta.stats.stats_writer import Column
from variantlake.delta.stats.variant_bounds import split
from variantlake.errors import UnsupportedFeature, VariantLakeError
from variantlake.shredding.layout import VARIANT_TYPE

_BOUNDED = {*INTEGERS, "string", "float", "double", "decimal", "date", "timestamp", "timestamp_ntz"}


def variant_bound_paths(
    schema: StructType, columns: Collection[Column], *, variant_bounds: bool
) -> list[Column]:
    """Where in `stats_parsed` Variants stand, as paths of field names."""
    if not variant_bounds:
        return []
    found = [path for path in schema.variant_columns(physical=True) if path in columns]
    return [(side, *path) for side in ("minValues", "maxValues") for path in found]


def parsed_stats(
    texts: Sequence[str | None],
    schema: StructType,
    columns: Collection[Column],
    *,
    variant_bounds: bool,
    tight_bounds: bool,
) -> pa.Array[Any]:
    """The column `stats_parsed` of files with these statistics.

    `columns` are the physical paths that have statistics; Variants among them have bounds where
    `variant_bounds` says so. `tight_bounds` adds the field of tables with deletion vectors. What
    cannot be understood in a text is null.
    """
    leaves = [(path, leaf.type) for path, leaf in schema.leaves(physical=True) if path in columns]
    decimals = any(str(type_).startswith("decimal") for _, type_ in leaves)
    documents = [parse_stats(text, decimals=decimals) for text in texts]
    fields: dict[str, Any] = {"numRecords": _counts(documents, ("numRecords",))}
    if tight_bounds:
        flags = [document and document.get("tightBounds") for document in documents]
        fields["tightBounds"] = pa.array(
            [flag if isinstance(flag, bool) else None for flag in flags], pa.bool_()
        )
    for side in ("minValues", "maxValues"):
        bounded = [
            (path, _side_column(documents, (side, *path), type_))
            for path, type_ in leaves
            if (isinstance(type_, VariantType) and variant_bounds)
            or (isinstance(type_, PrimitiveType) and type_.name in _BOUNDED)
        ]
        if bounded:
            fields[side] = _nested(bounded)
    if leaves:
        fields["nullCount"] = _nested(
            [(path, _counts(documents, ("nullCount", *path))) for path, _ in leaves]
        )
    absent = pa.array([document is None for document in documents], pa.bool_())
    return _struct(fields, absent)


def parsed_partitions(
    values: Sequence[Mapping[str, str | None] | None], schema: StructType, columns: Sequence[str]
) -> pa.Array[Any]:
    """The column `partitionValues_parsed`; what cannot be understood is null."""
    fields: dict[str, Any] = {}
    for item in schema.fields:
        if item.name in columns and isinstance(item.type, PrimitiveType):
            texts = [(row or {}).get(item.physical_name) for row in values]
            known = {text: _partition(text, item.type) for text in set(texts)}
            fields[item.physical_name] = _array([known[text] for text in texts], item.type)
    return _struct(fields)


def _partition(text: str | None, type_: PrimitiveType) -> Any:
    try:
        return partition_constant(text, type_)
    except UnsupportedFeature:
        return None


def _side_column(
    documents: Sequence[dict[str, Any] | None], path: Column, type_: DataType
) -> pa.Array[Any]:
    if isinstance(type_, PrimitiveType):
        return _array([raw_value(find_in(document, path), type_) for document in documents], type_)
    bounds = [_bound(find_in(document, path)) for document in documents]
    # Fields that are not null must not be null below a null either: they are empty there.
    return _struct(
        {
            field.name: pa.array([b"" if pair is None else pair[i] for pair in bounds], field.type)
            for i, field in enumerate(VARIANT_TYPE)
        },
        pa.array([pair is None for pair in bounds], pa.bool_()),
        nullable=False,
    )


def _bound(text: Any) -> tuple[bytes, bytes] | None:
    """`metadata` and `value`."""
    if not isinstance(text, str):
        return None
    try:
        return split(z85.decode(text))
    except VariantLakeError:
        return None


def _counts(documents: Sequence[dict[str, Any] | None], path: Column) -> pa.Array[Any]:
    counts = [find_in(document, path) for document in documents]
    return pa.array(
        [count if type(count) is int and 0 <= count < 2**63 else None for count in counts],
        pa.int64(),
    )


def _array(raws: list[Any], type_: PrimitiveType) -> pa.Array[Any]:
    """Raw values as the column's type: dates are days, timestamps microseconds."""
    arrow: Any = arrow_type(type_)
    if type_.name == "date":
        return pa.array(raws, pa.int32()).cast(arrow)
    if type_.name in ("timestamp", "timestamp_ntz"):
        return pa.array(raws, pa.int64()).cast(arrow)
    if type_.name == "decimal":
        raws = [None if raw is None or not _fits(raw, type_) else raw for raw in raws]
    found: pa.Array[Any] = pa.array(raws, arrow)
    return found


def _fits(value: Decimal, type_: PrimitiveType) -> bool:
    """Whether the type holds a decimal without rounding it."""
    exponent = value.as_tuple().exponent
    return (
        isinstance(exponent, int)
        and -exponent <= type_.scale
        and value.copy_abs() < Decimal(10) ** (type_.precision - type_.scale)
    )


def _nested(columns: Sequence[tuple[Column, pa.Array[Any]]]) -> pa.Array[Any]:
    """Columns by path as one struct of structs."""
    groups: dict[str, list[tuple[Column, pa.Array[Any]]]] = {}
    for path, column in columns:
        groups.setdefault(path[0], []).append((path[1:], column))
    return _struct(
        {
            name: inner[0][1] if inner[0][0] == () else _nested(inner)
            for name, inner in groups.items()
        }
    )


def _struct(fields: dict[str, Any], absent: Any = None, *, nullable: bool = True) -> pa.Array[Any]:
    found: pa.Array[Any] = pa.StructArray.from_arrays(
        list(fields.values()),
        fields=[pa.field(name, column.type, nullable) for name, column in fields.items()],
        mask=absent,
    )
    return found
