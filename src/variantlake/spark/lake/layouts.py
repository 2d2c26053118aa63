"""How the files of a table are laid out: what is shredded, and in which order rows lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from variantlake.maintenance.reshredding.drift import Drift, drift
from variantlake.spark.lake.loads import LakeLoads
from variantlake.spark.query.places import Location

if TYPE_CHECKING:
    from variantlake.ingest.load import LoadProgress
    from variantlake.maintenance.clustering.cluster import ClusterResult
    from variantlake.maintenance.reshredding.reshred import ReshredResult
    from variantlake.planning.expressions import Condition


class LakeLayouts(LakeLoads):
    """The part of `Lake` that looks after shredding and order; no row changes."""

    def drift(self, table: Location, column: str | None = None) -> Drift:
        """As `Table.drift`: footers and a sample are read on the driver."""
        return drift(self._tables.open(self._written_to(table)).snapshot, column)

    def cluster(
        self,
        table: Location,
        where: str | Condition | None = None,
        *,
        budget_bytes: int | None = None,
        target_file_bytes: int = 128 << 20,
        dry_run: bool = False,
        digest: bool = True,
        progress: Callable[[LoadProgress], None] | None = None,
    ) -> ClusterResult:
        """Order rows across files by the paths that the table is clustered by; no row changes.

        The driver plans and commits, and Spark's executors rewrite the files: a task a group of
        files that overlap. `table` is its name, path or URL, as for `read`; else as
        `Table.cluster`.
        """
        # Loads the kernels, which queries do without.
        from variantlake.maintenance.clustering.cluster import ClusterOptions, cluster
        from variantlake.spark.maintenance.optimize import rewrite_runner

        snapshot = self._tables.open(self._written_to(table)).snapshot
        return cluster(
            snapshot,
            rewrite_runner(self._spark, snapshot.store.uri),
            ClusterOptions(
                None if where is None else str(where), budget_bytes, target_file_bytes, digest
            ),
            dry_run=dry_run,
            progress=progress,
        )

    def reshred(
        self,
        table: Location,
        shredding: str | Mapping[str, str] | None = None,
        where: str | Condition | None = None,
        *,
        unshred: bool = False,
        dry_run: bool = False,
        digest: bool = True,
        progress: Callable[[LoadProgress], None] | None = None,
    ) -> ReshredResult:
        """Shred a table's VARIANT columns anew, or with `unshred` not at all; no row changes.

        The driver plans and commits, and Spark's executors rewrite the files, one a task. `table`
        is its name, path or URL, as for `read`; else as `Table.reshred` and `Table.unshred`.
        """
        from variantlake.maintenance.reshredding.reshred import ReshredOptions, reshred
        from variantlake.spark.maintenance.optimize import rewrite_runner

        snapshot = self._tables.open(self._written_to(table)).snapshot
        condition = None if where is None else str(where)
        return reshred(
            snapshot,
            rewrite_runner(self._spark, snapshot.store.uri),
            ReshredOptions(shredding, condition, unshred, digest),
            dry_run=dry_run,
            progress=progress,
        )
