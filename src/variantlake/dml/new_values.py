"""What an UPDATE puts into columns, computed over Arrow columns; the rest is left to Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.table_schema import StructField, VariantType, arrow_type
from variantlake.encoding.variant import Variant
from variantlake.errors import InvalidQuery, InvalidValue, UnsupportedFeature
from variantlake.expressions.arrays import Values, plain
from variantlake.expressions.from_python import Condition, TypedPath, constant
from variantlake.expressions.rows import evaluate, of_refs
from variantlake.expressions.tree import Expression, Literal, Ref
from variantlake.expressions.typing import SPARK_RUNS_IT, spark_type
from variantlake.scan.casts import extract
from variantlake.shredding.fit import raw_array
from variantlake.shredding.layout import VARIANT_TYPE
from variantlake.sql.select import QueryText

NewValue = Expression | Variant


@dataclass(frozen=True, slots=True)
class NewValues:
    """Values by the names of the table's columns."""

    fields: Mapping[str, StructField]
    values: Mapping[str, NewValue]

    @classmethod
    def of(cls, snapshot: Snapshot, given: Mapping[str, Any]) -> NewValues:
        """Expressions as text, typed paths and constants of Python, by column.

        Raises InvalidQuery for a column that the table does not have, UnsupportedFeature for an
        expression that only Spark takes, InvalidValue for a constant that no column holds.
        """
        if not isinstance(given, Mapping):
            raise InvalidValue(
                f"the new values are a {type(given).__name__}", hint="a dict of values by column"
            )
        text = QueryText(snapshot.schema)
        fields = {field.name: field for field in snapshot.schema.fields}
        names = {name.lower(): name for name in fields}
        values: dict[str, NewValue] = {}
        for column, value in given.items():
            name = column if column in fields else names.get(str(column).lower(), "")
            if not name:
                raise InvalidQuery(
                    f"the table has no column {column!r}", hint=f"it has {', '.join(fields)}"
                )
            if name in values:
                raise InvalidQuery(f"the column {name!r} is set twice")
            values[name] = _value(text, value, fields[name])
        if not values:
            raise InvalidQuery("an UPDATE sets at least one column")
        return cls(fields, values)

    def applied(self, table: pa.Table) -> pa.Table:
        """Rows with the new values, all computed from the old ones.

        Raises InvalidValue for a value that cannot be cast or that the column does not hold.
        """
        arrays = [
            self._array(item.name, table) if item.name in self.values else table.column(item.name)
            for item in table.schema
        ]
        return pa.Table.from_arrays(arrays, schema=table.schema)

    def _array(self, name: str, table: pa.Table) -> Any:
        value, wanted = self.values[name], table.schema.field(name).type
        if isinstance(value, Variant):
            pair = {"metadata": value.metadata, "value": value.value}
            return pa.repeat(pa.scalar(pair, VARIANT_TYPE), table.num_rows).cast(wanted)
        if isinstance(value, Literal):
            return pa.repeat(_scalar(value, wanted, name), table.num_rows)

        def in_rows(ref: Ref) -> Values:
            column: Any = table.column(ref.column[0]).combine_chunks()
            return Values(column) if ref.path is None else extract(column, ref)

        found = evaluate(value, of_refs(in_rows), table.num_rows)
        if found.failed is not None and found.failed.any():
            raise InvalidValue(
                f"a value cannot be cast: {value}", hint="try_variant_get gives NULL instead"
            )
        return _assigned(plain(found.array), wanted, name)


def _value(text: QueryText, value: Any, field: StructField) -> NewValue:
    if isinstance(field.type, VariantType) and (
        isinstance(value, Mapping | list | tuple | Variant)
    ):
        return Variant.of(value)
    if isinstance(value, TypedPath):
        return text.value(value.text)
    if isinstance(value, Condition):
        return text.value(value.text)
    found = text.value(value if isinstance(value, str) else constant(value))
    if isinstance(found, Literal):
        _scalar(found, arrow_type(field.type), field.name)  # refused before any work
    return found


def _scalar(value: Literal, wanted: Any, name: str) -> Any:
    """A constant as the column holds it."""
    if value.value is None:
        return pa.scalar(None, wanted)
    if isinstance(value.value, Decimal | int) and pa.types.is_floating(wanted):
        return pa.scalar(float(value.value), wanted)
    kind = spark_type(value.type)
    if kind is None:
        raise _refused(value.type, wanted, name)
    return _assigned(raw_array([value.value], kind), wanted, name)[0]


def _assigned(array: Any, wanted: Any, name: str) -> Any:
    """Values as the column holds them, if nothing of them is lost."""
    if array.type == wanted:
        return array
    if not _widens(array.type, wanted):
        raise _refused(str(array.type), wanted, name)
    try:
        return array.cast(wanted)
    except pa.ArrowInvalid as error:
        raise InvalidValue(f"a value does not fit the column {name!r}: {error}") from None


def _widens(given: Any, wanted: Any) -> bool:
    types = pa.types
    if types.is_integer(given):
        return types.is_integer(wanted) or types.is_decimal(wanted)
    if types.is_decimal(given):
        return types.is_decimal(wanted) and bool(given.scale <= wanted.scale)
    return types.is_float32(given) and types.is_float64(wanted)


def _refused(given: str, wanted: Any, name: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"the local engine does not put a {given} into the column {name!r}, which is {wanted}",
        **SPARK_RUNS_IT,
    )
