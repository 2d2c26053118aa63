"""`variantlake optimize`: join small files to large ones."""

from __future__ import annotations

from typing import Annotated

import typer

from variantlake.cli.terminal.options import (
    DigestOption,
    FilesWhereOption,
    TableArgument,
    dry_run_option,
    json_option,
)
from variantlake.cli.terminal.output import print_fields, print_json, print_line, print_rows
from variantlake.cli.terminal.progress import rewriting
from variantlake.maintenance.optimize import OptimizeResult
from variantlake.maintenance.rewrite.run import RewriteResult
from variantlake.shown import counted, size
from variantlake.table import Table

WAYS = {
    "copied": "row groups copied as bytes",
    "encoded": "columns decoded and encoded",
    "reshredded": "Variants shredded anew",
}


def optimize(
    table: TableArgument,
    *,
    where: FilesWhereOption = None,
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
            help="Rewrite files with a greater share of deleted rows.",
            min=0,
            max=1,
        ),
    ] = 0.05,
    purge: Annotated[
        bool,
        typer.Option("--purge", help="Only rewrite files with deleted rows or dropped columns."),
    ] = False,
    digest: DigestOption = True,
    dry_run: Annotated[bool, dry_run_option("rewritten")] = False,
    as_json: Annotated[bool, json_option()] = False,
) -> None:
    """Join small files, and rewrite files with many deleted rows; no row changes."""
    with rewriting() as progress:
        done = Table.open(table).optimize(
            where,
            target_file_size=target_file_size,
            max_deleted_share=max_deleted_share,
            purge=purge,
            dry_run=dry_run,
            digest=digest,
            progress=progress,
        )
    if as_json:
        print_json(done.to_dict())
    else:
        _print(table, done)


def outcome(done: RewriteResult, part: str) -> dict[str, str]:
    """Describe the versions of a rewrite, and its conflicts; `part` names its unit."""
    fields = {}
    if not done.dry_run:
        fields["versions"] = ", ".join(map(str, done.versions)) or "none, there was nothing to do"
    if done.conflicts:
        fields["planned again"] = f"{counted(done.conflicts, part)} that others changed meanwhile"
    return fields


def _print(table: str, done: OptimizeResult) -> None:
    ways = [
        (words, f"{counts.files:,}", f"{counts.rows:,}", size(counts.bytes))
        for name, words in WAYS.items()
        if (counts := getattr(done, name)).files
    ]
    if ways:
        print_rows(["files that are read", "files", "rows", "size"], ways)
    for reason, files in done.not_copied.items():
        print_line(f"{counted(files, 'file')} not copied as bytes: {reason}")
    would = "would be " if done.dry_run else ""
    about = "about " if done.dry_run else ""
    fields = {
        "table": table,
        f"{would}read": f"{counted(done.files_read, 'file')}, {size(done.bytes_read)}",
        f"{would}written": f"{about}{counted(done.files_written, 'file')}, "
        f"{size(done.bytes_written)}",
    }
    if done.deletion_vectors:
        fields["deletion vectors"] = f"{done.deletion_vectors:,} {would}applied"
    if done.dry_run:
        fields["commits"] = f"{done.commits:,}"
    print_fields(fields | outcome(done, "group"))
