"""`variantlake check`: the rules of the Variant specifications that a file or a table breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.status import Status
from rich.text import Text

import variantlake as vl
from variantlake.cli.cat import is_file
from variantlake.cli.output import print_json, stderr, stdout
from variantlake.delta.snapshot import Snapshot
from variantlake.delta.store import local_path


def check(
    source: Annotated[
        str, typer.Argument(metavar="TABLE|FILE", help="A Delta table or a Parquet file.")
    ],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a finding.")] = False,
) -> None:
    """Check VARIANT columns against every rule; exit code 1 when one is broken."""
    files = findings = 0
    with stderr().status("", spinner="line") as status:
        for file in _files(source):
            files += 1
            for finding in vl.parquet.check_file(file, progress=_shown(status, file)):
                findings += 1
                if as_json:
                    print_json({"file": file, **asdict(finding)})
                else:
                    stdout().print(f"{file}: {finding}", soft_wrap=True, markup=False)
    if findings:
        stderr().print(f"{findings:,} findings in {files:,} files")
        raise typer.Exit(1)
    if not as_json:
        stdout().print(f"{files:,} files, nothing found")


def _shown(status: Status, file: str) -> Callable[[int, int], None]:
    """Progress within one file, on a terminal; elsewhere a Status prints nothing."""
    name = Text(Path(file).name)
    return lambda row, rows: status.update(Text.assemble(name, f": row {row:,} of {rows:,}"))


def _files(source: str) -> Iterator[str]:
    if is_file(source):
        yield local_path(source)
        return
    snapshot = Snapshot.load(source, applies=("columnMapping", "deletionVectors"))
    for add in snapshot.add_files():
        yield snapshot.location(add.path)
