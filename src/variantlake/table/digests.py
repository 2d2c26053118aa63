"""Digests of a table's rows: whether two versions hold the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from variantlake.table.alterations import TableAlterations

if TYPE_CHECKING:
    # The kernels, which a table does without.
    from variantlake.kernels.digest.rows import Digest
    from variantlake.maintenance.compare_versions import VersionComparison
    from variantlake.planning.expressions import Condition


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
