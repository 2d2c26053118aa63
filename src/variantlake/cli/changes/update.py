"""`variantlake update`: new values in the rows that a condition finds."""

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
    properties_of,
)
from variantlake.cli.terminal.output import print_json, print_line
from variantlake.shown import counted, size
from variantlake.storage.opening import open_store


def update(
    table: TableArgument,
    *,
    new: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="COLUMN=SQL",
            help="A column and the SQL expression of its new value, of the old row: \"kind='new'\" "
            "(may be repeated).",
            show_default=False,
        ),
    ],
    where: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION",
            help="Which rows, as after WHERE. If left out, all.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[bool, dry_run_option("updated")] = False,
    engine: EngineOption = Engine.AUTO,
    as_json: Annotated[bool, json_option("Print the counts as one JSON object.")] = False,
) -> None:
    """Update rows in one commit. Older versions have the old values until a vacuum."""
    values = properties_of(new)

    if dry_run and engine is Engine.SPARK:
        raise typer.BadParameter("an update by Spark has no --dry-run")
    done = run_by(
        Engine.LOCAL if dry_run else engine,
        lambda: vl.Table.open(table).update(values, where, dry_run=dry_run),
        lambda session: vl.spark.connect(session).update(open_store(table).uri, values, where),
    )
    if as_json:
        print_json(done.to_dict())
        return
    would = "would be " if dry_run else ""
    files = counted(done.files_touched, "file")
    line = f"{counted(done.rows_updated, 'row')} {would}updated, in {files}"
    if not dry_run:
        line += f": version {done.version}, {size(done.bytes_written)} written"
    print_line(line)
