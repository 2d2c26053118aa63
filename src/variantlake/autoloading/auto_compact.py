"""Compact small files of the table after a batch, once there are many of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from variantlake.delta.log.files.logical_files import adds_of
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import VariantLakeError
from variantlake.jobs.tasks import Runner
from variantlake.logs import logger
from variantlake.maintenance.optimize import optimize
from variantlake.maintenance.plan_compaction import CompactionOptions

log = logger("autoload")

PROPERTY = "delta.autoOptimize.autoCompact"
"""The table property that turns it on if the caller does not say."""

MIN_FILES = 50
"""The number of small files in a partition that starts a compaction, as in Delta Spark."""

SMALL_BYTES = 16 << 20
"""Smaller files are small."""

TARGET_BYTES = 128 << 20
"""The size of compacted files, about."""

MAX_DELETED_SHARE = 1.0
"""No share of deleted rows alone makes a file worth rewriting; `optimize` does that."""


def is_wanted(properties: Mapping[str, str], option: bool | None) -> bool:
    """Whether to compact small files: by the option, else by the table's property."""
    return properties.get(PROPERTY, "").lower() == "true" if option is None else option


def compact_small_files(snapshot: Snapshot, run: Runner) -> None:
    """Compact the table's small files if a partition has many; only log a failure."""
    small = snapshot.files.filter(
        pc.less(snapshot.files["size"], pa.scalar(SMALL_BYTES, pa.int64()))
    )
    if small.num_rows < MIN_FILES:
        return
    counts = Counter(
        tuple(sorted(add.partition_values.items())) for add in adds_of(small, texts=False)
    )
    if max(counts.values()) < MIN_FILES:
        return
    options = CompactionOptions(TARGET_BYTES, MAX_DELETED_SHARE)
    try:
        result = optimize(snapshot, run, options=options)
    except VariantLakeError as error:
        log.warning("small files were not joined: %s", error.sentence())
    else:
        log.info("joined small files %d, new files %d", result.files_read, result.files_written)
