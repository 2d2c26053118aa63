"""`variantlake profile`: describe the values at each path of a source, loaded or not."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

import variantlake as vl
from variantlake.cli.loads.standard_input import with_standard_input
from variantlake.cli.terminal.configuration import located
from variantlake.cli.terminal.options import TimestampOption, VersionOption, json_option
from variantlake.cli.terminal.output import (
    print_fields,
    print_json,
    print_line,
    print_note,
    print_rows,
)
from variantlake.expressions.tree import path_text
from variantlake.ingest.sources.document_format import DocumentFormat
from variantlake.report.profile import PathProfile, SourceProfile
from variantlake.report.samples import SAMPLE_ROWS
from variantlake.shown import shortened
from variantlake.shredding.inference.infer import InferenceOptions

_SHOWN = 100
"""Paths that the table for people shows."""

_WIDTH = 24
"""Characters of an example there."""


class SchemaForm(enum.StrEnum):
    """The output of `--as`."""

    JSON_SCHEMA = "jsonschema"
    PYDANTIC = "pydantic"
    DDL = "ddl"


def profile(
    source: Annotated[
        str,
        typer.Argument(
            metavar="TABLE|FILE|SRC",
            callback=located,
            help="A Delta table, a Parquet file, or files of documents; - for standard input.",
            show_default=False,
        ),
    ],
    *,
    column: Annotated[
        str | None, typer.Option(metavar="NAME", help="The VARIANT column of a table or a file.")
    ] = None,
    format: Annotated[  # noqa: A002 - the option's name
        DocumentFormat | None,
        typer.Option(
            metavar="|".join(DocumentFormat),
            help="How files hold documents; by default as their names say, else one per line.",
        ),
    ] = None,
    sample: Annotated[
        int, typer.Option(metavar="ROWS", help="The maximum number of rows to read.", min=1)
    ] = SAMPLE_ROWS,
    arrays: Annotated[
        bool, typer.Option("--arrays", help="Let inference shred arrays too.")
    ] = False,
    as_view: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Print a CREATE VIEW with the paths as typed columns instead."
        ),
    ] = None,
    over: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE", help="For --as-view: the table that the view is over, as SQL names it."
        ),
    ] = None,
    as_schema: Annotated[
        SchemaForm | None,
        typer.Option(
            "--as",
            metavar="|".join(SchemaForm),
            help="Print a schema instead: JSON Schema, Pydantic models, or CREATE TABLE.",
        ),
    ] = None,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    examples: Annotated[
        bool, typer.Option("--examples/--no-examples", help="Whether to show values of the data.")
    ] = True,
    as_json: Annotated[bool, json_option()] = False,
) -> None:
    """Show the paths of a sample: shares, types, distinct values, and their columns in a load."""
    with with_standard_input([source]) as (file,):
        found = vl.profile(
            file,
            column,
            sample_rows=sample,
            examples=examples,
            format=format,
            inference=InferenceOptions(arrays=arrays),
            version=version,
            timestamp=timestamp,
        )
    if as_view is not None:
        for line in (found.as_view(as_view, over) + ";").splitlines():
            print_line(line)
    elif as_schema is SchemaForm.JSON_SCHEMA:
        print_json(found.to_json_schema())
    elif as_schema is not None:
        is_ddl = as_schema is SchemaForm.DDL
        text = f"{found.to_ddl('documents')};" if is_ddl else found.to_pydantic()
        for line in text.splitlines():
            print_line(line)
    elif as_json:
        print_json(found.to_dict())
    else:
        _print(found)


_BAD_DOCUMENTS = (
    "bad documents are left out here; `variantlake ingest` names the first one, --format array or "
    "json reads files that do not have a document on each line"
)


def _print(found: SourceProfile) -> None:
    bad = {"bad documents": f"{found.bad_rows:,}"} if found.bad_rows else {}
    print_fields(
        {
            "source": found.source,
            "rows looked at": f"{found.rows:,}",
            **bad,
            "shredding": found.shredding,
            "in columns": f"{found.saved:.0%} of the text of the documents",
        }
    )
    names = ["path", "rows", "types", "distinct", "text", "column", "examples"]
    print_rows(names, map(_row, found.paths[:_SHOWN]))
    more = len(found.paths) - _SHOWN + found.more_paths
    if more > 0:
        print_line(f"{more:,} rarer paths are not shown; --json has the first 1,000.")
    if bad:
        print_note(_BAD_DOCUMENTS, "Hint: ")


def _row(each: PathProfile) -> list[str]:
    types = ", ".join(
        name if share == 1 else f"{name} {share:.0%}" for name, share in each.types.items()
    )
    distinct = f"{each.distinct:,}{'+' if each.has_more_values else ''}" if each.distinct else ""
    return [
        path_text(each.path),
        f"{each.share:.1%}" if each.share is not None else f"{each.count:,} elements",
        types,
        distinct,
        f"{each.text_share:.1%}" if each.text_share else "",
        each.column or "",
        ", ".join(shortened(text, _WIDTH) for text in each.examples),
    ]
