"""`variantlake cat`: print the rows of a table or a file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

import variantlake as vl
from variantlake.batches import first_rows
from variantlake.cli.terminal.formats import (
    OutputFormatOption,
    OutputOption,
    Printer,
    chosen_format,
)
from variantlake.cli.terminal.local_rows import CutRows, LocalRows
from variantlake.cli.terminal.options import (
    SourceArgument,
    TimestampOption,
    VersionOption,
    json_option,
)
from variantlake.cli.terminal.output import print_json_lines
from variantlake.cli.terminal.progress import rows_of_files
from variantlake.cli.terminal.rows import json_lines
from variantlake.errors import InvalidPath, MissingSource
from variantlake.planning.log_files import LogFiles
from variantlake.progress import OnProgress, Progress
from variantlake.quoting import quote_identifier
from variantlake.storage.objects import open_object
from variantlake.storage.store import is_local, local_path

VariantOption = Annotated[
    list[str] | None,
    typer.Option(
        "--variant",
        metavar="COLUMN",
        help="A group of a file to read as VARIANT without annotation (may be repeated).",
    ),
]


def cat(
    source: SourceArgument,
    *,
    column: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only this column, its values without a name."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", "-n", metavar="N", help="The maximum number of rows to print.", min=0
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION",
            help="Of a table, only rows that match: \"event:kind::string = 'push'\".",
        ),
    ] = None,
    variant: VariantOption = None,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    output_format: OutputFormatOption = None,
    output: OutputOption = None,
    as_json: Annotated[
        bool, json_option("Print each row as an object of its columns, also if there is only one.")
    ] = False,
) -> None:
    """Print rows as JSON, one per line. A single column is printed without its name."""
    left = sys.maxsize if limit is None else limit
    if output_format is not None or output is not None:
        form = chosen_format(output_format, output, as_json=as_json)
        found = batches(source, column, variant or [], where=where, at=(version, timestamp))
        first = next(found, None)
        schema = pa.schema([]) if first is None else first.schema
        rows = CutRows(schema, chain([] if first is None else [first], found), left)
        Printer(LocalRows(rows), form).print(output)
        return
    if left == 0:
        return
    # On a terminal, the rows show the progress.
    with nullcontext(_silent) if sys.stdout.isatty() else rows_of_files() as shown:
        found = batches(source, column, variant or [], shown, where=where, at=(version, timestamp))
        for batch in first_rows(found, left):
            bare = not as_json and batch.num_columns == 1
            print_json_lines(json_lines(batch, bare=bare))


def _silent(_: str) -> OnProgress | None:
    return None


def is_file(source: str) -> bool:
    """Whether a name is that of a Parquet file, and not of a table.

    Raises MissingSource when nothing has this name.
    """
    if not is_local(source):
        store, name = open_object(source)
        return bool(name) and store.entry(name) is not None
    path = Path(local_path(source))
    if not path.exists():
        raise MissingSource(
            "there is no such table or file", file=source, hint="check the spelling of its name"
        )
    return path.is_file()


def path_of(source: str) -> str:
    """Return the path of a location for messages."""
    return local_path(source) if is_local(source) else source


def batches(
    source: str,
    column: str | None = None,
    variants: Sequence[str] = (),
    shown: Callable[[str], OnProgress | None] = _silent,
    *,
    where: str | None = None,
    at: tuple[int | None, str | None] = (None, None),
) -> Iterator[pa.RecordBatch]:
    """Read the rows of a file, or those of a table `at` a version or time, without deleted ones.

    `where` is a condition on the rows of a table.
    """
    if is_file(source):
        if at != (None, None):
            raise typer.BadParameter("--version and --timestamp are for tables")
        if where is not None:
            raise typer.BadParameter("--where is for tables")
        file = path_of(source)
        columns = None if column is None else [column]
        yield from vl.parquet.iter_batches(
            file, columns=columns, variant_columns=variants, progress=shown(file)
        )
        return
    if variants:
        raise typer.BadParameter("--variant is for files: a table's schema names its columns")
    table = vl.Table.open(source, at[0], timestamp=at[1])
    fields = table.schema.fields
    if column is not None:
        known = ", ".join(field.name for field in fields)
        fields = tuple(field for field in fields if field.name.lower() == column.lower())
        if not fields:
            raise InvalidPath(
                f"there is no column {column!r}", file=source, hint=f"columns: {known}"
            )
    done, rows = 0, LogFiles(table.snapshot).row_count
    progress = None if rows is None or where is not None else shown(source)
    names = [quote_identifier(field.name) for field in fields]
    for batch in table.scan(names, where).to_batches():
        yield batch
        done += batch.num_rows
        if progress is not None and rows is not None:
            progress(Progress(done, rows, "rows", "read"))
