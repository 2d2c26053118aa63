"""`variantlake update`: set new values in the rows that a condition finds."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pyarrow as pa
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
from variantlake.delta.schema.table_schema import DataType, VariantType, arrow_type
from variantlake.quoting import unquoted
from variantlake.shown import counted, size
from variantlake.storage.opening import open_store
from variantlake.units import moment


def update(
    table: TableArgument,
    *,
    new: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="COLUMN=VALUE",
            help="A column, or a path in a VARIANT column, and its new value: kind=new, "
            "event:checked=true (may be repeated). A VARIANT takes JSON, or else the text.",
            show_default=False,
        ),
    ] = None,
    new_sql: Annotated[
        list[str] | None,
        typer.Option(
            "--set-sql",
            metavar="COLUMN=SQL",
            help="A column and the SQL expression of its new value, of the old row: 'n=n + 1' "
            "(may be repeated).",
            show_default=False,
        ),
    ] = None,
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
    opened = vl.Table.open(table)
    values = {name: _value(opened, name, text) for name, text in properties_of(new or []).items()}
    values |= {name: vl.expr(text) for name, text in properties_of(new_sql or []).items()}
    if not values:
        raise typer.BadParameter("give --set or --set-sql")
    done = run_by(
        engine,
        lambda: opened.update(values, where, dry_run=dry_run),
        lambda session: vl.spark.connect(session).update(
            open_store(table).uri, values, where, dry_run=dry_run
        ),
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


def _value(table: vl.Table, name: str, text: str) -> Any:
    """Convert a value of the command line for a column."""
    field = table.schema.find(unquoted(name))
    if field is not None and not isinstance(field.type, VariantType):
        return _of_type(field.type, name, text)
    try:
        return json.loads(text)
    except ValueError:
        return text


def _of_type(type_: DataType, name: str, text: str) -> Any:
    wanted = arrow_type(type_)
    if pa.types.is_timestamp(wanted) and wanted.tz is not None:
        return moment(name, text)
    try:
        return pa.scalar(text).cast(wanted).as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise typer.BadParameter(
            f"{name} is {type_}, and {text!r} is not; --set-sql takes any expression, NULL too"
        ) from None
