"""`variantlake erase`: erase rows for good."""

from __future__ import annotations

import datetime as dt
import shlex
from typing import Annotated

import typer

from variantlake.cli.terminal.options import (
    TableArgument,
    YesOption,
    confirm,
    dry_run_option,
    json_option,
)
from variantlake.cli.terminal.output import print_fields, print_json, print_note
from variantlake.erase.erase import EraseResult
from variantlake.shown import counted
from variantlake.table import Table


def erase(
    table: TableArgument,
    *,
    where: Annotated[
        str,
        typer.Option(
            metavar="CONDITION", help="The rows, as a condition after WHERE.", show_default=False
        ),
    ],
    purge: Annotated[
        bool,
        typer.Option(
            "--purge",
            help="Remove all older versions now, with their files and their log. Use it only if "
            "nothing else uses the table.",
        ),
    ] = False,
    dry_run: Annotated[bool, dry_run_option("erased")] = False,
    yes: YesOption = False,
    as_json: Annotated[bool, json_option()] = False,
) -> None:
    """Erase rows for good, from everything below the table's folder.

    Files with such rows are rewritten, also if the rows were deleted before.
    """
    opened = Table.open(table)
    if not dry_run:
        versions = ", and all older versions" if purge else ""
        confirm(f"Erase the rows of {table} with {where}{versions}?", yes=yes)
    done = opened.erase(where, purge=purge, dry_run=dry_run)
    if as_json:
        print_json(done.to_dict())
        return
    would = "would be " if dry_run else ""
    print_fields(
        {
            "rows": f"{done.rows_erased:,} {would}erased",
            "deleted before": f"{done.rows_hidden:,} {would}erased",
            "files": f"{done.files_rewritten:,} {would}rewritten, "
            f"{done.files_removed:,} {would}removed",
        }
    )
    if dry_run:
        return
    if done.purged:
        print_note(
            f"Purged: {counted(done.files_purged, 'file')}, "
            f"{counted(done.log_files_purged, 'file')} of the log."
        )
        return
    for line in _left(table, done):
        print_note(line)


def _left(table: str, done: EraseResult) -> list[str]:
    """Tell what older versions still hold, and how to remove it."""
    found = done.files_rewritten or done.files_removed
    vacuum = f"variantlake vacuum {shlex.quote(table)} --quarantine"
    return [
        f"From version {done.version} on the table does not hold the rows. Older versions "
        + ("do:" if found else "may:"),
        f"`{vacuum}` after {_time(done.vacuum_after)} removes their files;",
        f"their log, with bounds of values, goes with a checkpoint after {_time(done.log_until)}.",
    ]


def _time(time: dt.datetime | None) -> str:
    if time is None:
        return "no time at all, by the table's properties,"
    return time.isoformat(" ", "minutes")
