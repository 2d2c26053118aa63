"""`variantlake report`: a table, and perhaps a query of it, as one page to look at."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from variantlake.cli.terminal.options import TableArgument, json_option
from variantlake.cli.terminal.output import print_json, print_line
from variantlake.scan.table_scan import Scan
from variantlake.sql.select import QueryText
from variantlake.table import Table

VIEW = "t"
"""What the SQL text may call the table."""


def report(
    table: TableArgument,
    *,
    output: Annotated[
        str,
        typer.Option("-o", "--output", metavar="FILE", help="The page to write; - for stdout."),
    ] = "report.html",
    query: Annotated[
        str | None,
        typer.Option(
            metavar="SQL",
            help="A query of the table `t`: the report shows which files each condition skips.",
        ),
    ] = None,
    examples: Annotated[
        bool,
        typer.Option("--examples/--no-examples", help="Whether to show values of the data."),
    ] = True,
    as_json: Annotated[
        bool, json_option("Print the data as one JSON object, and write no page.")
    ] = False,
) -> None:
    """Write one page about a table: files, paths, what filters skip, drift, advice."""
    opened = Table.open(table)
    found = opened.report(examples=examples)
    if query is not None:
        select = QueryText(opened.schema, VIEW).select(query)
        scan = Scan(opened.snapshot, select.items, select.where, select.limit)
        found = found.with_query(query, scan)
    if as_json:
        print_json(found.to_dict())
    elif output == "-":
        sys.stdout.write(found.to_html())
    else:
        found.save(output)
        print_line(f"{Path(output).resolve()} shows version {opened.version}")
