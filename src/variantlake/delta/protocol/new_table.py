"""Make the protocol and properties of a new table, and check that Delta can hold its schema.

Spec: PROTOCOL, "Table Features for New and Existing Tables", "Schema Serialization Format".
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Mapping, Sequence

from variantlake.delta.actions.actions import Metadata, Protocol
from variantlake.delta.protocol.change_feed import check_change_feed
from variantlake.delta.protocol.identity_columns import is_identity
from variantlake.delta.protocol.intervals import check_retentions
from variantlake.delta.protocol.known_properties import (
    SHREDDING_PROPERTY,
    check_properties,
    is_of_protocol,
)
from variantlake.delta.protocol.needed_features import needed_features, new_protocol
from variantlake.delta.protocol.properties import (
    check_clustering,
    check_manifests,
    of_table,
)
from variantlake.delta.protocol.row_tracking import PROPERTY as ROW_TRACKING_PROPERTY
from variantlake.delta.protocol.row_tracking import materialized_columns
from variantlake.delta.schema.column_mapping import is_mapped, with_mapping
from variantlake.delta.schema.references import speaks_of
from variantlake.delta.schema.table_schema import (
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    VariantType,
)
from variantlake.errors import InvalidSchema

# Parquet readers of old refuse these, and so does Delta Spark without column mapping.
FORBIDDEN_IN_NAMES = re.compile(r"[ ,;{}()\n\t=]")


def new_table(
    schema: StructType,
    partition_columns: Sequence[str],
    properties: Mapping[str, str],
    *,
    clustered: bool = False,
    name: str | None = None,
    description: str | None = None,
) -> tuple[Protocol, Metadata]:
    """Return the first protocol and metadata of a table.

    A table with a Variant column gets `variantShredding` too, enabled, unless the properties say
    that it is not. If the properties ask for column mapping, columns get ids and physical names; if
    for row tracking, the columns of copied rows are named. `clustered` adds the feature of
    clustered tables.

    Raises InvalidSchema for a schema or partitioning that a Delta table cannot have,
    UnsupportedFeature for a property of a feature that we do not write, InvalidValue for a value
    that a property cannot have.
    """
    properties = of_table(check_properties(properties), schema)
    check_schema(schema, partition_columns, properties)
    for field in schema.fields:
        check_default(field, field.default)
    configuration = dict[str, str]()
    if schema.holds_variant():
        configuration[SHREDDING_PROPERTY] = "true"
    configuration |= {key: value for key, value in properties.items() if not is_of_protocol(key)}
    features = needed_features(schema, {**configuration, **properties})
    if clustered:
        features.append("clustering")
    if is_mapped(properties):
        schema, configuration = with_mapping(schema, configuration, keep_names=False)
        configuration = of_table(configuration, schema)
    check_clustering(configuration, schema, partition_columns)
    check_retentions(configuration, properties)
    if configuration.get(ROW_TRACKING_PROPERTY, "").lower() == "true":
        configuration |= materialized_columns()
    return new_protocol(features), Metadata(
        id=str(uuid.uuid4()),
        schema_string=schema.to_json(),
        partition_columns=tuple(partition_columns),
        configuration=configuration,
        name=name,
        description=description,
        created_time=time.time_ns() // 1_000_000,
    )


def check_default(field: StructField, expression: str | None) -> None:
    """Refuse a default for a Variant, although tables of other writers may have one."""
    if expression and StructType((field,)).holds_variant():
        raise InvalidSchema(
            f"column {field.name!r} holds a Variant, whose default is NULL",
            hint="give the value in each INSERT, or in the frame that is appended",
        )


def check_schema(
    schema: StructType, partition_columns: Sequence[str], properties: Mapping[str, str]
) -> None:
    """Refuse a schema or partitioning that a Delta table with these properties cannot have.

    Raises InvalidSchema naming the column.
    """
    if not schema.fields:
        raise InvalidSchema("a table needs at least one column")
    # With column mapping, files have other names for columns, so any name is allowed.
    _check_names(schema, "", any_name=is_mapped(properties))
    check_change_feed(schema, properties)
    check_manifests(properties)
    _check_expressions(schema)
    for column in partition_columns:
        field = schema.get(column)
        if field is not None and is_identity(field):
            raise InvalidSchema(f"column {column!r} is an identity, and cannot partition a table")
        if field is None:
            known = ", ".join(item.name for item in schema.fields)
            raise InvalidSchema(
                f"partition column {column!r} is not in the schema", hint=f"columns: {known}"
            )
        if isinstance(field.type, VariantType):
            raise InvalidSchema(
                f"column {column!r} is a Variant, which cannot partition a table",
                hint="partition by an ordinary column; paths of a Variant skip files by statistics",
            )
        if not isinstance(field.type, PrimitiveType):
            raise InvalidSchema(f"column {column!r} is nested, and cannot partition a table")
    if len(set(partition_columns)) != len(partition_columns):
        raise InvalidSchema("a partition column appears twice")
    if len(partition_columns) == len(schema.fields):
        raise InvalidSchema("a table needs a column that it is not partitioned by")


def _check_expressions(schema: StructType) -> None:
    generated = {(item.name,) for item in schema.fields if item.generation or is_identity(item)}
    for item in schema.fields:
        variant = StructType((item,)).holds_variant()
        if item.generation and variant:
            raise InvalidSchema(
                f"column {item.name!r} is generated, and holds a Variant",
                hint="a Variant may be the source of a generated column, not its result",
            )
        other = next(
            (p for p in generated if item.generation and speaks_of(item.generation, p)), None
        )
        if other is not None:
            raise InvalidSchema(
                f"column {item.name!r} is generated from {other[0]!r}, which is generated itself",
                hint="write the expression of that column in its place",
            )
        if item.default and (item.generation or is_identity(item)):
            raise InvalidSchema(f"column {item.name!r} is generated, and has no default")


def _check_names(type_: DataType, where: str, *, any_name: bool) -> None:
    match type_:
        case StructType(fields):
            _check_fields(fields, where, any_name=any_name)
        case ArrayType(element):
            _check_names(element, f"{where}element.", any_name=any_name)
        case MapType(key, value):
            _check_names(key, f"{where}key.", any_name=any_name)
            _check_names(value, f"{where}value.", any_name=any_name)


def _check_fields(fields: Sequence[StructField], where: str, *, any_name: bool) -> None:
    seen: dict[str, str] = {}
    for item in fields:
        name = f"{where}{item.name}"
        if not item.name or (not any_name and FORBIDDEN_IN_NAMES.search(item.name)):
            raise InvalidSchema(
                f"column name {name!r} is empty or holds one of ' ,;{{}}()\\n\\t='",
                hint="any name fits a table whose property delta.columnMapping.mode is name",
            )
        if (twin := seen.get(item.name.lower())) is not None:
            raise InvalidSchema(f"columns {twin!r} and {item.name!r} differ by case at most")
        seen[item.name.lower()] = item.name
        _check_names(item.type, f"{name}.", any_name=any_name)
