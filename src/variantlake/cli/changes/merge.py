"""`variantlake merge`: merge the rows of one table into another."""

from __future__ import annotations

from typing import Annotated

import typer

import variantlake as vl
from variantlake.cli.terminal.configuration import located
from variantlake.cli.terminal.local_spark import run_by
from variantlake.cli.terminal.options import Engine, EngineOption, TableArgument, json_option
from variantlake.cli.terminal.output import print_json, print_line
from variantlake.shown import counted, size
from variantlake.storage.opening import open_store


def merge(
    table: TableArgument,
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            callback=located,
            help="The Delta table with the new rows.",
            show_default=False,
        ),
    ],
    *,
    on: Annotated[
        str,
        typer.Option(
            metavar="CONDITION",
            help="Which rows match; the table is `t`, the source `s`: 't.id = s.id'.",
            show_default=False,
        ),
    ],
    when: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLAUSE",
            help="As in MERGE: 'MATCHED AND s.gone THEN DELETE' (may be repeated). By default "
            "rows that match are updated, and the others are inserted.",
            show_default=False,
        ),
    ] = None,
    engine: EngineOption = Engine.AUTO,
    as_json: Annotated[bool, json_option("Print the counts as one JSON object.")] = False,
) -> None:
    """Merge the rows of a table into another one, in one commit."""
    rows = vl.Table.open(source)
    clauses = [f"WHEN {clause}" for clause in when or []]
    done = run_by(
        engine,
        lambda: vl.Table.open(table).merge(rows.scan(), on, *clauses),
        lambda session: vl.spark.connect(session).merge(
            open_store(table).uri, "s", on, *clauses, tables={"s": rows.uri}
        ),
    )
    if as_json:
        print_json(done.to_dict())
        return
    print_line(
        f"{counted(done.rows_updated, 'row')} updated, {done.rows_inserted:,} inserted, "
        f"{done.rows_deleted:,} deleted: version {done.version}, {size(done.bytes_written)} written"
    )
