"""Convert statistics and partition values to `stats_parsed` and `partitionValues_parsed`.

As the protocol demands, the bounds of a Variant column are an unshredded Variant column.
Spec: PROTOCOL, "Checkpoints", "Statistics for Variant Columns".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from variantlake.arrays import arrow_array, map_values
from variantlake.delta.schema.table_schema import (
    DataType,
    PrimitiveType,
    StructType,
    VariantType,
)
from variantlake.delta.stats.columns.json_members import JsonMembers, members_of, texts_of
from variantlake.delta.stats.columns.path_bounds import split_column
from variantlake.delta.stats.columns.typed_members import (
    BOUNDED,
    raw_array,
    typed_column,
    unusual_rows,
)
from variantlake.delta.stats.partition_values import partition_constant
from variantlake.delta.stats.stats_reader import find_in, parse_stats
from variantlake.delta.stats.stats_writer import Column
from variantlake.errors import UnsupportedFeature
from variantlake.kernels.tape.nodes import OBJECT
from variantlake.types import Primitive


def variant_bound_paths(
    schema: StructType, columns: Collection[Column], *, variant_bounds: bool
) -> list[Column]:
    """Return the paths of Variants in `stats_parsed`, as field names."""
    if not variant_bounds:
        return []
    found = [path for path in schema.variant_columns(physical=True) if path in columns]
    return [(side, *path) for side in ("minValues", "maxValues") for path in found]


def parsed_stats(
    texts: pa.Array[Any],
    schema: StructType,
    columns: Collection[Column],
    *,
    variant_bounds: bool,
    tight_bounds: bool,
) -> pa.Array[Any]:
    """Convert the statistics of files, an array of strings, to the column `stats_parsed`.

    `columns` are the physical paths with statistics; Variants among them have bounds only with
    `variant_bounds`. `tight_bounds` adds the field of tables with deletion vectors. A member that
    cannot be understood becomes null.
    """
    leaves = [(path, leaf.type) for path, leaf in schema.leaves(physical=True) if path in columns]
    bounded = [leaf for leaf in leaves if _has_bounds(leaf[1], variant_bounds=variant_bounds)]
    documents = _Documents(texts, [path for path, _ in leaves], [path for path, _ in bounded])
    fields: dict[str, Any] = {"numRecords": documents.counts(("numRecords",))}
    if tight_bounds:
        fields["tightBounds"] = documents.flags(("tightBounds",))
    for side in ("minValues", "maxValues") if bounded else ():
        fields[side] = _nested(
            [(path, documents.bounds((side, *path), type_)) for path, type_ in bounded]
        )
    if leaves:
        fields["nullCount"] = _nested(
            [(path, documents.counts(("nullCount", *path))) for path, _ in leaves]
        )
    return _struct(fields, documents.absent)


def _has_bounds(type_: DataType, *, variant_bounds: bool) -> bool:
    if isinstance(type_, VariantType):
        return variant_bounds
    return isinstance(type_, PrimitiveType) and type_.name in BOUNDED


class _Documents:
    """The members of many files' statistics that a checkpoint needs."""

    def __init__(
        self, texts: pa.Array[Any], leaves: Sequence[Column], bounded: Sequence[Column]
    ) -> None:
        paths: list[Column] = [(), ("numRecords",), ("tightBounds",)]
        paths += [("nullCount", *path) for path in leaves]
        paths += [(side, *path) for side in ("minValues", "maxValues") for path in bounded]
        self._members = dict(zip(paths, members_of(texts_of(texts), paths), strict=True))
        # A row is parsed only once, even if several of its members are unusual.
        self._plain = cache(lambda row: parse_stats(texts[row].as_py(), decimals=True))
        self.absent: pa.Array[Any] = arrow_array(self._members[()].tags != OBJECT)

    def counts(self, path: Column) -> pa.Array[Any]:
        """Return counts, null for anything else."""
        counts = self._members[path].counts()
        found: pa.Array[Any] = arrow_array(counts, mask=counts < 0)
        return found

    def flags(self, path: Column) -> pa.Array[Any]:
        """Return booleans, null for anything else."""
        tags = self._members[path].tags
        known = np.isin(tags, [Primitive.TRUE, Primitive.FALSE])
        found: pa.Array[Any] = arrow_array(tags == Primitive.TRUE, mask=~known)
        return found

    def bounds(self, path: Column, type_: DataType) -> pa.Array[Any]:
        """Return one side's bounds of a column."""
        members: JsonMembers = self._members[path]

        def plain(row: int) -> Any:
            return find_in(self._plain(row), path)

        if isinstance(type_, PrimitiveType):
            return typed_column(members, type_, plain)
        return split_column(members.texts(), {row: plain(row) for row in unusual_rows(members)})


def parsed_partitions(
    values: pa.Array[Any], schema: StructType, columns: Sequence[str]
) -> pa.Array[Any]:
    """Convert partition values, an array of maps, to the column `partitionValues_parsed`.

    A value that cannot be understood becomes null.
    """
    fields: dict[str, Any] = {}
    for item in schema.fields:
        if item.name in columns and isinstance(item.type, PrimitiveType):
            texts: Any = map_values(values, item.physical_name)
            encoded = texts.dictionary_encode()
            raws = [_partition(text, item.type) for text in encoded.dictionary.to_pylist()]
            fields[item.physical_name] = raw_array(raws, item.type).take(encoded.indices)
    return _struct(fields)


def _partition(text: str | None, type_: PrimitiveType) -> Any:
    try:
        return partition_constant(text, type_)
    except UnsupportedFeature:
        return None


def _nested(columns: Sequence[tuple[Column, pa.Array[Any]]]) -> pa.Array[Any]:
    """Nest columns by path into one struct of structs."""
    groups: dict[str, list[tuple[Column, pa.Array[Any]]]] = {}
    for path, column in columns:
        groups.setdefault(path[0], []).append((path[1:], column))
    return _struct(
        {
            name: inner[0][1] if inner[0][0] == () else _nested(inner)
            for name, inner in groups.items()
        }
    )


def _struct(fields: dict[str, Any], absent: Any = None) -> pa.Array[Any]:
    items = [pa.field(name, column.type) for name, column in fields.items()]
    found: pa.Array[Any] = pa.StructArray.from_arrays(
        list(fields.values()), fields=items, mask=absent
    )
    return found
