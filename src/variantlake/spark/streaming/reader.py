"""The source as PySpark calls it, with limits of batches if this PySpark has them (from 4.2)."""

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
        """A source that is told where a batch begins and whether its limits count."""

        def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - PySpark's name
            """The end of the batch that begins at `start`."""
            return self.next_offset(start, limited=not isinstance(limit, ReadAllAvailable))

        def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
            """The options' limits; Spark only hands it back, and knows no limit of both kinds."""
            if self.options.max_files is not None:
                return ReadMaxFiles(self.options.max_files)
            if self.options.max_bytes is not None:
                return ReadMaxBytes(self.options.max_bytes)
            return ReadAllAvailable()

        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
            """Read no version that comes from now on."""
            self.stop_at_newest()


class _PlainStream(TableStream):
    """A source that is not told where a batch begins: it takes all that there is."""

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override] # noqa: N802 - before PySpark 4.2
        """Behind the newest version."""
        return self.newest_offset()


def stream_of(
    options: StreamOptions,
    opened: Callable[[], Snapshot],
    schema: StructType,
    stores: Mapping[str, str],
) -> TableStream:
    """The reader for this PySpark, as `TableStream`.

    Raises UnsupportedFeature if a limit is asked for that this PySpark cannot keep.
    """
    if HAS_LIMITS:
        return _LimitedStream(options, opened, schema, stores)
    if options.asks_limit:
        raise UnsupportedFeature(
            "PySpark before 4.2 gives a data source in Python no limit of a batch",
            hint="leave out maxFilesPerTrigger and maxBytesPerTrigger, or use PySpark 4.2",
        )
    return _PlainStream(options, opened, schema, stores)
