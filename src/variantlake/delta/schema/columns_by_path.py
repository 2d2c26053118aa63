"""Find and change columns, and fields at any depth in them, by their paths.

A path lists the names from the column down. As in Delta, an array's part is called `element`, a
map's parts `key` and `value`. Lookups ignore case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from variantlake.delta.schema.char_types import declared_type, with_declaration
from variantlake.delta.schema.ddl import DECLARED
from variantlake.delta.schema.table_schema import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from variantlake.errors import InvalidSchema, did_you_mean
from variantlake.quoting import identifier

FieldPath = tuple[str, ...]
"""Names from the column down."""

_PART = r"`(?:[^`]|``)+`|[^`.\s]+"
_PATH = re.compile(rf"\s*(?:{_PART})(?:\s*\.\s*(?:{_PART}))*\s*")
_EACH_PART = re.compile(_PART)

HIDDEN = "_metadata"
"""Spark's column of metadata about a row's file."""

WHERE_ROWS_LIE = "Delta Spark says in which file a row lies; Table.files() lists the files"


def parse_field_path(text: str) -> FieldPath:
    """Split a path such as `s.x` into names. A name that holds a dot needs backticks.

    Raises InvalidSchema for a text that is not a path.
    """
    if not isinstance(text, str) or not _PATH.fullmatch(text):
        raise InvalidSchema(
            f"{text!r} does not name a column",
            hint="write names with dots between them, as in s.x; `a.b` in backticks is one name",
        )
    return tuple(
        part[1:-1].replace("``", "`") if part.startswith("`") else part
        for part in _EACH_PART.findall(text)
    )


def field_path(schema: StructType, text: str) -> FieldPath:
    """Resolve a text to a column of exactly this name, else parse it as a path.

    Returns the table's spelling of names. Raises InvalidSchema for what the table does not have.
    """
    if isinstance(text, str) and schema.get(text) is not None:
        return (text,)
    return resolved(schema, parse_field_path(text))


def resolved(schema: StructType, path: FieldPath) -> FieldPath:
    """Return the path in the table's spelling. Raises InvalidSchema for one that does not exist."""
    names: list[str] = []
    type_: DataType = schema
    for part in path:
        name, type_ = _step(type_, part, names)
        names.append(name)
    return tuple(names)


def type_at(schema: StructType, path: FieldPath) -> DataType:
    """Return the type at a path of `resolved`."""
    type_: DataType = schema
    for part in path:
        _, type_ = _step(type_, part, ())
    return type_


def in_structs(schema: StructType, path: FieldPath) -> bool:
    """Whether a path of `resolved` leads through structs only, so that a row has one value."""
    above = (type_at(schema, path[:depth]) for depth in range(len(path)))
    return all(isinstance(type_, StructType) for type_ in above)


def shown_path(path: FieldPath) -> str:
    """Return the path in SQL syntax."""
    return ".".join(map(identifier, path))


def owner_of(schema: StructType, path: FieldPath) -> tuple[FieldPath, FieldPath]:
    """Split a path into the path of the innermost field, and the array and map parts below it.

    An array's element belongs to the array's field; a field of a struct in the array is a field.
    """
    found, at = 0, 0
    type_: DataType = schema
    for at, part in enumerate(path, start=1):
        is_field = isinstance(type_, StructType)
        _, type_ = _step(type_, part, ())
        if is_field:
            found = at
    return path[:found], path[found:]


def field_at(schema: StructType, path: FieldPath) -> StructField:
    """Return the field at a path of `resolved`, which must lead to a field (`owner_of`)."""
    return next(item for item in struct_at(schema, path[:-1]).fields if item.name == path[-1])


def struct_at(schema: StructType, path: FieldPath) -> StructType:
    """Return the struct at a path of `resolved`; for the empty path, the table's columns.

    Raises InvalidSchema for a column of another type.
    """
    struct = type_at(schema, path)
    if not isinstance(struct, StructType):
        raise InvalidSchema(f"column {shown_path(path)} is {struct}, and has no fields")
    return struct


def logical_path(schema: StructType, path: FieldPath) -> FieldPath:
    """Convert a path of physical names to logical ones. Unknown parts stay as they are."""
    names = []
    type_: DataType = schema
    for part in path:
        fields = type_.fields if isinstance(type_, StructType) else ()
        field = next((item for item in fields if item.physical_name == part), None)
        names.append(part if field is None else field.name)
        type_ = type_ if field is None else field.type
    return tuple(names)


def physical_path(schema: StructType, path: FieldPath) -> FieldPath:
    """Convert a path of `resolved` to physical names."""
    names = []
    type_: DataType = schema
    for part in path:
        field = type_.get(part) if isinstance(type_, StructType) else None
        names.append(part if field is None else field.physical_name)
        _, type_ = _step(type_, part, ())
    return tuple(names)


def with_struct(
    schema: StructType, path: FieldPath, change: Callable[[StructType], StructType]
) -> StructType:
    """Return the schema with the struct at a path changed; an empty path means the top level.

    Also changes the declared types of columns with CHAR and VARCHAR.
    """
    if not path:
        return change(schema)
    return with_field(schema, path[:1], lambda field: _changed_below(field, path[1:], change))


def with_field(
    schema: StructType, path: FieldPath, change: Callable[[StructField], StructField]
) -> StructType:
    """Return the schema with the field at a path changed (a path as for `field_at`)."""

    def changed(struct: StructType) -> StructType:
        fields = (change(item) if item.name == path[-1] else item for item in struct.fields)
        return StructType(tuple(fields))

    return with_struct(schema, path[:-1], changed)


def without_field(schema: StructType, path: FieldPath) -> StructType:
    """Return the schema without a field. Raises InvalidSchema for the only field of a struct."""

    def changed(struct: StructType) -> StructType:
        rest = tuple(item for item in struct.fields if item.name != path[-1])
        if not rest:
            where = f"the struct {shown_path(path[:-1])}" if path[1:] else "the table"
            raise InvalidSchema(
                f"{shown_path(path)} is the only column of {where}",
                hint="drop the struct itself" if path[1:] else "add another column first",
            )
        return StructType(rest)

    return with_struct(schema, path[:-1], changed)


def moved_field(schema: StructType, path: FieldPath, after: str | None) -> StructType:
    """Return the schema with a field moved behind field `after` of its struct; None: to the front.

    Raises InvalidSchema if there is no field `after`.
    """

    def changed(struct: StructType) -> StructType:
        field = next(item for item in struct.fields if item.name == path[-1])
        at = 0
        if after is not None:
            names = [item.name.lower() for item in struct.fields]
            if after.lower() not in names:
                raise _unknown((*path[:-1], after), [item.name for item in struct.fields])
            at = names.index(after.lower()) + 1
        before, behind = (
            [item for item in part if item is not field]
            for part in (struct.fields[:at], struct.fields[at:])
        )
        return StructType((*before, field, *behind))

    return with_struct(schema, path[:-1], changed)


def _changed_below(
    field: StructField, path: FieldPath, change: Callable[[StructType], StructType]
) -> StructField:
    changed = replace(field, type=_with_struct(field.type, path, change))
    if DECLARED not in field.metadata:
        return changed
    return with_declaration(changed, _with_struct(declared_type(field), path, change))


def _with_struct(
    type_: DataType, path: FieldPath, change: Callable[[StructType], StructType]
) -> DataType:
    match type_:
        case StructType() if not path:
            return change(type_)
        case StructType(fields):
            return StructType(
                tuple(
                    replace(item, type=_with_struct(item.type, path[1:], change))
                    if item.name == path[0]
                    else item
                    for item in fields
                )
            )
        case ArrayType(element):
            return replace(type_, element=_with_struct(element, path[1:], change))
        case MapType(key, value):
            if path[0] == "key":
                return replace(type_, key=_with_struct(key, path[1:], change))
            return replace(type_, value=_with_struct(value, path[1:], change))
    # `field_path` gave the path: it goes through no type without parts.
    raise AssertionError(f"{path} is resolved")


def _step(type_: DataType, part: str, names: Sequence[str]) -> tuple[str, DataType]:
    if isinstance(type_, StructType) and (field := type_.find(part)) is not None:
        return field.name, field.type
    parts = _parts_of(type_)
    for name, inner in parts.items():
        if name.lower() == part.lower():
            return name, inner
    if not parts:
        raise InvalidSchema(f"column {shown_path(tuple(names))} is {type_}, and has no {part!r}")
    raise _unknown((*names, part), parts)


def _parts_of(type_: DataType) -> dict[str, DataType]:
    match type_:
        case StructType(fields):
            return {item.name: item.type for item in fields}
        case ArrayType(element):
            return {"element": element}
        case MapType(key, value):
            return {"key": key, "value": value}
    return {}


def _unknown(path: FieldPath, known: Sequence[str] | dict[str, DataType]) -> InvalidSchema:
    hint = did_you_mean(path[-1], known) or f"columns: {', '.join(known)}"
    if path[0].lower() == HIDDEN:
        hint = WHERE_ROWS_LIE
    return InvalidSchema(f"the table has no column {shown_path(path)!r}", hint=hint)
