"""`variantlake mirror`: an ordinary Delta table of chosen paths, kept up to date."""

from __future__ import annotations

from typing import Annotated

import typer

from variantlake.cli.terminal.configuration import located
from variantlake.cli.terminal.options import TableArgument, checked_by, json_option
from variantlake.cli.terminal.output import print_fields, print_json, print_note
from variantlake.cli.terminal.stopping import stopping
from variantlake.mirroring.mirror import MirrorResult
from variantlake.mirroring.mirror import mirror as run_mirror
from variantlake.shown import size
from variantlake.units import seconds


def mirror(
    table: TableArgument,
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            callback=located,
            help="The mirror, created if it does not exist.",
            show_default=False,
        ),
    ],
    *,
    select: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMNS",
            help="Columns and typed paths, `event:user.id::bigint AS id` (may be repeated); by "
            "default those that the mirror has.",
        ),
    ] = None,
    cluster_by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Sort the rows of each file of a new mirror by this column (may be repeated).",
        ),
    ] = None,
    partition_by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Partition a new mirror by this column (may be repeated)."
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Refresh once (the default).")] = False,
    every: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            callback=checked_by(seconds),
            help="Refresh again and again, this often (5m, 30s), until the command is stopped.",
        ),
    ] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Read all rows again, also of other columns.")
    ] = False,
    as_json: Annotated[bool, json_option("Print one JSON object at the end.")] = False,
) -> None:
    """Keep an ordinary Delta table of chosen columns and paths, which every Delta reader reads.

    A refresh reads the table's log since the last one, and only files in which rows changed. It is
    one commit of the mirror, so a command that is killed is repeated and does nothing twice.
    """
    if once and every is not None:
        raise typer.BadParameter("--once and --every contradict each other: give one of them")

    def said(done: MirrorResult) -> None:
        if every is not None and done.files_written + done.files_removed:
            print_note(f"version {done.source_version} of the table, {done.rows_written:,} rows")

    with stopping("mirror") as stop:
        result = run_mirror(
            table,
            target,
            select,
            cluster_by=cluster_by or (),
            partition_by=partition_by or (),
            rebuild=rebuild,
            every=every,
            stop=stop.is_set,
            on_refresh=said,
        )
    if as_json:
        print_json(result.to_dict())
        return
    print_fields(
        {
            "mirror": target,
            "version": result.version,
            "version of the table": result.source_version,
            "rows read": f"{result.rows_written:,}",
            "files read": f"{result.files_read:,}",
            "files written": f"{result.files_written:,} ({size(result.bytes_written)})",
            "files removed": f"{result.files_removed:,}",
        }
    )
