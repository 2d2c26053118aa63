"""`variantlake changes`: show the rows that versions of a table inserted, deleted and updated."""

from __future__ import annotations

from typing import Annotated

import typer

from variantlake.cli.terminal.formats import (
    OutputFormatOption,
    OutputOption,
    Printer,
    chosen_format,
)
from variantlake.cli.terminal.local_rows import CutRows, LocalRows
from variantlake.cli.terminal.options import TableArgument, json_option
from variantlake.errors import InvalidValue
from variantlake.table import Table
from variantlake.units import moment


def changes(
    table: TableArgument,
    *,
    first: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="VERSION|TIME",
            help="The first version, or a time such as 2026-01-02T03:04:05Z: the first version "
            "that is not older. Without a zone it is in UTC. If left out, version 0.",
            show_default=False,
        ),
    ] = None,
    last: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="VERSION|TIME",
            help="The last version, or a time: the last version that is not newer. If left out, "
            "the newest version.",
            show_default=False,
        ),
    ] = None,
    select: Annotated[
        str,
        typer.Option(metavar="COLUMNS", help="Columns and paths, as in a SELECT list."),
    ] = "*",
    where: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION",
            help="Only rows that match this condition, which also skips files.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", "-n", metavar="N", help="The maximum number of rows to print.", min=0
        ),
    ] = None,
    output_format: OutputFormatOption = None,
    output: OutputOption = None,
    as_json: Annotated[bool, json_option("Short for --output-format jsonl.")] = False,
) -> None:
    """Print the change data feed, version by version.

    After the table's columns, each row has _change_type, _commit_version and _commit_timestamp.
    """
    form = chosen_format(output_format, output, as_json=as_json)
    starting_version, from_time = (None, None) if first is None else _version_or_time(first)
    ending_version, to_time = (None, None) if last is None else _version_or_time(last)
    found = Table.open(table).changes(
        starting_version,
        ending_version,
        starting_timestamp=from_time,
        ending_timestamp=to_time,
        select=select,
        where=where,
    )
    rows = found if limit is None else CutRows(found.schema, found.to_batches(), limit)
    Printer(LocalRows(rows), form).print(output)


def _version_or_time(text: str) -> tuple[int | None, str | None]:
    if text.isascii() and text.isdigit():
        return int(text), None
    try:
        moment("it", text)
    except InvalidValue:
        raise typer.BadParameter(
            f"{text!r} is neither a version's number nor a time such as 2026-01-31 12:30:00"
        ) from None
    return None, text
