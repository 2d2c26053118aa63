"""The options of all commands that load documents, about the rows and files that they write."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from variantlake.cli.terminal.options import checked_by, properties_of
from variantlake.units import size_bytes
from variantlake.writing.options.row_policies import OnDuplicate


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingOptions:
    """The options, spelled out in the signature of a command that takes them together."""

    order_by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH",
            help="Sort the rows of each file by this shredded path, `$.a.b` (may be repeated).",
        ),
    ] = None
    unique_by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            help="A column or typed path (`event:user.id::string`) that no two rows of the load "
            "share, nor one of them with a row of the table (may be repeated for a key of "
            "several).",
        ),
    ] = None
    on_duplicate: Annotated[
        OnDuplicate | None,
        typer.Option(
            metavar="|".join(OnDuplicate),
            help="With --unique-by: a row takes the place of the one that has its key (the "
            "default; of the load's own rows the last one stays), or is left out (the first one "
            "stays).",
            show_default=False,
        ),
    ] = None
    arrays: Annotated[
        bool, typer.Option("--arrays", help="Shred arrays too, if the schema is inferred.")
    ] = False
    target_file_size: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            callback=checked_by(size_bytes),
            help="The approximate maximum size of a file: bytes, or as in 64MB.",
            show_default=False,
        ),
    ] = None
    max_rows_per_file: Annotated[
        int | None, typer.Option(metavar="N", help="The maximum number of rows of a file.", min=1)
    ] = None
    partition_by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=PATH]",
            help="A partition column, from a path of the documents (`day=event:ts::date`) or from "
            "folders (`day=2026-01-31/`) of the sources (may be repeated).",
        ),
    ] = None
    file_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="A column for the path of the source.")
    ] = None
    loaded_at_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="A column for the time of the load.")
    ] = None
    hints: Annotated[
        str | None,
        typer.Option(
            metavar="HINTS",
            help="Paths that must be columns, as in 'user.id BIGINT, output.* DOUBLE'; the table "
            "keeps them.",
        ),
    ] = None
    merge_schema: Annotated[
        bool,
        typer.Option("--merge-schema", help="Add columns that the table lacks."),
    ] = False
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A property of a table that the load creates (may be repeated).",
            show_default=False,
        ),
    ] = None

    def keywords(self) -> dict[str, Any]:
        """Return the keywords of a load. Raises BadParameter."""
        given = asdict(self) | {"properties": properties_of(self.properties or []) or None}
        return {name: value for name, value in given.items() if value not in (None, [])}
