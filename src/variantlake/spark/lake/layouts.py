"""How the files of a table are laid out: what is shredded, and in which order rows lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from variantlake.maintenance.reshredding.drift import Drift, drift
from variantlake.spark.lake.streams import LakeStreams
from variantlake.spark.query.table_locations import Location
from variantlake.writing.files import CLUSTERED_FILE_BYTES

if TYPE_CHECKING:
    from variantlake.expressions.from_python import Condition
    from variantlake.jobs.progress import LoadProgress
    from variantlake.kernels.digest.rows import Digest
    from variantlake.maintenance.clustering.cluster import ClusterResult
    from variantlake.maintenance.compare_versions import VersionComparison
    from variantlake.maintenance.reshredding.reshred import ReshredOptions, ReshredResult

Progress = Callable[[int, int], None]


class LakeLayouts(LakeStreams):
    """The part of `Lake` that looks after shredding and order; no row changes."""

    def drift(
        self, table: Location, column: str | None = None, *, progress: Progress | None = None
    ) -> Drift:
        """How far a table's layout has drifted from its data; the driver reads files' footers.

        `table` is its name, path or URL, as for `read`; else as `Table.drift`.
        """
        snapshot = self._snapshot(table)
        return drift(snapshot, column, progress=progress)

    def cluster(
        self,
        table: Location,
        where: str | Condition | None = None,
        *,
        budget_bytes: int | None = None,
        target_file_bytes: int = CLUSTERED_FILE_BYTES,
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

        snapshot = self._snapshot(table)
        return cluster(
            snapshot,
            self._rewriter(snapshot),
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
        dry_run: bool = False,
        digest: bool = True,
        progress: Callable[[LoadProgress], None] | None = None,
    ) -> ReshredResult:
        """Shred a table's VARIANT columns anew, and the files that gain by it; no row changes.

        The driver plans and commits, and Spark's executors rewrite the files, one a task. `table`
        is its name, path or URL, as for `read`; else as `Table.reshred`.
        """
        from variantlake.maintenance.reshredding.reshred import ReshredOptions

        condition = None if where is None else str(where)
        options = ReshredOptions(shredding, condition, digest=digest)
        return self._reshred(table, options, dry_run=dry_run, progress=progress)

    def unshred(
        self,
        table: Location,
        *,
        dry_run: bool = False,
        digest: bool = True,
        progress: Callable[[LoadProgress], None] | None = None,
    ) -> ReshredResult:
        """Store all Variants whole, and forbid shredding; Spark's executors rewrite the files.

        `table` is its name, path or URL, as for `read`; else as `Table.unshred`.
        """
        from variantlake.maintenance.reshredding.reshred import ReshredOptions

        options = ReshredOptions(unshred=True, digest=digest)
        return self._reshred(table, options, dry_run=dry_run, progress=progress)

    def _reshred(
        self,
        table: Location,
        options: ReshredOptions,
        *,
        dry_run: bool,
        progress: Callable[[LoadProgress], None] | None,
    ) -> ReshredResult:
        from variantlake.maintenance.reshredding.reshred import reshred

        snapshot = self._snapshot(table)
        runner = self._rewriter(snapshot)
        return reshred(snapshot, runner, options, dry_run=dry_run, progress=progress)

    def drop_feature(
        self,
        table: Location,
        name: str,
        *,
        progress: Callable[[LoadProgress], None] | None = None,
    ) -> int:
        """Take `variantShredding` out of a table's protocol, for readers that lack it; the version.

        Spark's executors unshred the files first. `table` is its name, path or URL, as for `read`;
        else as `Table.drop_feature`.
        """
        from variantlake.maintenance.reshredding.drop_feature import drop_feature

        snapshot = self._snapshot(table)
        return drop_feature(snapshot, name, self._rewriter(snapshot), progress=progress)

    def digest(
        self,
        table: Location,
        where: str | Condition | None = None,
        *,
        progress: Callable[[int], object] | None = None,
    ) -> Digest:
        """A hash of a table's rows, whatever their order, files and layout; the driver reads.

        `table` is its name, path or URL, as for `read`; else as `Table.digest`.
        """
        from variantlake.maintenance.compare_versions import digest_rows

        snapshot = self._snapshot(table)
        return digest_rows(snapshot, None if where is None else str(where), progress)

    def check_rewrite(
        self,
        table: Location,
        from_version: int | None = None,
        to_version: int | None = None,
        *,
        progress: Callable[[int], object] | None = None,
    ) -> VersionComparison:
        """Whether two versions of a table have the same rows; names those that differ.

        The driver reads the files that one of the two has. `table` is its name, path or URL, as
        for `read`; else as `Table.check_rewrite`.
        """
        from variantlake.maintenance.compare_versions import check_rewrite

        snapshot = self._snapshot(table)
        return check_rewrite(snapshot, from_version, to_version, progress)
