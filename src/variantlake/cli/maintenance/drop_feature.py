"""`variantlake drop-feature`: drop a feature that some readers or writers lack."""

from __future__ import annotations

from typing import Annotated

import typer

from variantlake.cli.terminal.options import TableArgument, dry_run_option, json_option
from variantlake.cli.terminal.output import print_fields, print_json
from variantlake.cli.terminal.progress import rewriting
from variantlake.shown import counted, size
from variantlake.table import Table


def drop_feature(
    table: TableArgument,
    feature: Annotated[
        str,
        typer.Argument(metavar="FEATURE", help="The name of the feature in the table's protocol."),
    ] = "variantShredding",
    *,
    truncate_history: Annotated[
        bool,
        typer.Option(
            help="Also remove the older versions that use it; takes two calls, a day apart."
        ),
    ] = False,
    dry_run: Annotated[bool, dry_run_option("rewritten")] = False,
    as_json: Annotated[bool, json_option()] = False,
) -> None:
    """Remove a feature from a table's protocol, for readers and writers that lack it.

    variantShredding, deletionVectors, columnMapping, typeWidening, rowTracking, inCommitTimestamp,
    v2Checkpoint, vacuumProtocolCheck, checkConstraints, materializePartitionColumns or
    domainMetadata. Files that need it are rewritten first. Older versions still need the feature.
    """
    opened = Table.open(table)
    with rewriting() as progress:
        done = opened.drop_feature(
            feature, truncate_history=truncate_history, dry_run=dry_run, progress=progress
        )
    if as_json:
        print_json({**done.to_dict(), "feature": feature})
    elif dry_run:
        files = f"{done.files_read:,} of {counted(done.files_checked, 'file')}"
        would = f"{files}, {size(done.bytes_read)}"
        print_fields({"table": table, "would be dropped": feature, "would be rewritten": would})
    else:
        print_fields({"table": table, "dropped": feature, "version": done.version})
