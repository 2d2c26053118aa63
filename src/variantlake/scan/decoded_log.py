"""What scans of a table have decoded of its log, kept for the next scan."""

from __future__ import annotations

from collections.abc import Iterable

from variantlake.delta.log.snapshot import Snapshot
from variantlake.expressions.tree import Ref
from variantlake.planning.log_files import LogFiles
from variantlake.scan.file_layouts import FileLayouts
from variantlake.scan.footers import Footers


class DecodedLog:
    """The files of one snapshot and what footers say of foreign ones; a copy begins empty.

    `layouts` are those of the files that queries have read.
    """

    def __init__(self) -> None:
        self._footers = Footers()
        self.layouts = FileLayouts()
        self._last: tuple[Snapshot, LogFiles] | None = None

    def files(self, snapshot: Snapshot, requested: Iterable[Ref]) -> LogFiles:
        """The files of the snapshot; of those whose layout the log lacks, footers are read."""
        known = self._last
        if known is None or known[0] is not snapshot:
            known = self._last = (snapshot, LogFiles(snapshot))
        return self._footers.with_facts(snapshot, known[1], requested)

    def __reduce__(self) -> tuple[type[DecodedLog], tuple[()]]:
        return DecodedLog, ()
