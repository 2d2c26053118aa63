"""ALTER TABLE ... REPLACE COLUMNS: derive the changes of columns, and make one commit of them.

As in Delta Spark, a column in both lists stays the same column; names match without case.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import orjson

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.identity_columns import identity_columns
from variantlake.delta.schema.char_types import declared_type
from variantlake.delta.schema.column_mapping import is_mapped
from variantlake.delta.schema.columns_by_path import FieldPath, field_path, shown_path, struct_at
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.delta.schema.table_schema import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    spark_name,
)
from variantlake.delta.transaction import alter, alter_columns, widen
from variantlake.delta.transaction.conflicts import Changes
from variantlake.errors import InvalidSchema, UnsupportedFeature


def replace_columns(snapshot: Snapshot, ddl: str) -> Changes:
    """The commit that gives a table these columns.

    It adds new columns, and moves, comments and widens others; with column mapping it drops columns
    that are left out.

    Raises InvalidSchema for columns that the table cannot have, UnsupportedFeature for a change
    that would rewrite files or is ambiguous.
    """
    columns = parse_table_ddl(ddl)
    if identity_columns(snapshot.schema):
        raise UnsupportedFeature(
            "REPLACE COLUMNS does not go with identity columns", hint=_ONE_BY_ONE
        )
    for each in columns.fields:
        if not each.nullable or each.default is not None or each.generation is not None:
            raise InvalidSchema(
                f"REPLACE COLUMNS takes types and comments, and more is said of {each.name}",
                hint="say it by ALTER COLUMN ... SET NOT NULL or SET DEFAULT afterwards",
            )
    differences = _Differences(is_mapped(snapshot.metadata.configuration))
    differences.compare(snapshot.schema, columns, ())
    draft = _done(snapshot, differences)
    draft = _in_order(draft, columns)
    described = [
        alter_columns.described_column(
            (each.name,), declared_type(each), nullable=True, metadata=_words(each)
        )
        for each in columns.fields
    ]
    parameters = {"columns": orjson.dumps(described).decode()}
    return alter_columns.metadata_changes(
        snapshot, "REPLACE COLUMNS", draft.metadata, draft.protocol, parameters
    )


_ONE_BY_ONE = "say each change by itself: ADD COLUMN, DROP COLUMN, RENAME COLUMN, ALTER COLUMN"


def _words(new: StructField) -> dict[str, str]:
    comment = new.metadata.get("comment")
    return {} if comment is None else {"comment": comment}


@dataclass(slots=True)
class _Differences:
    """What differs between two lists of columns, at any depth."""

    mapped: bool
    dropped: list[FieldPath] = field(default_factory=list)
    added: list[alter.NewField] = field(default_factory=list)
    widened: list[tuple[FieldPath, str]] = field(default_factory=list)
    described: list[tuple[FieldPath, str]] = field(default_factory=list)
    loosened: list[FieldPath] = field(default_factory=list)

    def compare(self, old: StructType, new: StructType, parent: FieldPath) -> None:
        """Raises UnsupportedFeature, InvalidSchema."""
        names = [each.name.lower() for each in new.fields]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InvalidSchema(f"the column {shown_path((*parent, twice))!r} is declared twice")
        gone = [each for each in old.fields if each.name.lower() not in names]
        come = [each for each in new.fields if old.find(each.name) is None]
        if gone and (come or not self.mapped):
            left_out = ", ".join(shown_path((*parent, each.name)) for each in gone)
            why = (
                f"drops {left_out} and adds {', '.join(each.name for each in come)}, which may"
                " mean new names"
                if come
                else f"leaves out {left_out}, and the table has no column mapping"
            )
            hint = cli_hint = _ONE_BY_ONE
            if not self.mapped:
                hint, cli_hint = (f"name all columns that it has; or {each}" for each in _DROPS)
            raise UnsupportedFeature(f"REPLACE COLUMNS {why}", hint=hint, cli_hint=cli_hint)
        self.dropped += [(*parent, each.name) for each in gone]
        self.added += [alter.NewField(parent, each) for each in come]
        for each in new.fields:
            before = old.find(each.name)
            if before is not None:
                self._compare_field(before, each, (*parent, before.name))

    def _compare_field(self, old: StructField, new: StructField, path: FieldPath) -> None:
        comment = new.metadata.get("comment")
        if comment is not None and comment != old.metadata.get("comment"):
            self.described.append((path, comment))
        if len(path) > 1 and old.nullable and not new.nullable:
            raise InvalidSchema(
                f"{shown_path(path)} may be NULL in the table", hint="leave NOT NULL out"
            )
        if not old.nullable and new.nullable:
            self.loosened.append(path)
        self._compare_types(declared_type(old), declared_type(new), path)

    def _compare_types(self, old: DataType, new: DataType, path: FieldPath) -> None:
        match old, new:
            case StructType(), StructType():
                self.compare(old, new, path)
            case ArrayType(), ArrayType():
                self._compare_types(old.element, new.element, (*path, "element"))
            case MapType(), MapType():
                self._compare_types(old.key, new.key, (*path, "key"))
                self._compare_types(old.value, new.value, (*path, "value"))
            case _ if old != new:
                self.widened.append((path, spark_name(new)))


_DROPS = (
    "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name'), which lets columns be dropped",
    "`variantlake set TABLE delta.columnMapping.mode=name`, which lets columns be dropped",
)


def _done(snapshot: Snapshot, differences: _Differences) -> Snapshot:
    """The table after all changes but the order of its columns."""
    for draft in _drafts(snapshot, differences):
        snapshot = draft
    return snapshot


def _drafts(draft: Snapshot, differences: _Differences) -> Iterator[Snapshot]:
    if differences.dropped:
        paths = list(map(shown_path, differences.dropped))
        dropped = alter_columns.drop_columns(draft, paths)
        if dropped is not None:
            yield (draft := alter_columns.after(draft, dropped))
    if differences.added:
        yield (draft := alter_columns.after(draft, alter.add_fields(draft, differences.added)))
    for path, type_ in differences.widened:
        changed = widen.change_type(draft, shown_path(path), type_)
        if changed is not None:
            yield (draft := alter_columns.after(draft, changed))
    for path, comment in differences.described:
        commented = alter_columns.set_column_comment(draft, shown_path(path), comment)
        yield (draft := alter_columns.after(draft, commented))
    for path in differences.loosened:
        nullable = alter_columns.set_not_null(draft, shown_path(path), not_null=False)
        yield (draft := alter_columns.after(draft, nullable))


def _in_order(draft: Snapshot, columns: StructType) -> Snapshot:
    """The table with its columns, and the fields of its structs, in this order."""
    for path, after in _places(columns, ()):
        column = field_path(draft.schema, shown_path(path))
        before = None if after is None else struct_at(draft.schema, column[:-1]).find(after)
        changes = alter_columns.move_column(
            draft, shown_path(column), after=None if before is None else before.name
        )
        draft = alter_columns.after(draft, changes)
    return draft


def _places(struct: StructType, parent: FieldPath) -> Iterator[tuple[FieldPath, str | None]]:
    before = None
    for each in struct.fields:
        path = (*parent, each.name)
        yield path, before
        before = each.name
        yield from _inner_places(each.type, path)


def _inner_places(type_: DataType, path: FieldPath) -> Iterator[tuple[FieldPath, str | None]]:
    match type_:
        case StructType():
            yield from _places(type_, path)
        case ArrayType(element):
            yield from _inner_places(element, (*path, "element"))
        case MapType(key, value):
            yield from _inner_places(key, (*path, "key"))
            yield from _inner_places(value, (*path, "value"))
