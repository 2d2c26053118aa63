"""What is told of each batch of a stream: Spark's progress has no room for figures of ours."""

from __future__ import annotations

import logging

from variantlake.ingest.commit_load import LoadResult
from variantlake.ingest.target.stream_batch import StreamBatch

_LOG = logging.getLogger("variantlake.streaming")


def log_batch(table: str, batch: StreamBatch, done: LoadResult, commit_seconds: float) -> None:
    """One line for a batch, at level INFO."""
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
        "%s: batch %d of %s is version %d: %d rows, %d bad, %d bytes in %d files, commit %.3f s",
        table,
        batch.number,
        batch.query,
        done.version,
        done.rows,
        done.bad_rows,
        done.bytes_written,
        done.files,
        commit_seconds,
    )
