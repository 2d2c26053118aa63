"""`variantlake convert`: Parquet files into a table."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

import typer

import variantlake as vl
from variantlake.cli.terminal.configuration import located
from variantlake.cli.terminal.local_spark import load_by
from variantlake.cli.terminal.options import (
    Engine,
    LoadEngineOption,
    dry_run_option,
    json_option,
)
from variantlake.cli.terminal.output import print_fields, print_json, print_rows
from variantlake.cli.terminal.progress import bytes_bar
from variantlake.ingest.conversion.request import ConvertKeywords
from variantlake.ingest.conversion.result import ConvertResult
from variantlake.shown import size


def convert(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SRC...", help="Parquet files, globs or folders.", show_default=False
        ),
    ],
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            callback=located,
            help="The Delta table, created if it does not exist. It may be the files' own folder.",
            show_default=False,
        ),
    ],
    *,
    json_column: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A column of JSON text that becomes VARIANT."),
    ] = None,
    variant_column: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A group to read as a Variant without an annotation."),
    ] = None,
    shredding: Annotated[
        str | None,
        typer.Option(
            metavar="DDL",
            help="Which paths of rewritten files become columns; VARIANT for none. The default is "
            "the table's own, that of the files, or inferred from a sample.",
        ),
    ] = None,
    partition_by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="A column whose values are in the names of folders, as 'day DATE' for "
            "day=2026-01-31; again for the folders below. SRC is TABLE then, and becomes a "
            "partitioned table where it is.",
        ),
    ] = None,
    rewrite: Annotated[
        bool, typer.Option("--rewrite", help="Rewrite files that could be added as they are.")
    ] = False,
    truncate_timestamps: Annotated[
        bool,
        typer.Option(
            "--truncate-timestamps",
            help="Cut the digits of timestamps below microseconds, which a table does not hold; "
            "else they are an error, which --dry-run finds too.",
        ),
    ] = False,
    dry_run: Annotated[bool, dry_run_option("done with each file")] = False,
    skip_empty: Annotated[
        bool,
        typer.Option("--skip-empty/--refuse-empty", help="Whether files of no bytes are skipped."),
    ] = True,
    engine: LoadEngineOption = Engine.AUTO,
    as_json: Annotated[bool, json_option()] = False,
) -> None:
    """Convert Parquet files into a table, in one commit.

    Files whose Variants are in the published layout stay as they are: added where they lie below
    the table's folder, else copied. Spark's older layout, unmarked Variants and JSON text
    are rewritten and shredded.
    """
    options = ConvertKeywords(
        json_columns=json_column or [],
        variant_columns=variant_column or [],
        shredding=shredding,
        partition_by=partition_by or [],
        rewrite=rewrite,
        truncate_timestamps=truncate_timestamps,
        dry_run=dry_run,
        skip_empty=skip_empty,
    )
    with bytes_bar("Loading") as progress:

        def by_spark(session: Any) -> ConvertResult:
            # Loads PySpark.
            from variantlake.spark.load.ingest import convert as convert_by_spark

            return convert_by_spark(session, sources, table, progress=progress, **options)

        result = load_by(
            engine, lambda: vl.convert(table, sources, progress=progress, **options), by_spark
        )
    if as_json:
        print_json(result.to_dict())
    else:
        _print_result(table, result)


def _print_result(table: str, result: ConvertResult) -> None:
    if result.dry_run:
        rows = [
            (step.path, step.action.value, f"{step.rows:,}", size(step.size), step.reason)
            for step in result.steps
        ]
        print_rows(["file", "action", "rows", "size", "why"], rows)
        return
    counts = Counter(step.action.value for step in result.steps)
    rate = sum(step.size for step in result.steps) / max(result.seconds, 1e-9) / 1e6
    found = {
        "table": table,
        "version": result.version,
        "rows": f"{result.rows_written:,}",
        "files": ", ".join(f"{count:,} to {action}" for action, count in counts.items()),
        "written": f"{size(result.bytes_written)} in {result.seconds:.1f} s ({rate:.1f} MB/s)",
        "shredded into": "; ".join(f"{k}: {v}" for k, v in result.shredding.items()) or "-",
    }
    if result.files_empty:
        found["empty files"] = f"{result.files_empty:,}, skipped"
    print_fields(found)
