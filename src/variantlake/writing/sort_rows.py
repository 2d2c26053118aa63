"""Sort the rows of a file by shredded paths and columns, so that readers can skip pages."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.delta.protocol.cluster_paths import (
    column_path,
    names_field,
    order_of,
    ordered_field,
)
from variantlake.delta.schema.columns_by_path import physical_path
from variantlake.delta.schema.table_schema import StructType, VariantType
from variantlake.errors import InvalidSchema
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.layout import TYPED_VALUE, is_list, is_struct, plain_type
from variantlake.shredding.schema import Leaf
from variantlake.types import ShreddedType

_PIECE_ROWS = 1 << 14
"""Rows in one batch of a sorted table."""


@dataclass(frozen=True, slots=True)
class SortKey:
    """A column of a batch, or a member of its structs by the path `members`."""

    column: str
    members: tuple[str, ...] = ()


def sort_keys(order_by: Sequence[str], table: StructType, stored: pa.Schema) -> tuple[SortKey, ...]:
    """The sort keys for batches of `stored`, whose columns are those of `table` by physical name.

    Each text is `$.a.b` (of the only VARIANT column), `event:a.b`, `event:a.b::bigint` (the type
    must be of the same kind as the shredded column's) or the name of an ordinary column.

    Raises InvalidSchema for a text that is no column of the files, InvalidPath for a path that does
    not parse.
    """
    return tuple(_sort_key(text, table, stored) for text in order_by)


def known_sort_keys(
    order_by: Sequence[str], table: StructType, stored: pa.Schema
) -> tuple[SortKey, ...]:
    """As `sort_keys`, without keys that these files do not have.

    For the table's own order, which must not fail a load whose documents lack a path.
    """
    keys: list[SortKey] = []
    for text in order_by:
        with contextlib.suppress(InvalidSchema):
            keys.append(_sort_key(text, table, stored))
    return tuple(keys)


def sorted_pieces(
    batches: list[pa.RecordBatch], keys: Sequence[SortKey]
) -> Iterator[pa.RecordBatch]:
    """The rows in ascending order of the keys, NULL and missing last; the sort is stable.

    Empties the list, so that memory holds the rows at most twice.
    """
    order = _order(batches, keys)
    indices = order.to_numpy()
    if (indices == np.arange(len(indices), dtype=indices.dtype)).all():
        while batches:
            yield batches.pop(0)
        return
    (whole,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    batches.clear()
    for start in range(0, len(indices), _PIECE_ROWS):
        yield whole.take(order.slice(start, _PIECE_ROWS))


def _order(batches: Sequence[pa.RecordBatch], keys: Sequence[SortKey]) -> pa.Array[Any]:
    columns = {
        str(number): pa.chunked_array([key_column(batch, key) for batch in batches])
        for number, key in enumerate(keys)
    }
    by: list[Any] = [(name, "ascending", "at_end") for name in columns]
    return pc.sort_indices(pa.table(columns), sort_keys=by)


def key_column(batch: pa.RecordBatch, key: SortKey) -> pa.Array[Any]:
    """The values of a key in each row."""
    column = batch.column(key.column)
    values: pa.Array[Any] = pc.struct_field(column, list(key.members)) if key.members else column
    # Arrow does not sort UUIDs, but sorts their bytes.
    return values.storage if isinstance(values, pa.ExtensionArray) else values


def _sort_key(text: str, table: StructType, stored: pa.Schema) -> SortKey:
    if names_field(text):
        column, *fields = physical_path(table, ordered_field(text, table, "sort"))
        return SortKey(column, tuple(fields))
    wanted = column_path(text, table, "sort")
    field = table.get(wanted.column)
    if field is None or field.physical_name not in stored.names:
        raise _no_column(text, f"no column {wanted.column!r} is in the files", stored)
    kind = stored.field(field.physical_name).type
    if not isinstance(field.type, VariantType):
        if wanted.path.steps or wanted.type or is_struct(kind) or is_list(kind):
            raise _no_column(text, f"the column {wanted.column!r} is {field.type}", stored)
        return SortKey(field.physical_name)
    members = [TYPED_VALUE]
    for step in wanted.path.steps:
        members += [str(step), TYPED_VALUE] if isinstance(step, str) else ["", ""]
    for name in members:
        place = kind.get_field_index(name) if isinstance(kind, pa.StructType) else -1
        if place < 0:
            raise _no_column(text, "the path is not shredded", stored)
        kind = kind.field(place).type
    if is_struct(kind) or is_list(kind):
        raise _no_column(text, "the path is shredded, but holds objects or arrays", stored)
    if wanted.type:
        requested = parse_ddl(wanted.type).root
        found = order_of(ShreddedType.from_arrow(plain_type(kind)))
        if not isinstance(requested, Leaf) or order_of(requested.type) != found:
            raise _no_column(text, f"the path is shredded as {kind}", stored)
    return SortKey(field.physical_name, tuple(members))


def _no_column(text: str, why: str, stored: pa.Schema) -> InvalidSchema:
    return InvalidSchema(
        f"cannot sort by {text!r}: {why}",
        hint="files are sorted by ordinary columns, or by paths that the shredding schema makes "
        f"columns of; the files have {', '.join(stored.names)}",
    )
