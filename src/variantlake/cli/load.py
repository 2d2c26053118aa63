"""`variantlake ingest`: newline-delimited JSON into a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)

import variantlake as vl
from variantlake.arrow.load import LoadProgress
from variantlake.arrow.local import ingest_here
from variantlake.cli.output import print_fields, print_json, size, stderr


def ingest(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SRC...",
            help="Files, globs or directories of newline-delimited JSON: plain, gzip, zstd, bz2.",
            show_default=False,
        ),
    ],
    table: Annotated[
        str,
        typer.Argument(help="The Delta table: made when it does not exist.", show_default=False),
    ],
    *,
    column: Annotated[
        str, typer.Option(metavar="NAME", help="The VARIANT column to fill.")
    ] = "event",
    shredding: Annotated[
        str | None,
        typer.Option(
            metavar="DDL",
            help="Which paths become columns, as DDL (`kind STRING, at BIGINT`); VARIANT for none. "
            "The default is the table's own, or inferred from a sample.",
        ),
    ] = None,
    max_rows_per_file: Annotated[
        int | None, typer.Option(metavar="N", help="The most rows of one file.", min=1)
    ] = None,
    local: Annotated[
        bool, typer.Option("--local", help="In this process, without Spark and Java.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Load newline-delimited JSON into a VARIANT column, shredded, in one commit.

    A bad line stops the load with its file, line and column, and nothing is committed.
    """
    with _progress_bar() as progress:
        if local:
            result = ingest_here(
                sources,
                table,
                column=column,
                shredding=shredding,
                max_rows_per_file=max_rows_per_file,
                progress=progress,
            )
        else:
            with vl.spark.local_session() as session:
                result = vl.spark.connect(session).ingest(
                    sources,
                    table,
                    column=column,
                    shredding=shredding,
                    max_rows_per_file=max_rows_per_file,
                    progress=progress,
                )
    if as_json:
        print_json(result.to_dict())
        return
    rate = result.bytes_read / max(result.seconds, 1e-9) / 1e6
    print_fields(
        {
            "table": table,
            "version": result.version,
            "documents": f"{result.rows:,}",
            "files": f"{result.files:,} ({size(result.bytes_written)})",
            "read": f"{size(result.bytes_read)} in {result.seconds:.1f} s ({rate:.1f} MB/s)",
            "shredded into": result.shredding,
        }
    )


@contextmanager
def _progress_bar() -> Iterator[Callable[[LoadProgress], None]]:
    """A bar on stderr while the block runs; nothing where that is not a terminal."""
    console = stderr()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[files]} files"),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        line = bar.add_task("Starting", total=None, files=0)

        def show(state: LoadProgress) -> None:
            bar.update(
                line,
                description="Loading",
                completed=state.bytes_read,
                total=state.bytes_total,
                files=state.files,
            )

        yield show
