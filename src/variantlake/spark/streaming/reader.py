"""Adapts the source to PySpark, with limits of batches if this PySpark has them (from 4.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql.types import StructType

from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import UnsupportedFeature
from variantlake.spark.streaming.source import TableStream
from variantlake.spark.streaming.source_options import StreamOptions

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        ReadMaxFiles,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # before PySpark 4.2
    HAS_LIMITS = False
else:
    HAS_LIMITS = True

    class _LimitedStream(TableStream, SupportsTriggerAvailableNow):
        """The source for a PySpark that passes the start of a batch and the limit that applies."""

        def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - PySpark's name
            """Return the end of the batch that begins at `start`."""
            return self.next_offset(start, limited=not isinstance(limit, ReadAllAvailable))

        def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
            """Return one of the options' limits: Spark has no limit of both, and passes it back."""
            if self.options.max_files is not None:
                return ReadMaxFiles(self.options.max_files)
            if self.options.max_bytes is not None:
                return ReadMaxBytes(self.options.max_bytes)
            return ReadAllAvailable()

        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
            """Read no version that is committed from now on."""
            self.stop_at_newest()


class _PlainStream(TableStream):
    """The source for a PySpark that passes no start: a batch takes all new versions."""

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override] # noqa: N802 - before PySpark 4.2
        """Return the offset after the newest version."""
        return self.newest_offset()


def stream_of(
    options: StreamOptions,
    opened: Callable[[], Snapshot],
    schema: StructType,
    stores: Mapping[str, str],
) -> TableStream:
    """Return the reader for this PySpark, as `TableStream`.

    Raises UnsupportedFeature if the options set a limit that this PySpark cannot keep.
    """
    if HAS_LIMITS:
        return _LimitedStream(options, opened, schema, stores)
    if options.asks_limit:
        raise UnsupportedFeature(
            "PySpark before 4.2 gives a data source in Python no limit of a batch",
            hint="leave out maxFilesPerTrigger and maxBytesPerTrigger, or use PySpark 4.2",
        )
    return _PlainStream(options, opened, schema, stores)
