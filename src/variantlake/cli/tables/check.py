"""`variantlake check`: find broken rules of the Variant specifications in a file or a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Annotated

import typer

import variantlake as vl
from variantlake.cli.tables.cat import VariantOption, is_file, path_of
from variantlake.cli.tables.check_deep import check_deep
from variantlake.cli.tables.contract import check_contract
from variantlake.cli.tables.inspect_table import KEY_ORDER
from variantlake.cli.terminal.options import (
    FINDINGS,
    SourceArgument,
    TimestampOption,
    VersionOption,
    json_option,
)
from variantlake.cli.terminal.output import print_json, print_line, print_note
from variantlake.cli.terminal.progress import rows_of_files
from variantlake.delta.log.files.file_paths import absolute_paths
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.features import SCAN_FEATURES
from variantlake.errors import VariantLakeError
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.metadata.schema_tree import SchemaNode
from variantlake.parquet.metadata.value_notes import notes_of
from variantlake.shown import counted
from variantlake.units import milliseconds


def check(
    source: SourceArgument,
    *,
    variant: VariantOption = None,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep", help="Compare the rows of two versions of a table instead, by digests."
        ),
    ] = False,
    from_version: Annotated[
        int | None,
        typer.Option(
            "--from",
            metavar="VERSION",
            help="The earlier version. If none is given, the one before the last commit that "
            "only rewrote files.",
            show_default=False,
        ),
    ] = None,
    to_version: Annotated[
        int | None,
        typer.Option(
            "--to",
            metavar="VERSION",
            help="The later version; the newest one if only the earlier one is given.",
            show_default=False,
        ),
    ] = None,
    contract: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Check the documents of a table against this contract (a JSON Schema) instead; "
            "`table` is its own.",
            show_default=False,
        ),
    ] = None,
    column: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The VARIANT column of --contract.", show_default=False),
    ] = None,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    as_json: Annotated[bool, json_option("Print one JSON object per finding.")] = False,
) -> None:
    """Check VARIANT columns against every rule; exit code 4 if one is broken.

    VARIANT columns of a table's schema need no annotation in its files. A file without a VARIANT
    column breaks no rule, and is named on stderr; so is one that notes keys of which Spark has
    another order.

    With --deep: whether a rewrite (OPTIMIZE and the like) kept every row. Rows that differ are
    named by file and place, and the exit code is 4.

    With --contract: which rows break the contract, by path and keyword; exit code 4 if any does.
    """
    if contract is not None:
        if deep or variant or is_file(source):
            raise typer.BadParameter("--contract checks the documents of a table")
        check_contract(source, contract, column, version, timestamp, as_json=as_json)
        return
    if column is not None:
        raise typer.BadParameter("--column goes with --contract")
    if deep:
        if is_file(source) or variant:
            raise typer.BadParameter("--deep compares two versions of a table")
        check_deep(source, from_version, to_version, as_json=as_json)
        return
    if from_version is not None or to_version is not None:
        raise typer.BadParameter("--from and --to go with --deep")
    files = findings = 0
    alone = is_file(source)
    with rows_of_files() as shown:
        for file, columns in _files(source, variant or [], version, timestamp):
            files += 1
            found = False
            for finding in vl.parquet.check_file(
                file, variant_columns=columns, progress=shown(file), annotation=alone
            ):
                found = True
                findings += 1
                if as_json:
                    print_json({"file": file, **asdict(finding)})
                else:
                    print_line(f"{file}: {finding}")
            if not found and not vl.parquet.find_variants(file, variant_columns=columns):
                print_note(
                    f"{file}: no VARIANT column, nothing to check (--variant names unmarked ones)"
                )
            for name in _reordered(file):
                print_note(f"{file}: {name} has {KEY_ORDER} (this breaks no rule)")
    if findings:
        print_note(f"{counted(findings, 'finding')} in {counted(files, 'file')}")
        raise typer.Exit(FINDINGS)
    if not as_json:
        print_line(f"{counted(files, 'file')}, nothing found")


def _files(
    source: str, variants: list[str], version: int | None, timestamp: str | None
) -> Iterator[tuple[str, list[str]]]:
    """Yield the files, each with its columns that are Variants even without a mark."""
    if is_file(source):
        yield path_of(source), variants
        return
    if variants:
        raise typer.BadParameter("--variant is for files: a table's schema names its columns")
    at = None if timestamp is None else milliseconds("timestamp", timestamp)
    snapshot = Snapshot.read(source, version, timestamp=at, applies=SCAN_FEATURES)
    for path in absolute_paths(snapshot.files):
        print_note(f"the table refers to a file by an absolute path: {path}")
    columns = snapshot.schema.variant_columns(physical=True)
    for add in snapshot.add_files():
        location = snapshot.location(add.path)
        yield location, _columns_in(location, columns)


def _reordered(file: str) -> list[str]:
    """Return the Variant columns of a file with a note on keys that Spark orders differently."""
    try:
        notes = notes_of(read_footer(file).key_value_metadata)
    except VariantLakeError:
        return []  # which is a finding
    return [".".join(column) for column, each in notes.items() if each.reordered]


def _columns_in(file: str, columns: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the columns of a table that a file has; none if it cannot be read."""
    try:
        schema = read_footer(file).schema
    except VariantLakeError:
        return []
    held = []
    for column in columns:
        node: SchemaNode | None = schema
        for name in column:
            node = None if node is None else node.named(name)
        if node is not None and node.is_group:
            held.append(".".join(column))
    return held
