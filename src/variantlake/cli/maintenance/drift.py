"""`variantlake drift`: the values in residuals, and the paths that deserve a column."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from variantlake.cli.terminal.options import (
    TableArgument,
    TimestampOption,
    VersionOption,
    json_option,
)
from variantlake.cli.terminal.output import print_fields, print_json, print_line, print_rows
from variantlake.cli.terminal.progress import rows_of_files
from variantlake.maintenance.reshredding.drift import (
    ColumnDrift,
    Drift,
    PathResiduals,
    VersionsDrift,
)
from variantlake.shown import counted, size
from variantlake.table import Table

SHOWN = 10
"""Paths that are shown of each group of versions: those with the most bytes in residuals."""


def drift(
    table: TableArgument,
    *,
    column: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only this VARIANT column. The default is all."),
    ] = None,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    as_json: Annotated[bool, json_option()] = False,
) -> None:
    """Show how much is in residuals, by version, and which paths would be worth a column."""
    opened = Table.open(table, version, timestamp=timestamp)
    with rows_of_files() as shown:
        report = opened.drift(column, progress=shown("footers and samples"))
    if as_json:
        document: dict[str, Any] = asdict(report)
        for each, found in zip(document["versions"], report.versions, strict=True):
            each["residual_share"] = found.residual_share
        for each, one in zip(document["columns"], report.columns, strict=True):
            each["pays_off"] = one.pays_off
        print_json(document)
        return
    _print(report)


def _print(report: Drift) -> None:
    print_fields({"version": report.version})
    for each in report.versions:
        print_line("")
        print_line(
            f"{_range(each)}: {counted(each.files, 'file')}, {each.examined:,} examined, "
            f"{counted(each.layouts, 'layout')}, {size(each.residual_bytes)} of {size(each.bytes)} "
            f"in residuals ({each.residual_share:.1%})",
            "bold",
        )
        most = sorted(each.paths, key=lambda path: -path.residual_bytes)
        print_rows(
            ["column", "path", "type", "residual rows", "residual", "column's own"],
            map(_row, most[:SHOWN]),
        )
        if len(most) > SHOWN:
            print_line(f"{counted(len(most) - SHOWN, 'more path')}; --json prints all")
    for column in report.columns:
        print_line("")
        print_line(f"{column.column}: {counted(column.sampled_rows, 'row')} sampled", "bold")
        if not column.new_columns:
            print_line("no path would be worth a new column")
            continue
        print_rows(
            ["path", "type", "why", "a query reads less"],
            ([new.path, new.type, new.why, size(new.saves_bytes)] for new in column.new_columns),
        )
        print_line(_advice(column))


def _advice(column: ColumnDrift) -> str:
    if column.pays_off:
        return (
            "variantlake reshred would make columns of them; the column would take "
            f"{column.bytes_ratio:.0%} of its bytes"
        )
    more = size(round((column.bytes_ratio - 1) * column.bytes))
    return f"not worth a rewrite yet: the files would grow by {more}, more than a query saves"


def _row(found: PathResiduals) -> list[str]:
    return [
        found.column,
        found.path,
        found.type,
        "unknown" if found.residual_rows is None else f"{found.residual_rows:,}",
        size(found.residual_bytes),
        size(found.typed_bytes),
    ]


def _range(each: VersionsDrift) -> str:
    if each.first_version is None:
        return "versions that the log no longer knows"
    if each.first_version == each.last_version:
        return f"version {each.first_version}"
    return f"versions {each.first_version} to {each.last_version}"
