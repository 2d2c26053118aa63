"""`variantlake vacuum`: remove the files that no version within the retention needs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from variantlake.cli.terminal.options import (
    TableArgument,
    YesOption,
    checked_by,
    confirm,
    dry_run_option,
    json_option,
)
from variantlake.cli.terminal.output import print_fields, print_json, print_note, print_rows
from variantlake.cli.terminal.progress import counting, staying_whole
from variantlake.maintenance.vacuuming.listing import UnneededFile
from variantlake.maintenance.vacuuming.vacuum import VacuumResult
from variantlake.shown import counted, size
from variantlake.table import Table
from variantlake.units import seconds

MAX_ROWS = 50
"""Files that a dry run shows to people; `--json` prints all."""


def vacuum(
    table: TableArgument,
    *,
    retention: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            callback=checked_by(seconds),
            help="How long to keep removed files, as in 7d; a bare number is in hours. The default "
            "is the table's own setting.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Allow a retention below the table's own: readers of older versions and running "
            "writers lose their files.",
        ),
    ] = False,
    quarantine: Annotated[
        bool, typer.Option("--quarantine", help="Also delete old quarantine files.")
    ] = False,
    lite: Annotated[
        bool,
        typer.Option(
            "--lite",
            help="Do not list the folder: delete only files that the log names.",
        ),
    ] = False,
    dry_run: Annotated[bool, dry_run_option("removed")] = False,
    yes: YesOption = False,
    as_json: Annotated[
        bool, json_option("Print one JSON object per file, then one with the counts.")
    ] = False,
) -> None:
    """Delete files that no version within the retention needs. Older versions become unreadable.

    These are data files, deletion vectors and change files of older versions, and files that killed
    loads left.
    """
    opened = Table.open(table)
    if not dry_run:
        confirm(f"Delete the files that no recent version of {table} needs?", yes=yes)
    shown: list[UnneededFile] = []

    def report(found: UnneededFile) -> None:
        if as_json:
            print_json({"path": found.path, "size": found.size, "kind": str(found.kind)})
        elif dry_run and len(shown) < MAX_ROWS:
            shown.append(found)

    whole = "The table is whole: only files that nobody needs are gone. A repeat removes the rest."
    with staying_whole(whole), counting() as progress:
        done = opened.vacuum(
            retention,
            dry_run=dry_run,
            force=force,
            quarantine=quarantine,
            lite=lite,
            on_file=report,
            progress=progress,
        )
    if as_json:
        print_json({**done.to_dict(), "may_break_clones": done.may_break_clones})
    else:
        _print(table, done, shown)
    if done.dry_run and done.may_break_clones:
        print_note(
            "The log does not know of shallow clones: one elsewhere that was made of an older "
            "version still reads these files."
        )


def _print(table: str, done: VacuumResult, shown: list[UnneededFile]) -> None:
    if shown:
        print_rows(["file", "kind", "size"], [(f.path, f.kind, size(f.size)) for f in shown])
        if done.files_unneeded > len(shown):
            print_note(
                f"{counted(done.files_unneeded - len(shown), 'more file')}; --json prints all."
            )
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in done.kinds.items())
    what = "would be removed" if done.dry_run else "removed"
    fields: dict[str, Any] = {
        "table": table,
        "retention": f"{done.retention_hours:g} hours",
        "files listed": f"{done.files_listed:,}",
        what: f"{counted(done.files_unneeded, 'file')}, {size(done.bytes_unneeded)}"
        + (f" ({kinds})" if kinds else ""),
    }
    if not done.dry_run:
        fields["version"] = done.version
    if done.files_outside:
        fields["files elsewhere"] = (
            f"{done.files_outside:,}, of the table that this is a clone of; they stay"
        )
    if done.files_quarantined:
        fields["quarantine"] = (
            f"{counted(done.files_quarantined, 'file')}, {size(done.bytes_quarantined)}, stay"
        )
    print_fields(fields)
