"""Join small files of the table after a batch, once there are many of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from variantlake.delta.log.logical_files import adds_of
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import VariantLakeError
from variantlake.jobs.tasks import Runner
from variantlake.logs import logger
from variantlake.maintenance.optimize import optimize
from variantlake.maintenance.plan_compaction import CompactionOptions

log = logger("autoload")

PROPERTY = "delta.autoOptimize.autoCompact"
"""The table property that asks for it if the caller says nothing."""

MIN_FILES = 50
"""Small files of one partition that are joined; Delta Spark has the same number."""

SMALL_BYTES = 16 << 20
"""Files below this are small."""

TARGET_BYTES = 128 << 20
"""Small files are joined up to about this size."""

MAX_DELETED_SHARE = 1.0
"""Files with deleted rows are left to `optimize`."""


def is_wanted(properties: Mapping[str, str], asked: bool | None) -> bool:
    """Whether small files are to be joined: as asked, else by the table's property."""
    return properties.get(PROPERTY, "").lower() == "true" if asked is None else asked


def compact_small_files(snapshot: Snapshot, run: Runner) -> None:
    """Join the table's small files if a partition has many; a failure is logged and that is all."""
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
        done = optimize(snapshot, run, options=options)
    except VariantLakeError as error:
        log.warning("small files were not joined: %s", error.sentence())
    else:
        log.info("joined small files %d, new files %d", done.files_read, done.files_written)
