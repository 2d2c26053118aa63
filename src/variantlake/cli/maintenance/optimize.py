"""`variantlake optimize`: small files become large ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from variantlake.cli.terminal.output import print_fields, print_json, print_rows, size, stderr
from variantlake.errors import InvalidValue
from variantlake.ingest.load import LoadProgress
from variantlake.maintenance.optimize import OptimizeResult
from variantlake.table import Table

_SIZE = re.compile(r"(\d+)\s*([kmgt]?)(i?b)?", re.IGNORECASE)
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}

WAYS = {
    "copied": "row groups copied as bytes",
    "encoded": "columns decoded and encoded",
    "reshredded": "Variants shredded anew",
}


def optimize(
    table: Annotated[
        str, typer.Argument(help="The Delta table: a path or URL.", show_default=False)
    ],
    *,
    where: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION",
            help="Only files that may hold a match: a condition over partition columns and paths.",
            show_default=False,
        ),
    ] = None,
    target_file_size: Annotated[
        str,
        typer.Option(
            metavar="SIZE", help="Files are joined up to about this size: bytes, or as in 64MB."
        ),
    ] = "256MB",
    max_deleted_share: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Rewrite any file of whose rows a greater share is deleted.",
            min=0,
            max=1,
        ),
    ] = 0.05,
    digest: Annotated[
        bool,
        typer.Option(
            "--digest/--no-digest",
            help="Whether the rows that are read and written are compared by their digest.",
        ),
    ] = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be rewritten.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Join small files, and rewrite files with many deleted rows; no row changes."""
    with rewriting() as progress:
        done = Table.open(table).optimize(
            where,
            target_file_bytes=bytes_of(target_file_size),
            max_deleted_share=max_deleted_share,
            dry_run=dry_run,
            digest=digest,
            progress=progress,
        )
    if as_json:
        print_json(done.to_dict())
    else:
        _print(table, done)


def bytes_of(text: str) -> int:
    """The bytes that a text like `64MB` says. Raises InvalidValue."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise InvalidValue(f"{text!r} is no size", hint="a number of bytes, or as in 64MB or 1GB")
    return int(found[1]) << _UNITS[found[2].lower()]


def _print(table: str, done: OptimizeResult) -> None:
    ways = [
        (words, f"{counts.files:,}", f"{counts.rows:,}", size(counts.bytes))
        for name, words in WAYS.items()
        if (counts := getattr(done, name)).files
    ]
    if ways:
        print_rows(["files that are read", "files", "rows", "size"], ways)
    would = "would be " if done.is_dry_run else ""
    about = "about " if done.is_dry_run else ""
    fields = {
        "table": table,
        f"{would}read": f"{done.files_read:,} files, {size(done.bytes_read)}",
        f"{would}written": f"{about}{done.files_written:,} files, {size(done.bytes_written)}",
    }
    if done.deletion_vectors:
        fields["deletion vectors"] = f"{done.deletion_vectors:,} {would}applied"
    if done.is_dry_run:
        fields["commits"] = f"{done.commits:,}"
    elif done.versions:
        fields["versions"] = ", ".join(map(str, done.versions))
    else:
        fields["versions"] = "none, there was nothing to do"
    if done.conflicts:
        fields["planned again"] = f"{done.conflicts:,} groups that others changed meanwhile"
    print_fields(fields)


@contextmanager
def rewriting() -> Iterator[Callable[[LoadProgress], None]]:
    """A bar on stderr while files are rewritten; nothing where that is not a terminal."""
    console = stderr()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[files]} new files"),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        line = bar.add_task("Planning", total=None, files=0)

        def show(state: LoadProgress) -> None:
            bar.update(
                line,
                description="Rewriting",
                completed=state.bytes_read,
                total=state.bytes_total,
                files=max(state.files, 0),
            )

        yield show
