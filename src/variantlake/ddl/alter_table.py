"""Commit one change of ALTER TABLE or COMMENT ON TABLE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

import pyarrow.compute as pc

from variantlake.contracts.contract import Contract, contract_property
from variantlake.ddl.replace_columns import replace_columns
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.identity_columns import IdentityColumn
from variantlake.delta.protocol.known_properties import check_properties
from variantlake.delta.schema.column_mapping import MODE, is_mapped
from variantlake.delta.schema.columns_by_path import field_path, parse_field_path
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.delta.schema.table_schema import StructField, StructType
from variantlake.delta.transaction import alter, alter_columns, widen
from variantlake.delta.transaction.backfill import backfill_row_ids
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import Changes
from variantlake.errors import InvalidSchema, InvalidValue
from variantlake.jobs.tasks import Runner
from variantlake.jobs.threads import run_in_threads
from variantlake.maintenance.unmap_columns import unmap_columns
from variantlake.quoting import quote_identifier
from variantlake.scan.table_scan import Scan
from variantlake.sql import alter as parts
from variantlake.sql.select import QueryText


class RowChecks(Protocol):
    """Checks of an engine before a change of the table."""

    def constraint(self, snapshot: Snapshot, name: str, expression: str) -> None:
        """Raise InvalidQuery unless it is a condition, InvalidValue if a row does not fulfil it."""

    def not_null(self, snapshot: Snapshot, column: str) -> None:
        """Raise InvalidValue if a row has NULL in this column."""

    def default(self, field: StructField, expression: str) -> None:
        """Raise InvalidQuery or InvalidValue unless it is a constant of the column's type."""

    def generated(self, schema: StructType, field: StructField) -> None:
        """Raise InvalidQuery unless the other columns of a row determine the generated one."""


def check_expressions(schema: StructType, checks: RowChecks) -> None:
    """Check the defaults and the generated columns of a new table. Raises as `checks`."""
    for field in schema.fields:
        if field.default is not None:
            checks.default(field, field.default)
        if field.generation is not None:
            checks.generated(schema, field)


def alter_table(
    snapshot: Snapshot,
    change: parts.Alteration,
    checks: RowChecks,
    *,
    always_commits: bool = True,
    run: Runner = run_in_threads,
) -> int:
    """Commit a change; returns the new version, or the current one if there is nothing to do.

    `always_commits` also commits changes without effect, as Delta Spark's statements do. `run`
    rewrites files if the change requires it.

    Raises as the functions of `delta.transaction` and as `checks`, and CommitConflict.
    """
    if isinstance(change, parts.SetProperties):
        return set_properties(snapshot, change.properties, always_commits=always_commits, run=run)
    if isinstance(change, parts.UnsetProperties):
        if MODE in change.names and is_mapped(snapshot.metadata.configuration):
            result = unmap_columns(snapshot, run)
            change = replace(change, names=tuple(n for n in change.names if n != MODE))
            if not change.names:
                return result.version or 0
            snapshot = snapshot.refresh()
        if always_commits:
            change = replace(change, missing_ok=True)
    if isinstance(change, parts.ChangeColumns):
        changes = _together(snapshot, change, checks)
    else:
        changes = _checked(snapshot, change, checks, snapshot)
    if changes is None:
        return snapshot.version
    return commit(snapshot, changes) if always_commits else commit_if_changed(snapshot, changes)


def commit_if_changed(snapshot: Snapshot, changes: Changes) -> int:
    """Commit a change of the table's metadata; returns the current version if nothing changes."""
    if alter_columns.changes_nothing(snapshot, changes):
        snapshot.check_writable(evaluated=True, kept=True, numbered=True)
        return snapshot.version
    return commit(snapshot, changes)


def set_properties(
    snapshot: Snapshot,
    properties: Mapping[str, str],
    *,
    always_commits: bool = False,
    run: Runner = run_in_threads,
) -> int:
    """Set table properties; row tracking also gives row ids to existing files.

    To turn column mapping off, `run` rewrites all files. Raises as `alter.set_properties`.
    """
    properties = check_properties(properties)
    if properties.get(MODE, "").lower() == "none" and is_mapped(snapshot.metadata.configuration):
        unmap_columns(snapshot, run, mode="none")
        snapshot = snapshot.refresh()
        properties = {name: value for name, value in properties.items() if name != MODE}
        if not properties:
            return snapshot.version
    if alter.enables_row_tracking(snapshot, properties):
        snapshot = backfill_row_ids(snapshot)
    changes = alter.set_properties(snapshot, properties)
    return commit(snapshot, changes) if always_commits else commit_if_changed(snapshot, changes)


def set_contract(snapshot: Snapshot, column: str, contract: Contract | None) -> int:
    """Set or remove the contract of a VARIANT column (physical name); returns the new version.

    Does not check existing rows. Raises CommitConflict.
    """
    snapshot.check_writable(evaluated=True, kept=True, numbered=True)
    new = contract_property(snapshot.properties, column, contract)
    if not new:
        return snapshot.version
    return commit(snapshot, alter.with_configuration(snapshot, new))


def _together(snapshot: Snapshot, change: parts.ChangeColumns, checks: RowChecks) -> Changes | None:
    """One commit for several changes; None if they leave nothing to do."""
    draft, done = snapshot, list[Changes]()
    if not change.is_one:
        alter_columns.check_apart(snapshot.schema, [each.column for each in change.changes])
    for each in change.changes:
        one = _checked(draft, each, checks, snapshot)
        if one is not None:
            done.append(one)
            draft = alter_columns.after(draft, one)
    if not done:
        return None
    return alter_columns.together(snapshot, draft, done, is_one=change.is_one)


def _checked(
    snapshot: Snapshot, change: parts.Alteration, checks: RowChecks, rows: Snapshot
) -> Changes | None:
    """Check the rows of `rows`, and make the commit for a change; None if nothing is to do."""
    match change:
        case parts.AddConstraint(name, expression):
            changes = alter.add_constraint(snapshot, name, expression)
            checks.constraint(rows, name, expression)
        case parts.NotNull(column, True):
            changes = alter_columns.set_not_null(snapshot, column, not_null=True)
            checks.not_null(rows, field_path(snapshot.schema, column)[0])
        case parts.SyncIdentity(column):
            identity = alter_columns.identity_column(snapshot, column)
            return alter_columns.sync_identity(snapshot, identity, _last_number(rows, identity))
        case parts.Default(column, str(expression)):
            changes = alter_columns.set_default(snapshot, column, expression)
            (name,) = field_path(snapshot.schema, column)
            checks.default(next(f for f in snapshot.schema.fields if f.name == name), expression)
        case _:
            return _changes(snapshot, change)
    return changes


def _last_number(snapshot: Snapshot, column: IdentityColumn) -> int | None:
    """The last number of an identity column in the table's rows; None if there are no rows."""
    items = QueryText(snapshot.schema).items(quote_identifier(column.name))
    last = pc.max if column.step > 0 else pc.min
    batches = Scan(snapshot, items).to_batches()
    numbers = (last(batch.column(0)).as_py() for batch in batches)
    known = [number for number in numbers if number is not None]
    return (max if column.step > 0 else min)(known, default=None)


def _changes(snapshot: Snapshot, change: parts.Alteration) -> Changes | None:
    """The commit for a change that requires no check of rows; None if nothing is to do."""
    match change:
        case parts.RenameColumn(column, name):
            return alter_columns.rename_column(snapshot, column, name)
        case parts.DropColumns(columns, missing_ok):
            return alter_columns.drop_columns(snapshot, columns, missing_ok=missing_ok)
        case parts.AddColumns(columns):
            return alter.add_fields(snapshot, [_new_field(each) for each in columns])
        case parts.ReplaceColumns(ddl):
            return replace_columns(snapshot, ddl)
        case parts.CommentColumn(column, comment):
            return alter_columns.set_column_comment(snapshot, column, comment)
        case parts.CommentTable(comment):
            return alter_columns.set_table_comment(snapshot, comment)
        case parts.MoveColumn(column, after):
            return alter_columns.move_column(snapshot, column, after=after)
        case parts.NotNull(column):
            return alter_columns.set_not_null(snapshot, column, not_null=False)
        case parts.Default(column):
            return alter_columns.set_default(snapshot, column, None)
        case parts.ChangeType(column, type_):
            return widen.change_type(snapshot, column, type_)
        case parts.DropConstraint(name, missing_ok):
            return alter.drop_constraint(snapshot, name, missing_ok=missing_ok)
        case parts.ClusterBy(columns, paths):
            return alter.cluster_by(snapshot, columns, paths)
        case parts.UnsetProperties(names):
            _check_there(snapshot, change)
            return alter.unset_properties(snapshot, names)
    # The callers handle the other changes, which check rows or rewrite files.
    raise AssertionError(change)


def _new_field(new: parts.ColumnToAdd) -> alter.NewField:
    *parent, name = parse_field_path(new.column)
    fields = parse_table_ddl(f"{quote_identifier(name)} {new.rest}").fields
    if len(fields) != 1:
        raise InvalidSchema(f"the column {name!r} is declared as {new.rest!r}")
    return alter.NewField(tuple(parent), fields[0], new.after)


def _check_there(snapshot: Snapshot, change: parts.UnsetProperties) -> None:
    missing = [name for name in change.names if name not in snapshot.metadata.configuration]
    if missing and not change.missing_ok and missing != [alter.COMMENT]:
        raise InvalidValue(
            f"the table has no property {missing[0]!r}",
            hint="UNSET TBLPROPERTIES IF EXISTS passes over those that are not there",
        )
