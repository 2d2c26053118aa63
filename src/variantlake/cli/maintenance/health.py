"""`variantlake health`: the reasons why a table is slow or large, and commands that help."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

from variantlake.cli.terminal.options import (
    FINDINGS,
    TableArgument,
    TimestampOption,
    VersionOption,
    json_option,
)
from variantlake.cli.terminal.output import print_json, print_line, print_rows
from variantlake.shown import counted, size
from variantlake.table import Table


class FailOn(enum.StrEnum):
    """The findings that make the exit code 4."""

    NEVER = "never"
    WARNING = "warning"
    INFO = "info"


def health(
    table: TableArgument,
    *,
    orphans: Annotated[
        bool,
        typer.Option(
            "--orphans", help="Also list the folder, to find files that no version needs."
        ),
    ] = False,
    fail_on: Annotated[
        FailOn,
        typer.Option(
            metavar="|".join(FailOn),
            help="Exit with code 4 if there is a finding of this severity or worse.",
        ),
    ] = FailOn.NEVER,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    as_json: Annotated[bool, json_option()] = False,
) -> None:
    """Show what makes a table slow or large, each with the command that helps.

    It reads only the log: small files, overlap, deleted rows, residuals, missing statistics, the
    log itself.
    """
    found = Table.open(table, version, timestamp=timestamp).health(orphans=orphans)
    if as_json:
        print_json(found.to_dict())
    else:
        print_line(
            f"version {found.version}: {counted(found.table_files, 'file')}, "
            f"{size(found.table_bytes)}"
        )
        rows = [(f.severity, f.topic, f.message, f.command or "-") for f in found.findings]
        print_rows(["", "topic", "finding", "what helps"], rows)
    worst = found.worst_severity
    if worst is not None and (fail_on == FailOn.INFO or fail_on == str(worst)):
        raise typer.Exit(FINDINGS)
