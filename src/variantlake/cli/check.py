"""`variantlake check`: the rules of the Variant specifications that a file or a table breaks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

import typer

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
    for file in _files(source):
        files += 1
        for finding in vl.parquet.check_file(file):
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


def _files(source: str) -> Iterator[str]:
    if is_file(source):
        yield local_path(source)
        return
    snapshot = Snapshot.load(source, applies=("columnMapping", "deletionVectors"))
    for add in snapshot.add_files():
        yield snapshot.location(add.path)
