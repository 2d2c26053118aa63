"""`variantlake autoload`: load new files of a folder or bucket into a table, each once."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated, Any

import typer

from variantlake.autoloading.autoloader import AutoloadResult
from variantlake.autoloading.options import (
    BACKFILL_SECONDS,
    MAX_BYTES,
    MAX_FILES,
    Ascending,
    OnChange,
)
from variantlake.autoloading.run import autoload as run_autoload
from variantlake.cli.loads.writing_options import WritingOptions
from variantlake.cli.terminal.configuration import located
from variantlake.cli.terminal.logs import batches_logged
from variantlake.cli.terminal.options import (
    ContractOption,
    FormatOption,
    MaxBadOption,
    ShreddingOption,
    VariantColumnOption,
    YesOption,
    checked_by,
    confirm,
    json_option,
)
from variantlake.cli.terminal.output import is_quiet, print_fields, print_json, print_note
from variantlake.cli.terminal.stopping import stopping
from variantlake.delta.log.log_segment import has_log
from variantlake.ingest.sources.document_format import DocumentFormat
from variantlake.shown import size
from variantlake.storage.opening import open_store
from variantlake.units import seconds, size_bytes
from variantlake.writing.options.row_policies import BadRows

SOME_FAILED = 3
"""The exit code if files could not be read, and the others were loaded."""


def autoload(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SRC",
            help="A folder, glob or URL prefix of JSON documents: plain, gzip, zstd, bz2.",
            show_default=False,
        ),
    ],
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            callback=located,
            help="The Delta table, created by the first batch if it does not exist.",
            show_default=False,
        ),
    ],
    *,
    once: Annotated[
        bool, typer.Option("--once", help="Load the files that are there, then stop (the default).")
    ] = False,
    every: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            callback=checked_by(seconds),
            help="Look for new files this often: 30s, 5m, 1h. SIGTERM or Ctrl-C ends it "
            "after the current batch.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Identifies this autoload in the table. Default: derived from the source.",
        ),
    ] = None,
    moved: Annotated[
        bool,
        typer.Option(
            "--moved", help="The source of this name has moved here, with the same files."
        ),
    ] = False,
    max_files: Annotated[
        int, typer.Option(metavar="N", help="The maximum number of files of a batch.", min=1)
    ] = MAX_FILES,
    max_bytes: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            callback=checked_by(size_bytes),
            help="The maximum bytes of a batch, as stored: a number, or as in 64MB.",
        ),
    ] = f"{MAX_BYTES >> 30}GB",
    ascending: Annotated[
        Ascending,
        typer.Option(
            metavar="|".join(Ascending),
            help="Whether new names come after all others, so that a listing begins after the "
            "last one.",
        ),
    ] = Ascending.AUTO,
    backfill: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            callback=checked_by(seconds),
            help="List everything at least this often.",
        ),
    ] = f"{BACKFILL_SECONDS / 3600:.0f}h",
    settle: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            callback=checked_by(seconds),
            help="Ignore files modified within the last TIME. Default: 1s on a disk, 0s in an "
            "object store.",
        ),
    ] = None,
    on_change: Annotated[
        OnChange,
        typer.Option(
            metavar="|".join(OnChange),
            help="What happens to a file that was written again after it was loaded: it is "
            "counted and warned of, the command fails, or it is loaded again beside its earlier "
            "rows.",
        ),
    ] = OnChange.IGNORE,
    after: Annotated[
        str,
        typer.Option(
            metavar="keep|delete|move:PATH",
            help="What happens to loaded files, after the commit.",
        ),
    ] = "keep",
    since: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="Skip files that were last written before this time."),
    ] = None,
    max_file_age: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            callback=checked_by(seconds),
            help="Do not load files that changed longer ago, and drop what is recorded of them. "
            "Default: all records are kept.",
        ),
    ] = None,
    column: VariantColumnOption = None,
    shredding: ShreddingOption = None,
    format: FormatOption = None,  # noqa: A002 - the option's name
    mode: Annotated[
        BadRows | None,
        typer.Option(
            metavar="|".join(BadRows),
            help="What happens to a bad document: its file counts as failed, the document is "
            "written with the reason to a file in the table's folder, or its row is NULL. "
            "Default: strict; quarantine if there is a contract.",
            show_default=False,
        ),
    ] = None,
    contract: ContractOption = None,
    max_bad: MaxBadOption = None,
    writing: WritingOptions,
    metrics_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write figures to this file in the text format of Prometheus (name.prom).",
        ),
    ] = None,
    auto_compact: Annotated[
        bool | None,
        typer.Option(
            "--auto-compact/--no-auto-compact",
            help="Whether small files are joined once there are 50 of them; else as the table "
            "property delta.autoOptimize.autoCompact says.",
            show_default=False,
        ),
    ] = None,
    yes: YesOption = False,
    as_json: Annotated[bool, json_option("Print one JSON object at the end.")] = False,
) -> None:
    """Load new files of a folder or bucket, each exactly once, one commit per batch.

    The table's own log records the loaded files, so the command continues from there after a kill,
    on another machine, or beside other processes. A file that cannot be loaded is recorded, and the
    others are loaded; the exit code without --every is then 3. `variantlake loads` shows each file.
    It runs in this process, without Spark.
    """
    if once and every is not None:
        raise typer.BadParameter("--once and --every contradict each other: give one of them")
    if after == "delete":
        confirm(f"Delete the files of {source} that are loaded?", yes=yes)
    with nullcontext() if is_quiet() else batches_logged(), stopping("autoload") as stop:
        result = run_autoload(
            table,
            source,
            name=name,
            every=every,
            stop=stop.is_set,
            metrics_file=metrics_file,
            format=None if format is None else format.value,
            column=column,
            shredding=shredding,
            max_files=max_files,
            max_bytes=max_bytes,
            ascending=ascending.value,
            backfill=backfill,
            settle=settle,
            on_change=on_change.value,
            max_file_age=max_file_age,
            after=after,
            since=since,
            moved=moved,
            auto_compact=auto_compact,
            mode=None if mode is None else mode.value,
            contract=contract,
            max_bad=max_bad,
            **writing.keywords(),
        )
    if as_json:
        print_json(result.to_dict())
    else:
        _print_result(table, result, DocumentFormat.of(format, [source]).kind.hint)
    if result.files_failed and every is None:
        raise typer.Exit(SOME_FAILED)


def _print_result(table: str, result: AutoloadResult, names: str) -> None:
    fields: dict[str, Any] = {
        "table": table,
        "autoload": result.name,
        "version": "unchanged" if result.version is None else result.version,
        "batches": f"{result.batches:,}",
        "files": f"{result.files_read:,} ({size(result.bytes_read)})",
        "documents": f"{result.rows_written:,}",
    }
    counts = {
        "bad documents": result.rows_bad,
        "files without documents": result.files_empty,
        "files that failed": result.files_failed,
        "files too old": result.files_skipped,
        "changed, left alone": result.files_changed,
        "not settled yet": result.files_waiting,
    }
    print_fields(fields | {key: f"{count:,}" for key, count in counts.items() if count})
    if result.version is None and not result.files_waiting and not has_log(open_store(table)):
        print_note(f"the source has no file to load; {names}", "Hint: ")
    if result.files_failed:
        print_note("`variantlake loads TABLE --state failed` shows why", "Hint: ")
