"""Commit the results of a load's tasks in one commit, or not at all.

The log names all files of a load or none. A load whose id the table knows already is not repeated,
whichever process ran it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from variantlake.delta.actions.actions import AddFile
from variantlake.delta.stats.tags import tagged_notes
from variantlake.errors import CommitUnknown, LimitExceeded, StoreFailed
from variantlake.jobs.tasks import TaskResult
from variantlake.logs import IN_RESULT, logger
from variantlake.shown import Result
from variantlake.writing.commit_files import NOT_COMMITTED, commit_files, loaded
from variantlake.writing.commit_record import CommitRecord
from variantlake.writing.file_plan import FilePlan
from variantlake.writing.options.load_options import LoadOptions
from variantlake.writing.options.row_policies import BadRows
from variantlake.writing.own_load_id import LoadId
from variantlake.writing.quarantine import folder_of
from variantlake.writing.staged_files import write_stage
from variantlake.writing.stream_batch import StreamBatch
from variantlake.writing.table_write import TableWrite

if TYPE_CHECKING:
    from variantlake.dml.unique_rows import UniqueRows

_LOG = logger("load")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LoadCounts(Result):
    """The counts of a load; see `LoadResult`."""

    files_written: int = 0
    files_empty: int = 0
    rows_written: int = 0
    rows_bad: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    shredding: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LoadResult(LoadCounts):
    """What a load did.

    `files_empty` sources were empty and skipped. `rows_bad` rows were left out or became NULL,
    depending on the load's mode; `quarantine` is the folder with their reasons, None if there is
    none. For a load of documents, `bytes_read` is the stored size of the sources, and `shredding`
    the DDL of the files' schemas, `VARIANT` if they are not shredded. If `already_loaded`, the
    table had the load's id in `version`, and nothing was done. `load_id` is the id given to the
    load, else a generated one: repeating the load with it does nothing. With `unique_by`, the load
    replaced `rows_replaced` rows of the table, and left out `rows_left_out` of its own because of
    their keys.
    """

    version: int
    quarantine: str | None = None
    already_loaded: bool = False
    load_id: str = ""
    rows_replaced: int = 0
    rows_left_out: int = 0


def load_attributes(result: Any) -> dict[str, str | int]:
    """The attributes of a span for a load, or for a batch of an autoload."""
    return {
        "version": result.version,
        "rows": result.rows_written,
        "rows_bad": result.rows_bad,
        "bytes": result.bytes_written,
    }


def find_committed_load(
    target: TableWrite, options: LoadOptions, batch: StreamBatch | None = None
) -> LoadResult | None:
    """The result of a load whose id or stream batch the table knows already; None for a new one.

    Raises LostCheckpoint as `StreamBatch.version_in`.
    """
    version = None if options.load_id is None else loaded(target, options.load_id)
    if version is None and batch is not None and target.snapshot is not None:
        version = batch.version_in(target.snapshot)
    if version is None:
        return None
    return LoadResult(version=version, already_loaded=True, load_id=options.load_id or "")


def commit_load(
    target: TableWrite,
    plan: FilePlan,
    results: Sequence[TaskResult],
    options: LoadOptions,
    started: float,
    *,
    empty_sources: int = 0,
    record: CommitRecord | None = None,
    takes_id: bool = True,
) -> LoadResult:
    """Commit the files that the tasks wrote; `started` is when the load began (`perf_counter`).

    The history records the number of empty sources. `record` goes into the same commit. `takes_id`
    says whether the caller can repeat the load with a load id.

    Raises CommitConflict and others after removing the load's files. After StoreFailed and
    CommitUnknown the files stay, because the log may name them.
    """
    adds = [add for result in results for add in result.adds]
    rows = sum(result.rows for result in results)
    bad = sum(result.bad_rows for result in results)
    metrics = {"numOutputRows": str(rows)} | _bad_metrics(plan.mode, bad)
    if empty_sources:
        metrics["numEmptySources"] = str(empty_sources)
    if options.max_bad is not None and bad:
        seen = rows if plan.mode is BadRows.NULL else rows + bad
        first = next((result.first_bad for result in results if result.first_bad), "")
        try:
            options.max_bad.check(bad, seen, first, is_all=True)
        except LimitExceeded:
            target.clean_up(plan.load_id)
            raise
    load = LoadId.of(options.load_id, target.snapshot, plan.load_id)
    load_id = load.text
    unique = _unique_rows(target, plan, options)
    try:
        if target.is_staged:
            version, done = write_stage(target, adds, metrics, load_id), True
        else:
            version, done = commit_files(
                target, adds, metrics, load=load, record=record, decide=unique
            )
    except NOT_COMMITTED:
        target.clean_up(plan.load_id)
        raise
    except (StoreFailed, CommitUnknown) as error:
        if takes_id and record is None:
            # A put that failed may still arrive: a repeat detects that by the id alone.
            error.hint = f"repeat the load with load_id={load_id!r}: it loads nothing twice"
            error.cli_hint = f"repeat the load with --load-id {load_id}: it loads nothing twice"
        if isinstance(error, CommitUnknown):
            error.load_id = load_id
        raise
    if not done:
        target.clean_up(plan.load_id)
        return LoadResult(version=version, already_loaded=True, load_id=load_id)
    _warn_of_notes(target, adds)
    has_quarantine = any(result.quarantine for result in results)
    loaded_result = LoadResult(
        version=version,
        files_written=len(adds),
        rows_written=rows if unique is None else rows - unique.left_out,
        bytes_written=sum(add.size for add in adds),
        seconds=time.perf_counter() - started,
        rows_bad=bad,
        quarantine=target.store.join(folder_of(plan.load_id)) if has_quarantine else None,
        files_empty=empty_sources,
        load_id=load_id,
        rows_replaced=0 if unique is None else unique.replaced,
        rows_left_out=0 if unique is None else unique.left_out,
    )
    _log_result(loaded_result, target)
    return loaded_result


def check_unique(target: TableWrite, options: LoadOptions) -> None:
    """Raise InvalidQuery or UnsupportedFeature before any work if `unique_by` is not a key."""
    if not options.unique_by:
        return
    from variantlake.dml.unique_rows import key_items  # parses SQL

    key_items(target.schema, options.unique_by)


def _unique_rows(target: TableWrite, plan: FilePlan, options: LoadOptions) -> UniqueRows | None:
    if not options.unique_by:
        return None
    check_unique(target, options)
    from variantlake.dml.unique_rows import UniqueRows

    return UniqueRows(plan, options)


def _log_result(result: LoadResult, target: TableWrite) -> None:
    _LOG.info(
        "%s: loaded rows %d, files %d, bytes %d, seconds %.2f",
        target.store.uri,
        result.rows_written,
        result.files_written,
        result.bytes_written,
        result.seconds,
    )
    if result.quarantine is not None:
        text, where = "left out bad rows %d, with reasons in %s", result.quarantine
    elif result.rows_bad:
        text, where = "stored NULL for bad rows %d of %s", target.store.uri
    else:
        return
    _LOG.warning(text, result.rows_bad, where, extra=IN_RESULT)


def _warn_of_notes(target: TableWrite, adds: Sequence[AddFile]) -> None:
    """Warn of each column with values that Spark lacks, or keys that Spark may not find."""
    schema = target.schema
    columns = zip(schema.variant_columns(), schema.variant_columns(physical=True), strict=True)
    for logical, physical in columns:
        notes = [tagged_notes(physical, add.tags or {}) for add in adds]
        files = sum(each is not None and each.lacking for each in notes)
        if files:
            _LOG.warning(
                "%s: residuals of `%s` in %d of %d new files hold TIME, nanoseconds or other types "
                "that Spark lacks. Spark reads whole Variants there only with variantlake.",
                target.store.uri,
                ".".join(logical),
                files,
                len(adds),
            )
        files = sum(each is not None and each.reordered for each in notes)
        if files:
            _LOG.warning(
                "%s: keys of `%s` in %d of %d new files have characters above U+FFFF, by which "
                "Spark orders them otherwise. In objects of 32 fields and more it finds them only "
                "with variantlake.",
                target.store.uri,
                ".".join(logical),
                files,
                len(adds),
            )


def _bad_metrics(mode: BadRows, count: int) -> dict[str, str]:
    """The number of bad rows as a metric of the history."""
    if not count:
        return {}
    return {"numQuarantinedRows" if mode is BadRows.QUARANTINE else "numNulledRows": str(count)}
