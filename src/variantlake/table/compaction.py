"""Rewriting files of a table without changing a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from variantlake.ingest.target.files import TARGET_FILE_BYTES
from variantlake.table.layouts import TableLayouts

if TYPE_CHECKING:
    from variantlake.ingest.load import LoadProgress
    from variantlake.maintenance.optimize import OptimizeResult
    from variantlake.planning.expressions import Condition


class TableCompaction(TableLayouts):
    """The part of `Table` that joins files and rewrites them; no row changes."""

    __slots__ = ()

    def optimize(
        self,
        where: str | Condition | None = None,
        *,
        target_file_bytes: int = TARGET_FILE_BYTES,
        max_deleted_share: float = 0.05,
        dry_run: bool = False,
        digest: bool = True,
        progress: Callable[[LoadProgress], None] | None = None,
    ) -> OptimizeResult:
        """Join small files, and rewrite files of which many rows are deleted; no row changes.

        Readers of older versions find their files as before. Appends of others at the same time
        never contradict it. Of files that another writer removed or deleted rows of meanwhile, the
        rest is done again.

        Args:
            where: Only files that may hold a match: a condition over partition columns and paths.
            target_file_bytes: Files below three quarters of it are joined up to about this size.
            max_deleted_share: The share of deleted rows above which a file is rewritten.
            dry_run: Say what would be done, and do nothing.
            digest: Compare the rows that are read and written by their digest; a difference raises
                before anything is committed.
            progress: Called a few times a second while files are rewritten.

        Raises:
            UnsupportedFeature: The table needs a feature that we do not write, by name.
            InvalidQuery, InvalidPath: A condition that does not parse, or names what is not there.
            MalformedFile, MissingSource: A file that cannot be read, with file and row.
            CommitConflict: Others changed the same files again and again.
        """
        # Loads the kernels, which a table does without.
        from variantlake.ingest.local_run import run_in_threads
        from variantlake.maintenance.optimize import optimize
        from variantlake.maintenance.plan_compaction import CompactionOptions

        return optimize(
            self._newest(),
            run_in_threads,
            where=None if where is None else str(where),
            options=CompactionOptions(target_file_bytes, max_deleted_share),
            dry_run=dry_run,
            digest=digest,
            progress=progress,
        )
