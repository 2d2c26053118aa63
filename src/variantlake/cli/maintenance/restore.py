"""`variantlake restore`: an older version becomes the newest one."""

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
    with staying_whole(whole), counting(_text) as told:
        done = Table.open(table).restore(
            version,
            timestamp=timestamp,
            dry_run=dry_run,
            missing="skip" if skip_missing else "refuse",
            progress=lambda looked_for, of: told((looked_for, of)),
        )
    if as_json:
        print_json(_document(done))
        return
    print_fields(_fields(table, done))
    if done.missing_files and dry_run:
        names = ", ".join(done.missing[:10])
        print_note(f"{counted(done.missing_files, 'missing file')}: {names}")


def _text(at: tuple[int, int]) -> str:
    return f"{at[0]:,} of {counted(at[1], 'file')} looked for"


def _document(done: RestoreResult) -> dict[str, Any]:
    return {
        "restored_version": done.restored_version,
        "version": done.version,
        "files": done.files,
        "bytes": done.size,
        "restored_files": done.restored_files,
        "restored_bytes": done.restored_size,
        "removed_files": done.removed_files,
        "removed_bytes": done.removed_size,
        "changes_metadata": done.changes_metadata,
        "missing_files": done.missing_files,
        "missing": list(done.missing),
        "dry_run": done.is_dry_run,
    }


def _fields(table: str, done: RestoreResult) -> dict[str, Any]:
    return {
        "table": table,
        "version": f"{done.restored_version}, "
        + ("not restored: dry run" if done.is_dry_run else f"restored as {done.version}"),
        "files back": f"{done.restored_files:,}, {size(done.restored_size)}",
        "files removed": f"{done.removed_files:,}, {size(done.removed_size)}",
        "files then": f"{done.files:,}, {size(done.size)}",
        "files missing": f"{done.missing_files:,}",
        "schema or properties": "change" if done.changes_metadata else "stay",
    }
