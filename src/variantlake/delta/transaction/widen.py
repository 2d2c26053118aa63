"""Widen the types of columns: existing files keep their types, and readers convert.

Spec: PROTOCOL, "Type Widening".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import orjson

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.features import writer_features
from variantlake.delta.protocol.identity_columns import is_identity
from variantlake.delta.protocol.needed_features import extended_protocol, needed_features
from variantlake.delta.schema.char_types import declared_type, with_declaration
from variantlake.delta.schema.columns_by_path import (
    FieldPath,
    field_at,
    field_path,
    owner_of,
    shown_path,
    type_at,
    with_field,
)
from variantlake.delta.schema.ddl import parse_type_ddl, plain_type
from variantlake.delta.schema.table_schema import (
    INTEGER_DIGITS,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    VariantType,
    spark_name,
)
from variantlake.delta.transaction.alter_columns import (
    change_column,
    described_column,
    metadata_changes,
)
from variantlake.delta.transaction.column_uses import check_not_used
from variantlake.delta.transaction.conflicts import Changes
from variantlake.errors import InvalidSchema, UnsupportedFeature

PROPERTY = "delta.enableTypeWidening"
CHANGES_KEY = "delta.typeChanges"
"""The key of a column's metadata that lists its type changes: files may have the old types."""
PREVIEW = "typeWidening-preview"

_WIDER = {
    "byte": ("short", "integer", "long", "double"),
    "short": ("integer", "long", "double"),
    "integer": ("long", "double"),
    "float": ("double",),
    "date": ("timestamp_ntz",),
}
"""The wider types of each type, without decimals."""

_SIMPLE = (PrimitiveType, VariantType)
"""Types without fields: a column mapping would have to give ids to fields."""


def change_type(
    snapshot: Snapshot, column: str, ddl: str, *, enable_type_widening: bool = False
) -> Changes | None:
    """Give a column, a field, or a part of an array or a map a wider type; None if it has that one.

    Without type widening, a CHAR or VARCHAR can become a longer VARCHAR or a STRING, and a VOID
    column any type without fields.

    Raises InvalidSchema for a column that is not there, a type that does not parse, and a change
    that the protocol does not permit; UnsupportedFeature for a column that an SQL expression of the
    table uses, and while the table has no type widening.
    """
    path = field_path(snapshot.schema, column)
    owner, inner = owner_of(snapshot.schema, path)
    field = field_at(snapshot.schema, owner)
    wanted = parse_type_ddl(ddl)
    declared = type_at_parts(declared_type(field), inner)
    if declared == wanted:
        return None
    if is_identity(field):
        raise UnsupportedFeature(f"column {shown_path(path)} is an identity column")
    check_not_used(snapshot, path, "given another type")
    if isinstance(declared, PrimitiveType) and declared.name in ("char", "varchar"):
        return _longer_text(snapshot, path, declared, wanted)
    if declared == PrimitiveType("void") and not inner and isinstance(wanted, _SIMPLE):
        return _declared(snapshot, path, wanted)  # no file has the column
    if not is_wider(declared, wanted):
        raise InvalidSchema(
            f"column {shown_path(path)} is {declared}, which does not widen to {wanted}",
            hint=_advice(declared),
        )
    configuration = dict(snapshot.metadata.configuration)
    if configuration.get(PROPERTY, "").lower() != "true":
        if not enable_type_widening:
            raise UnsupportedFeature(
                "a wider type needs type widening, which the table does not have",
                hint="enable_type_widening=True switches it on, or set_properties("
                f"{{'{PROPERTY}': 'true'}}); readers without it then refuse the table",
                cli_hint=f"`variantlake set TABLE {PROPERTY}=true` switches it on; readers without "
                "it then refuse the table",
            )
        configuration[PROPERTY] = "true"
    if PREVIEW in writer_features(snapshot.protocol):
        raise UnsupportedFeature(
            f"the table lists {PREVIEW}, whose history of types is another one",
            hint="Delta Spark can widen its columns",
        )

    def widened(item: StructField) -> StructField:
        change: dict[str, Any] = {"fromType": str(declared), "toType": str(wanted)}
        if inner:
            change["fieldPath"] = ".".join(inner)
        before = item.metadata.get(CHANGES_KEY)
        changes = [*(before if isinstance(before, list) else ()), change]
        type_ = with_type_at(item.type, inner, wanted)
        return replace(item, type=type_, metadata={**item.metadata, CHANGES_KEY: changes})

    schema = with_field(snapshot.schema, owner, widened)
    features = ["typeWidening"]
    if wanted == PrimitiveType("timestamp_ntz"):
        features.append("timestampNtz")
    metadata = replace(
        snapshot.metadata, schema_string=schema.to_json(), configuration=configuration
    )
    # As in Delta Spark, with the metadata of the column from before the change.
    described = described_column(
        path,
        wanted,
        nullable=_nullable(snapshot, path, field, inner),
        metadata={} if inner else field.metadata,
    )
    protocol = extended_protocol(snapshot.protocol, features)
    parameters = {"column": orjson.dumps(described).decode()}
    return metadata_changes(snapshot, "CHANGE COLUMN", metadata, protocol, parameters)


def is_wider(type_: DataType, wanted: DataType) -> bool:
    """Whether the protocol permits this change of a type."""
    if not isinstance(type_, PrimitiveType) or not isinstance(wanted, PrimitiveType):
        return False
    if wanted.name != "decimal":
        return wanted.name in _WIDER.get(type_.name, ())
    if type_.name == "decimal":
        precision, scale = type_.precision, type_.scale
    elif type_.name in INTEGER_DIGITS:
        precision, scale = INTEGER_DIGITS[type_.name], 0
    else:
        return False
    return wanted.scale >= scale and wanted.precision - precision >= wanted.scale - scale


def type_at_parts(type_: DataType, inner: FieldPath) -> DataType:
    """Return the type of a part of an array or a map."""
    for part in inner:
        match type_:
            case ArrayType(element):
                type_ = element
            case MapType(key, value):
                type_ = key if part == "key" else value
    return type_


def with_type_at(type_: DataType, inner: FieldPath, wanted: DataType) -> DataType:
    """Return the type with `wanted` as a part of an array or a map, or `wanted` for no `inner`."""
    if not inner:
        return wanted
    match type_:
        case ArrayType(element):
            return replace(type_, element=with_type_at(element, inner[1:], wanted))
        case MapType(key) if inner[0] == "key":
            return replace(type_, key=with_type_at(key, inner[1:], wanted))
        case MapType(_, value):
            return replace(type_, value=with_type_at(value, inner[1:], wanted))
    # `field_path` resolved the path, so each type in it has parts.
    raise AssertionError(f"{inner} is resolved")


def _nullable(snapshot: Snapshot, path: FieldPath, field: StructField, inner: FieldPath) -> bool:
    if not inner:
        return field.nullable
    match type_at(snapshot.schema, path[:-1]):
        case ArrayType(_, nulls):
            return nulls
        case MapType(_, _, nulls):
            return nulls and path[-1] != "key"
    return True


def _longer_text(
    snapshot: Snapshot, path: FieldPath, declared: PrimitiveType, wanted: DataType
) -> Changes:
    """Turn a CHAR or VARCHAR into a VARCHAR at least as long, or into a STRING."""
    longer = isinstance(wanted, PrimitiveType) and (
        wanted.name == "string"
        or (wanted.name == "varchar" and wanted.precision >= declared.precision)
    )
    if not longer or len(path) > 1:
        raise InvalidSchema(
            f"column {shown_path(path)} is {declared}, which does not widen to {wanted}",
            hint=f"it widens to VARCHAR of {declared.precision} characters or more, and to STRING;"
            " a column does, a field of a struct does not",
        )
    return _declared(snapshot, path, wanted)


def _declared(snapshot: Snapshot, path: FieldPath, wanted: DataType) -> Changes:
    """Give a column another type in the schema alone."""
    schema = with_field(
        snapshot.schema,
        path,
        lambda field: with_declaration(replace(field, type=plain_type(wanted)), wanted),
    )
    before = needed_features(snapshot.schema, snapshot.properties)
    features = [f for f in needed_features(schema, snapshot.properties) if f not in before]
    return change_column(snapshot, path, schema, features=features)


def _advice(type_: DataType) -> str:
    wider = list(_wider_names(type_))
    if not wider:
        return "add a column of the other type, and fill it by an UPDATE"
    return f"it widens to {', '.join(wider)}"


def _wider_names(type_: DataType) -> Iterator[str]:
    if not isinstance(type_, PrimitiveType):
        return
    for name in _WIDER.get(type_.name, ()):
        yield spark_name(PrimitiveType(name)).upper()
    if type_.name == "decimal":
        yield "DECIMAL with at least as many digits before and after the point"
    if type_.name in INTEGER_DIGITS:
        yield f"DECIMAL with {INTEGER_DIGITS[type_.name]} digits before the point or more"
