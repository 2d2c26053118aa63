"""`variantlake cluster`: order rows across files."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from variantlake.cli.maintenance.optimize import outcome
from variantlake.cli.terminal.options import (
    DigestOption,
    FilesWhereOption,
    TableArgument,
    dry_run_option,
    json_option,
)
from variantlake.cli.terminal.output import print_fields, print_json
from variantlake.cli.terminal.progress import rewriting
from variantlake.maintenance.clustering.cluster import ClusterResult
from variantlake.shown import counted, size
from variantlake.table import Table


def cluster(
    table: TableArgument,
    *,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="PATHS",
            help="What to order by from now on, as in 'event:kind::string, day'. If left out, the "
            "table's own order.",
            show_default=False,
        ),
    ] = None,
    where: FilesWhereOption = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Rewrite at most this many bytes, as in 2GB. If left out, twice the bytes that "
            "were added since the last run.",
            show_default=False,
        ),
    ] = None,
    target_file_size: Annotated[
        str, typer.Option(metavar="SIZE", help="The approximate size of the new files.")
    ] = "128MB",
    digest: DigestOption = True,
    dry_run: Annotated[bool, dry_run_option("rewritten")] = False,
    as_json: Annotated[bool, json_option()] = False,
) -> None:
    """Order rows across files by the paths that the table is clustered by; no row changes."""
    if by is not None and dry_run:
        raise typer.BadParameter("--by changes the table, which --dry-run does not")
    opened = Table.open(table)
    if by is not None:
        opened.set_clustering(by)
    with rewriting() as progress:
        done = opened.cluster(
            where,
            budget=budget,
            target_file_size=target_file_size,
            dry_run=dry_run,
            digest=digest,
            progress=progress,
        )
    if as_json:
        print_json(done.to_dict())
    else:
        _print(table, done)


def _print(table: str, done: ClusterResult) -> None:
    would, about = ("would be ", "about ") if done.dry_run else ("", "")
    fields: dict[str, Any] = {
        "table": table,
        "ordered by": ", ".join(done.paths),
        "new since the last run": size(done.new_bytes),
        "budget": size(done.budget_bytes),
        f"{would}read": f"{counted(done.files_read, 'file')} in "
        f"{counted(done.groups, 'group')}, "
        f"{size(done.bytes_read)}",
        f"{would}written": f"{about}{counted(done.files_written, 'file')}, "
        f"{size(done.bytes_written)}",
        "a query for one value reads": f"{done.read_share_before:.1%} of the bytes, then {about}"
        f"{done.read_share_after:.1%}",
    }
    print_fields(fields | outcome(done, "group"))
