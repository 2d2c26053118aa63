"""Changing rows in this process: what the local engine finds and computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from variantlake.dml.delete import delete
from variantlake.dml.result import ChangeResult
from variantlake.dml.update import update
from variantlake.expressions.from_python import Condition
from variantlake.table.maintenance import TableMaintenance


class TableChanges(TableMaintenance):
    """The part of `Table` that changes rows."""

    __slots__ = ()

    def delete(
        self, where: str | Condition | None = None, *, dry_run: bool = False
    ) -> ChangeResult:
        """Delete rows of the newest version in one commit, without Spark.

        Files are skipped by bounds and rows found on typed columns. Where the table has deletion
        vectors (`delta.enableDeletionVectors`) no file is written anew, but one that would be
        almost empty.

        Args:
            where: A condition, as for `scan`; rows for which it is NULL stay. None deletes all.
            dry_run: Change nothing; the answer tells what would be done.

        Raises:
            InvalidQuery: Text that does not parse, or names what the table does not have.
            InvalidValue: A value that a cast in the condition fails at.
            UnsupportedFeature: An expression that only Spark takes, an append-only table, a feature
                that we do not write, or rows that would lose their ids, by name.
            CommitConflict: Another writer changed the same rows, or added rows that `where` finds.
        """
        text = None if where is None else str(where)
        return delete(self._newest(), text, dry_run=dry_run)

    def update(
        self,
        set: Mapping[str, Any],  # noqa: A002 - as SQL calls it
        where: str | Condition | None = None,
        *,
        dry_run: bool = False,
    ) -> ChangeResult:
        """Put new values into columns of some rows in one commit, without Spark.

        `table.update({"kind": "'late'", "n": 7, "who": vl.path("event", "$.user").string()},
        where="event:late::boolean")`. All values are computed from the old row.

        Args:
            set: By column: text is an SQL expression, namely a column, a path with its type or a
                constant (a text constant in quotes of its own); or a typed path, or another
                constant of Python. A VARIANT column also takes a dict, a list or a `vl.Variant`.
            where: As for `delete`.
            dry_run: As for `delete`.

        Raises:
            InvalidQuery: Text that does not parse, or names what the table does not have.
            InvalidValue: A value that cannot be cast, or that the column does not hold.
            UnsupportedFeature: As for `delete`; also a table with constraints or generated columns,
                which `lake.update` takes, and one whose rows are tracked.
            CommitConflict: As for `delete`.
        """
        text = None if where is None else str(where)
        return update(self._newest(), set, text, dry_run=dry_run)
