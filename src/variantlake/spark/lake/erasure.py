"""Erasing rows for good."""

from __future__ import annotations

from variantlake.erase.erase import EraseResult, erase
from variantlake.planning.expressions import Condition
from variantlake.spark.lake.change_feed import LakeChangeFeed
from variantlake.spark.query.places import Location


class LakeErasure(LakeChangeFeed):
    """The part of `Lake` that erases."""

    def erase(
        self,
        table: Location,
        where: str | Condition,
        *,
        purge: bool = False,
        dry_run: bool = False,
    ) -> EraseResult:
        """Erase rows so that in the end nothing below the table's folder holds them.

        The driver finds and rewrites, without a Spark job; the condition is one that `Table.scan`
        takes. `table` is its name, path or URL, as for `read`; else as `Table.erase`.
        """
        snapshot = self._tables.open(self._written_to(table)).snapshot
        return erase(snapshot, str(where), purges=purge, dry_run=dry_run)
