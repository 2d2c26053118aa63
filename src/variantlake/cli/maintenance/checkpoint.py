"""`variantlake checkpoint`: write the checkpoint that a log lacks."""

from __future__ import annotations

from typing import Annotated

from variantlake.cli.terminal.options import TableArgument, json_option
from variantlake.cli.terminal.output import print_json, print_line
from variantlake.table import Table


def checkpoint(
    table: TableArgument,
    *,
    as_json: Annotated[bool, json_option("Print the result as one JSON object.")] = False,
) -> None:
    """Write a checkpoint of the newest version, so that readers need not read every commit.

    Commits do this at the table's interval. Use it if other writers wrote none.
    """
    done = Table.open(table).checkpoint()
    if as_json:
        print_json(done.to_dict())
    else:
        print_line(f"checkpoint of version {done.version}")
