"""A load of newline-delimited JSON into a table: planned here, run by somebody, committed here.

Who runs the tasks (Spark's executors, or threads of this process) is the caller's business. What a
task does, which files belong to the load, and that the log has all of them or none, is decided
here.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson
import pyarrow as pa

from variantlake.arrow.documents import read_tapes, sample_profile
from variantlake.arrow.files import FileLimits, count_files, delete_load, new_load_id
from variantlake.arrow.flag import LoadFlag, LoadStopped
from variantlake.arrow.sources import Source, Split, group_splits, split_sources
from variantlake.arrow.target import NOT_COMMITTED, UNSHREDDED, FilePlan, Target
from variantlake.delta.actions import AddFile, parse_log, serialise
from variantlake.delta.store import LocalStore, Store, open_store
from variantlake.errors import (
    InvalidJson,
    InvalidSchema,
    VariantLakeError,
)
from variantlake.kernels.shredder import Shredder
from variantlake.shredding.ddl import format_ddl, parse_ddl
from variantlake.shredding.infer import infer
from variantlake.shredding.layout import arrow_type
from variantlake.shredding.schema import ShreddingSchema

DEFAULT_COLUMN = "event"
"""Where documents go unless the caller says otherwise."""

TASK_BYTES = 128 << 20
"""Bytes of plain text that one task reads, about."""

_PROGRESS_SECONDS = 0.5

SMALLEST_TASK_BYTES = 16 << 20
"""Less is not worth a task and a file of its own, though cores stand idle."""


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What a load did. Sizes in bytes; `bytes_read` counts the sources as stored.

    `shredding` is the DDL of the schema that its files have, `VARIANT` when they are not shredded.
    """

    version: int
    files: int
    rows: int
    bytes_read: int
    bytes_written: int
    shredding: str
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, for JSON."""
        return asdict(self)


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

    @property
    def flag(self) -> LoadFlag:
        """What stops the tasks; `run_load` raises and lowers it."""
        return LoadFlag(open_store(self.files.location), self.files.load_id)

    def __call__(self, number: int) -> Iterator[bytes]:
        """Run one task; what is wrong with its input is given back as data, not raised.

        A raised error would make Spark repeat the task, and reach the driver as text.
        """
        flag = self.flag
        try:
            adds = self._write(number, flag)
        except LoadStopped:
            return
        except VariantLakeError as error:
            flag.fail(number)
            yield _FAILED + pickle.dumps((number, error))
        else:
            yield _ADDED + serialise(adds)

    def _write(self, number: int, flag: LoadFlag) -> list[AddFile]:
        """Write the files of one task. When an error passes, none of them stays."""

        def check() -> None:
            flag.check(number)

        check()
        shredder = Shredder(self.shredding)
        schema = pa.schema([pa.field(self.column, arrow_type(self.shredding))])
        with self.files.file_set(number, schema, [(self.column,)], check) as files:
            for tape in read_tapes(self.groups[number]):
                files.write(pa.record_batch([shredder.shred(tape)], schema=schema))
                del tape  # see read_tapes
                check()
            return [self.files.add(file) for file in files.close()]


Runner = Callable[[LoadTask, Callable[[int], None]], Iterable[bytes]]
"""Runs every task of a load and gives back their payloads; calls its second argument now and then
with the number of finished tasks."""

_ADDED, _FAILED = b"A", b"E"


def run_load(
    sources: Sequence[Source],
    table: str,
    run: Runner,
    *,
    column: str,
    shredding: str | None,
    limits: FileLimits,
    properties: Mapping[str, str] | None,
    progress: Callable[[LoadProgress], None] | None,
    parallelism: int,
) -> IngestResult:
    """Load documents into a table in one commit; see `spark.ingest.ingest`.

    Until the commit nothing of the load is visible; by any failure before it every file of the
    load is removed.
    """
    started = time.perf_counter()
    target = Target.open(table, column, properties or {})
    physical = target.variant_column(column).physical_name
    target, schema = _decide_shredding(target, physical, shredding, sources)
    total = sum(source.size for source in sources)
    task = LoadTask(
        files=target.file_plan(new_load_id(), limits),
        column=physical,
        shredding=schema,
        groups=_groups(sources, total, parallelism),
    )
    adds = _run(task, run, target, _watcher(task, target.store, progress))
    rows = sum(_num_records(add) for add in adds)
    try:
        if not rows:
            raise InvalidJson(
                "there is no document to load: only blank lines", file=sources[0].path, line=1
            )
        version = target.commit(adds, {"numOutputRows": str(rows)})
    except NOT_COMMITTED:
        target.clean_up(task.files.load_id)
        raise
    if progress is not None:
        progress(LoadProgress(total, total, len(adds)))
    return IngestResult(
        version=version,
        files=len(adds),
        rows=rows,
        bytes_read=total,
        bytes_written=sum(add.size for add in adds),
        shredding=format_ddl(schema),
        seconds=time.perf_counter() - started,
    )


def _decide_shredding(
    target: Target, column: str, asked: str | None, sources: Sequence[Source]
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
        schema = infer(sample_profile(sources)).schema
    return target.with_shredding(column, schema, asked=asked is not None), schema


def _groups(
    sources: Sequence[Source], total: int, parallelism: int
) -> tuple[tuple[Split, ...], ...]:
    """The splits of each task: large enough to be worth a file, small enough for all cores."""
    target_bytes = min(TASK_BYTES, max(SMALLEST_TASK_BYTES, total // max(parallelism, 1) + 1))
    return group_splits(split_sources(sources, target_bytes), target_bytes)


def _run(
    task: LoadTask, run: Runner, target: Target, watch: Callable[[int], None]
) -> list[AddFile]:
    """Run the tasks; the files of all of them, in the order of the input.

    When anything fails, and by Ctrl-C, no file of the load is left.
    """
    task.flag.up()
    try:
        adds = _adds_of(list(run(task, watch)))
    except BaseException:
        task.flag.down()
        target.clean_up(task.files.load_id)
        raise
    task.flag.down()
    if isinstance(target.store, LocalStore):
        # Repeated and doubled tasks may have left files that nobody gave back. Elsewhere looking
        # for them costs more than they do.
        kept = {add.path for add in adds}
        delete_load(target.store, task.files.load_id, keep=kept)
    return sorted(adds, key=lambda add: add.path)


def _adds_of(payloads: Sequence[bytes]) -> list[AddFile]:
    """What the tasks gave back. Raises the failure that is first in the order of the input."""
    failures = [
        pickle.loads(payload[1:])  # noqa: S301 - our own tasks made it
        for payload in payloads
        if payload.startswith(_FAILED)
    ]
    if failures:
        raise min(failures, key=lambda failure: int(failure[0]))[1]
    return [
        action
        for payload in payloads
        for action in parse_log([payload[1:]], "the load")
        if isinstance(action, AddFile)
    ]


def _watcher(
    task: LoadTask, store: Store, progress: Callable[[LoadProgress], None] | None
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


def _num_records(add: AddFile) -> int:
    return int(orjson.loads(add.stats or "{}").get("numRecords", 0))
