"""What is told of each batch of a stream: Spark's progress has no room for figures of ours."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from variantlake.ingest.commit_load import LoadResult
from variantlake.ingest.target.stream_batch import StreamBatch
from variantlake.spark.streaming.batch_metrics import write_figures

_LOG = logging.getLogger("variantlake.streaming")


def tell(
    table: str,
    batch: StreamBatch,
    done: LoadResult,
    seconds: float,
    metrics_file: str | os.PathLike[str] | None,
) -> None:
    """One line for a batch, at level INFO, and its figures in the metrics file, if there is one."""
    if metrics_file:
        write_figures(Path(metrics_file), table, batch, done, seconds)
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
        done.rows,
        done.bad_rows,
        done.bytes_written,
        done.files,
        seconds,
    )
