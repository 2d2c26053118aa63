"""`variantlake delete`: delete the rows that a condition finds."""

from __future__ import annotations

from typing import Annotated

import typer

import variantlake as vl
from variantlake.cli.terminal.local_spark import run_by
from variantlake.cli.terminal.options import (
    Engine,
    EngineOption,
    TableArgument,
    dry_run_option,
    json_option,
)
from variantlake.cli.terminal.output import print_json, print_line
from variantlake.shown import counted, size
from variantlake.storage.opening import open_store


def delete(
    table: TableArgument,
    *,
    where: Annotated[
        str,
        typer.Option(
            metavar="CONDITION",
            help="Which rows, as after WHERE: event:kind::string = 'x'. Rows for which it is NULL "
            "stay.",
            show_default=False,
        ),
    ],
    dry_run: Annotated[bool, dry_run_option("deleted")] = False,
    engine: EngineOption = Engine.AUTO,
    as_json: Annotated[bool, json_option("Print the counts as one JSON object.")] = False,
) -> None:
    """Delete rows in one commit. Older versions have them until a vacuum.

    With deletion vectors (delta.enableDeletionVectors) files stay as they are.
    """
    done = run_by(
        engine,
        lambda: vl.Table.open(table).delete(where, dry_run=dry_run),
        lambda session: vl.spark.connect(session).delete(
            open_store(table).uri, where, dry_run=dry_run
        ),
    )
    if as_json:
        print_json(done.to_dict())
        return
    would = "would be " if dry_run else ""
    print_line(
        f"{counted(done.rows_deleted, 'row')} {would}deleted from "
        f"{counted(done.files_touched, 'file')}: "
        f"{counted(done.files_removed, 'file')} removed, {done.files_rewritten:,} rewritten, "
        f"{done.files_marked:,} with a deletion vector"
    )
    if not dry_run:
        print_line(
            f"version {done.version}, {size(done.bytes_written)} written in {done.seconds:.1f} s"
        )
