"""`variantlake checkpoint`: write the checkpoint that a log lacks."""

from __future__ import annotations

from typing import Annotated

import typer

from variantlake.cli.terminal.output import print_json, print_line
from variantlake.table import Table


def checkpoint(
    table: Annotated[
        str, typer.Argument(help="The Delta table: a path or URL.", show_default=False)
    ],
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="The version as one JSON object.")
    ] = False,
) -> None:
    """Write a checkpoint of the newest version, so that readers need not read every commit.

    Commits do so at the table's interval; this is for a log whose writers wrote none.
    """
    version = Table.open(table).checkpoint()
    if as_json:
        print_json({"version": version})
    else:
        print_line(f"checkpoint of version {version}")
