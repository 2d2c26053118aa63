"""Run a load in threads of this process instead of Spark's executors."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Unpack

import pyarrow as pa

from variantlake.delta.log.snapshot import Snapshot
from variantlake.ingest.commit_load import LoadResult
from variantlake.ingest.encode.document_options import DocumentOptions, IngestKeywords
from variantlake.ingest.load import run_load
from variantlake.ingest.overwrite import Overwrite
from variantlake.ingest.sources.sources import Documents, SourceSpec
from variantlake.jobs.threads import run_in_threads
from variantlake.progress import OnProgress
from variantlake.storage.store import location_text
from variantlake.writing.staged_files import Staging


def ingest_here(
    sources: Documents | SourceSpec | Iterable[SourceSpec],
    table: str | os.PathLike[str],
    *,
    progress: OnProgress | None = None,
    overwrite: Overwrite | Staging | None = None,
    snapshot: Snapshot | None = None,
    **options: Unpack[IngestKeywords],
) -> LoadResult:
    """Load JSON documents without Spark; everything else as `spark.load.ingest`.

    `snapshot` is the table's, if the caller has it already.
    """
    return run_load(
        sources,
        location_text(table),
        run_in_threads,
        DocumentOptions.of(**options),
        progress=progress,
        overwrite=overwrite,
        snapshot=snapshot,
        parallelism=pa.cpu_count(),
    )
