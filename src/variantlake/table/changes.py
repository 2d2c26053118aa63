"""Changing rows in this process: what the local engine finds and computes."""

from __future__ import annotations

from variantlake.dml.delete import delete
from variantlake.dml.result import ChangeResult
from variantlake.planning.expressions import Condition
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
            InvalidQuery: Text that does not parse, or names what the table has not.
            InvalidValue: A value that a cast in the condition fails at.
            UnsupportedFeature: An expression that only Spark takes, an append-only table, a feature
                that we do not write, or rows that would lose their ids, by name.
            CommitConflict: Another writer changed the same rows, or added rows that `where` finds.
        """
        text = None if where is None else str(where)
        return delete(self._newest(), text, dry_run=dry_run)
