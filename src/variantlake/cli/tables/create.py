"""`variantlake create`: an empty table."""

from __future__ import annotations

from typing import Annotated

import typer

from variantlake.cli.terminal.options import (
    PropertiesOption,
    TargetArgument,
    json_option,
    properties_of,
    schemas_of,
)
from variantlake.cli.terminal.output import print_fields, print_json
from variantlake.delta.log.log_segment import has_log
from variantlake.storage.opening import open_store
from variantlake.table import Table


def create(
    table: TargetArgument,
    columns: Annotated[
        str,
        typer.Argument(
            metavar="COLUMNS",
            help="As DDL: 'event VARIANT, day DATE NOT NULL'.",
            show_default=False,
        ),
    ] = "event VARIANT",
    *,
    partition_by: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A partition column (may be repeated)."),
    ] = None,
    cluster_by: Annotated[
        str | None,
        typer.Option(metavar="PATHS", help="What to order rows by: 'event:kind::string, id'."),
    ] = None,
    shredding: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DDL",
            help="Which paths become columns: 'kind STRING', or 'event=kind STRING' for each "
            "VARIANT column. By default they are inferred from the first load.",
        ),
    ] = None,
    properties: PropertiesOption = None,
    comment: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What the table is for.")
    ] = None,
    if_not_exists: Annotated[
        bool,
        typer.Option("--if-not-exists", "--exist-ok", help="Leave a table alone that is there."),
    ] = False,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Replace a table that is there; its versions stay."),
    ] = False,
    as_json: Annotated[bool, json_option()] = False,
) -> None:
    """Create an empty table."""
    if if_not_exists and replace:
        raise typer.BadParameter("give --if-not-exists or --replace, not both")
    created = not (if_not_exists and has_log(open_store(table)))
    made = Table.create(
        table,
        columns,
        exist_ok=if_not_exists,
        replace=replace,
        partition_by=partition_by,
        cluster_by=cluster_by,
        properties=properties_of(properties or []),
        shredding=schemas_of(shredding or []),
        description=comment,
    )
    done = {"table": made.uri, "version": made.version, "created": created}
    if as_json:
        print_json(done)
    else:
        print_fields(done | {"created": "yes" if created else "no, it was there"})
