"""New values of fields of structs: the other fields of the column stay."""

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
    """A value of a struct, array or map column: `array` has it as its only one."""

    array: AnyArray

    @classmethod
    def of(cls, value: Any, name: str, kind: DataType) -> Constant:
        """A value of Python, as a row that is appended has it. Raises InvalidValue."""
        try:
            return cls(array_of(name, [nested_value(value, kind)], 0, arrow_type(kind)))
        except InvalidValue as error:
            error.row = None  # it is no row that is wrong
            raise

    def repeated(self, rows: int) -> AnyArray:
        """The value in so many rows."""
        return self.array.take(np.zeros(rows, np.int64))


@dataclass(frozen=True, slots=True)
class FieldChanges:
    """A struct column with other values in some fields, by their names below the column."""

    base: Ref
    values: Mapping[tuple[str, ...], Any]

    def applied(self, column: AnyArray, value_of: Callable[[Any, AnyField], AnyArray]) -> AnyArray:
        """The column's new values; `value_of` computes that of a field."""
        for names, value in self.values.items():
            column = _with_field(column, names, partial(value_of, value))
        return column


class AssignedFields:
    """Assignments to fields, gathered by their columns."""

    def __init__(self) -> None:
        self._values: dict[str, tuple[Ref, dict[tuple[str, ...], Any]]] = {}

    def add(self, ref: Ref, value: Any) -> None:
        """`ref = value`. Raises InvalidQuery for a field that is set twice, also within another."""
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
        """These values of columns, and the columns with new fields.

        `side` is the name of their side in a MERGE.

        Raises InvalidQuery for a column that is in both.
        """
        found = dict(values)
        for column, (base, fields) in self._values.items():
            if column in found:
                raise InvalidQuery(f"the column {column!r} is set as a whole and in its fields")
            found[column] = FieldChanges(replace(base, column=(*side, *base.column)), fields)
        return found


def field_at(schema: StructType, names: Sequence[str]) -> StructField:
    """The field of a struct column; all but the last name structs."""
    found = next(field for field in schema.fields if field.name == names[0])
    if names[1:] and isinstance(found.type, StructType):
        return field_at(found.type, names[1:])
    return found


def _with_field(
    array: AnyArray, names: Sequence[str], value_of: Callable[[AnyField], AnyArray]
) -> AnyArray:
    """A struct that is NULL becomes one of NULLs and the new value, as in Delta Spark."""
    group = struct_of(array)
    children: list[AnyArray] = list(group.flatten())
    at = group.type.get_field_index(names[0])
    field = group.type.field(at)
    if names[1:]:
        children[at] = _with_field(children[at], names[1:], value_of)
    else:
        children[at] = value_of(field)
    return pa.StructArray.from_arrays(children, fields=list(group.type))
