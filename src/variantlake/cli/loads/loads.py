"""`variantlake loads`: the state of each file of a table's autoloads."""

from __future__ import annotations

import itertools
from typing import Annotated, Any

import typer

from variantlake.autoloading.loads import list_loads
from variantlake.autoloading.state import names_of_autoloads
from variantlake.cli.terminal.options import TableArgument, json_option
from variantlake.cli.terminal.output import (
    MAX_SHOWN,
    print_fields,
    print_json,
    print_line,
    print_rows,
)
from variantlake.table import Table

_SHOWN = ("name", "file", "state", "rows", "bad_rows", "version", "time", "error")


def loads(
    table: TableArgument,
    *,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only files of this autoload.")
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN",
            help="Only files whose path in the source matches this pattern: `**/*.gz`.",
        ),
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(
            metavar="STATE",
            help="Only files in this state: loaded, empty, failed, retry, skipped.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", "-n", metavar="N", help="The maximum number of files to show.", min=1
        ),
    ] = None,
    retry: Annotated[
        bool,
        typer.Option("--retry", help="Let the next round try failed files again."),
    ] = False,
    as_json: Annotated[bool, json_option("Print one JSON object per file.")] = False,
) -> None:
    """Show what autoloads did with each file: its state, rows, bad rows, version and time."""
    opened = Table.open(table)
    if retry:
        done = opened.retry_loads(name, file=file)
        found = {"table": table, "to be tried again": done.files_retried}
        if as_json:
            print_json(done.to_dict())
        else:
            print_fields(found)
        return
    pieces = list_loads(opened.snapshot, name=name, file=file, state=state)
    rows = (row for piece in pieces for row in piece.to_pylist())
    if as_json:
        for row in itertools.islice(rows, limit):
            print_json(row | {"time": row["time"].isoformat(timespec="milliseconds")})
        return
    if not names_of_autoloads(opened.snapshot):
        print_line("No autoload has loaded into this table; `variantlake autoload` starts one.")
        return
    most = MAX_SHOWN + 1 if limit is None else limit
    print_rows(list(_SHOWN), map(_row, itertools.islice(rows, most)))


def _row(row: dict[str, Any]) -> list[Any]:
    shown = row | {
        "time": row["time"].strftime("%Y-%m-%d %H:%M:%S UTC"),
        "error": row["error"] or "",
    }
    return [shown[name] for name in _SHOWN]
