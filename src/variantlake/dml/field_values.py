"""Assignments to fields of structs, which leave the other fields of the column as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from variantlake.delta.schema.table_schema import DataType, StructField, StructType, arrow_type
from variantlake.errors import InvalidQuery, InvalidValue
from variantlake.expressions.tree import Ref
from variantlake.ingest.inputs import nested_value
from variantlake.ingest.row_values import array_of
from variantlake.shredding.arrays import AnyArray, AnyField, struct_of


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant for a struct, array or map column. `array` holds it as its only value."""

    array: AnyArray

    @classmethod
    def of(cls, value: Any, name: str, kind: DataType) -> Constant:
        """Convert a Python value as an append does. Raises InvalidValue."""
        try:
            return cls(array_of(name, [nested_value(value, kind)], 0, arrow_type(kind)))
        except InvalidValue as error:
            error.row = None  # the value is not from a row
            raise

    def repeated(self, rows: int) -> AnyArray:
        """Return an array of `rows` times the value."""
        return self.array.take(np.zeros(rows, np.int64))


@dataclass(frozen=True, slots=True)
class FieldChanges:
    """New values for some fields of a struct column, by the fields' names below the column."""

    base: Ref
    values: Mapping[tuple[str, ...], Any]

    def applied(self, column: AnyArray, value_of: Callable[[Any, AnyField], AnyArray]) -> AnyArray:
        """Return the column with the new values. `value_of` computes those of one field."""
        for names, value in self.values.items():
            column = _with_field(column, names, partial(value_of, value))
        return column


class AssignedFields:
    """Assignments to fields of structs, grouped by column."""

    def __init__(self) -> None:
        self._values: dict[str, tuple[Ref, dict[tuple[str, ...], Any]]] = {}

    def add(self, ref: Ref, value: Any) -> None:
        """Add `ref = value`. Raises InvalidQuery if the field, or one around it, is set already."""
        column = (ref.shown or ref.column)[0]
        base = replace(ref, column=ref.column[:1], shown=ref.shown[:1], type="struct")
        _, values = self._values.setdefault(column, (base, {}))
        names = ref.column[1:]
        for other in values:
            least = min(len(other), len(names))
            if other[:least] == names[:least]:
                raise InvalidQuery(f"the field {ref} is set twice")
        values[names] = value

    def joined(self, values: Mapping[str, Any], *side: str) -> dict[str, Any]:
        """Return `values` of whole columns together with these changes of fields.

        `side` is the name of the columns' side in a MERGE.

        Raises InvalidQuery for a column that is in both.
        """
        found = dict(values)
        for column, (base, fields) in self._values.items():
            if column in found:
                raise InvalidQuery(f"the column {column!r} is set as a whole and in its fields")
            found[column] = FieldChanges(replace(base, column=(*side, *base.column)), fields)
        return found


def field_at(schema: StructType, names: Sequence[str]) -> StructField:
    """Return the column or field at a path of names; all names but the last are of structs."""
    found = next(field for field in schema.fields if field.name == names[0])
    if names[1:] and isinstance(found.type, StructType):
        return field_at(found.type, names[1:])
    return found


def _with_field(
    array: AnyArray, names: Sequence[str], value_of: Callable[[AnyField], AnyArray]
) -> AnyArray:
    """Set one field. As in Delta Spark, a NULL struct becomes a struct of NULLs and the value."""
    group = struct_of(array)
    children: list[AnyArray] = list(group.flatten())
    at = group.type.get_field_index(names[0])
    field = group.type.field(at)
    if names[1:]:
        children[at] = _with_field(children[at], names[1:], value_of)
    else:
        children[at] = value_of(field)
    return pa.StructArray.from_arrays(children, fields=list(group.type))
