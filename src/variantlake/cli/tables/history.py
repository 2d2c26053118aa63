"""`variantlake history`: the versions of a table."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from variantlake.cli.terminal.formats import (
    OutputFormat,
    OutputFormatOption,
    OutputOption,
    PlainRows,
    Printer,
    chosen_format,
)
from variantlake.cli.terminal.options import TableArgument, json_option
from variantlake.cli.terminal.output import print_rows
from variantlake.delta.log.snapshot import HistoryEntry
from variantlake.table import Table


def history(
    table: TableArgument,
    *,
    limit: Annotated[
        int,
        typer.Option(
            "--limit", "-n", metavar="N", help="The maximum number of versions to show.", min=1
        ),
    ] = 50,
    output_format: OutputFormatOption = None,
    output: OutputOption = None,
    as_json: Annotated[bool, json_option("Short for --output-format jsonl.")] = False,
) -> None:
    """Show the versions of a table, newest first."""
    form = chosen_format(output_format, output, as_json=as_json)
    entries = Table.open(table).history(limit)
    if form is not OutputFormat.TABLE or output is not None:
        Printer(PlainRows(entry.to_dict() for entry in entries), form).print(output)
        return
    print_rows(["version", "time", "operation", "files", "rows", "by"], map(_row, entries))


def _row(entry: HistoryEntry) -> list[Any]:
    metrics = entry.info.get("operationMetrics") or {}
    return [
        entry.version,
        # In a form for --timestamp. Rounded to seconds, it might be before the version.
        f"{entry.time.replace(tzinfo=None).isoformat(' ', 'milliseconds')}Z",
        entry.operation,
        metrics.get("numFiles"),
        metrics.get("numOutputRows"),
        entry.info.get("engineInfo"),
    ]
