"""Reports each batch of a stream, since Spark's progress has no place for our figures.

The report is a line in the log, and figures in Prometheus's text format. Another process may have
committed the batch before, so the totals continue from those in the metrics file.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path

from variantlake.errors import StoreFailed
from variantlake.ingest.commit_load import LoadResult
from variantlake.telemetry.prometheus import Figure, label_key, read_figures, write_figures
from variantlake.writing.stream_batch import StreamBatch

_LOG = logging.getLogger("variantlake.streaming")
PREFIX = "variantlake_stream_"
COUNTERS = {
    "batches_total": "Commits.",
    "repeated_batches_total": "Batches that came again, although the table had them.",
    "rows_total": "Rows written.",
    "bad_rows_total": "Rows left out, or with NULL for a bad document.",
    "written_bytes_total": "Bytes of the table's new files.",
    "written_files_total": "The table's new files.",
    "write_seconds_total": "Seconds of commits; with lake.write_batch those of whole batches.",
}
GAUGES = {
    "table_version": "Version of the last batch.",
    "last_batch": "Number of the last batch.",
    "last_batch_timestamp_seconds": "When the last batch was committed.",
}


def tell(
    table: str,
    batch: StreamBatch,
    done: LoadResult,
    seconds: float,
    metrics_file: str | os.PathLike[str] | None,
) -> None:
    """Log a line for a batch, at level INFO, and add its figures to the metrics file, if any."""
    if metrics_file:
        _write_figures(Path(metrics_file), table, batch, done, seconds)
    if done.already_loaded:
        _LOG.info(
            "%s: version %d has batch %d of %s already",
            table,
            done.version,
            batch.number,
            batch.query,
        )
        return
    _LOG.info(
        "%s: batch %d of %s is version %d: rows %d, bad rows %d, bytes %d, files %d, seconds %.3f",
        table,
        batch.number,
        batch.query,
        done.version,
        done.rows_written,
        done.rows_bad,
        done.bytes_written,
        done.files_written,
        seconds,
    )


def _write_figures(
    file: Path, table: str, batch: StreamBatch, done: LoadResult, seconds: float
) -> None:
    """Add a batch to the figures in the file.

    The batch is already in the table, so a failure here is only logged.
    """
    labels = {"query": batch.query, "table": table}
    again = done.already_loaded
    added = {
        "batches_total": not again,
        "repeated_batches_total": again,
        "rows_total": done.rows_written,
        "bad_rows_total": done.rows_bad,
        "written_bytes_total": done.bytes_written,
        "written_files_total": done.files_written,
        "write_seconds_total": 0.0 if again else seconds,
    }
    try:
        before = _totals(file, labels)
        totals = {name: before[name] + added[name] for name in COUNTERS}
        last = {
            "table_version": done.version,
            "last_batch": batch.number,
            "last_batch_timestamp_seconds": time.time(),
        }
        write_figures(file, _figures(labels, totals | last))
    except (OSError, StoreFailed) as error:
        _LOG.warning("%s: no figures of batch %d: %s", table, batch.number, error)


def _figures(labels: Mapping[str, str], values: Mapping[str, float]) -> list[Figure]:
    counters = [
        Figure(PREFIX + name, "counter", meaning, [(labels, values[name])])
        for name, meaning in COUNTERS.items()
    ]
    return counters + [
        Figure(PREFIX + name, "gauge", meaning, [(labels, values[name])])
        for name, meaning in GAUGES.items()
    ]


def _totals(file: Path, labels: Mapping[str, str]) -> dict[str, float]:
    """Return the totals in the file for this query and table; zeros if it has none."""
    known, key = read_figures(file), label_key(labels)
    return {name: known.get((PREFIX + name, key), 0.0) for name in COUNTERS}
