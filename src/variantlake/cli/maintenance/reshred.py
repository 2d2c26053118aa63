"""`variantlake reshred`: make columns of other paths, or of none."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from variantlake.cli.maintenance.optimize import outcome
from variantlake.cli.terminal.options import (
    DigestOption,
    FilesWhereOption,
    TableArgument,
    dry_run_option,
    json_option,
    schemas_of,
)
from variantlake.cli.terminal.output import print_fields, print_json
from variantlake.cli.terminal.progress import rewriting
from variantlake.maintenance.reshredding.reshred import ReshredResult
from variantlake.shown import counted, size
from variantlake.table import Table


def reshred(
    table: TableArgument,
    *,
    shredding: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DDL",
            help="What becomes columns, as in 'kind STRING, ts BIGINT'. Of several VARIANT columns "
            "name one: 'event=kind STRING'. If left out, it is learned from the table's rows.",
            show_default=False,
        ),
    ] = None,
    unshred: Annotated[
        bool,
        typer.Option("--unshred", help="Store all Variants whole, and turn shredding off."),
    ] = False,
    where: FilesWhereOption = None,
    digest: DigestOption = True,
    dry_run: Annotated[bool, dry_run_option("rewritten")] = False,
    as_json: Annotated[bool, json_option()] = False,
) -> None:
    """Change which paths are typed columns, and rewrite the files in which a value moves."""
    if unshred and (shredding or where is not None):
        raise typer.BadParameter("--unshred is about the whole table, and all paths")
    with rewriting() as progress:
        opened = Table.open(table)
        if unshred:
            done = opened.unshred(dry_run=dry_run, digest=digest, progress=progress)
        else:
            done = opened.reshred(
                schemas_of(shredding or []),
                where,
                dry_run=dry_run,
                digest=digest,
                progress=progress,
            )
    if as_json:
        print_json(done.to_dict())
    else:
        _print(table, done)


def _print(table: str, done: ReshredResult) -> None:
    would, about = ("would be ", "about ") if done.dry_run else ("", "")
    fields: dict[str, Any] = {"table": table}
    for column, ddl in done.shredding.items():
        fields[f"{column} as"] = ddl
    fields["the table's schema"] = f"{would}changed" if done.changed else "as before"
    fields[f"{would}rewritten"] = (
        f"{done.files_read:,} of {counted(done.files_checked, 'file')}, "
        f"{counted(done.rows_rewritten, 'row')}, {size(done.bytes_read)}"
    )
    fields[f"{would}written"] = f"{about}{size(done.bytes_written)}"
    print_fields(fields | outcome(done, "file"))
