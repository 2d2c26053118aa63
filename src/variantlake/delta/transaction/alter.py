"""Change a table's properties and columns: compute its next metadata and protocol.

Spec: PROTOCOL, "Change Metadata", "Protocol Evolution", "Column Mapping".
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import orjson

from variantlake.delta.actions.actions import Metadata, Protocol
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.change_feed import CHANGE_FEED, check_change_feed
from variantlake.delta.protocol.cluster_paths import PROPERTY as CLUSTER_BY
from variantlake.delta.protocol.clustering import clustering_domain, clustering_names
from variantlake.delta.protocol.identity_columns import is_identity
from variantlake.delta.protocol.intervals import check_retentions
from variantlake.delta.protocol.known_properties import (
    CONSTRAINT_PREFIX,
    SCHEMA_PREFIX,
    SET_BY_WRITERS,
    SHREDDING_PROPERTY,
    check_properties,
    is_of_protocol,
    property_name,
)
from variantlake.delta.protocol.learned_schemas import PREFIX as LEARNED_PREFIX
from variantlake.delta.protocol.needed_features import extended_protocol, needed_features
from variantlake.delta.protocol.new_table import check_schema
from variantlake.delta.protocol.properties import (
    MANIFESTS,
    VECTORS,
    check_clustering,
    check_manifests,
    constraints,
    of_table,
)
from variantlake.delta.protocol.row_tracking import PROPERTY as ROW_TRACKING_PROPERTY
from variantlake.delta.protocol.row_tracking import materialized_columns
from variantlake.delta.schema.char_types import declared_type, with_declaration
from variantlake.delta.schema.column_mapping import MODE, is_mapped, with_mapping
from variantlake.delta.schema.columns_by_path import (
    FieldPath,
    moved_field,
    resolved,
    shown_path,
    struct_at,
    with_struct,
)
from variantlake.delta.schema.table_schema import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
)
from variantlake.delta.transaction.alter_columns import added_column, metadata_changes
from variantlake.delta.transaction.conflicts import Changes, whole_table
from variantlake.errors import InvalidSchema, InvalidValue, UnsupportedFeature

COMMENT = "comment"
"""SQL sets the table's description like a property of this name."""


def set_properties(snapshot: Snapshot, properties: Mapping[str, str]) -> Changes:
    """Set table properties, and add the features that they need.

    Raises InvalidValue for a value that a property cannot have, InvalidSchema for a property that
    does not fit the columns, UnsupportedFeature for one that needs an engine with SQL or a rewrite
    of the table.
    """
    properties = of_table(check_properties(properties), snapshot.schema)
    _check_possible(snapshot, properties)
    kept = {k: v for k, v in properties.items() if not is_of_protocol(k)}
    comment = kept.pop(COMMENT, snapshot.metadata.description)
    configuration = {**snapshot.metadata.configuration, **kept}
    check_retentions(configuration, kept)
    for key in kept:
        if key.startswith(SCHEMA_PREFIX):  # the user gave it, so no load learns another one
            configuration.pop(LEARNED_PREFIX + key.removeprefix(SCHEMA_PREFIX), None)
    schema = snapshot.schema
    if is_mapped(configuration) and not is_mapped(snapshot.metadata.configuration):
        schema, configuration = with_mapping(schema, configuration, keep_names=True)
    check_clustering(configuration, schema, snapshot.partition_columns)
    if CHANGE_FEED in kept:
        check_change_feed(schema, configuration)
    if kept.keys() & {MANIFESTS, MODE, VECTORS}:
        check_manifests(configuration)
    if kept.get(ROW_TRACKING_PROPERTY, "").lower() == "true":
        configuration = {**materialized_columns(), **configuration}
    protocol = extended_protocol(snapshot.protocol, needed_features(schema, properties))
    metadata = replace(
        snapshot.metadata,
        schema_string=schema.to_json(),
        configuration=configuration,
        description=comment or None,
    )
    return metadata_changes(
        snapshot, "SET TBLPROPERTIES", metadata, protocol, {"properties": _json(properties)}
    )


def with_configuration(snapshot: Snapshot, properties: Mapping[str, str]) -> Changes:
    """Set properties that only writers set."""
    configuration = {**snapshot.metadata.configuration, **properties}
    metadata = replace(snapshot.metadata, configuration=configuration)
    parameters = {"properties": _json(properties)}
    return metadata_changes(snapshot, "SET TBLPROPERTIES", metadata, snapshot.protocol, parameters)


def enables_row_tracking(snapshot: Snapshot, properties: Mapping[str, str]) -> bool:
    """Whether these properties turn on row tracking for the table."""
    before = snapshot.metadata.configuration.get(ROW_TRACKING_PROPERTY, "")
    after = properties.get(ROW_TRACKING_PROPERTY, before)
    return after.strip().lower() == "true" and before.lower() != "true"


def add_constraint(snapshot: Snapshot, name: str, expression: str) -> Changes:
    """Add a CHECK constraint, which the caller has checked against the existing rows.

    Raises InvalidValue for a name that is taken.
    """
    key = CONSTRAINT_PREFIX + name.lower()
    if key in snapshot.metadata.configuration:
        raise InvalidValue(
            f"the table has a constraint {name.lower()!r}: {snapshot.properties[key]}",
            hint="drop it first, or choose another name",
        )
    configuration = {**snapshot.metadata.configuration, key: expression}
    changes = metadata_changes(
        snapshot,
        "ADD CONSTRAINT",
        replace(snapshot.metadata, configuration=configuration),
        extended_protocol(snapshot.protocol, ["checkConstraints"]),
        {"name": name, "expr": expression},
    )
    return replace(changes, reads=whole_table, serializable=True)


def drop_constraint(snapshot: Snapshot, name: str, *, missing_ok: bool = False) -> Changes:
    """Drop a CHECK constraint. Raises InvalidValue if it is missing, unless `missing_ok`."""
    if not isinstance(name, str):
        raise InvalidValue(f"a constraint is named by text, not {name!r:.60}")
    key = CONSTRAINT_PREFIX + name.lower()
    configuration = dict(snapshot.metadata.configuration)
    expression = configuration.pop(key, None)
    if expression is None and not missing_ok:
        known = ", ".join(constraints(configuration)) or "none"
        raise InvalidValue(f"the table has no constraint {name!r}", hint=f"constraints: {known}")
    metadata = replace(snapshot.metadata, configuration=configuration)
    parameters = {"name": name, "existed": "false"}
    if expression is not None:
        parameters |= {"expr": expression, "existed": "true"}
    return metadata_changes(snapshot, "DROP CONSTRAINT", metadata, snapshot.protocol, parameters)


def cluster_by(
    snapshot: Snapshot, columns: Sequence[str], paths: Sequence[str] = ()
) -> Changes | None:
    """Cluster the table by these columns, or by paths of Variants; rewrites no file.

    Neither ends its clustering. Returns None if the table is not clustered then. Raises
    InvalidSchema for a column that is missing or has no order, and for a partitioned table;
    otherwise as `set_properties`.
    """
    own, partitions = snapshot.metadata.configuration, snapshot.partition_columns
    before = clustering_names(snapshot.schema, snapshot.domains)
    if paths:
        changes = set_properties(snapshot, {CLUSTER_BY: ", ".join(paths)})
        ended = clustering_domain(snapshot.schema, (), ())
        return replace(changes, domains=(ended,)) if before else changes
    if CLUSTER_BY in own and not (columns or before):
        return unset_properties(snapshot, [CLUSTER_BY])
    domain = clustering_domain(snapshot.schema, columns, partitions)
    if not columns and domain.domain not in snapshot.domains:
        return None
    after = clustering_names(snapshot.schema, {domain.domain: domain})
    protocol = extended_protocol(snapshot.protocol, ["clustering"] if columns else [])
    parameters = {
        "oldClusteringColumns": ",".join(map(".".join, before)),
        "newClusteringColumns": ",".join(map(".".join, after)),
    }
    configuration = {key: value for key, value in own.items() if key != CLUSTER_BY}
    metadata = replace(snapshot.metadata, configuration=configuration)
    changes = metadata_changes(snapshot, "CLUSTER BY", metadata, protocol, parameters)
    kept = None if metadata == snapshot.metadata else metadata
    return replace(changes, metadata=kept, domains=(domain,))


def unset_properties(snapshot: Snapshot, names: Collection[str]) -> Changes:
    """Unset properties; ignores those that are not set.

    Raises InvalidValue for one that files depend on, and for an unknown name.
    """
    own = snapshot.metadata.configuration
    names = [name if name in own or name == COMMENT else property_name(name) for name in names]
    for name in names:
        if name.startswith(CONSTRAINT_PREFIX):
            raise InvalidValue(
                f"the property {name} is a constraint",
                hint=f"drop_constraint({name.removeprefix(CONSTRAINT_PREFIX)!r}) removes it",
            )
        learned = name.startswith(LEARNED_PREFIX)
        if (name == MODE and is_mapped(own)) or (SET_BY_WRITERS.fullmatch(name) and not learned):
            raise InvalidValue(f"the property {name} cannot be removed: files depend on it")
    configuration = {k: v for k, v in own.items() if k not in names}
    metadata = replace(snapshot.metadata, configuration=configuration)
    if COMMENT in names:
        metadata = replace(metadata, description=None)
    return metadata_changes(
        snapshot,
        "UNSET TBLPROPERTIES",
        metadata,
        snapshot.protocol,
        {"properties": _json(list(dict.fromkeys(names))), "ifExists": True},
    )


def add_columns(snapshot: Snapshot, columns: StructType) -> Changes:
    """Add columns at the end; existing rows have NULL in them.

    `columns` may have a struct of the table with more fields. Raises InvalidSchema for columns that
    are NOT NULL, and for those that the table has with another type.
    """
    merged = merged_schema(snapshot.schema, columns)
    known = {field.name.lower() for field in snapshot.schema.fields}
    for column in columns.fields:
        if column.name.lower() in known and merged == snapshot.schema:
            raise InvalidSchema(f"the table has a column {column.name!r} already")
        _check_null_in_old_rows(column)
    added = [{"column": added_column((field.name,), field)} for field in columns.fields]
    protocol, metadata = evolved(snapshot, merged)
    return metadata_changes(snapshot, "ADD COLUMNS", metadata, protocol, {"columns": _json(added)})


def _check_null_in_old_rows(new: StructField) -> None:
    """Raise InvalidSchema for a new column in which existing rows would not have NULL."""
    if new.default is not None:
        raise InvalidSchema(
            f"the new column {new.name} has a default, which existing rows would not get",
            hint="add the column without it, and then ALTER COLUMN ... SET DEFAULT for new rows",
        )
    if new.generation or is_identity(new):
        raise InvalidSchema(
            f"the new column {new.name} is generated, but existing rows have no value for it",
            hint="make a table with the column, and copy the rows into it",
        )


@dataclass(frozen=True, slots=True)
class NewField:
    """A column to add, or a field of the struct at `parent`; `after` is empty for the first place.

    `after` is None for the last one.
    """

    parent: FieldPath
    field: StructField
    after: str | None = None


def add_fields(snapshot: Snapshot, new: Sequence[NewField]) -> Changes:
    """Add columns and fields of structs at their places; existing rows have NULL in them.

    Raises InvalidSchema as `add_columns`, and for a place that does not exist.
    """
    schema, added = snapshot.schema, list[dict[str, object]]()
    for each in new:
        parent = resolved(schema, each.parent)
        field, path = each.field, (*parent, each.field.name)
        _check_null_in_old_rows(field)
        if _by_name(struct_at(schema, parent), field.name.lower()) is not None:
            raise InvalidSchema(f"the table has a column {shown_path(path)!r} already")
        schema = with_struct(
            schema,
            parent,
            functools.partial(_merged_struct, field=field, where="".join(f"{p}." for p in parent)),
        )
        described: dict[str, object] = {"column": added_column(path, field)}
        if each.after is not None:
            schema = moved_field(schema, path, each.after or None)
            described["position"] = f"AFTER {each.after}" if each.after else "FIRST"
        added.append(described)
    protocol, metadata = evolved(snapshot, schema)
    parameters = {"columns": _json(added)}
    return metadata_changes(snapshot, "ADD COLUMNS", metadata, protocol, parameters)


def _merged_struct(struct: StructType, field: StructField, where: str) -> StructType:
    return merged_schema(struct, StructType((field,)), where)


def evolved(snapshot: Snapshot, schema: StructType) -> tuple[Protocol, Metadata]:
    """Return the table's protocol and metadata with a schema that has more columns.

    Raises InvalidSchema for columns that a Delta table cannot have.
    """
    configuration = dict(snapshot.metadata.configuration)
    check_schema(schema, snapshot.partition_columns, configuration)
    if is_mapped(configuration):
        schema, configuration = with_mapping(schema, configuration, keep_names=False)
    new: dict[str, str] = {}
    if schema.holds_variant() and not snapshot.schema.holds_variant():
        new = {SHREDDING_PROPERTY: configuration.get(SHREDDING_PROPERTY, "true")}
    metadata = replace(
        snapshot.metadata, schema_string=schema.to_json(), configuration={**configuration, **new}
    )
    return extended_protocol(snapshot.protocol, needed_features(schema, new)), metadata


def merged_schema(
    table: StructType, given: StructType, where: str = "", *, types: bool = True
) -> StructType:
    """Return the table's columns and then those that only `given` has, at all depths of structs.

    Names are compared without case, as Delta does; types must be the same, and are the table's.
    With `types` false a type that differs is not an error: the writer casts the values.
    Raises InvalidSchema for a type that differs and for a new column that is NOT NULL.
    """
    known = {field.name.lower(): field for field in table.fields}
    merged = {
        name: _merged_field(field, found, where, types=types)
        if (found := _by_name(given, name)) is not None
        else field
        for name, field in known.items()
    }
    for field in given.fields:
        if field.name.lower() in known:
            continue
        if not field.nullable:
            raise InvalidSchema(
                f"the new column {where}{field.name} is NOT NULL, but existing rows have no value"
                " for it"
            )
        merged[field.name.lower()] = field
    return StructType(tuple(merged.values()))


def _by_name(schema: StructType, lower: str) -> StructField | None:
    return next((field for field in schema.fields if field.name.lower() == lower), None)


def _merged_field(
    field: StructField, given: StructField, where: str, *, types: bool
) -> StructField:
    where = f"{where}{field.name}"
    merged = replace(field, type=_merged_type(field.type, given.type, where, types=types))
    declared = _merged_type(declared_type(field), declared_type(given), where, types=False)
    return with_declaration(merged, declared)


def _merged_type(kind: DataType, given: DataType, where: str, *, types: bool) -> DataType:
    if isinstance(kind, StructType) and isinstance(given, StructType):
        return merged_schema(kind, given, f"{where}.", types=types)
    if isinstance(kind, ArrayType) and isinstance(given, ArrayType):
        element = _merged_type(kind.element, given.element, f"{where}.element", types=types)
        return replace(kind, element=element)
    if isinstance(kind, MapType) and isinstance(given, MapType):
        key = _merged_type(kind.key, given.key, f"{where}.key", types=types)
        value = _merged_type(kind.value, given.value, f"{where}.value", types=types)
        return replace(kind, key=key, value=value)
    if types and kind != given:
        raise InvalidSchema(f"column {where} is {kind} in the table and {given} here")
    return kind


def _check_possible(snapshot: Snapshot, properties: Mapping[str, str]) -> None:
    """Refuse properties that the present mapping, files or rows do not allow."""
    own = snapshot.metadata.configuration
    mode = properties.get(MODE)
    if mode is not None and mode.lower() != own.get(MODE, "none").lower():
        if is_mapped(own):
            raise UnsupportedFeature(
                f"{MODE} cannot change from {own[MODE]!r} to {mode!r}",
                hint="'none' rewrites the files by their columns' names; after that it may",
            )
        if mode.lower() == "id" and snapshot.files.num_rows:
            raise UnsupportedFeature(
                f"{MODE} can only become 'name' here: the table's files have no ids of columns"
            )
    if enables_row_tracking(snapshot, properties) and snapshot.files["base_row_id"].null_count:
        raise UnsupportedFeature(f"{ROW_TRACKING_PROPERTY} needs row ids for the files first")
    if not snapshot.files.num_rows:
        return
    for key, value in properties.items():
        if key.startswith(CONSTRAINT_PREFIX) and own.get(key) != value:
            raise UnsupportedFeature(
                f"{key} must be checked against the existing rows",
                hint="lake.add_constraint(...) does that",
            )


def _json(value: object) -> str:
    return orjson.dumps(value if not isinstance(value, Mapping) else dict(value)).decode()
