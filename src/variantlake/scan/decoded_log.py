"""A cache of what scans of a table have decoded of its log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from variantlake.delta.log.snapshot import Snapshot

if TYPE_CHECKING:
    from variantlake.expressions.tree import Predicate, Ref
    from variantlake.planning.log_files import LogFiles
    from variantlake.scan.files.file_layouts import FileLayouts
    from variantlake.scan.footers import Footers


class DecodedLog:
    """Caches the files of one snapshot and the footers of foreign files; a copy starts empty."""

    def __init__(self) -> None:
        self._last: tuple[Snapshot, LogFiles] | None = None

    # These import modules that a table that is only opened does not need.
    @cached_property
    def _footers(self) -> Footers:
        from variantlake.scan.footers import Footers

        return Footers()

    @cached_property
    def layouts(self) -> FileLayouts:
        """The layouts of the files that queries have read."""
        from variantlake.scan.files.file_layouts import FileLayouts

        return FileLayouts()

    def files(
        self,
        snapshot: Snapshot,
        requested: Iterable[Ref],
        predicate: Predicate | None = None,
        partition_types: Mapping[str, str] | None = None,
    ) -> LogFiles:
        """Return the snapshot's files; reads the footers of those whose layout the log lacks.

        If there are too many files to hold in memory, returns only those that the predicate keeps.
        """
        from variantlake.planning.kept_files import without_skipped
        from variantlake.planning.log_files import LogFiles

        known = self._last
        if known is None or known[0] is not snapshot:
            older = None if known is None else known[1]
            known = self._last = (snapshot, LogFiles(snapshot, older))
        files = without_skipped(known[1], predicate, partition_types)
        return self._footers.with_facts(snapshot, files, requested)

    def __reduce__(self) -> tuple[type[DecodedLog], tuple[()]]:
        return DecodedLog, ()
