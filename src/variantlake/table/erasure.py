"""Erasing rows for good, in this process."""

from __future__ import annotations

from variantlake.erase.erase import EraseResult, erase
from variantlake.planning.expressions import Condition
from variantlake.table.change_feed import TableChangeFeed


class TableErasure(TableChangeFeed):
    """The part of `Table` that erases."""

    __slots__ = ()

    def erase(
        self, where: str | Condition, *, purge: bool = False, dry_run: bool = False
    ) -> EraseResult:
        """Erase rows so that in the end nothing below the table's folder holds them.

        Deletes the rows in one commit that writes every file anew in which they are, also where a
        deletion vector hides them already. The commit says neither the condition nor bounds of the
        old files. Older versions still hold the rows: the result says after which time
        `vacuum` removes their files, and until when the log says bounds of them.

        Args:
            where: A condition, as for `scan`.
            purge: Do not wait: remove every other version now, its files, change files and
                quarantine files, and all of the log before the newest version. Only where nothing
                else uses the table: readers of older versions, readers of changes and running
                writers lose what they need, and the history begins anew.
            dry_run: Change nothing; the answer tells how many rows and files there are.

        Raises:
            InvalidQuery: Text that does not parse, or names what the table has not.
            InvalidValue: A value that a cast in the condition fails at.
            UnsupportedFeature: An expression that only Spark takes; an append-only table; a VARIANT
                inside of another column; a table that tracks its rows, where files would be
                written anew; with `purge` a table whose log must not be cut.
            CommitConflict: Other writers were first, again and again.
        """
        return erase(self._newest(), str(where), purges=purge, dry_run=dry_run)
