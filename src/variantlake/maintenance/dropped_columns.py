"""Which files still hold columns, or fields of structs, that the table no longer has."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.row_tracking import ROW_COMMIT_VERSION, ROW_ID
from variantlake.delta.schema.column_mapping import has_others
from variantlake.delta.schema.table_schema import StructType
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.stats.fact_columns import Bools, Int64s
from variantlake.planning.files import ScanFile
from variantlake.planning.log_files import LogFiles

_THREADS = 16


class DroppedColumns:
    """Asks the footers of files, each of them once for one schema of the table."""

    def __init__(self) -> None:
        self._schema = StructType(())
        self._answers: dict[str, bool] = {}

    def of(self, snapshot: Snapshot, files: LogFiles, rows: Int64s) -> Bools:
        """For each file of the version whether it is one of these rows and holds such a column.

        Raises MalformedFile, MissingSource for a footer that cannot be read.
        """
        if snapshot.schema != self._schema:
            self._schema, self._answers = snapshot.schema, {}
        new = [file for file in files.files(rows) if file.path not in self._answers]
        if new:
            own = {snapshot.properties.get(key) for key in (ROW_ID, ROW_COMMIT_VERSION)}
            with ThreadPoolExecutor(min(_THREADS, len(new))) as pool:
                found = pool.map(lambda file: _holds_others(snapshot.schema, file, own), new)
                self._answers.update(zip((file.path for file in new), found, strict=True))
        held = np.zeros(snapshot.files.num_rows, bool)
        held[rows] = [self._answers[file.path] for file in files.files(rows)]
        return held


def _holds_others(schema: StructType, file: ScanFile, own: set[str | None]) -> bool:
    """Whether a file has columns besides the table's and `own`, in which rows keep their ids."""
    nodes = read_footer(file.path).schema.children
    return has_others(schema, [node for node in nodes if node.name not in own])
