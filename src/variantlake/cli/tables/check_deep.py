"""`variantlake check --deep`: compare the rows of two versions of a table."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import typer

from variantlake.cli.terminal.options import FINDINGS
from variantlake.cli.terminal.output import print_fields, print_json, print_line, print_note
from variantlake.cli.terminal.progress import counting
from variantlake.errors import InvalidQuery
from variantlake.kernels.digest.rows import Digest
from variantlake.maintenance.compare_versions import VersionComparison
from variantlake.shown import counted
from variantlake.table import Table


def check_deep(
    source: str, from_version: int | None, to_version: int | None, *, as_json: bool
) -> None:
    """Compare the rows of two versions by their digests; exit code 4 if they differ."""
    table = Table.open(source)
    with counting() as progress:
        try:
            found = table.check_rewrite(from_version, to_version, progress=progress)
        except InvalidQuery:
            if from_version is not None or to_version is not None:
                raise
            _print_digest(table, table.digest(progress=progress), as_json=as_json)
            return
    if as_json:
        print_json(_document(found))
    else:
        _print(found)
    if not found.equal:
        raise typer.Exit(FINDINGS)


def _print_digest(table: Table, digest: Digest, *, as_json: bool) -> None:
    """Print the digest of a version, if there is nothing to compare it with."""
    print_note(
        "no commit in the log only rewrote files, so there is nothing to compare "
        "(--from and --to name two versions)"
    )
    if as_json:
        print_json({"version": table.version, "rows": digest.rows, "digest": digest.hex})
    else:
        print_fields({"version": table.version, "rows": f"{digest.rows:,}", "digest": digest.hex})


def _document(found: VersionComparison) -> dict[str, Any]:
    return {
        "from_version": found.from_version,
        "to_version": found.to_version,
        "equal": found.equal,
        "before": {"rows": found.before.rows, "digest": found.before.hex},
        "after": {"rows": found.after.rows, "digest": found.after.hex},
        "files_before": found.files_before,
        "files_after": found.files_after,
        "shared_files": found.shared_files,
        "differences": [asdict(each) for each in found.differences],
    }


def _print(found: VersionComparison) -> None:
    before, after = found.from_version, found.to_version
    for each in found.differences:
        other = after if each.version == before else before
        print_line(f"{each.file}: row {each.row} of version {each.version} is not in {other}")
    if not found.equal:
        print_note(
            f"versions {before} and {after} differ: {counted(found.before.rows, 'row')} with the "
            f"digest {found.before.hex}, and {found.after.rows:,} with {found.after.hex}"
        )
        return
    print_line(
        f"versions {before} and {after} have the same rows: {found.before.rows:,} in "
        f"{counted(found.files_before, 'file')}, now in {found.files_after:,}, "
        f"{found.shared_files:,} of them in both; digest {found.before.hex}"
    )
