"""Plan a load of JSON documents, have its tasks run, and commit their files.

The caller chooses the runner of the tasks: Spark's executors or threads of this process. This
module and `commit_load` define what a task does and which files belong to the load, and make sure
that the log has all of them or none.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from variantlake.batches import packed
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.table_schema import StructField, StructType, VariantType
from variantlake.errors import InvalidJson, InvalidSchema
from variantlake.ingest.commit_load import (
    LoadResult,
    check_unique,
    commit_load,
    find_committed_load,
    load_attributes,
)
from variantlake.ingest.encode.document_columns import DocumentColumns
from variantlake.ingest.encode.document_options import DocumentOptions
from variantlake.ingest.encode.document_rows import DocumentRows
from variantlake.ingest.encode.documents import sample_profile
from variantlake.ingest.learning.relearn import relearned
from variantlake.ingest.overwrite import Overwrite
from variantlake.ingest.sources.sources import (
    Documents,
    Source,
    SourceSpec,
    Split,
    split_sources,
)
from variantlake.jobs.progress import bytes_read, watcher
from variantlake.jobs.tasks import Runner, TaskResult, collect, run_task
from variantlake.jobs.write_rows import write_rows
from variantlake.progress import OnProgress
from variantlake.shredding.ddl import format_ddl, parse_ddl
from variantlake.shredding.inference.hints import with_hints
from variantlake.shredding.inference.infer import InferenceOptions, infer
from variantlake.shredding.schema import ShreddingSchema
from variantlake.telemetry.lineage import add_inputs, reported
from variantlake.telemetry.tracing import traced
from variantlake.writing.file_plan import FilePlan
from variantlake.writing.files import new_load_id
from variantlake.writing.options.keywords import check_options
from variantlake.writing.options.row_policies import BadRows
from variantlake.writing.staged_files import Staging
from variantlake.writing.table_write import UNSHREDDED, TableWrite

TASK_BYTES = 128 << 20
"""Bytes of uncompressed text that one task reads at most, about."""

SMALLEST_TASK_BYTES = 16 << 20
"""Fewer bytes are not worth a task and a file, even if cores stay idle."""


@dataclass(frozen=True, slots=True)
class LoadTask:
    """The plan of a load, which runs any of its tasks; pickles.

    `groups` are the splits by task number.
    """

    files: FilePlan
    columns: DocumentColumns
    shredding: ShreddingSchema
    groups: tuple[tuple[Split, ...], ...]

    def __call__(self, number: int) -> Iterable[bytes]:
        """Run one task."""
        return run_task(self.files, number, lambda check: self._write(number, check))

    def _write(self, number: int, check: Callable[[], None]) -> TaskResult:
        """Write the files of one task; an error removes all of them."""
        with self.files.bad_row_log(number) as bad_rows:
            rows = DocumentRows(
                self.groups[number],
                self.files,
                columns=self.columns,
                shredding=self.shredding,
                bad_rows=bad_rows,
                check=check,
                task=number,
                tasks=len(self.groups),
            )
            result = write_rows(rows, self.files, number, check)
        empty = tuple(split.source.path for split in rows.empty)
        return replace(result, empty=empty, counts=tuple(rows.counts))


@reported("load", lambda _, table, *__, **___: table)
@traced("load", lambda _, table, *__, **___: {"table": table}, load_attributes)
def run_load(
    given: Documents | SourceSpec | Iterable[SourceSpec],
    table: str,
    run: Runner,
    options: DocumentOptions,
    *,
    progress: OnProgress | None,
    parallelism: int,
    overwrite: Overwrite | Staging | None = None,
    snapshot: Snapshot | None = None,
) -> LoadResult:
    """Load documents into a table in one commit; see `spark.load.ingest`.

    `snapshot` is the table's, if the caller has it already.
    Nothing of the load is visible before the commit; any failure before it removes every file of
    the load.
    """
    started = time.perf_counter()
    check_options(progress=progress)
    if snapshot is None:
        paths = tuple(options.wanted.paths)
        target = TableWrite.open(
            table, options.new_columns, options.properties, paths, numbered=True
        )
    else:
        target = TableWrite.of(snapshot, numbered=True)
    if (known := find_committed_load(target, options.load)) is not None:
        return known  # even if the sources are gone
    named = Documents.of(given, options.format).sources
    add_inputs(source.label for source in named)
    sources = [source for source in named if source.size]
    if not sources or (len(sources) < len(named) and not options.skip_empty):
        raise _no_document(named, skip_empty=options.skip_empty)
    if overwrite is not None:
        target = overwrite.applied(target)
    target, task = plan_load(target, sources, options, parallelism)
    total = sum(source.size for source in sources)
    watch = watcher(task, target.store, progress)
    results = collect(task.files, target, lambda: run(task, watch))
    empty = [source for source in named if not source.size] + _empty(task, results)
    nothing = not any(result.adds or result.bad_rows for result in results)
    if nothing or (empty and not options.skip_empty):
        target.clean_up(task.files.load_id)
        raise _no_document(empty or named, skip_empty=options.skip_empty)
    result = commit_load(
        target, task.files, results, options.load, started, empty_sources=len(empty)
    )
    if progress is not None:
        progress(bytes_read(total, total, result.files_written))
    shredding = {task.columns.documents.name: format_ddl(task.shredding)}
    return replace(result, bytes_read=total, shredding=shredding)


def plan_load(
    target: TableWrite, sources: Sequence[Source], options: DocumentOptions, parallelism: int
) -> tuple[TableWrite, LoadTask]:
    """Plan the tasks of a load; returns the table with the load's changes of it, too.

    There is at least one source, and none has 0 bytes. If the table has no shredding schema yet,
    this reads a bounded sample of them.

    Raises InvalidSchema and InvalidValue for columns that cannot be filled, MissingSource and
    MalformedFile for a sampled source that cannot be read.
    """
    target, columns = _columns(target, options)
    columns.check(sources)
    check_unique(target, options.load)
    field = columns.documents
    _check_mode(field, options.load.mode, target)
    target = target.with_contract(options.load.contract, field.name)
    if options.hints is not None:
        target = target.with_hints(field.physical_name, options.hints)
    target, schema = _decide_shredding(
        target, field.physical_name, options.shredding, sources, options.load.inference
    )
    total = sum(source.size for source in sources)
    task = LoadTask(
        files=target.load_plan(new_load_id(), options.load),
        columns=columns,
        shredding=schema,
        groups=_groups(sources, total, parallelism),
    )
    return target, task


def _columns(target: TableWrite, options: DocumentOptions) -> tuple[TableWrite, DocumentColumns]:
    """The table with the columns that `merge_schema` adds, and how the load fills its columns.

    Raises InvalidSchema for columns that the table lacks without `merge_schema`.
    """
    wanted, column = options.wanted, options.column_in(target.schema)
    if options.merge_schema and target.snapshot is not None:
        added = (StructField(column, VariantType()), *wanted.extra_fields())
        target = target.with_columns(StructType(added), types=True)
    columns = DocumentColumns.of(
        wanted, target.schema, target.partition_columns, column, time.time_ns() // 1000
    )
    target.variant_column(column, columns.filled)
    return target, columns


def _empty(task: LoadTask, results: Sequence[TaskResult]) -> list[Source]:
    """The sources without a document in any of their splits."""
    splits = Counter(split.source for group in task.groups for split in group)
    empty = Counter(path for result in results for path in result.empty)
    return [source for source, count in splits.items() if empty[source.path] == count]


def _no_document(sources: Sequence[Source], *, skip_empty: bool) -> InvalidJson:
    if len(sources) == 1 or not skip_empty:
        error = InvalidJson(
            "the file is empty: it holds no document",
            file=next((each for each in sources if not each.size), sources[0]).label,
            line=1,
            column=1,
            hint="nothing else is there to load: was it written to the end?",
        )
        if not skip_empty:
            error.hint = "skip_empty=True leaves such files out, and counts them"
            error.cli_hint = "--skip-empty leaves such files out, and counts them"
        return error
    return InvalidJson(
        "there is no document to load: the sources hold only blank lines or empty arrays",
        file=sources[0].label,
        line=1,
    )


def _check_mode(field: StructField, mode: BadRows | None, target: TableWrite) -> None:
    if mode is BadRows.NULL and not field.nullable:
        raise InvalidSchema(
            f"bad documents cannot become NULL: the column {field.name!r} is NOT NULL",
            file=target.store.uri,
            hint='use mode="quarantine"',
            cli_hint="use --mode quarantine",
        )


def _decide_shredding(
    target: TableWrite,
    column: str,
    requested: str | None,
    sources: Sequence[Source],
    inference: InferenceOptions,
) -> tuple[TableWrite, ShreddingSchema]:
    """The schema of the load's files: the requested one, else the table's, else an inferred one.

    The table keeps a requested or inferred schema, and a relearned one that replaces a schema which
    recent files no longer fit.
    """
    target.check_requested([] if requested is None else [requested])
    if not target.shredding_enabled:
        return target, UNSHREDDED
    options = target.inference(column, inference)
    if requested is not None:
        schema = with_hints(parse_ddl(requested), options.hints)
    elif target.shredding(column) is not None:
        target = relearned(target)
        return target, target.shredding(column) or UNSHREDDED
    else:
        schema = infer(sample_profile(sources, options), options).schema
    return target.with_shredding(column, schema, requested=requested is not None), schema


def _groups(
    sources: Sequence[Source], total: int, parallelism: int
) -> tuple[tuple[Split, ...], ...]:
    """The splits of each task: large enough to be worth a file, small enough to use all cores."""
    target_bytes = min(TASK_BYTES, max(SMALLEST_TASK_BYTES, total // max(parallelism, 1) + 1))
    # One task takes many small sources, which would else become as many small Parquet files.
    splits = split_sources(sources, target_bytes)
    return tuple(packed(splits, lambda split: split.size, target_bytes))
