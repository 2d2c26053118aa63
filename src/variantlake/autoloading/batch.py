"""Load one batch: a commit with the rows of some files and the record that they are loaded.

A file that cannot be read is left out and recorded as failed; the others are loaded. A file that
changed while it was read is left out, too, and the next round finds it again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from variantlake.autoloading.discover import DiscoveredFile, Discovery, DiscoveryKind
from variantlake.autoloading.listing import Folder, SourceFile
from variantlake.autoloading.runs import RunReader
from variantlake.autoloading.state import (
    FEATURE,
    FileState,
    LoadState,
    rows_of_batch,
    with_versions,
)
from variantlake.contracts.contract import contracts
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import CommitConflict, MissingSource, StoreFailed, VariantLakeError
from variantlake.ingest.commit_load import commit_load, load_attributes
from variantlake.ingest.encode.document_options import DocumentOptions
from variantlake.ingest.encode.documents import read_tapes
from variantlake.ingest.load import plan_load
from variantlake.ingest.sources.document_format import DocumentFormat
from variantlake.ingest.sources.signatures import HEAD_BYTES, compression_of
from variantlake.ingest.sources.sources import Source, Split
from variantlake.jobs.tasks import Runner, TaskResult, collect
from variantlake.jobs.threads import run_in_threads
from variantlake.logs import logger
from variantlake.shown import Result, utf8_text
from variantlake.storage.opening import store_of
from variantlake.telemetry.lineage import add_inputs, reported
from variantlake.telemetry.tracing import traced
from variantlake.writing.file_plan import FilePlan
from variantlake.writing.files import new_load_id
from variantlake.writing.options.row_policies import BadRows
from variantlake.writing.quarantine import BadRowLog
from variantlake.writing.table_write import TableWrite

log = logger("autoload")

MAX_ERROR = 500
"""The most characters of an error that a run records."""

MAX_WARNINGS = 20
"""The most errors of a batch that are logged; `Table.loads` lists all."""

_PARALLEL_READS = 16


@dataclass(frozen=True, slots=True)
class Job:
    """What all batches of an autoload share."""

    table: str
    folder: Folder
    documents: DocumentOptions
    format: DocumentFormat
    run: Runner
    parallelism: int
    reader: RunReader

    def target(self, snapshot: Snapshot | None) -> TableWrite:
        """The table, or a new one for the first batch to create. Raises CommitConflict."""
        if snapshot is not None:
            return TableWrite.of(snapshot, numbered=True)
        properties = {**self.documents.properties, f"delta.feature.{FEATURE}": "supported"}
        new, paths = self.documents.new_columns, tuple(self.documents.wanted.paths)
        target = TableWrite.open(self.table, new, properties, paths, numbered=True)
        if target.snapshot is not None:
            # We have not read its state of this autoload: the files may be loaded already.
            raise CommitConflict("another writer has made the table", file=self.table)
        return target


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BatchReport(Result):
    """What one batch did. `lag` is the time from the last change of its newest file to its commit.

    `seconds` is the time of the batch, `commit_seconds` that of its commit alone. Files and rows
    are as in `AutoloadResult`. All times are in seconds.
    """

    version: int
    files_read: int = 0
    files_empty: int = 0
    files_failed: int = 0
    files_skipped: int = 0
    rows_written: int = 0
    rows_bad: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    commit_seconds: float = 0.0
    lag: float = 0.0


@dataclass(slots=True)
class _Outcome:
    """The outcome so far of each file of a batch."""

    loaded: list[SourceFile]
    errors: dict[bytes, VariantLakeError] = field(default_factory=dict)
    gone: set[bytes] = field(default_factory=set)

    def leave_out(self, names: Iterable[bytes]) -> None:
        left_out = set(names)
        self.loaded = [file for file in self.loaded if file.name not in left_out]


@reported("autoload", lambda job, *_: job.table)
@traced(
    "load",
    lambda job, *_: {"table": job.table},
    lambda batch: {} if batch is None else load_attributes(batch[0]),
)
def load_batch(
    job: Job,
    snapshot: Snapshot | None,
    state: LoadState,
    files: Sequence[DiscoveredFile],
    discovery: Discovery,
) -> tuple[BatchReport, list[SourceFile]] | None:
    """Load files in one commit, based on the autoload's `state` in `snapshot`.

    Returns the report, and the files that the log now records as loaded. None if nothing is left to
    commit: all of the files are gone or changed.

    Raises CommitConflict if another process was first; then nothing of the batch is in the table.
    Else raises as `run_load`, except for errors of single files.
    """
    started = time.perf_counter()
    outcome = _Outcome([found.file for found in files if found.kind is DiscoveryKind.NEW])
    target = job.target(snapshot)
    written = _write(job, target, outcome)
    add_inputs(job.folder.location(each.name) for each in outcome.loaded)
    old = [found.file for found in files if found.kind is DiscoveryKind.OLD]
    # Files that changed while they were read wait for a later batch; maybe all of them did.
    if not outcome.loaded and not outcome.errors and not old:
        return None
    rows = _rows(job.folder, outcome, old, files, written.results)
    # The commit may get a later version; then `with_versions` corrects this one.
    version = 0 if snapshot is None else snapshot.version + 1
    now = time.time_ns() // 1_000_000
    for row in rows:
        row |= {"batch": state.batch + 1, "version": version, "time": now}
    committing = time.perf_counter()
    try:
        # The next listing continues after the files recorded now, and before those left out.
        left_out = {found.file.name for found in files} - {row["name"] for row in rows}
        is_first = (found.file.name > (state.after or b"") for found in files if not found.logged)
        after, listed = _progress(discovery, state, rows, left_out - outcome.gone)
        known = state if snapshot is None else with_versions(state, snapshot)
        newest = max((file.modified for file in outcome.loaded), default=0)
        following = known.next(
            target.store,
            job.reader,
            rows_of_batch(rows),
            after=after,
            listed=listed,
            ordered=state.ordered and all(is_first),
            version=version,
            floor=0 if left_out else discovery.floor(newest),
        )
    except BaseException:
        target.clean_up(written.plan.load_id)
        raise
    result = commit_load(
        written.target,
        written.plan,
        written.results,
        job.documents.load,
        started,
        empty_sources=sum(row["state"] == FileState.EMPTY for row in rows),
        record=following.record(state, now),
    )
    finished = time.perf_counter()
    states = Counter(row["state"] for row in rows)
    newest = max((file.modified for file in outcome.loaded), default=now)
    report = BatchReport(
        version=result.version,
        files_read=states[FileState.LOADED],
        rows_written=result.rows_written,
        rows_bad=result.rows_bad,
        bytes_read=sum(file.size for file in outcome.loaded),
        bytes_written=result.bytes_written,
        files_empty=states[FileState.EMPTY],
        files_failed=states[FileState.FAILED],
        files_skipped=states[FileState.SKIPPED],
        seconds=finished - started,
        commit_seconds=finished - committing,
        lag=max(time.time() - newest / 1000, 0.0),
    )
    # Only loaded files: the caller may delete or move them.
    stored = {row["name"] for row in rows if row["state"] == FileState.LOADED}
    return report, [file for file in outcome.loaded if file.name in stored]


def _progress(
    discovery: Discovery, state: LoadState, rows: Sequence[dict[str, Any]], left_out: set[bytes]
) -> tuple[bytes | None, int]:
    """The state's `after` and `listed` after a batch of these rows."""
    last = rows[-1]["name"]
    after = last if state.after is None else max(state.after, last)
    waiting = {discovery.first_waiting} if discovery.first_waiting is not None else set()
    if any(name <= after for name in waiting | left_out):
        return state.after, 0  # a waiting file has an earlier name: list everything again
    listed = state.listed
    if discovery.is_full and last >= after:
        listed = discovery.started
    return after, listed


@dataclass(frozen=True, slots=True)
class _Written:
    """Data files of a batch that are not committed yet."""

    target: TableWrite
    plan: FilePlan
    results: list[TaskResult]


def _write(job: Job, target: TableWrite, outcome: _Outcome) -> _Written:
    """Write the rows of the files that can be read and do not change meanwhile."""
    probed = False
    while True:
        sources = _sources(job, outcome)
        full = {name: source for name, source in sources.items() if source.size}
        if not full:
            return _Written(target, target.load_plan(new_load_id(), job.documents.load), [])
        names = {source.path: name for name, source in full.items()}
        try:
            written = _attempt(job, target, list(full.values()))
        except VariantLakeError as error:
            name = names.get(error.file)
            if name is None or isinstance(error, StoreFailed):
                raise
            _give_up(job, outcome, name, error)
            if not probed:
                probed = True  # else each bad file would cost another attempt at the batch
                _probe(job, target, full, outcome)
            continue
        changed = _changed(job.folder, outcome)
        if not changed:
            return written
        target.clean_up(written.plan.load_id)
        log.info("left for the next round, changed while they were read: files %d", len(changed))
        outcome.leave_out(changed)


def _attempt(job: Job, target: TableWrite, sources: list[Source]) -> _Written:
    target, task = plan_load(target, sources, job.documents, job.parallelism)
    # Threads finish a single task before a cluster starts it.
    run = run_in_threads if len(task.groups) == 1 else job.run
    results = collect(task.files, target, lambda: run(task, lambda _: None))
    return _Written(target, task.files, results)


def _sources(job: Job, outcome: _Outcome) -> dict[bytes, Source]:
    """The files to load as sources with their compression; leaves out files that are gone."""

    def source(file: SourceFile) -> Source | VariantLakeError:
        path = job.folder.location(file.name)
        if not file.size:
            return Source(path, 0, format=job.format)
        store, name = store_of(path)
        try:
            head = store.read_range(name, 0, min(file.size, HEAD_BYTES))
            return Source(path, file.size, compression_of(head, path), job.format)
        except VariantLakeError as error:
            if isinstance(error, StoreFailed) and job.folder.objects:
                raise
            return error

    results = _in_parallel(job.folder, source, outcome.loaded)
    sources = {}
    for file, result in zip(list(outcome.loaded), results, strict=True):
        if isinstance(result, VariantLakeError):
            _give_up(job, outcome, file.name, result)
        else:
            sources[file.name] = result
    return sources


def _in_parallel(
    folder: Folder, work: Callable[[SourceFile], Any], files: Sequence[SourceFile]
) -> list[Any]:
    """Call `work` in threads for an object store; on a disk threads cost more than they save."""
    if not folder.objects:
        return [work(file) for file in files]
    with ThreadPoolExecutor(_PARALLEL_READS) as pool:
        return list(pool.map(work, files))


def _give_up(job: Job, outcome: _Outcome, name: bytes, error: VariantLakeError) -> None:
    """Leave a file out; record it as failed unless it is gone or has changed."""
    known = next(file for file in outcome.loaded if file.name == name)
    outcome.leave_out([name])
    (now,) = job.folder.stat_files([name])
    if now is None or isinstance(error, MissingSource):
        outcome.gone.add(name)
    elif now.is_same(known):
        outcome.errors[name] = error
        if len(outcome.errors) <= MAX_WARNINGS:
            log.warning("cannot be loaded: %s", error.sentence())


def _probe(job: Job, target: TableWrite, sources: dict[bytes, Source], outcome: _Outcome) -> None:
    """Find all other files that cannot be read, in one pass."""
    known = contracts(target.properties)
    strict = job.documents.load.bad_rows(known) is BadRows.STRICT
    mode = BadRows.STRICT if strict else BadRows.NULL
    field = target.schema.get(job.documents.column_in(target.schema))
    contract = job.documents.load.contract or known.get(field.physical_name if field else "")
    waiting = {file.name for file in outcome.loaded}
    for name, source in sources.items():
        if name not in waiting:
            continue
        try:
            bad_rows = BadRowLog(mode, target.store, "", 0)
            for _ in read_tapes([Split(source, 0, source.size)], bad_rows, contract=contract):
                pass
        except StoreFailed:
            raise
        except VariantLakeError as error:
            _give_up(job, outcome, name, error)


def _changed(folder: Folder, outcome: _Outcome) -> list[bytes]:
    """The files that have changed since they were found."""
    now = folder.stat_files([file.name for file in outcome.loaded])
    pairs = zip(outcome.loaded, now, strict=True)
    # A file that is gone now was read to its end, so its rows are complete.
    return [file.name for file, new in pairs if new is not None and not file.is_same(new)]


def _rows(
    folder: Folder,
    outcome: _Outcome,
    old: Sequence[SourceFile],
    files: Sequence[DiscoveredFile],
    results: Sequence[TaskResult],
) -> list[dict[str, Any]]:
    """A row of the state for each file, sorted by name, without batch, version and time."""
    counts: Counter[str] = Counter()
    bad: Counter[str] = Counter()
    for result in results:
        for path, stored, refused in result.counts:
            counts[path] += stored
            bad[path] += refused
    rows = [_row(file, FileState.SKIPPED) for file in old]
    for file in outcome.loaded:
        path = folder.location(file.name)
        is_empty = not counts[path] and not bad[path]
        row = _row(file, FileState.EMPTY if is_empty else FileState.LOADED)
        rows.append(row | {"rows": counts[path], "bad_rows": bad[path]})
    for found in files:
        error = outcome.errors.get(found.file.name)
        if error is not None:
            text = utf8_text(error.sentence())[:MAX_ERROR]
            rows.append(_row(found.file, FileState.FAILED) | {"error": text})
    return sorted(rows, key=lambda row: row["name"])


def _row(file: SourceFile, state: FileState) -> dict[str, Any]:
    row: dict[str, Any] = {"name": file.name, "size": file.size, "tag": file.tag}
    row["modified"] = file.modified
    return row | {"state": int(state), "rows": 0, "bad_rows": 0, "error": None}
