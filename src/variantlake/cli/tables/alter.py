"""`variantlake alter`: columns and constraints of a table."""

from __future__ import annotations

from typing import Annotated

import typer

from variantlake.cli.tables.properties import print_version
from variantlake.cli.terminal.options import TableArgument, json_option
from variantlake.sql.alter import parse_alteration
from variantlake.table import Table


def alter(
    table: TableArgument,
    changes: Annotated[
        list[str],
        typer.Argument(
            metavar="CHANGE...",
            help="As SQL after ALTER TABLE and the name: 'DROP COLUMN a'; one commit each.",
            show_default=False,
        ),
    ],
    *,
    as_json: Annotated[bool, json_option("Print the version as one JSON object.")] = False,
) -> None:
    """Rename, drop, add, move, describe and widen columns; add and drop constraints.

    RENAME and DROP need the property delta.columnMapping.mode=name, a wider type
    delta.enableTypeWidening=true: `variantlake set` sets them.
    """
    opened = Table.open(table)
    for change in changes:
        parse_alteration(change)  # all of them before the first is committed
    version = opened.version
    for change in changes:
        version = opened.alter(change).version
    print_version(version, as_json=as_json)
