"""`variantlake clone`: another table with the rows of a version."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from variantlake.cli.terminal.configuration import located
from variantlake.cli.terminal.options import (
    TableArgument,
    TimestampOption,
    VersionOption,
    dry_run_option,
    json_option,
)
from variantlake.cli.terminal.output import print_fields, print_json
from variantlake.cli.terminal.progress import counting, staying_whole
from variantlake.maintenance.cloning.clone import CloneResult
from variantlake.shown import size
from variantlake.table import Table


def clone(
    table: TableArgument,
    target: Annotated[
        str, typer.Argument(metavar="TARGET", callback=located, help="Where the clone goes.")
    ],
    *,
    deep: Annotated[
        bool, typer.Option("--deep", help="Copy the files; a repeat copies what is new.")
    ] = False,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    dry_run: Annotated[bool, dry_run_option("done")] = False,
    as_json: Annotated[bool, json_option("Print the counts as one JSON object.")] = False,
) -> None:
    """Make a table with the rows of another one, whose files it names or, with --deep, copies."""
    whole = "Nothing was committed. A repeat copies what is missing."
    with staying_whole(whole), counting() as progress:
        done = Table.open(table, version, timestamp=timestamp).clone(
            target, deep=deep, dry_run=dry_run, progress=progress
        )
    if as_json:
        print_json(done.to_dict())
        return
    print_fields(_fields(table, target, done))


def _fields(table: str, target: str, done: CloneResult) -> dict[str, Any]:
    nothing = "nothing to do" if not done.dry_run else "nothing done: dry run"
    return {
        "table": f"{table}, version {done.source_version}",
        "clone": f"{target}, {nothing if done.version is None else f'version {done.version}'}",
        "files": f"{done.table_files:,}, {size(done.table_bytes)}",
        "copied": f"{done.files_copied:,}, {size(done.bytes_copied)}",
        "removed": f"{done.files_removed:,}",
    }
