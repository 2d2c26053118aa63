"""Run an autoload once or at intervals, and write its metrics to a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Unpack

from variantlake.autoloading.autoloader import Autoloader, AutoloadResult
from variantlake.autoloading.batch import BatchReport
from variantlake.autoloading.metrics import Metrics
from variantlake.autoloading.options import AutoloadKeywords
from variantlake.delta.actions.commit_properties import takes_commit_properties
from variantlake.errors import VariantLakeError
from variantlake.ingest.encode.document_options import IngestKeywords
from variantlake.jobs.tasks import Runner
from variantlake.jobs.threads import run_in_threads
from variantlake.storage.options import reach_with
from variantlake.telemetry.prometheus import check_installed
from variantlake.units import Duration, seconds


class AutoloadOptionKeywords(AutoloadKeywords, IngestKeywords, total=False):
    """The keywords of `AutoloadOptions`, and those of `DocumentOptions` but `load_id`."""


@takes_commit_properties
def autoload(
    table: str | os.PathLike[str],
    source: str | os.PathLike[str],
    *,
    name: str | None = None,
    every: Duration | None = None,
    stop: Callable[[], bool] | None = None,
    on_batch: Callable[[BatchReport], None] | None = None,
    metrics_file: str | os.PathLike[str] | None = None,
    **options: Unpack[AutoloadOptionKeywords],
) -> AutoloadResult:
    """Load new files of a folder or bucket into a table, each file exactly once.

    Each batch of limited size is one commit, which records the names of its files in the table's
    log. So an autoload continues after a kill or on another machine, and several processes may run
    it at once.

    Args:
        table: The table's location; the first batch creates the table if it does not exist.
        source: A folder, a glob or one file, on a disk or in an object store; the files are as for
            `ingest`. In a folder and its subfolders it takes files with a JSON file name.
        name: The name of this autoload in the table; another name loads all files again. None
            derives one from the source's location.
        every: The seconds between two rounds, or text such as `30s`. None runs one round.
        stop: Called between batches; true ends the autoload.
        on_batch: Called after each commit.
        metrics_file: A file for metrics in Prometheus text format, written after each batch and
            round.
        storage_options: Options to access the buckets of table and source, as for `Table.open`.
        **options: See `AutoloadOptions`, and for documents and files `DocumentOptions`;
            `commit_properties` as for `Table.append`.

    Raises:
        MissingSource: The source does not exist.
        InvalidValue: An invalid option, another source under the same name, or a changed file if
            `on_change` is "error".
        MalformedLog: The autoload's state in the log is damaged.
        StoreFailed: A store fails; with `every` the next round tries again.
        InvalidSchema, NotADeltaTable, UnsupportedFeature, CommitConflict: As `ingest`. An
            error of a single file is recorded, and the other files are loaded.
    """
    reach_with([table, source], options.pop("storage_options", None))
    return run_autoload(
        table,
        source,
        options,
        name=name,
        every=every,
        stop=stop,
        on_batch=on_batch,
        metrics_file=metrics_file,
    )


def run_autoload(
    table: str | os.PathLike[str],
    source: str | os.PathLike[str],
    options: AutoloadOptionKeywords,
    *,
    name: str | None,
    every: Duration | None,
    stop: Callable[[], bool] | None,
    on_batch: Callable[[BatchReport], None] | None,
    metrics_file: str | os.PathLike[str] | None,
    run: Runner = run_in_threads,
    parallelism: int | None = None,
) -> AutoloadResult:
    """As `autoload`; `run` runs the tasks of a batch, `parallelism` of them at once."""
    interval = None if every is None else seconds("every", every)
    metrics: Metrics | None = None

    def count_batch(report: BatchReport) -> None:
        if metrics is not None:
            metrics.batch(report)
        if on_batch is not None:
            on_batch(report)

    loader = Autoloader(
        source,
        table,
        name=name,
        run=run,
        parallelism=parallelism,
        on_batch=count_batch,
        **options,
    )
    if metrics_file is not None:
        check_installed()
        metrics = Metrics(Path(metrics_file), loader.name, os.fspath(table))
        metrics.write()

    def count_round(result: AutoloadResult, error: VariantLakeError | None) -> None:
        if metrics is not None:
            metrics.round(result.files_waiting, result.files_changed, failed=error is not None)

    is_stopped: Callable[[], bool] = (lambda: False) if stop is None else stop
    if interval is not None:
        return loader.every(interval, is_stopped, on_round=count_round)
    result = loader.once(is_stopped)
    count_round(result, None)
    return result
