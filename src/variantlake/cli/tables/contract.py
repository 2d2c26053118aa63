"""`variantlake contract`, and `variantlake check --contract`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from variantlake.cli.tables.properties import print_version
from variantlake.cli.terminal.options import FINDINGS, TableArgument, json_option
from variantlake.cli.terminal.output import print_json, print_line, print_note
from variantlake.cli.terminal.progress import counting
from variantlake.shown import counted
from variantlake.table import Table

OWN = "table"
"""What `--contract` says for the table's own contract."""


def contract(
    table: TableArgument,
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE", help="A JSON Schema to set; without it, show it.", show_default=False
        ),
    ] = None,
    *,
    column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The VARIANT column; default: the only one.", show_default=False
        ),
    ] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Take the contract away.")] = False,
    as_json: Annotated[bool, json_option("Print the version as one JSON object.")] = False,
) -> None:
    """Show the contract of a table as JSON, set it from a file, or drop it.

    Loads leave out documents that break it, and write them with the reason to the quarantine.
    `variantlake check TABLE --contract FILE` checks the rows that are there.
    """
    opened = Table.open(table)
    if drop and file is not None:
        raise typer.BadParameter("--drop takes no file")
    if drop or file is not None:
        done = opened.set_contract(file, column=column)
        print_version(done.version, as_json=as_json)
        return
    known = opened.contracts if column is not None else {"": opened.contract}
    found = known.get(column or "")
    if found is None:
        print_note("the table has no contract")
    else:
        print_json(found.schema)


def check_contract(
    source: str,
    file: str,
    column: str | None,
    version: int | None,
    timestamp: str | None,
    *,
    as_json: bool,
) -> None:
    """Check the rows of a table; exit code 4 if one breaks the contract."""
    table = Table.open(source, version, timestamp=timestamp)
    with counting() as progress:
        report = table.check_contract(
            None if file == OWN else file, column=column, progress=progress
        )
    for finding in report.findings:
        if as_json:
            print_json(asdict(finding))
        else:
            value = f", {finding.value}" if finding.value else ""
            print_line(
                f"{finding.path}: {finding.says}: {counted(finding.rows, 'row')}; the first in "
                f"{finding.file}{value}"
            )
    if report.broken:
        print_note(f"{report.broken:,} of {counted(report.rows, 'document')} break the contract")
        raise typer.Exit(FINDINGS)
    if not as_json:
        print_line(f"{counted(report.rows, 'document')}, nothing found")
