"""Metrics of a running autoload in Prometheus text format, for the textfile collector."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from variantlake.autoloading.batch import BatchReport
from variantlake.telemetry.prometheus import Figure, write_figures

PREFIX = "variantlake_autoload_"
_FILES = f"{PREFIX}files_total"

COUNTERS = {
    "batches_total": "Commits.",
    "rows_total": "Rows loaded.",
    "bad_rows_total": "Documents left out or NULL.",
    "read_bytes_total": "Bytes of the loaded files, as stored.",
    "written_bytes_total": "Bytes of the table's new files.",
    "batch_seconds_total": "Seconds spent on batches.",
    "commit_seconds_total": "Seconds of these spent on commits.",
    "rounds_total": "Listings of the source.",
    "round_errors_total": "Rounds that an error ended.",
}
GAUGES = {
    "table_version": "Version of the last commit.",
    "last_batch_timestamp_seconds": "When the last batch was committed.",
    "last_round_timestamp_seconds": "When the source was last listed.",
    "lag_seconds": "From the last change of the last batch's newest file to its commit.",
    "waiting_files": "Files that may still be written.",
    "changed_files": "Files written again after they were loaded, and not loaded again.",
}
_STATES = ("loaded", "empty", "failed", "skipped")


@dataclass(slots=True)
class Metrics:
    """The metrics of one process, and their file, which is replaced atomically."""

    file: Path
    name: str
    table: str
    values: dict[str, float] = field(default_factory=dict)
    states: dict[str, int] = field(default_factory=dict)

    def batch(self, report: BatchReport) -> None:
        """Count one more batch."""
        for state, count in zip(
            _STATES,
            (report.files_read, report.files_empty, report.files_failed, report.files_skipped),
            strict=True,
        ):
            self.states[state] = self.states.get(state, 0) + count
        self._add("batches_total", 1)
        self._add("rows_total", report.rows_written)
        self._add("bad_rows_total", report.rows_bad)
        self._add("read_bytes_total", report.bytes_read)
        self._add("written_bytes_total", report.bytes_written)
        self._add("batch_seconds_total", report.seconds)
        self._add("commit_seconds_total", report.commit_seconds)
        self.values["table_version"] = report.version
        self.values["last_batch_timestamp_seconds"] = time.time()
        self.values["lag_seconds"] = report.lag
        self.write()

    def round(self, waiting: int, changed: int, *, failed: bool) -> None:
        """Count one more listing of the source."""
        self._add("rounds_total", 1)
        self._add("round_errors_total", int(failed))
        self.values["last_round_timestamp_seconds"] = time.time()
        self.values["waiting_files"] = waiting
        self.values["changed_files"] = changed
        self.write()

    def _add(self, name: str, count: float) -> None:
        self.values[name] = self.values.get(name, 0) + count

    def figures(self) -> list[Figure]:
        """All metrics, as the file has them."""
        labels = {"name": self.name, "table": self.table}
        states = [(labels | {"state": state}, self.states.get(state, 0)) for state in _STATES]
        figures = [Figure(_FILES, "counter", "Files by what became of them.", states)]
        for name, meaning in COUNTERS.items():
            values = [(labels, self.values.get(name, 0.0))]
            figures.append(Figure(PREFIX + name, "counter", meaning, values))
        for name, meaning in GAUGES.items():
            if name in self.values:
                values = [(labels, self.values[name])]
                figures.append(Figure(PREFIX + name, "gauge", meaning, values))
        return figures

    def write(self) -> None:
        """Write the metrics to the file. Raises StoreFailed and MissingDependency."""
        write_figures(self.file, self.figures())
