"""`variantlake stage`: loads that are written first and published later."""

from __future__ import annotations

from typing import Annotated

import typer

from variantlake.cli.terminal.options import (
    FormatOption,
    TableArgument,
    VariantColumnOption,
    json_option,
)
from variantlake.cli.terminal.output import print_fields, print_json, print_rows
from variantlake.errors import MissingSource
from variantlake.ingest.sources.sources import Documents
from variantlake.ingest.stage import Stage
from variantlake.shown import size
from variantlake.table import Table


def stage(
    table: TableArgument,
    load_id: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="A staged load; without it, loads are listed."),
    ] = None,
    *,
    load: Annotated[
        list[str] | None,
        typer.Option(metavar="SRC", help="Write these documents as a staged load (repeatable)."),
    ] = None,
    column: VariantColumnOption = None,
    format: FormatOption = None,  # noqa: A002 - the option's name
    check: Annotated[
        list[str] | None,
        typer.Option(metavar="CONDITION", help="Fail unless every row fulfils it (repeatable)."),
    ] = None,
    publish: Annotated[bool, typer.Option("--publish", help="Add the rows to the table.")] = False,
    drop: Annotated[
        bool, typer.Option("--drop", help="Forget the load; a vacuum takes its files.")
    ] = False,
    as_json: Annotated[bool, json_option()] = False,
) -> None:
    """Write a load without committing it; look at it, then publish or drop it."""
    if publish and drop:
        raise typer.BadParameter("give --publish or --drop, not both")
    if load_id is None and not load and (publish or drop or check):
        raise typer.BadParameter("name the load")
    opened = Table.open(table)
    if load:
        staged = opened.stage(Documents.of(load, format), column=column, load_id=load_id)
    elif load_id is None:
        _list(opened.stages(), as_json=as_json)
        return
    else:
        staged = _named(opened, load_id)
    staged.check(*(check or []))
    done: dict[str, object] = _document(staged)
    if publish:
        done["version"] = staged.publish().version
    elif drop:
        done["files_dropped"] = staged.drop()
    if as_json:
        print_json(done)
    else:
        print_fields(done | {"bytes": size(staged.size)})


def _named(table: Table, load_id: str) -> Stage:
    found = next((each for each in table.stages() if each.id == load_id), None)
    if found is None:
        raise MissingSource(
            f"there is no staged load {load_id!r}",
            file=table.uri,
            hint="it was published or dropped, or never staged",
        )
    return found


def _list(stages: list[Stage], *, as_json: bool) -> None:
    if as_json:
        print_json([_document(each) for each in stages])
        return
    print_rows(
        ["id", "rows", "files", "size", "staged"],
        [
            [each.id, each.rows, each.files, size(each.size), each.time.isoformat(" ", "seconds")]
            for each in stages
        ],
    )


def _document(staged: Stage) -> dict[str, object]:
    return {
        "id": staged.id,
        "rows": staged.rows,
        "files": staged.files,
        "bytes": staged.size,
        "time": staged.time.isoformat(" ", "milliseconds"),
    }
