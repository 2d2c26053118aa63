"""`variantlake export`: rows of a table into one file of another form."""

from __future__ import annotations

from typing import Annotated

import typer

import variantlake as vl
from variantlake.cli.query import sql_text
from variantlake.cli.terminal.options import (
    TableArgument,
    TimestampOption,
    VersionOption,
    dry_run_option,
    json_option,
)
from variantlake.cli.terminal.output import print_json, print_line
from variantlake.cli.terminal.progress import counting
from variantlake.export.export import ExportFormat, export_rows
from variantlake.scan.arrow_stream import ArrowStream
from variantlake.shown import counted, size


def export(
    table: TableArgument,
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="The file, on a disk or in an object store. .gz and .zst compress CSV and JSON.",
            show_default=False,
        ),
    ] = None,
    *,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The same as FILE.", show_default=False
        ),
    ] = None,
    select: Annotated[
        str, typer.Option(metavar="COLUMNS", help="Columns and paths, as in a SELECT list.")
    ] = "*",
    where: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION", help="Only rows that match this condition.", show_default=False
        ),
    ] = None,
    sql: Annotated[
        str | None,
        typer.Option(
            metavar="SQL",
            help="Instead, what a query gives, by the local engine. @FILE reads it from a file.",
            show_default=False,
        ),
    ] = None,
    format: Annotated[  # noqa: A002 - the option's name
        ExportFormat | None,
        typer.Option(
            metavar="|".join(ExportFormat),
            help="The form of the file; by default that of its name.",
            show_default=False,
        ),
    ] = None,
    json_variants: Annotated[
        bool, typer.Option("--json-variants", help="Write Variants into Parquet as JSON text.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file that is there.")
    ] = False,
    dry_run: Annotated[bool, dry_run_option("written")] = False,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    as_json: Annotated[bool, json_option()] = False,
) -> None:
    """Write rows into one file of Parquet, CSV or JSON lines, which appears when it is whole."""
    file = target or output
    if target and target.lstrip()[:6].upper() == "SELECT":
        raise typer.BadParameter("a query is given by --sql, and the file as FILE or by -o FILE")
    if not file or (target and output):
        raise typer.BadParameter("give the file once, as FILE or by -o FILE")
    opened = vl.Table.open(table, version, timestamp=timestamp)
    if sql is not None and (select != "*" or where is not None):
        raise typer.BadParameter("--sql says itself what --select and --where would say")
    rows: ArrowStream = opened.scan(select, where)
    if sql is not None:
        rows = opened.sql(sql_text(sql, None))
    if json_variants:
        rows = rows.as_json()
    with counting() as show:
        done = export_rows(
            rows.schema,
            rows.to_batches(),
            file,
            None if format is None else format.value,
            overwrite=overwrite,
            dry_run=dry_run,
            progress=show,
        )
    if as_json:
        print_json(done.to_dict())
    elif dry_run:
        print_line(f"{counted(done.rows_written, 'row')} would be written")
    else:
        print_line(
            f"{counted(done.rows_written, 'row')}, {size(done.bytes_written)} written in "
            f"{done.seconds:.1f} s"
        )
