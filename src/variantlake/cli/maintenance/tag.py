"""`variantlake tag`: give versions names, and list them."""

from __future__ import annotations

from typing import Annotated

import typer

from variantlake.cli.terminal.options import TableArgument, json_option
from variantlake.cli.terminal.output import print_json, print_note, print_rows
from variantlake.delta.protocol.named_versions import NamedVersion
from variantlake.table import Table


def tag(
    table: TableArgument,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="The name; without it, names are listed."),
    ] = None,
    *,
    version: Annotated[
        int | None,
        typer.Option(metavar="N", help="The version that gets it, else the newest.", min=0),
    ] = None,
    move: Annotated[bool, typer.Option("--move", help="Take it from another version.")] = False,
    delete: Annotated[bool, typer.Option("--delete", help="Remove the name.")] = False,
    as_json: Annotated[bool, json_option("Print the names as JSON.")] = False,
) -> None:
    """Give a version a name, which vacuum and the log's cleanup then keep.

    Other commands take the name as --version.
    """
    if name is None and (delete or move or version is not None):
        raise typer.BadParameter("name the tag")
    if delete and (move or version is not None):
        raise typer.BadParameter("--delete goes with no other option")
    opened = Table.open(table)
    if name is not None and delete:
        print_note(f"{name} was the name of version {opened.untag(name).version}")
        return
    named = opened.tags() if name is None else [opened.tag(name, version, move=move)]
    if as_json:
        print_json([_document(each) for each in named])
        return
    print_rows(
        ["name", "version", "named"],
        [[each.name, each.version, each.time.isoformat(" ", "seconds")] for each in named],
    )


def _document(named: NamedVersion) -> dict[str, object]:
    return {"name": named.name, "version": named.version, "time": named.time.isoformat()}
