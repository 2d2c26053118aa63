"""How the files of a table are laid out: what is shredded, and in which order rows lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from variantlake.maintenance.reshredding.drift import Drift, drift
from variantlake.table.alterations import TableAlterations
from variantlake.writing.files import CLUSTERED_FILE_BYTES

Progress = Callable[[int, int], None]


if TYPE_CHECKING:
    from variantlake.expressions.from_python import Condition
    from variantlake.jobs.progress import LoadProgress
    from variantlake.kernels.digest.rows import Digest
    from variantlake.maintenance.clustering.cluster import ClusterResult
    from variantlake.maintenance.compare_versions import VersionComparison
    from variantlake.maintenance.reshredding.reshred import ReshredResult


class TableLayouts(TableAlterations):
    """The part of `Table` that looks after shredding and order; no row changes."""

    __slots__ = ()

    def drift(self, column: str | None = None, *, progress: Progress | None = None) -> Drift:
        """How much is in residuals, by version, and which paths would be worth a column.

        Reads the footers of at most a few hundred files and a sample of rows; writes nothing.

        Args:
            column: One VARIANT column; all of them when None.
            progress: Called with the files that are read and all that will be.

        Raises:
            InvalidSchema: There is no such VARIANT column.
            MalformedFile, MissingSource: A file that cannot be read, by name.
        """
        return drift(self.snapshot, column, progress=progress)

    def cluster(
        self,
        where: str | Condition | None = None,
        *,
        budget_bytes: int | None = None,
        target_file_bytes: int = CLUSTERED_FILE_BYTES,
        dry_run: bool = False,
        digest: bool = True,
        progress: Callable[[LoadProgress], None] | None = None,
    ) -> ClusterResult:
        """Order rows across files by the paths that the table is clustered by; no row changes.

        A run rewrites the files that overlap most by the bounds in the log into files that do not
        overlap. It stops at the budget, or when a rewrite would save queries less than a fifth of
        what they read. So a second run finds nothing to do.

        Args:
            where: Only files that may hold a match: a condition over partition columns and paths.
            budget_bytes: Bytes of files that may be rewritten; None is twice the bytes that have
                come since the last run.
            target_file_bytes: The size of the new files, about.
            dry_run: Say what would be done, and do nothing.
            digest: Compare the rows that are read and written by their digest; a difference raises
                before anything is committed.
            progress: Called a few times a second while files are rewritten.

        Raises:
            InvalidValue: Nothing says what the table is clustered by; see `set_clustering`.
            InvalidSchema: A path that it is clustered by is not a typed column.
            UnsupportedFeature: The table needs a feature that we do not write, by name.
            InvalidQuery, InvalidPath: A condition that does not parse, or names what is not there.
            MalformedFile, MissingSource: A file that cannot be read, with file and row.
            CommitConflict: Others changed the same files again and again.
        """
        # Loads the kernels, which a table does without.
        from variantlake.jobs.threads import run_in_threads
        from variantlake.maintenance.clustering.cluster import ClusterOptions, cluster

        options = ClusterOptions(
            None if where is None else str(where), budget_bytes, target_file_bytes, digest
        )
        return cluster(self._newest(), run_in_threads, options, dry_run=dry_run, progress=progress)

    def reshred(
        self,
        shredding: str | Mapping[str, str] | None = None,
        where: str | Condition | None = None,
        *,
        dry_run: bool = False,
        digest: bool = True,
        progress: Callable[[LoadProgress], None] | None = None,
    ) -> ReshredResult:
        """Change which paths are typed columns, and rewrite the files in which a value moves.

        The table's schema changes first, in a separate commit. A file is rewritten if a value in it
        moves into a column or out of one; all others stay as they are. No row changes.

        Args:
            shredding: DDL, or DDL by VARIANT column; None learns it from rows all over the table.
            where: Only files that may hold a match: a condition over partition columns and paths.
            dry_run: Say what would be done, and do nothing.
            digest: Compare the rows that are read and written by their digest; a difference raises
                before anything is committed.
            progress: Called a few times a second while files are rewritten.

        Raises:
            InvalidSchema: DDL that does not parse or must not be written, a column that is no
                VARIANT column, or a schema without a path that the table is clustered by.
            UnsupportedFeature: The table forbids shredding, or needs a feature that we do not
                write.
            InvalidQuery, InvalidPath: A condition that does not parse, or names what is not there.
            MalformedFile, MissingSource: A file that cannot be read, with file and row.
            CommitConflict: Others changed the same files again and again.
        """
        # Loads the kernels, which a table does without.
        from variantlake.jobs.threads import run_in_threads
        from variantlake.maintenance.reshredding.reshred import ReshredOptions, reshred

        condition = None if where is None else str(where)
        options = ReshredOptions(shredding, condition, digest=digest)
        return reshred(self._newest(), run_in_threads, options, dry_run=dry_run, progress=progress)

    def unshred(
        self,
        *,
        dry_run: bool = False,
        digest: bool = True,
        progress: Callable[[LoadProgress], None] | None = None,
    ) -> ReshredResult:
        """Store all Variants whole, for readers without shredding; no row changes.

        This turns shredding off (`delta.enableVariantShredding`), so no path of a Variant can order
        rows any more. `drop_feature` removes the feature itself.

        Raises as `reshred`.
        """
        from variantlake.jobs.threads import run_in_threads
        from variantlake.maintenance.reshredding.reshred import ReshredOptions, reshred

        options = ReshredOptions(unshred=True, digest=digest)
        return reshred(self._newest(), run_in_threads, options, dry_run=dry_run, progress=progress)

    def drop_feature(
        self, name: str, *, progress: Callable[[LoadProgress], None] | None = None
    ) -> int:
        """Remove `variantShredding` from the table's protocol, for readers that lack it.

        The table is unshredded first, see `unshred`. Readers without the feature then read the
        newest version and all later ones; older versions still need it. Their checkpoints are kept
        by the feature `checkpointProtection`, which comes instead and binds writers alone. Other
        writers must wait: an append at the same time makes it fail.

        Args:
            name: `variantShredding` or `variantShredding-preview`, as the table has it.
            progress: Called a few times a second while files are rewritten.

        Raises:
            InvalidValue: The table does not have the feature.
            UnsupportedFeature: Any other feature; Delta Spark may drop it.
            CommitConflict: Another writer changed the table in the meantime; repeat.
            MalformedFile, MissingSource: A file that cannot be read, with file and row.
        """
        from variantlake.jobs.threads import run_in_threads
        from variantlake.maintenance.reshredding.drop_feature import drop_feature

        return drop_feature(self._newest(), name, run_in_threads, progress=progress)

    def digest(
        self,
        where: str | Condition | None = None,
        *,
        progress: Callable[[int], object] | None = None,
    ) -> Digest:
        """A hash of the table's rows that does not depend on their order, files or layout.

        Two tables whose columns have the same names (physical ones where columns are mapped) and
        whose rows have the same values have the same digest: `digest.hex`, 32 hexadecimal digits,
        and `digest.rows`. Numbers in Variants count by value, so that 7 and 7.00 are one; all other
        types are told apart. It finds accidents, and resists nobody who looks for collisions.

        Args:
            where: Only rows that fulfil this condition, as for `scan`.
            progress: Called now and then with the rows that were read since the last call.

        Raises:
            MalformedFile, MalformedVariant: A file that breaks a specification, with its row.
            MissingSource: A file that is not there.
            InvalidQuery, UnsupportedFeature: As `scan`.
        """
        from variantlake.maintenance.compare_versions import digest_rows

        return digest_rows(self.snapshot, None if where is None else str(where), progress)

    def check_rewrite(
        self,
        from_version: int | None = None,
        to_version: int | None = None,
        *,
        progress: Callable[[int], object] | None = None,
    ) -> VersionComparison:
        """Whether two versions have the same rows, each as often; names those that differ.

        Only files that one of the two has are read. Without versions, the last commit that rewrote
        files without changing rows (`OPTIMIZE` and the like, by whatever engine) is compared with
        the version before it. With `from_version` alone, that one with the version of this handle;
        with `to_version` alone, that one with the version before it.

        Returns:
            `equal`, the digests `before` and `after` of the rows in these files, and in
            `differences` up to ten rows (`version`, `file`, `row`) that have no partner.

        Raises:
            InvalidQuery: No commit in the log only rewrote files.
            InvalidValue: A first version after the second one.
            MissingSource: There is no such version, or vacuum has removed a file of it.
            MalformedFile, MalformedVariant: As `digest`.
        """
        from variantlake.maintenance.compare_versions import check_rewrite

        return check_rewrite(self.snapshot, from_version, to_version, progress)
