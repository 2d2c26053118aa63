"""`variantlake report`: show a table, and perhaps a query of it, on one page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from variantlake.cli.terminal.options import (
    TableArgument,
    TimestampOption,
    VersionOption,
    json_option,
)
from variantlake.cli.terminal.output import escaped, print_json, print_line
from variantlake.engine.queries import Query
from variantlake.engine.reading import Reading
from variantlake.engine.text import names_of_table, read_query
from variantlake.errors import UnsupportedFeature
from variantlake.table import Table


def report(
    table: TableArgument,
    *,
    output: Annotated[
        str,
        typer.Option(
            "-o", "--output", metavar="FILE", help="The file to write; - for standard output."
        ),
    ] = "report.html",
    query: Annotated[
        str | None,
        typer.Option(
            metavar="SQL",
            help="A query of the table: the report shows which files each condition skips.",
        ),
    ] = None,
    examples: Annotated[
        bool,
        typer.Option("--examples/--no-examples", help="Whether to show values of the data."),
    ] = True,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    as_json: Annotated[
        bool, json_option("Print the data as one JSON object, and write no page.")
    ] = False,
) -> None:
    """Write an HTML report on a table: files, paths, what filters skip, drift, advice."""
    opened = Table.open(table, version, timestamp=timestamp)
    parsed = None if query is None else _parsed(opened, query)
    found = opened.report(examples=examples)
    if query is not None and parsed is not None:
        found = found.with_query(query, Reading(opened.snapshot, parsed).scan)
    if as_json:
        print_json(found.to_dict())
    elif output == "-":
        # Only the data in the page may have control characters, and it is JSON.
        sys.stdout.writelines(f"{escaped(line)}\n" for line in found.to_html().split("\n"))
    else:
        found.save(output)
        print_line(f"{Path(output).resolve()} shows version {opened.version}")


def _parsed(table: Table, query: str) -> Query:
    try:
        names = dict.fromkeys(names_of_table(table.uri), table.schema)
        return read_query(query, names)[1]
    except UnsupportedFeature as error:
        error.cli_hint = "a report shows queries that the local engine runs"
        raise
