"""Rewriting files of tables without changing a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from variantlake.ingest.target.files import TARGET_FILE_BYTES
from variantlake.spark.lake.layouts import LakeLayouts
from variantlake.spark.query.places import Location

if TYPE_CHECKING:
    from variantlake.ingest.load import LoadProgress
    from variantlake.maintenance.optimize import OptimizeResult
    from variantlake.planning.expressions import Condition


class LakeCompaction(LakeLayouts):
    """The part of `Lake` that joins files and rewrites them."""

    def optimize(
        self,
        table: Location,
        where: str | Condition | None = None,
        *,
        target_file_bytes: int = TARGET_FILE_BYTES,
        max_deleted_share: float = 0.05,
        dry_run: bool = False,
        digest: bool = True,
        progress: Callable[[LoadProgress], None] | None = None,
    ) -> OptimizeResult:
        """Join small files, and rewrite files of which many rows are deleted; no row changes.

        Spark's executors rewrite the files, a group a task, and the driver commits. `table` is its
        name, path or URL, as for `read`; else as `Table.optimize`.
        """
        # Loads the kernels, which queries do without.
        from variantlake.maintenance.plan_compaction import CompactionOptions
        from variantlake.spark.maintenance.optimize import optimize

        return optimize(
            self._spark,
            self._tables.open(self._written_to(table)).snapshot,
            where=None if where is None else str(where),
            options=CompactionOptions(target_file_bytes, max_deleted_share),
            dry_run=dry_run,
            digest=digest,
            progress=progress,
        )
