"""Change a table's existing columns: compute its next metadata and protocol.

A rename or drop changes only the schema (column mapping): files keep their names for columns.
Spec: PROTOCOL, "Column Mapping", "Type Widening", "Default Columns".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from variantlake.delta.actions.actions import Metadata, Protocol
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.identity_columns import (
    IdentityColumn,
    is_identity,
    with_marks,
)
from variantlake.delta.protocol.needed_features import extended_protocol, needed_features
from variantlake.delta.protocol.new_table import check_default, check_schema
from variantlake.delta.schema.char_types import declared_type
from variantlake.delta.schema.column_mapping import MODE, is_mapped, with_mapping
from variantlake.delta.schema.columns_by_path import (
    FieldPath,
    field_at,
    field_path,
    moved_field,
    owner_of,
    parse_field_path,
    resolved,
    shown_path,
    struct_at,
    with_field,
    without_field,
)
from variantlake.delta.schema.ddl import DECLARED
from variantlake.delta.schema.table_schema import DataType, StructField, StructType
from variantlake.delta.transaction.column_uses import (
    check_not_layout,
    check_not_used,
    with_renamed,
    without_column,
)
from variantlake.delta.transaction.conflicts import Changes, whole_table
from variantlake.errors import InvalidSchema, InvalidValue, UnsupportedFeature


def rename_column(
    snapshot: Snapshot, column: str, name: str, *, enable_column_mapping: bool = False
) -> Changes:
    """Rename a column, or a field of a struct; files stay as they are.

    The partitioning, the clustering and the list of columns with statistics follow the new name.

    Raises InvalidSchema for a column that is missing and a name that is taken, InvalidValue for an
    invalid name, UnsupportedFeature for a column that an SQL expression of the table uses, and
    while the table has no column mapping.
    """
    path = _field(snapshot.schema, column)
    if not isinstance(name, str) or not name:
        raise InvalidValue(f"the new name is {name!r}", hint="give the name alone, as text")
    check_not_used(snapshot, path, "renamed")
    draft = _Draft.mapped(snapshot, enable=enable_column_mapping, what="renaming a column")
    others = struct_at(draft.schema, path[:-1]).fields
    taken = next((item for item in others if item.name.lower() == name.lower()), None)
    if taken is not None:
        raise InvalidSchema(
            f"the table has a column {shown_path((*path[:-1], taken.name))!r} already",
            hint="names are compared without case",
        )
    new = (*path[:-1], name)
    schema = with_field(draft.schema, path, lambda field: replace(field, name=name))
    partitions = tuple(
        name if (each,) == path else each for each in snapshot.metadata.partition_columns
    )
    configuration = with_renamed(draft.configuration, path, new)
    parameters = {"oldColumnPath": history_path(path), "newColumnPath": history_path(new)}
    changed = replace(draft, schema=schema, partitions=partitions, configuration=configuration)
    return changed.changes("RENAME COLUMN", parameters)


def drop_columns(
    snapshot: Snapshot,
    columns: Sequence[str],
    *,
    missing_ok: bool = False,
    enable_column_mapping: bool = False,
) -> Changes | None:
    """Drop columns, or fields of structs; their values stay in the files until these are rewritten.

    Returns None if `missing_ok` leaves nothing to do. Raises as `rename_column`, and InvalidSchema
    for a column that the table is partitioned or clustered by, and for the last column of the table
    or field of a struct.
    """
    paths = list(_dropped(snapshot.schema, columns, missing_ok=missing_ok))
    if not paths:
        return None
    for path in paths:
        check_not_used(snapshot, path, "dropped")
        check_not_layout(snapshot, path)
    draft = _Draft.mapped(snapshot, enable=enable_column_mapping, what="dropping a column")
    schema, configuration = draft.schema, draft.configuration
    for path in paths:
        if len(path) == 1:
            configuration = without_column(configuration, schema, path[0])
        schema = without_field(schema, path)
        configuration = with_renamed(configuration, path, None)
    if len(schema.fields) == len(snapshot.metadata.partition_columns):
        raise InvalidSchema(
            "a table needs a column that it is not partitioned by", hint="add another column first"
        )
    names = list(map(history_path, paths))
    changed = replace(draft, schema=schema, configuration=configuration)
    return changed.changes("DROP COLUMNS", {"columns": _json(names)})


def set_column_comment(snapshot: Snapshot, column: str, comment: str | None) -> Changes:
    """Describe a column or a field of a struct; None drops the description.

    Raises InvalidSchema for a column that is not there.
    """
    return _with_metadata(snapshot, column, "comment", comment)


def set_table_comment(snapshot: Snapshot, comment: str | None) -> Changes:
    """Describe the table; None drops the description."""
    metadata = replace(snapshot.metadata, description=comment or None)
    parameters = {"properties": _json({"comment": comment or ""})}
    return metadata_changes(snapshot, "SET TBLPROPERTIES", metadata, snapshot.protocol, parameters)


def move_column(snapshot: Snapshot, column: str, *, after: str | None = None) -> Changes:
    """Move a column after another one of its struct, or to the first place if `after` is None.

    Raises InvalidSchema for a column that is not there.
    """
    path = _field(snapshot.schema, column)
    before = None if after is None else _sibling(snapshot.schema, path, after)
    schema = moved_field(snapshot.schema, path, before)
    position = "FIRST" if before is None else f"AFTER {before}"
    return change_column(snapshot, path, schema, position=position)


def set_default(snapshot: Snapshot, column: str, expression: str | None) -> Changes:
    """Set the SQL expression that new rows without a value for a column get; None drops it.

    Existing rows keep their values. Raises InvalidSchema for a column that is not there or
    cannot have one.
    """
    path = _field(snapshot.schema, column)
    field = field_at(snapshot.schema, path)
    if expression is not None and (len(path) > 1 or field.generation or is_identity(field)):
        what = "a field of a struct" if len(path) > 1 else "generated"
        raise InvalidSchema(f"column {shown_path(path)} is {what}, and has no default")
    check_default(field, expression)
    return _with_metadata(snapshot, column, "CURRENT_DEFAULT", expression)


def set_not_null(snapshot: Snapshot, column: str, *, not_null: bool) -> Changes:
    """Make a column NOT NULL, which the caller has checked against the rows; or nullable.

    Raises InvalidSchema for a column that the table does not have, UnsupportedFeature for a field
    of a struct that is to be NOT NULL.
    """
    path = _field(snapshot.schema, column)
    if not_null and len(path) > 1:
        raise UnsupportedFeature(
            f"{shown_path(path)} is a field of a struct, which cannot become NOT NULL",
            hint="a CHECK constraint says the same: s.x IS NOT NULL",
        )
    if is_identity(field_at(snapshot.schema, path)):
        raise UnsupportedFeature(f"column {shown_path(path)} is an identity column")
    schema = with_field(snapshot.schema, path, lambda field: replace(field, nullable=not not_null))
    changes = change_column(snapshot, path, schema, features=["invariants"] if not_null else [])
    if not not_null:
        return changes
    return replace(changes, reads=whole_table, serializable=True)


def identity_column(snapshot: Snapshot, column: str) -> IdentityColumn:
    """Return the identity column of this name. Raises InvalidSchema for any other column."""
    path = _field(snapshot.schema, column)
    field = field_at(snapshot.schema, path)
    if len(path) > 1 or not is_identity(field):
        raise InvalidSchema(f"column {shown_path(path)} is no identity column")
    return IdentityColumn.of(field)


def sync_identity(snapshot: Snapshot, column: IdentityColumn, last: int | None) -> Changes | None:
    """Let an identity column continue after `last`, a number of a row; None if it already does."""
    marks = {} if last is None else {column.physical_name: last}
    schema = with_marks(snapshot.schema, marks)
    if schema == snapshot.schema:
        return None
    path = (column.name,)
    field = field_at(snapshot.schema, path)
    # As Delta Spark does, the history describes the column as it was before.
    described = described_column(path, field.type, nullable=field.nullable, metadata=field.metadata)
    metadata = replace(snapshot.metadata, schema_string=schema.to_json())
    parameters = {"column": _json(described)}
    return metadata_changes(snapshot, "CHANGE COLUMN", metadata, snapshot.protocol, parameters)


def check_apart(schema: StructType, columns: Sequence[str]) -> None:
    """Raise InvalidSchema for a column, or a field of it, that is changed twice."""
    seen = list[FieldPath]()
    for path in (_field(schema, column) for column in columns):
        if any(path[: len(other)] == other or other[: len(path)] == path for other in seen):
            raise InvalidSchema(
                f"column {shown_path(path)} is changed twice",
                hint="change it, and its fields, in statements of their own",
            )
        seen.append(path)


def after(snapshot: Snapshot, changes: Changes) -> Snapshot:
    """Return the table after a change of its columns that is not committed yet."""
    metadata = changes.metadata or snapshot.metadata
    return replace(
        snapshot,
        metadata=metadata,
        schema=StructType.from_json(metadata.schema_string),
        protocol=changes.protocol or snapshot.protocol,
    )


def together(
    snapshot: Snapshot, draft: Snapshot, changes: Sequence[Changes], *, is_one: bool
) -> Changes:
    """Join the changes that led to `draft`, each based on the one before, into one commit.

    `is_one`: they all concern one column.
    """
    found = [{**orjson.loads(each.parameters["column"]), **_position(each)} for each in changes]
    parameters: dict[str, Any] = {"columns": _json(found)}
    if is_one:
        places = [place for each in changes for place in _position(each).values()]
        parameters = {"column": changes[-1].parameters["column"]}
        parameters |= {"position": places[-1]} if places else {}
    merged = metadata_changes(
        snapshot,
        "CHANGE COLUMN" if is_one else "CHANGE COLUMNS",
        draft.metadata,
        draft.protocol,
        parameters,
    )
    reads = next((each.reads for each in changes if each.reads is not None), None)
    return replace(merged, reads=reads, serializable=any(each.serializable for each in changes))


def _position(changes: Changes) -> dict[str, str]:
    return {key: value for key, value in changes.parameters.items() if key == "position"}


def described_column(
    path: FieldPath, type_: DataType, *, nullable: bool, metadata: Mapping[str, Any]
) -> dict[str, object]:
    """Return a column as in the history, which shows only the kind of a nested type."""
    kind = orjson.loads(StructType((StructField("c", type_),)).to_json())["fields"][0]["type"]
    return {
        "name": history_path(path),
        "type": kind if isinstance(kind, str) else kind["type"],
        "nullable": nullable,
        "metadata": dict(metadata),
    }


def added_column(path: FieldPath, field: StructField) -> dict[str, object]:
    """Return a new column as in the history, which shows CHAR and VARCHAR as such."""
    words = {key: value for key, value in field.metadata.items() if key != DECLARED}
    return described_column(path, declared_type(field), nullable=field.nullable, metadata=words)


def history_path(path: FieldPath) -> str:
    """Return a path as Delta Spark's history writes it: in backticks if a name holds a dot."""
    return ".".join(f"`{name}`" if "." in name else name for name in path)


def metadata_changes(
    snapshot: Snapshot,
    operation: str,
    metadata: Metadata,
    protocol: Protocol,
    parameters: Mapping[str, Any],
) -> Changes:
    """Return a commit that changes the table's metadata, and its protocol if `protocol` differs."""
    return Changes(
        operation=operation,
        metadata=metadata,
        protocol=None if protocol == snapshot.protocol else protocol,
        parameters=parameters,
    )


def changes_nothing(snapshot: Snapshot, changes: Changes) -> bool:
    """Whether a change of metadata leaves the table as it is, and so needs no commit."""
    if changes.protocol is not None or changes.adds or changes.removes or changes.transactions:
        return False
    if any(snapshot.domains.get(each.domain) != each for each in changes.domains):
        return False
    new, old = changes.metadata or snapshot.metadata, snapshot.metadata
    is_schema_kept = StructType.from_json(new.schema_string) == snapshot.schema
    return is_schema_kept and replace(new, schema_string=old.schema_string) == old


@dataclass(frozen=True, slots=True)
class _Draft:
    """The next metadata of a table while a change builds it, by physical names."""

    snapshot: Snapshot
    schema: StructType
    configuration: Mapping[str, str]
    partitions: tuple[str, ...]

    @classmethod
    def mapped(cls, snapshot: Snapshot, *, enable: bool, what: str) -> _Draft:
        """Return the table, with column mapping turned on if it is off and `enable` is true.

        Raises UnsupportedFeature if it is off and `enable` is false.
        """
        schema, configuration = snapshot.schema, snapshot.metadata.configuration
        if not is_mapped(configuration):
            if not enable:
                raise UnsupportedFeature(
                    f"{what} needs column mapping, which the table does not have",
                    hint="enable_column_mapping=True switches it on, or set_properties("
                    f"{{'{MODE}': 'name'}}); readers without column mapping then refuse the table",
                    cli_hint=f"`variantlake set TABLE {MODE}=name` switches it on; readers without "
                    "column mapping then refuse the table",
                )
            schema, configuration = with_mapping(
                schema, {**configuration, MODE: "name"}, keep_names=True
            )
        return cls(snapshot, schema, configuration, snapshot.metadata.partition_columns)

    def changes(self, operation: str, parameters: Mapping[str, Any]) -> Changes:
        """Return the commit. Raises InvalidSchema for a schema that a Delta table cannot have."""
        check_schema(self.schema, self.partitions, self.configuration)
        metadata = replace(
            self.snapshot.metadata,
            schema_string=self.schema.to_json(),
            configuration=dict(self.configuration),
            partition_columns=self.partitions,
        )
        needed = [] if is_mapped(self.snapshot.metadata.configuration) else ["columnMapping"]
        protocol = extended_protocol(self.snapshot.protocol, needed)
        return metadata_changes(self.snapshot, operation, metadata, protocol, parameters)


def change_column(
    snapshot: Snapshot,
    path: FieldPath,
    schema: StructType,
    *,
    position: str | None = None,
    features: Sequence[str] = (),
) -> Changes:
    """Return a commit of CHANGE COLUMN for the field at this path."""
    field = field_at(schema, path)
    described = described_column(path, field.type, nullable=field.nullable, metadata=field.metadata)
    parameters = {"column": _json(described)}
    if position is not None:
        parameters["position"] = position
    metadata = replace(snapshot.metadata, schema_string=schema.to_json())
    protocol = extended_protocol(snapshot.protocol, features)
    return metadata_changes(snapshot, "CHANGE COLUMN", metadata, protocol, parameters)


def _with_metadata(snapshot: Snapshot, column: str, key: str, value: str | None) -> Changes:
    """Return a commit that sets one key of a column's metadata, or drops it."""
    path = _field(snapshot.schema, column)

    def changed(field: StructField) -> StructField:
        metadata = {name: each for name, each in field.metadata.items() if name != key}
        return replace(field, metadata=metadata if value is None else {**metadata, key: value})

    schema = with_field(snapshot.schema, path, changed)
    check_schema(schema, snapshot.partition_columns, snapshot.metadata.configuration)
    needed = ["allowColumnDefaults"] if "allowColumnDefaults" in needed_features(schema, {}) else []
    return change_column(snapshot, path, schema, features=needed)


def _field(schema: StructType, column: str) -> FieldPath:
    """Return the path of a column or field. Raises InvalidSchema also for an array's element."""
    path = field_path(schema, column)
    _, inner = owner_of(schema, path)
    if inner:
        raise InvalidSchema(
            f"{shown_path(path)} is a part of an array or a map, which has no name of its own",
            hint="only its type can be changed",
        )
    return path


def _sibling(schema: StructType, path: FieldPath, after: str) -> str:
    """Return the name of the sibling `after`, which is its name or its whole path."""
    if struct_at(schema, path[:-1]).get(after) is not None:
        return after
    parts = parse_field_path(after)
    if len(parts) == 1:
        parts = (*path[:-1], *parts)
    found = resolved(schema, parts)
    if found[:-1] != path[:-1]:
        raise InvalidSchema(
            f"{shown_path(path)} and {shown_path(found)} are not in one struct",
            hint="a column moves among the columns of its own struct",
        )
    return found[-1]


def _dropped(
    schema: StructType, columns: Sequence[str], *, missing_ok: bool
) -> Iterator[FieldPath]:
    if isinstance(columns, str) or not isinstance(columns, Collection):
        raise InvalidValue(f"the columns to drop are {columns!r}", hint="give a list of names")
    if not columns:
        raise InvalidValue("no column to drop is named")
    seen = set[FieldPath]()
    for column in columns:
        try:
            path = _field(schema, column)
        except InvalidSchema:
            if not missing_ok:
                raise
            continue
        if any(path[: len(other)] == other or other[: len(path)] == path for other in seen):
            raise InvalidSchema(f"column {shown_path(path)} is dropped twice")
        seen.add(path)
        yield path


def _json(value: object) -> str:
    return orjson.dumps(value).decode()
