"""How the files of a table are laid out: what is shredded, and in which order rows lie."""

from __future__ import annotations

from collections.abc import Callable

from variantlake.maintenance.reshredding.drift import Drift, drift
from variantlake.table.digests import TableDigests

Progress = Callable[[int, int], None]


class TableLayouts(TableDigests):
    """The part of `Table` that looks after shredding and order; no row changes."""

    __slots__ = ()

    def drift(self, column: str | None = None, *, progress: Progress | None = None) -> Drift:
        """How much lies in residuals, version by version, and which paths would be worth a column.

        Footers of at most some hundred files are read, and a sample of rows; nothing is written.

        Args:
            column: One VARIANT column; all of them when None.
            progress: Called with the files that are read and all that will be.

        Raises:
            InvalidSchema: There is no such VARIANT column.
            MalformedFile, MissingSource: A file that cannot be read, by name.
        """
        return drift(self.snapshot, column, progress=progress)
