"""A load of JSON documents into a table: planned here, run by somebody, committed here.

Who runs the tasks (Spark's executors, or threads of this process) is the caller's business. What a
task does, which files belong to the load, and that the log has all of them or none, is decided
here and in `landing`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Protocol

import pyarrow as pa

from variantlake.arrow.blocks import bytes_at_once
from variantlake.arrow.documents import read_tapes, sample_profile
from variantlake.arrow.files import count_files, new_load_id, rows_of
from variantlake.arrow.landing import LoadResult, TaskResult, collect, found, guarded, land
from variantlake.arrow.options import BadRows, LoadOptions
from variantlake.arrow.overwriting import Overwrite
from variantlake.arrow.sources import (
    Documents,
    Source,
    SourceSpec,
    Split,
    group_splits,
    split_sources,
)
from variantlake.arrow.target import UNSHREDDED, FilePlan, Target
from variantlake.delta.schema import StructField, StructType, VariantType
from variantlake.delta.snapshot import Snapshot
from variantlake.errors import InvalidJson, InvalidSchema
from variantlake.kernels.shredder import Shredder
from variantlake.shredding.ddl import format_ddl, parse_ddl
from variantlake.shredding.infer import InferenceOptions, infer
from variantlake.shredding.layout import arrow_type
from variantlake.shredding.schema import ShreddingSchema
from variantlake.storage.store import Store

DEFAULT_COLUMN = "event"
"""Where documents go unless the caller says otherwise."""

TASK_BYTES = 128 << 20
"""Bytes of plain text that one task reads, about."""

_PROGRESS_SECONDS = 0.5

SMALLEST_TASK_BYTES = 16 << 20
"""Less is not worth a task and a file of its own, though cores stand idle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestResult(LoadResult):
    """What a load of documents did. `bytes_read` counts the sources as stored.

    `shredding` is the DDL of the schema that its files have, `VARIANT` when they are not shredded.
    """

    bytes_read: int = 0
    shredding: str = ""


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far a load is: bytes of the sources as stored, and files begun so far."""

    bytes_read: int
    bytes_total: int
    files: int


@dataclass(frozen=True, slots=True)
class LoadTask:
    """What the tasks of one load have in common, and the body of each; pickles.

    `groups` are the splits by task number, `column` the physical name of the VARIANT column.
    """

    files: FilePlan
    column: str
    shredding: ShreddingSchema
    groups: tuple[tuple[Split, ...], ...]

    def __call__(self, number: int) -> Iterable[bytes]:
        """Run one task."""
        return guarded(self.files, number, lambda check: self._write(number, check))

    def _write(self, number: int, check: Callable[[], None]) -> TaskResult:
        """Write the files of one task. When an error passes, none of them stays."""
        shredder = Shredder(self.shredding)
        # Files whose rows are all documents say so: their metadata is then written faster.
        nullable = self.files.mode is BadRows.NULL
        schema = pa.schema([pa.field(self.column, arrow_type(self.shredding), nullable=nullable)])
        with (
            self.files.bad_row_log(number) as bad_rows,
            self.files.file_set(number, schema, [(self.column,)], check) as files,
        ):
            size = bytes_at_once([self.shredding])
            for tape in read_tapes(self.groups[number], bad_rows, block_bytes=size):
                rows = pa.record_batch([shredder.shred(tape)], schema=schema)
                files.write(rows, {(self.column,): shredder.notes})
                del tape  # see read_tapes
                check()
            written = files.close()
            adds = tuple(self.files.add(file) for file in written)
        return TaskResult(adds, rows_of(written), bad_rows.count, bad_rows.path)


class Sized(Protocol):
    """A part of the input."""

    @property
    def size(self) -> int:
        """Bytes, as stored."""


class Tasks(Protocol):
    """The tasks of one load, whatever they do. Pickles."""

    @property
    def files(self) -> FilePlan:
        """Where the files go."""

    @property
    def groups(self) -> Sequence[Sequence[Sized]]:
        """The parts of the input, by task."""

    def __call__(self, number: int, /) -> Iterable[bytes]:
        """Run one task, as `landing.guarded` does."""


Runner = Callable[[Tasks, Callable[[int], None]], Iterable[bytes]]
"""Runs every task of a load and gives back their payloads; calls its second argument now and then
with the number of finished tasks."""


def run_load(
    given: Documents | SourceSpec | Iterable[SourceSpec],
    table: str,
    run: Runner,
    *,
    format: str | None = None,  # noqa: A002 - the name that users know
    column: str,
    shredding: str | None,
    properties: Mapping[str, str] | None,
    options: LoadOptions,
    progress: Callable[[LoadProgress], None] | None,
    parallelism: int,
    overwrite: Overwrite | None = None,
    snapshot: Snapshot | None = None,
) -> IngestResult:
    """Load documents into a table in one commit; see `spark.ingest.ingest`.

    `snapshot` is that of the table where it is known already.
    Until the commit nothing of the load is visible; by any failure before it every file of the
    load is removed.
    """
    started = time.perf_counter()
    if snapshot is None:
        new = StructType((StructField(column, VariantType()),))
        target = Target.open(table, new, properties or {})
    else:
        target = Target.of(snapshot)
    if (known := found(target, options)) is not None:
        return _result(known)  # whatever became of the sources
    sources = Documents.of(given, format).sources
    if overwrite is not None:
        target = overwrite.applied(target)
    field = target.variant_column(column)
    _check_mode(field, options.mode, target)
    target, schema = _decide_shredding(
        target, field.physical_name, shredding, sources, options.inference
    )
    total = sum(source.size for source in sources)
    task = LoadTask(
        files=target.file_plan(new_load_id(), options),
        column=field.physical_name,
        shredding=schema,
        groups=_groups(sources, total, parallelism),
    )
    watch = watcher(task, target.store, progress)
    results = collect(task.files, target, lambda: run(task, watch))
    if not any(result.adds or result.bad_rows for result in results):
        target.clean_up(task.files.load_id)
        raise InvalidJson(
            "there is no document to load: the sources hold only blank lines or empty arrays",
            file=sources[0].path,
            line=1,
        )
    done = land(target, task.files, results, options, started)
    if progress is not None:
        progress(LoadProgress(total, total, done.files))
    return _result(done, bytes_read=total, shredding=format_ddl(schema))


def _result(done: LoadResult, *, bytes_read: int = 0, shredding: str = "") -> IngestResult:
    common = {field.name: getattr(done, field.name) for field in fields(LoadResult)}
    return IngestResult(**common, bytes_read=bytes_read, shredding=shredding)


def _check_mode(field: StructField, mode: BadRows, target: Target) -> None:
    if mode is BadRows.NULL and not field.nullable:
        raise InvalidSchema(
            f"bad documents cannot become NULL: the column {field.name!r} is NOT NULL",
            file=target.store.uri,
            hint='use mode="quarantine"',
            cli_hint="use --mode quarantine",
        )


def _decide_shredding(
    target: Target,
    column: str,
    asked: str | None,
    sources: Sequence[Source],
    inference: InferenceOptions,
) -> tuple[Target, ShreddingSchema]:
    """The schema of the load's files: asked for, else the table's own, else inferred.

    A schema that was asked for or inferred becomes the table's own.
    """
    own = target.shredding(column)
    if not target.shredding_enabled:
        if asked is not None and parse_ddl(asked) != UNSHREDDED:
            raise InvalidSchema(
                "the table does not allow shredded files",
                file=target.store.uri,
                hint="set its property delta.enableVariantShredding to true",
            )
        return target, UNSHREDDED
    if asked is not None:
        schema = parse_ddl(asked)
    elif own is not None:
        return target, own
    else:
        schema = infer(sample_profile(sources), inference).schema
    return target.with_shredding(column, schema, asked=asked is not None), schema


def _groups(
    sources: Sequence[Source], total: int, parallelism: int
) -> tuple[tuple[Split, ...], ...]:
    """The splits of each task: large enough to be worth a file, small enough for all cores."""
    target_bytes = min(TASK_BYTES, max(SMALLEST_TASK_BYTES, total // max(parallelism, 1) + 1))
    return group_splits(split_sources(sources, target_bytes), target_bytes)


def watcher(
    task: Tasks, store: Store, progress: Callable[[LoadProgress], None] | None
) -> Callable[[int], None]:
    """Finished tasks as progress: their share of the input, and files counted on a local disk."""
    total = sum(split.size for group in task.groups for split in group)

    last = 0.0

    def watch(finished: int) -> None:
        nonlocal last
        if progress is None or time.monotonic() < last + _PROGRESS_SECONDS:
            return
        last = time.monotonic()
        read = total * min(finished, len(task.groups)) // len(task.groups)
        progress(LoadProgress(read, total, count_files(store, task.files.load_id)))

    return watch
