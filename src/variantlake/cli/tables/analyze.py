"""`variantlake analyze`: complete the statistics of a table."""

from __future__ import annotations

from typing import Annotated

from variantlake.cli.terminal.options import TableArgument, dry_run_option, json_option
from variantlake.cli.terminal.output import print_json, print_line
from variantlake.shown import counted
from variantlake.table import Table


def analyze(
    table: TableArgument,
    *,
    dry_run: Annotated[bool, dry_run_option("done")] = False,
    as_json: Annotated[bool, json_option("Print the counts as one JSON object.")] = False,
) -> None:
    """Add missing statistics to files of other writers, from their footers.

    No row changes: the files are added again under their own paths, in one commit.
    """
    done = Table.open(table).analyze(dry_run=dry_run)
    if as_json:
        print_json(done.to_dict())
        return
    what = "would be completed" if dry_run else "completed"
    version = "" if done.version is None else f", version {done.version}"
    print_line(f"{done.files_completed} of {counted(done.table_files, 'file')} {what}{version}")
