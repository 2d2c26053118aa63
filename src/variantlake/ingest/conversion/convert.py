"""Convert Parquet files into a Delta table: plan here, run in tasks, and commit here once.

Files in the published layout stay as they are: they are added in place if they are below the
table's root, else copied byte for byte. Other files are rewritten and their Variants shredded:
columns of Spark's older layout, Variants that are not marked, JSON text. See `plan`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa

from variantlake.batches import packed
from variantlake.delta.actions.commit_properties import CommitProperties, takes_commit_properties
from variantlake.errors import MalformedFile
from variantlake.ingest.commit_load import commit_load
from variantlake.ingest.conversion.folders import convert_in_place
from variantlake.ingest.conversion.plan import (
    Action,
    Step,
    find_sources,
    open_target,
    plan_steps,
    read_source,
)
from variantlake.ingest.conversion.request import Request
from variantlake.ingest.conversion.result import ConvertResult
from variantlake.ingest.conversion.shredding import with_shredding
from variantlake.ingest.conversion.tasks import ConvertTask, check_old_times, check_timestamps
from variantlake.ingest.sources.sources import SourceSpec, specs
from variantlake.jobs.progress import watcher
from variantlake.jobs.tasks import Runner, collect
from variantlake.jobs.threads import run_in_threads
from variantlake.progress import OnProgress
from variantlake.shredding.ddl import format_ddl
from variantlake.storage.options import reach_with
from variantlake.storage.store import location_text
from variantlake.writing.files import new_load_id
from variantlake.writing.options.load_options import LoadOptions

GROUP_BYTES = 128 << 20
"""About the bytes of files that one task converts."""

_READERS = 8


@takes_commit_properties
def convert(
    table: str | os.PathLike[str],
    sources: SourceSpec | Iterable[SourceSpec],
    *,
    json_columns: Collection[str] = (),
    variant_columns: Collection[str] = (),
    shredding: str | Mapping[str, str] | None = None,
    properties: Mapping[str, str] | None = None,
    partition_by: str | Sequence[str] | None = None,
    rewrite: bool = False,
    truncate_timestamps: bool = False,
    dry_run: bool = False,
    skip_empty: bool = True,
    progress: OnProgress | None = None,
    commit_properties: CommitProperties = None,
    storage_options: Mapping[str, str] | None = None,
) -> ConvertResult:
    """Convert Parquet files into a Delta table, in one commit, in this process.

    Args:
        table: The table's location; a missing table is created with the files' columns. A folder
            that holds the files becomes a table in place.
        sources: Files, globs or folders of Parquet files, on a disk or in an object store.
        json_columns: Columns of JSON text that become Variants.
        variant_columns: Groups to read as Variants although neither a mark nor their members show
            it.
        shredding: DDL for the Variants of rewritten files, for all columns or by column. None means
            the table's schema, else that of the first shredded file, else one inferred from the
            first rows.
        properties: Table properties for a table that the conversion creates.
        partition_by: Columns whose values are in the names of folders, `"day DATE"` for
            `day=2026-01-31`, one or several, in the order of the folders. The folder of the files
            becomes a partitioned table in place, and no file is rewritten.
        rewrite: Also rewrite files that could be added as they are.
        truncate_timestamps: Truncate timestamps to microseconds, the unit of tables; else further
            digits are an error, which a dry run finds too.
        dry_run: Only return the action for each file.
        skip_empty: Skip and count files of zero bytes among others; else refuse them.
        progress: Called a few times a second while files are converted.
        commit_properties: As for `Table.append`.
        storage_options: Options to access the buckets of table and files, as for `Table.open`.

    Raises:
        MissingSource, MalformedFile, MalformedVariant, InvalidJson: A file that is missing or bad,
            with file, row and path. Nothing is committed and no file is left.
        InvalidSchema: Columns that the table does not have or cannot hold.
        InvalidValue: A folder that is a Delta table.
        NotADeltaTable: The location holds other files and no log.
        UnsupportedFeature: A partitioned table, Variants inside other columns, or a feature that we
            do not write.
        CommitConflict: Another writer changed the table in a way that contradicts the conversion.
    """
    files = specs(sources)
    reach_with([table, *files], storage_options)
    request = Request.of(
        json_columns=json_columns,
        variant_columns=variant_columns,
        shredding=shredding,
        properties=properties,
        partition_by=partition_by,
        rewrite=rewrite,
        truncate_timestamps=truncate_timestamps,
        dry_run=dry_run,
        skip_empty=skip_empty,
    )
    return run_convert(
        files,
        location_text(table),
        run_in_threads,
        request,
        progress=progress,
        parallelism=pa.cpu_count(),
    )


def run_convert(
    sources: SourceSpec | Iterable[SourceSpec],
    table: str,
    run: Runner,
    request: Request,
    *,
    progress: OnProgress | None,
    parallelism: int,
) -> ConvertResult:
    """Convert with this runner of tasks; see `convert`."""
    if request.partition_by:
        return convert_in_place(specs(sources), table, request)
    started = time.perf_counter()
    named = find_sources(sources)
    given = [source for source in named if source.size]
    empty = [source for source in named if not source.size]
    if empty and not (given and request.skip_empty):
        raise MalformedFile(
            "the file is empty",
            file=empty[0].path,
            hint="skip_empty=True leaves such files out, and counts them" if given else "",
            cli_hint="--skip-empty leaves such files out, and counts them" if given else "",
        )
    # Footers are small reads that wait for a store, so threads help.
    with ThreadPoolExecutor(_READERS) as pool:
        files = list(
            pool.map(
                lambda source: read_source(source, request.json_columns, request.variant_columns),
                given,
            )
        )
    target = open_target(table, files, request.properties)
    steps = plan_steps(files, target, rewrite=request.rewrite)
    # The tasks would find these errors in the rows; a dry run has no tasks.
    if request.dry_run:
        check_timestamps(steps, request)
        check_old_times(steps, request)
        rows = sum(step.rows for step in steps)
        return ConvertResult(dry_run=True, rows_written=rows, steps=steps, files_empty=len(empty))
    target, schemas = with_shredding(target, files, steps, request)
    ddl = {field.name: format_ddl(schema) for field, schema in schemas}
    work = [step for step in steps if step.action is not Action.SKIP]
    if not work and target.snapshot is not None:
        return ConvertResult(version=target.snapshot.version, steps=steps, files_empty=len(empty))
    options = LoadOptions(truncate_timestamps=request.truncate_timestamps)
    # Tasks get the decided schemas, so that they need not decide again.
    task = ConvertTask(
        files=target.file_plan(new_load_id(), options),
        request=replace(request, shredding=None),
        schemas={field.physical_name: schema for field, schema in schemas},
        groups=_groups(work, parallelism),
    )
    watch = watcher(task, target.store, progress)
    results = collect(task.files, target, lambda: run(task, watch))
    done = commit_load(
        target,
        task.files,
        results,
        options,
        started,
        empty_sources=len(empty),
        takes_id=False,
    )
    return ConvertResult.of(done, steps, ddl)


def _groups(steps: Sequence[Step], parallelism: int) -> tuple[tuple[Step, ...], ...]:
    """Group the files by task, in order."""
    total = sum(step.size for step in steps)
    limit = min(GROUP_BYTES, total // max(parallelism, 1) + 1)
    return tuple(packed(steps, lambda step: step.size, limit))
