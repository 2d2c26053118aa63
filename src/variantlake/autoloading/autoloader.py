"""The rounds of an autoload: list the source, load new files in batches, move or delete them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from typing import Any

import pyarrow as pa

from variantlake.autoloading.auto_compact import compact_small_files, is_wanted
from variantlake.autoloading.batch import BatchReport, Job, load_batch
from variantlake.autoloading.discover import (
    DiscoveredFile,
    Discovery,
    DiscoveryKind,
    Settling,
    begin,
    settle_seconds,
)
from variantlake.autoloading.listing import Folder, SourceFile, open_folder
from variantlake.autoloading.options import split_keywords
from variantlake.autoloading.runs import RunReader
from variantlake.autoloading.state import FEATURE, LoadState, check_name, read_state
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.transaction import alter
from variantlake.delta.transaction.commit import commit
from variantlake.errors import (
    CommitConflict,
    CommitUnknown,
    InvalidValue,
    MissingSource,
    NotADeltaTable,
    StoreFailed,
    VariantLakeError,
)
from variantlake.ingest.encode.document_options import DocumentOptions
from variantlake.ingest.sources.document_format import DocumentFormat
from variantlake.jobs.tasks import Runner
from variantlake.jobs.threads import run_in_threads
from variantlake.logs import logger
from variantlake.shown import Result, utf8_text
from variantlake.storage.opening import open_store
from variantlake.storage.store import location_text
from variantlake.writing.table_write import READER_FEATURES

log = logger("autoload")

MAX_LOST = 100
"""The most batches in a row that may be lost to other processes."""

_PARALLEL_REQUESTS = 16

MOST_WAITED = 5.0
"""The longest settling time, in seconds, that `once` waits for."""

Stop = Callable[[], bool]
"""Called between batches and while waiting; true ends the autoload."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AutoloadResult(Result):
    """What an autoload did. `version` is that of its last commit, None if it made none.

    It loaded `files_read` files as `rows_written` rows; `rows_bad` rows were left out or became
    NULL, depending on the mode. `files_empty` files held no document, `files_failed` could not be
    read, `files_skipped` were too old. `files_changed` files changed after they were loaded, and
    were not loaded again; `files_waiting` had not settled when the last round ended.
    """

    name: str
    batches: int = 0
    files_read: int = 0
    files_empty: int = 0
    files_failed: int = 0
    files_skipped: int = 0
    files_changed: int = 0
    files_waiting: int = 0
    rows_written: int = 0
    rows_bad: int = 0
    bytes_read: int = 0
    bytes_written: int = 0

    def after(self, report: BatchReport) -> AutoloadResult:
        """The sum of this result and one more batch."""
        summable = {field.name for field in fields(self)} - {"version", "dry_run"}
        sums = {
            field.name: getattr(self, field.name) + getattr(report, field.name)
            for field in fields(report)
            if field.name in summable
        }
        return replace(self, **sums, batches=self.batches + 1, version=report.version)


class Autoloader:
    """Loads the new files of a source into a table, and keeps its state in the table's log.

    `name` identifies the autoload in the table; None derives one from the source. `on_batch` is
    called after each commit.

    Raises InvalidValue for invalid options, MissingSource if the source does not exist.
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        table: str | os.PathLike[str],
        *,
        name: str | None = None,
        run: Runner = run_in_threads,
        parallelism: int | None = None,
        on_batch: Callable[[BatchReport], None] | None = None,
        **options: Any,
    ) -> None:
        self.options, others = split_keywords(options)
        documents = DocumentOptions.of(**others)
        location = location_text(table)
        store = open_store(location)
        form = DocumentFormat.of(documents.format, [str(source)])
        self._folder = open_folder(source, form.kind)
        self._check_move()
        self.name = default_name(self._folder) if name is None else check_name(name)
        self._job = Job(
            table=location,
            folder=self._folder,
            documents=documents,
            format=form,
            run=run,
            parallelism=parallelism or pa.cpu_count(),
            reader=RunReader(store),
        )
        self._store = store
        self._settling = Settling(settle_seconds(self._folder, self.options))
        self._snapshot: Snapshot | None = None
        self._listed = 0
        self._warned = 0
        self._on_batch = on_batch

    def once(self, stop: Stop = lambda: False) -> AutoloadResult:
        """Run one round, and a second one if files have yet to settle."""
        started = time.perf_counter()
        result = self._round(AutoloadResult(name=self.name), stop)
        if result.files_waiting and self._settling.seconds <= MOST_WAITED and not stop():
            _sleep(self._settling.seconds, stop)
            result = self._round(result, stop)
        return replace(result, seconds=time.perf_counter() - started)

    def every(
        self,
        seconds: float,
        stop: Stop = lambda: False,
        *,
        on_round: Callable[[AutoloadResult, VariantLakeError | None], None] = lambda _r, _e: None,
    ) -> AutoloadResult:
        """Run rounds until `stop`.

        If a store fails, the next round tries again. `on_round` is called after each round with the
        sum so far, and the error that ended the round.
        """
        started = time.perf_counter()
        result = AutoloadResult(name=self.name)
        while True:
            begun = time.monotonic()
            failure: VariantLakeError | None = None
            try:
                result = self._round(result, stop)
            except (StoreFailed, MissingSource, CommitUnknown) as error:
                # The store may recover; the log then tells whether the batch was committed.
                log.warning("the round failed, the next one tries again: %s", error.sentence())
                failure = error
            on_round(result, failure)
            if stop():
                break
            _sleep(max(seconds - (time.monotonic() - begun), 0.0), stop)
            if stop():
                break
        return replace(result, seconds=time.perf_counter() - started)

    def _round(self, result: AutoloadResult, stop: Stop) -> AutoloadResult:
        """One pass over the source, started again if another process committed a batch."""
        for _ in range(MAX_LOST):
            state = self._begin()
            discovery = begin(
                self._folder,
                state,
                self.options,
                self._settling,
                listed=max(state.listed, self._listed if state.listed else 0),
            )
            try:
                result = self._walk(result, state, discovery, stop)
            except _Overtaken as overtaken:
                result = overtaken.result
                continue
            self._warn_of_changed(discovery)
            # A partial listing sees no known files, so it cannot count changed ones.
            changed = discovery.changed if discovery.is_full else result.files_changed
            return replace(result, files_waiting=discovery.waiting, files_changed=changed)
        raise CommitConflict(
            f"{MAX_LOST} batches in a row were lost to other writers", file=self._store.uri
        )

    def _walk(
        self, result: AutoloadResult, state: LoadState, discovery: Discovery, stop: Stop
    ) -> AutoloadResult:
        for files in self._batches(discovery):
            if stop():
                return result
            try:
                loaded_batch = load_batch(self._job, self._snapshot, state, files, discovery)
            except CommitConflict as error:
                log.info("another writer was first, looking again: %s", error.message)
                raise _Overtaken(result) from error
            self._tidy([found.file for found in files if found.kind is DiscoveryKind.DONE])
            if loaded_batch is None:
                continue
            report, loaded = loaded_batch
            result = result.after(report)
            self._log_batch(report)
            before = state
            state = self._begin()
            if self._on_batch is not None:
                self._on_batch(report)
            self._tidy(loaded)
            self._settling.forget(loaded)
            if state.batch != before.batch + 1:
                # Another process has loaded a batch since: it may include files listed here.
                raise _Overtaken(result)
            snapshot, option = self._snapshot, self.options.auto_compact
            if snapshot is not None and is_wanted(snapshot.properties, option):
                compact_small_files(snapshot, self._job.run)
        if discovery.is_full and not discovery.waiting:
            self._listed = discovery.started
        return result

    def _begin(self) -> LoadState:
        """Read the table's newest version and the autoload's state; add the feature it needs."""
        for _ in range(MAX_LOST):
            self._snapshot = snapshot = self._newest()
            if snapshot is None or FEATURE in snapshot.features:
                break
            snapshot.check_writable(numbered=True)
            changes = alter.set_properties(snapshot, {f"delta.feature.{FEATURE}": "supported"})
            with contextlib.suppress(CommitConflict):
                commit(snapshot, changes)
        state = None if snapshot is None else read_state(snapshot, self.name)
        if state is None:
            return LoadState(self.name, self._folder.root)
        if self.options.moved:
            return replace(state, source=self._folder.root)
        if state.source != self._folder.root:
            raise InvalidValue(
                f"the autoload {self.name!r} of this table loads from {state.source}, not from "
                f"{self._folder.root}",
                hint="give the autoload of another source another name; if the same files are at "
                "another place now, say so with moved=True",
                cli_hint="give the autoload of another source another --name; if the same files "
                "are at another place now, say so with --moved",
            )
        return state

    def _newest(self) -> Snapshot | None:
        if self._snapshot is not None:
            return self._snapshot.refresh()
        try:
            return Snapshot.read(self._store.uri, store=self._store, applies=READER_FEATURES)
        except NotADeltaTable:
            return None

    def _batches(self, discovery: Discovery) -> Iterator[list[DiscoveredFile]]:
        """The files in batches of bounded size, as the listing finds them."""
        batch: list[DiscoveredFile] = []
        count = size = 0
        for found in discovery.files(self._job.reader):
            loads = found.kind is DiscoveryKind.NEW
            full = count >= self.options.max_files or size + found.file.size > (
                self.options.max_bytes
            )
            if loads and count and full:
                yield batch
                batch, count, size = [], 0, 0
            batch.append(found)
            if loads:
                count, size = count + 1, size + found.file.size
        if batch:
            yield batch

    def _tidy(self, files: Sequence[SourceFile]) -> None:
        """Move or delete loaded files, unless they have changed since."""
        if self.options.keeps:
            return
        now = self._folder.stat_files([file.name for file in files])
        same = [file.name for file, new in zip(files, now, strict=True) if file.is_same(new)]
        target = self.options.move_to

        def clear(name: bytes) -> None:
            if target is None:
                self._folder.delete(name)
            else:
                self._folder.move(name, target)

        with ThreadPoolExecutor(_PARALLEL_REQUESTS if self._folder.objects else 1) as pool:
            for _ in pool.map(clear, same):
                pass

    def _check_move(self) -> None:
        """Refuse to move loaded files to a folder where the next listing would find them."""
        target = self.options.move_to
        if target is None:
            return
        root = target.rstrip("/") if self._folder.objects else os.path.realpath(target)
        below = root.removeprefix(self._folder.root + "/")
        if root == self._folder.root or (
            below != root and not any(part.startswith(("_", ".")) for part in below.split("/"))
        ):
            raise InvalidValue(
                f"loaded files cannot be moved to {target}: they would be found there again",
                hint="move them out of the source, or to a folder whose name begins with _",
            )
        self.options = replace(self.options, move_to=root)

    def _warn_of_changed(self, discovery: Discovery) -> None:
        """Warn of changed files that are not loaded again, whenever there are more of them."""
        if discovery.changed > self._warned and discovery.first_changed is not None:
            log.warning(
                "not loaded again, although they were written again since: files %d, the "
                "first %s. on_change='reload' (--on-change reload) loads such files again.",
                discovery.changed,
                utf8_text(self._folder.location(discovery.first_changed)),
            )
        self._warned = discovery.changed if discovery.is_full else self._warned

    def _log_batch(self, report: BatchReport) -> None:
        log.info(
            "version %d: files %d, rows %d, bad rows %d, empty %d, failed %d, seconds %.2f",
            report.version,
            report.files_read,
            report.rows_written,
            report.rows_bad,
            report.files_empty,
            report.files_failed,
            report.seconds,
        )


class _Overtaken(Exception):
    """Another process committed a batch; `result` counts our own batches so far."""

    def __init__(self, result: AutoloadResult) -> None:
        super().__init__()
        self.result = result


def default_name(folder: Folder) -> str:
    """An autoload's default name: the last part of the source's root, and a hash of the root."""
    root = os.fsencode(folder.root)
    last = "".join(c for c in folder.root.rpartition("/")[2] if c.isascii() and c.isalnum())
    return f"{last[:40] or 'source'}-{hashlib.sha256(root).hexdigest()[:12]}"


def _sleep(seconds: float, stop: Stop) -> None:
    """Sleep, but end early when `stop` says so."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0 and not stop():
        time.sleep(min(left, 0.2))
