"""Keeping tables in shape: files that are rewritten, removed or brought back."""

from __future__ import annotations

from collections.abc import Callable

from variantlake.maintenance.vacuum import (
    Retention,
    VacuumProgress,
    VacuumResult,
    vacuum,
)
from variantlake.maintenance.vacuum_listing import UnneededFile
from variantlake.spark.lake.layouts import LakeLayouts
from variantlake.spark.query.places import Location


class LakeMaintenance(LakeLayouts):
    """The part of `Lake` that keeps tables in shape."""

    def vacuum(
        self,
        table: Location,
        retention: Retention | None = None,
        *,
        dry_run: bool = False,
        force: bool = False,
        quarantine: bool = False,
        report: Callable[[UnneededFile], None] | None = None,
        progress: Callable[[VacuumProgress], None] | None = None,
    ) -> VacuumResult:
        """Remove files below a table's folder that no version within the retention needs.

        The driver lists and deletes, by its own store; no Spark job runs. `table` is its name, path
        or URL, as for `read`; else as `Table.vacuum`.
        """
        return vacuum(
            self._tables.open(self._written_to(table)).snapshot,
            retention,
            dry_run=dry_run,
            force=force,
            quarantine=quarantine,
            report=report,
            progress=progress,
        )
