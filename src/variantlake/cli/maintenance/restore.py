"""`variantlake restore`: bring back an older version as the newest one."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from variantlake.cli.terminal.options import (
    TableArgument,
    VersionOption,
    checked_by,
    dry_run_option,
    json_option,
)
from variantlake.cli.terminal.output import print_fields, print_json, print_note
from variantlake.cli.terminal.progress import counting, staying_whole
from variantlake.maintenance.restore import RestoreResult
from variantlake.shown import counted, size
from variantlake.table import Table
from variantlake.units import moment


def restore(
    table: TableArgument,
    *,
    version: VersionOption = None,
    timestamp: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            callback=checked_by(moment),
            help="Go back to the version of this time instead; in UTC unless it has a zone.",
        ),
    ] = None,
    skip_missing: Annotated[
        bool,
        typer.Option(
            "--skip-missing", help="Leave out the rows of files that a vacuum has removed."
        ),
    ] = False,
    dry_run: Annotated[bool, dry_run_option("done")] = False,
    as_json: Annotated[bool, json_option("Print the counts as one JSON object.")] = False,
) -> None:
    """Bring back the rows, schema and properties of an older version, in one commit."""
    if (version is None) == (timestamp is None):
        raise typer.BadParameter("give --version or --timestamp, one of them")
    whole = "The table is whole: it has the old or the restored version, see its history."
    with staying_whole(whole), counting() as progress:
        done = Table.open(table).restore(
            version,
            timestamp=timestamp,
            dry_run=dry_run,
            missing="skip" if skip_missing else "refuse",
            progress=progress,
        )
    if as_json:
        print_json(done.to_dict())
        return
    print_fields(_fields(table, done))
    if done.files_missing and dry_run:
        names = ", ".join(done.missing[:10])
        print_note(f"{counted(done.files_missing, 'missing file')}: {names}")


def _fields(table: str, done: RestoreResult) -> dict[str, Any]:
    return {
        "table": table,
        "version": f"{done.restored_version}, "
        + ("not restored: dry run" if done.dry_run else f"restored as {done.version}"),
        "files back": f"{done.files_restored:,}, {size(done.bytes_restored)}",
        "files removed": f"{done.files_removed:,}, {size(done.bytes_removed)}",
        "files then": f"{done.table_files:,}, {size(done.table_bytes)}",
        "files missing": f"{done.files_missing:,}",
        "schema or properties": "change" if done.changes_metadata else "stay",
    }
