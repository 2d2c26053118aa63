"""Digests of a table's rows: whether two versions hold the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from variantlake.delta.log.identity import check_before_read
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.log.time_travel import check_version
from variantlake.planning.expressions import Condition
from variantlake.scan.table_scan import Scan
from variantlake.sql.select import QueryText
from variantlake.table.alterations import TableAlterations

if TYPE_CHECKING:
    # The kernels, which a table does without.
    from variantlake.kernels.digest.rows import Digest
    from variantlake.maintenance.compare_versions import VersionComparison


class TableDigests(TableAlterations):
    """The part of `Table` that compares rows by their digests."""

    __slots__ = ()

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
        from variantlake.kernels.digest.rows import Digest
        from variantlake.maintenance.digest import DigestFile, FileDigester, table_digest

        check_before_read(self.snapshot)
        if where is None:
            return table_digest(self.snapshot, progress)
        condition = QueryText(self.schema).condition(str(where))
        digester = FileDigester(self.snapshot)
        total = Digest()
        for found in Scan(self.snapshot, (), condition).places():
            file = DigestFile(found.file.path, found.file.vector, dict(found.file.partition))
            total += digester.digest(file, progress, places=found.places)
        return total

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
        from variantlake.maintenance.compare_versions import compare_versions, default_versions

        check_before_read(self.snapshot)
        check_version(from_version)
        check_version(to_version)
        history = self.snapshot.history() if from_version is None and to_version is None else []
        first, last = default_versions(history, from_version, to_version, self.version)
        return compare_versions(self._at(first), self._at(last), progress)

    def _at(self, version: int) -> Snapshot:
        if version == self.version:
            return self.snapshot
        known = self.snapshot
        return Snapshot.read(
            self.uri,
            version,
            store=known.store,
            absolute_paths=known.absolute_paths,
            applies=known.applies,
        )
