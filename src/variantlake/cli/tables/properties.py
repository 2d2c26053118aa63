"""`variantlake set` and `variantlake unset`: change properties of a table."""

from __future__ import annotations

from typing import Annotated

import typer

from variantlake.cli.terminal.options import TableArgument, json_option, properties_of
from variantlake.cli.terminal.output import print_json, print_line
from variantlake.table import Table


def set_properties(
    table: TableArgument,
    properties: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME=VALUE...",
            help="Table properties: delta.enableDeletionVectors=true.",
            show_default=False,
        ),
    ],
    *,
    as_json: Annotated[bool, json_option("Print the version as one JSON object.")] = False,
) -> None:
    """Set properties of a table, and add the table features that they need."""
    print_version(
        Table.open(table).set_properties(properties_of(properties)).version, as_json=as_json
    )


def unset_properties(
    table: TableArgument,
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help="Table properties.", show_default=False),
    ],
    *,
    as_json: Annotated[bool, json_option("Print the version as one JSON object.")] = False,
) -> None:
    """Remove properties of a table, so that their defaults apply."""
    done = Table.open(table).unset_properties(*names)
    print_version(done.version, as_json=as_json)


def print_version(version: int, *, as_json: bool) -> None:
    """Print the version that a change of a table committed."""
    if as_json:
        print_json({"version": version})
    else:
        print_line(f"version {version}")
