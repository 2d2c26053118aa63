"""Arguments and options of several commands, each with one name, one help and one type."""

from __future__ import annotations

import enum
import re
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from variantlake.cli.terminal.configuration import complete_name, located
from variantlake.cli.terminal.output import visible
from variantlake.errors import InvalidValue
from variantlake.ingest.sources.document_format import DocumentFormat
from variantlake.units import moment


def checked_by(parse: Callable[[str, object], object]) -> Callable[[str | None], str | None]:
    """Return a callback for an option that `units` parses: refused text is wrong usage."""

    def check(text: str | None) -> str | None:
        try:
            if text is not None:
                parse("it", text)
        except InvalidValue as error:
            hint = error.hint if error.cli_hint is None else error.cli_hint
            raise typer.BadParameter(f"{text!r}; {hint}") from None
        return text

    return check


TableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        callback=located,
        autocompletion=complete_name,
        help="The Delta table: a path, a URL or a name of the configuration.",
        show_default=False,
    ),
]


def _version(text: str) -> int | str:
    """Parse the number or name of a version."""
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        from variantlake.delta.protocol.named_versions import check_name

        check_name(text)
    except InvalidValue as error:
        raise typer.BadParameter(
            f"{text!r} is not a version's number, and {error.message}"
        ) from None
    return text


VersionOption = Annotated[
    Any,
    typer.Option(
        metavar="VERSION",
        parser=_version,
        help="Read this version of the table: a number, or a name (tag).",
        show_default=False,
    ),
]

TimestampOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        callback=checked_by(moment),
        help="Read the version of this time; in UTC unless it has a zone.",
        show_default=False,
    ),
]

SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE|FILE",
        callback=located,
        autocompletion=complete_name,
        help="A Delta table or a Parquet file.",
    ),
]

TargetArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        callback=located,
        autocompletion=complete_name,
        help="The Delta table, created if it does not exist.",
        show_default=False,
    ),
]


PropertiesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A table property (may be repeated).",
        show_default=False,
    ),
]


def properties_of(pairs: list[str]) -> dict[str, str]:
    """Parse pairs of `NAME=VALUE`. Raises BadParameter."""
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(f"{pair!r} is not NAME=VALUE")
        found[name.strip()] = value.strip()
    return found


_OF_COLUMN = re.compile(r"(\w+)=(.*)", re.DOTALL)


def schemas_of(given: list[str]) -> str | dict[str, str] | None:
    """Parse `--shredding`: nothing, one DDL, or DDL by column. Raises BadParameter."""
    found = [_OF_COLUMN.fullmatch(text) for text in given]
    if all(found) and given:
        return {each[1]: each[2] for each in found if each is not None}
    if len(given) > 1:
        raise typer.BadParameter("--shredding twice names a column each: 'event=kind STRING'")
    return given[0] if given else None


def json_option(what: str = "One JSON object.") -> Any:
    """Make the option `--json`; `what` describes its output."""
    return typer.Option("--json", help=what)


def dry_run_option(done: str) -> Any:
    """Make the option `--dry-run`; `done` is the verb for the work, such as "removed"."""
    return typer.Option("--dry-run", help=f"Only say what would be {done}.")


YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def confirm(question: str, *, yes: bool) -> None:
    """Ask before irreversible work, unless `yes`, which is `--yes`.

    Raises BadParameter if there is no terminal to ask on, Abort after another answer.
    """
    if yes:
        return
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        raise typer.BadParameter(f"{visible(question)} There is no terminal to ask on: give --yes")
    typer.confirm(visible(question), abort=True, err=True)


FINDINGS = 4
"""The exit code of a command that has findings."""


class Engine(enum.StrEnum):
    """The engine for the work: this process, a local Spark, or the first that can do it."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


EngineOption = Annotated[
    Engine,
    typer.Option(
        metavar="|".join(Engine),
        help="auto: in this process. If it does not support what is asked for, a local Spark is "
        "started, and a note says why.",
    ),
]


class QueryEngine(enum.StrEnum):
    """The engine for a query: as Engine, or DuckDB over scans of our tables."""

    AUTO = "auto"
    LOCAL = "local"
    DUCKDB = "duckdb"
    SPARK = "spark"


QueryEngineOption = Annotated[
    QueryEngine,
    typer.Option(
        metavar="|".join(QueryEngine),
        help="auto: in this process. If it does not support the query, a local Spark is started, "
        "and a note says why. duckdb: DuckDB over the rows that the query needs, by its own rules.",
    ),
]

LoadEngineOption = Annotated[
    Engine,
    typer.Option(
        metavar="|".join(Engine),
        help="Who runs the load: auto and local are this process, spark is a local Spark.",
    ),
]
"""This process can load everything that Spark can, so `auto` starts no Spark."""


# Of commands that rewrite files.

FilesWhereOption = Annotated[
    str | None,
    typer.Option(
        metavar="CONDITION",
        help="Only files that may hold a match: a condition over partition columns and paths.",
        show_default=False,
    ),
]

DigestOption = Annotated[
    bool,
    typer.Option(
        "--digest/--no-digest",
        help="Verify that the rewrite kept every row (default).",
    ),
]

# Of commands that load documents.

VariantColumnOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The VARIANT column to fill; by default the table's only one, `event` in a new table.",
        show_default=False,
    ),
]

ShreddingOption = Annotated[
    str | None,
    typer.Option(
        metavar="DDL",
        help="Which paths become columns, as DDL (`kind STRING, at BIGINT`); VARIANT for none. "
        "The default is the table's own, or inferred from a sample.",
    ),
]

FormatOption = Annotated[
    DocumentFormat | None,
    typer.Option(
        metavar="|".join(DocumentFormat),
        help="How a file holds documents: one per line, one array of them, or one document "
        "per file, on any number of lines; or records of another form than JSON. Default: the form "
        "that the names of the files end as, ndjson for all others.",
        show_default=False,
    ),
]

MaxBadOption = Annotated[
    str | None,
    typer.Option(
        metavar="N|N%",
        help="Stop, and load nothing, if more documents are bad than this number or share. Needs "
        "--mode quarantine or null.",
    ),
]

ContractOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="A JSON Schema that documents must fulfil, which the table keeps. Default: the "
        "table's own.",
        show_default=False,
    ),
]
