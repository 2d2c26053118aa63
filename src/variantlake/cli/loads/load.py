"""`variantlake ingest`: JSON documents into a table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from variantlake.cli.loads.standard_input import with_standard_input
from variantlake.cli.loads.writing_options import WritingOptions
from variantlake.cli.terminal.local_spark import load_by
from variantlake.cli.terminal.options import (
    ContractOption,
    Engine,
    FormatOption,
    LoadEngineOption,
    MaxBadOption,
    ShreddingOption,
    TargetArgument,
    VariantColumnOption,
    json_option,
)
from variantlake.cli.terminal.output import print_fields, print_json
from variantlake.cli.terminal.progress import bytes_bar
from variantlake.ingest.commit_load import LoadResult
from variantlake.ingest.local_run import ingest_here
from variantlake.ingest.overwrite import Overwrite
from variantlake.ingest.sources.sources import Documents, SourceSpec
from variantlake.shown import size
from variantlake.writing.options.row_policies import BadRows


def ingest(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SRC...",
            help="Files, globs, folders or URLs of JSON documents: plain, gzip, zstd, bz2; "
            "- for standard input.",
            show_default=False,
        ),
    ],
    table: TargetArgument,
    *,
    column: VariantColumnOption = None,
    shredding: ShreddingOption = None,
    format: FormatOption = None,  # noqa: A002 - the option's name
    mode: Annotated[
        BadRows | None,
        typer.Option(
            metavar="|".join(BadRows),
            help="What happens to a bad document: the load fails, the document is written with "
            "the reason to a file in the table's folder, or its row is NULL. Default: strict; "
            "quarantine if there is a contract.",
            show_default=False,
        ),
    ] = None,
    contract: ContractOption = None,
    max_bad: MaxBadOption = None,
    load_id: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="A name for this load: a second load with the same name loads nothing.",
        ),
    ] = None,
    writing: WritingOptions,
    skip_empty: Annotated[
        bool,
        typer.Option(
            "--skip-empty/--refuse-empty", help="Whether files without a document are skipped."
        ),
    ] = True,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace the table's rows, in one commit."),
    ] = False,
    engine: LoadEngineOption = Engine.AUTO,
    as_json: Annotated[bool, json_option()] = False,
) -> None:
    """Load JSON documents into a VARIANT column, shredded, in one commit.

    A bad document stops the load with its file, line and column, and nothing is committed, unless
    --mode says otherwise.
    """
    layout = None if load_id is None or format is None else format.value
    with with_standard_input(sources) as files, bytes_bar("Loading") as progress:
        documents: Documents | list[SourceSpec] = files
        if load_id is None:
            # A missing source is said at once, not after Spark has started. With a load id it may
            # have gone since: a load that is done already asks for none.
            documents = Documents.of(files, format)

        def load(run: Callable[..., LoadResult]) -> LoadResult:
            return run(
                documents,
                table,
                format=layout,
                column=column,
                shredding=shredding,
                progress=progress,
                overwrite=Overwrite() if overwrite else None,
                mode=None if mode is None else mode.value,
                contract=contract,
                max_bad=max_bad,
                load_id=load_id,
                **writing.keywords(),
                skip_empty=skip_empty,
            )

        result = load_by(
            engine, lambda: load(ingest_here), lambda session: load(_by_spark(session))
        )
    if as_json:
        print_json(result.to_dict())
    elif result.already_loaded:
        print_fields({"table": table, "already loaded": f"at version {result.version}"})
    else:
        _print_result(table, result)


def _by_spark(session: Any) -> Callable[..., LoadResult]:
    # Loads PySpark.
    from variantlake.spark.load.ingest import ingest as ingest_by_spark

    return partial(ingest_by_spark, session)


def _print_result(table: str, result: LoadResult) -> None:
    rate = result.bytes_read / max(result.seconds, 1e-9) / 1e6
    fields = {
        "table": table,
        "version": result.version,
        "documents": f"{result.rows_written:,}",
        "files": f"{result.files_written:,} ({size(result.bytes_written)})",
        "read": f"{size(result.bytes_read)} in {result.seconds:.1f} s ({rate:.1f} MB/s)",
        "shredded into": "; ".join(result.shredding.values()),
    }
    if result.rows_replaced or result.rows_left_out:
        fields["rows replaced"] = f"{result.rows_replaced:,}"
        fields["documents left out"] = f"{result.rows_left_out:,}"
    if result.rows_bad:
        kept = f"in {result.quarantine}" if result.quarantine else "NULL in the table"
        fields["bad documents"] = f"{result.rows_bad:,}, {kept}"
    if result.files_empty:
        fields["empty sources"] = f"{result.files_empty:,}, skipped"
    print_fields(fields)
