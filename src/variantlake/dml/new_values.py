"""The new column values of an UPDATE, computed over Arrow columns without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.table_schema import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    VariantType,
    arrow_type,
)
from variantlake.dml.field_values import AssignedFields, Constant, FieldChanges, field_at
from variantlake.dml.path_values import PathChange, PathChanges, assigned_path, function_changes
from variantlake.encoding.edit import Change, Edit
from variantlake.encoding.variant import Variant
from variantlake.errors import InvalidQuery, InvalidValue, UnsupportedFeature, describe_type
from variantlake.expressions.arrays import Values, column_at, plain
from variantlake.expressions.casts.permitted import stored_as
from variantlake.expressions.from_python import Expr, VariantPath, constant
from variantlake.expressions.rows import evaluate, of_refs
from variantlake.expressions.tree import Expression, Literal, Ref
from variantlake.expressions.typing import refused
from variantlake.ingest.encode.numbers import check_assigned
from variantlake.paths import Path
from variantlake.quoting import unquoted
from variantlake.scan.assignments import assigned, scalar_of, sql_name
from variantlake.scan.files.casts import extract
from variantlake.scan.files.chosen_rows import cast_error
from variantlake.scan.files.column_reads import as_type
from variantlake.shredding.arrays import AnyArray, AnyField
from variantlake.shredding.layout import VARIANT_TYPE, is_variant_type
from variantlake.sql.select import QueryText
from variantlake.types import ShreddedType

NewValue = Expression | Variant | PathChanges | FieldChanges | Constant


@dataclass(frozen=True, slots=True)
class NewValues:
    """The values that an UPDATE sets, by the table's column names."""

    fields: Mapping[str, StructField]
    values: Mapping[str, NewValue]

    @classmethod
    def of(cls, snapshot: Snapshot, given: Mapping[str, Any]) -> NewValues:
        """Resolve a user's Python constants and expressions, by column, field or path.

        Raises InvalidQuery for a column that the table does not have, UnsupportedFeature for an
        expression that only Spark evaluates, InvalidValue for a constant that its column cannot
        hold.
        """
        if not isinstance(given, Mapping):
            raise InvalidValue(
                f"the new values are {given!r:.60}", hint="a dict of values by column"
            )
        text = QueryText(snapshot.schema)
        fields = {field.name: field for field in snapshot.schema.fields}
        names = {name.lower(): name for name in fields}
        values: dict[str, NewValue] = {}
        paths, structs = AssignedPaths(text), AssignedFields()
        for column, value in given.items():
            if not isinstance(column, str):
                raise InvalidValue(
                    f"what is set is named by text, not by {describe_type(column)}",
                    hint="{'event:user.name': 'Ada'}",
                )
            name = column if column in fields else names.get(unquoted(column).lower(), "")
            if not name and ":" in column:
                if len(assigned_path(text, column).column) > 1:
                    raise refused("a path of a Variant in a struct to assign to")
                paths.add(column, _path_value(text, value))
                continue
            if not name and (ref := field_ref(text, column)) is not None:
                inner = field_at(snapshot.schema, ref.shown or ref.column)
                structs.add(ref, _value(text, value, inner))
                continue
            if not name:
                raise InvalidQuery(
                    f"the table has no column {column!r}", hint=f"it has {', '.join(fields)}"
                )
            if name in values:
                raise InvalidQuery(f"the column {name!r} is set twice")
            check_assigned(fields[name], inserts=False)
            if isinstance(value, Expr) and value.text.upper() == "DEFAULT":
                values[name] = text_value(text, fields[name].default or "NULL", fields[name])
            else:
                values[name] = _value(text, value, fields[name])
        values = structs.joined(paths.joined(values))
        if not values:
            raise InvalidQuery("an UPDATE sets at least one column")
        return cls(fields, values)

    def applied(self, table: pa.Table) -> pa.Table:
        """Return rows with the new values, all computed from the old ones.

        Raises InvalidValue for a value that cannot be cast or that the column does not hold.
        """
        arrays = [
            self._array(item.name, table) if item.name in self.values else table.column(item.name)
            for item in table.schema
        ]
        return pa.Table.from_arrays(arrays, schema=table.schema)

    def _array(self, name: str, table: pa.Table) -> Any:
        def in_rows(ref: Ref) -> Values:
            column = column_at(table, ref.column)
            return Values(column) if ref.path is None else extract(column, ref)

        return column_of(self.values[name], table.schema.field(name), in_rows, table.num_rows)


def column_of(
    value: NewValue, field: AnyField, in_rows: Callable[[Ref], Values], rows: int
) -> AnyArray:
    """Compute a column's new values in `rows` rows; `in_rows` returns the old columns' values.

    Raises InvalidValue for a value that cannot be cast or that the column does not hold. As in
    Delta Spark, it refuses a new NULL for a struct with a NOT NULL field, though rows may already
    hold such a NULL.
    """
    array = _values_of(value, field, in_rows, rows)
    required = _required_in(field)
    if required and array.null_count:
        raise InvalidValue(
            f"column {required!r} is NOT NULL", hint=f"give {field.name!r} a value for it"
        )
    return array


def _required_in(field: AnyField) -> str:
    """Return the first NOT NULL field of a struct, at any depth of structs; empty for none."""
    is_struct = pa.types.is_struct(field.type) and not is_variant_type(field.type)
    inside: list[AnyField] = list(field.type) if is_struct else []
    found = (item.name if not item.nullable else _required_in(item) for item in inside)
    return next((f"{field.name}.{name}" for name in found if name), "")


def _values_of(
    value: NewValue, field: AnyField, in_rows: Callable[[Ref], Values], rows: int
) -> AnyArray:
    name, wanted = field.name, field.type
    array: AnyArray
    if isinstance(value, Variant):
        pair = {"metadata": value.metadata, "value": value.value}
        return pa.repeat(pa.scalar(pair, VARIANT_TYPE), rows).cast(wanted)
    if isinstance(value, PathChanges):
        return as_type(value.applied(in_rows, rows), wanted)
    if isinstance(value, Constant):
        return as_type(value.repeated(rows), wanted)
    if isinstance(value, FieldChanges):
        old = plain(in_rows(value.base).array)
        return as_type(
            value.applied(old, lambda new, field: column_of(new, field, in_rows, rows)), wanted
        )
    if isinstance(value, Literal):
        array = pa.repeat(scalar_of(value, wanted, name), rows)
        return array
    found = evaluate(_stored(value, wanted), of_refs(in_rows), rows)
    if found.failed is not None and found.failed.any():
        raise cast_error(value, None)
    array = assigned(plain(found.array), wanted, name)
    return array


def _stored(value: Expression, wanted: Any) -> Expression:
    """Return the expression that casts a value as storing it in a column of an Arrow type does."""
    if pa.types.is_nested(wanted) or is_variant_type(wanted):
        return value
    return stored_as(value, ShreddedType.from_arrow(wanted))


class AssignedPaths:
    """Assignments to paths, grouped by column. A NULL becomes the Variant null at the path."""

    def __init__(self, text: QueryText) -> None:
        self._text = text
        self._changes: dict[Ref, list[PathChange]] = {}

    def add(self, written: str, value: Expression | Variant) -> None:
        """Add `written = value`. Raises InvalidQuery if `written` is not a path."""
        ref = assigned_path(self._text, written)
        edit = Edit(Change.SET, ref.path or Path())
        base = replace(ref, path=None)
        self._changes.setdefault(base, []).append(PathChange(edit, value, keeps=True))

    def joined(self, values: Mapping[str, NewValue]) -> dict[str, NewValue]:
        """Return `values` of whole columns together with these changes at paths.

        Raises InvalidQuery for a column that is in both.
        """
        found = dict(values)
        for base, changes in self._changes.items():
            if base.column[-1] in found:
                raise InvalidQuery(
                    f"the column {base.column[-1]!r} is set as a whole and at a path"
                )
            found[base.column[-1]] = PathChanges(base, tuple(changes))
        return found


def _path_value(text: QueryText, value: Any) -> Expression | Variant:
    if isinstance(value, Expr):
        return text.value(value.text)
    return Variant.of(value)


def field_ref(text: QueryText, written: str) -> Ref | None:
    """Return the field of a struct that an assignment names, None if it names no such field.

    Raises InvalidQuery for a struct that does not have it.
    """
    if "." not in written:
        return None
    items = text.items(written)
    is_field = len(items) == 1 and items[0].ref.path is None and len(items[0].ref.column) > 1
    return items[0].ref if is_field else None


def text_value(text: QueryText, written: str, field: StructField) -> NewValue:
    """Read a SQL expression as the new value of a column. Raises as `NewValues.of`."""
    if isinstance(field.type, VariantType):
        changes = function_changes(text, written)
        if changes is not None:
            return changes
    return text.value(written)


def _value(text: QueryText, value: Any, field: StructField) -> NewValue:
    if isinstance(value, VariantPath):
        value = value.variant()
    if isinstance(value, Expr):
        return text_value(text, value.text, field)
    if isinstance(field.type, VariantType) and value is not None:
        return Variant.of(value)
    if isinstance(field.type, StructType | ArrayType | MapType) and value is not None:
        return Constant.of(value, field.name, field.type)
    found = text_value(text, constant(value), field)
    if isinstance(found, Literal):
        try:
            scalar_of(found, arrow_type(field.type), field.name)  # refuse before any work
        except UnsupportedFeature:
            hint, cli_hint = "give a value of the column's type", ""
            if isinstance(value, str):
                hint, cli_hint = _hint_of_text(value, field.type), "--set-sql takes SQL"
            raise InvalidValue(
                f"the column {field.name!r} is {sql_name(arrow_type(field.type))}, and does not "
                f"take {describe_type(value)}, {value!r:.60}",
                hint=hint,
                cli_hint=cli_hint,
            ) from None
    return found


def _hint_of_text(value: str, wanted: DataType) -> str:
    """Return the hint for a text that the column does not take."""
    if isinstance(wanted, PrimitiveType) and wanted.name in ("date", "timestamp", "timestamp_ntz"):
        word = wanted.name.upper()
        return f"give a {'date' if word == 'DATE' else 'datetime'}, or vl.expr(\"{word} '…'\")"
    return f"vl.expr({value!r:.40}) is SQL"
