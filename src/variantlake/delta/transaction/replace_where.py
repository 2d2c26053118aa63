"""Choose the files that an overwrite removes from a table: all, or those of some partitions.

A replacement takes the new files and returns a predicate of partition values. The overwrite applies
it to the old files and to those of concurrent commits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from variantlake.delta.actions.actions import AddFile
from variantlake.delta.actions.json_fields import StringMap
from variantlake.delta.schema.char_types import char_length
from variantlake.delta.schema.table_schema import PrimitiveType, StructField, StructType
from variantlake.delta.stats.partition_values import partition_key, partition_text
from variantlake.delta.transaction.conflicts import Reads, whole_table
from variantlake.errors import InvalidSchema, InvalidValue

Replacement = Callable[[Sequence[AddFile]], Reads]
Columns = list[tuple[StructField, PrimitiveType]]


def replace_all(_adds: Sequence[AddFile]) -> Reads:
    """Replace all files."""
    return whole_table


def replace_touched(schema: StructType, partition_columns: Sequence[str]) -> Replacement:
    """Replace the partitions of the new rows.

    Raises InvalidSchema for a table without partitions.
    """
    columns = _columns(schema, partition_columns)
    if not columns:
        raise InvalidSchema("the table has no partitions that could be overwritten one by one")

    def decide(adds: Sequence[AddFile]) -> Reads:
        touched = {_key(add.partition_values, columns) for add in adds}
        return lambda values: _key(values, columns) in touched

    return decide


def replace_where(
    schema: StructType, partition_columns: Sequence[str], wanted: Mapping[str, Any]
) -> Replacement:
    """Replace the partitions with these values; `wanted` has Python values by column name.

    Raises InvalidSchema for a column that the table is not partitioned by; the replacement raises
    InvalidValue for new rows that are in another partition.
    """
    columns: Columns = []
    texts: dict[str, str | None] = {}
    for name, value in wanted.items():
        field = schema.get(name)
        if field is None or name not in partition_columns:
            raise InvalidSchema(
                f"{name!r} is not a partition column",
                hint=f"partition columns: {', '.join(partition_columns) or 'none'}",
            )
        columns += _columns(schema, [name])
        texts[field.physical_name] = partition_text(value, field)
    if not columns:
        raise InvalidSchema("name at least one partition column and its value")
    expected = _key(texts, columns)

    return replace_chosen(schema, lambda values: _key(values, columns) == expected)


def replace_chosen(schema: StructType, chosen: Reads) -> Replacement:
    """Replace the partitions for which `chosen` is true.

    The replacement raises InvalidValue for new rows that are in another partition.
    """
    names = {field.physical_name: field.name for field in schema.fields}

    def decide(adds: Sequence[AddFile]) -> Reads:
        for add in adds:
            if not chosen(add.partition_values):
                values = {
                    names.get(name, name): each for name, each in add.partition_values.items()
                }
                raise InvalidValue(
                    f"some new rows are outside the overwritten partitions: they have {values}",
                    hint="give only rows that the condition holds for",
                )
        return chosen

    return decide


def _columns(schema: StructType, names: Sequence[str]) -> Columns:
    fields = [field for field in schema.fields if field.name in names]
    return [(field, field.type) for field in fields if isinstance(field.type, PrimitiveType)]


def _key(values: StringMap, columns: Columns) -> tuple[Any, ...]:
    return tuple(partition_key(_text(values, field), kind) for field, kind in columns)


def _text(values: StringMap, field: StructField) -> str | None:
    """Return a column's text, padded to the length of a CHAR, as only some writers pad it."""
    text = values.get(field.physical_name)
    return text.ljust(char_length(field)) if text else text
