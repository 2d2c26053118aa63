"""`variantlake sql`: a prompt for queries of some tables, with history and completion."""

from __future__ import annotations

import cmd
import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer

import variantlake as vl
from variantlake.cli.query import check_is_no_query, run_query
from variantlake.cli.terminal.configuration import complete_name, named_tables
from variantlake.cli.terminal.formats import OutputFormat, OutputFormatOption
from variantlake.cli.terminal.options import (
    QueryEngine,
    QueryEngineOption,
    TimestampOption,
    VersionOption,
    json_option,
)
from variantlake.cli.terminal.output import print_error, print_line, print_note, print_rows
from variantlake.engine.text import names_of_table
from variantlake.expressions.tree import Ref
from variantlake.planning.log_files import LogFiles
from variantlake.report.paths import paths_of
from variantlake.sql.statements import not_a_query

_DELIMITERS = " \t\n,()=<>'\""
_WORDS = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "BY",
    "HAVING",
    "ORDER",
    "LIMIT",
    "DISTINCT",
    "AND",
    "OR",
    "NOT",
    "NULL",
    "IS",
    "IN",
    "LIKE",
    "BETWEEN",
    "COUNT",
    "SUM",
    "MIN",
    "MAX",
    "AVG",
    "CAST",
    "TRY_CAST",
]
_MOST_PATHS = 10_000


def sql(
    tables: Annotated[
        list[str],
        typer.Argument(
            metavar="TABLE...",
            help="Delta tables: paths, URLs or NAME=LOCATION. Each goes by its name in the text.",
            autocompletion=complete_name,
            show_default=False,
        ),
    ],
    *,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    engine: QueryEngineOption = QueryEngine.AUTO,
    output_format: OutputFormatOption = None,
    as_json: Annotated[bool, json_option("Short for --output-format jsonl.")] = False,
) -> None:
    """Query tables at a prompt. Text that comes by a pipe runs without one.

    A query ends with a semicolon. `.help` lists the commands of the prompt, such as `.schema`.
    """
    form = OutputFormat.JSONL if as_json else output_format or OutputFormat.TABLE
    if form is OutputFormat.PARQUET:
        raise typer.BadParameter("Parquet is for files: use query with -o FILE")
    for text in tables:
        check_is_no_query(text)
    opened = (_named(text, version, timestamp) for text in tables)
    prompt = _Prompt(dict(opened), engine, form)
    if sys.stdin.isatty():
        with _history():
            prompt.loop()
        return
    for line in sys.stdin:
        if not line.startswith("."):
            prompt.take(line)
        elif prompt.onecmd(line.rstrip()):
            return
    prompt.take(";")


def _named(text: str, version: int | str | None, timestamp: str | None) -> tuple[str, vl.Table]:
    """Open a table, and return its name: the given one, that in the configuration, or its own."""
    known = named_tables()
    name, equals, location = text.partition("=")
    if not equals or not name.isidentifier():
        name, location = (text if text in known else ""), text
    opened = vl.Table.open(known.get(location, location), version, timestamp=timestamp)
    return name.lower() or names_of_table(opened.uri)[-1], opened


class _Prompt(cmd.Cmd):
    """A prompt for lines of queries, and for commands that begin with a dot."""

    prompt = "variantlake> "

    def __init__(
        self, tables: Mapping[str, vl.Table], engine: QueryEngine, form: OutputFormat
    ) -> None:
        super().__init__()
        self._tables, self._engine, self._form = dict(tables), engine, form
        if len(tables) == 1:
            self._tables.setdefault("t", next(iter(tables.values())))
        self._explains = False
        self._lines: list[str] = []
        self._completions: list[str] = []

    def loop(self) -> None:
        """Read and run lines until the end of input; errors do not end the prompt."""
        names = ", ".join(self._tables)
        print_note(f"Tables: {names}. A query ends with a semicolon; .help lists commands.")
        while True:
            try:
                self.cmdloop()
                break
            except KeyboardInterrupt:
                sys.stderr.write("\n")
                self._begin_again()
            except Exception as error:  # noqa: BLE001 - print it, and go on
                print_error(error)
                self._begin_again()

    def take(self, line: str) -> None:
        """Add a line of a query, which runs at its semicolon. Raises as `run_query`."""
        self._lines.append(line.rstrip())
        self.prompt = "        ...> "
        text = "\n".join(self._lines).strip()
        if text.endswith(";"):
            self._begin_again()
            if text := text.rstrip("; \n"):
                if (refused := not_a_query(text)) is not None:
                    raise refused
                run_query(self._tables, text, self._engine, self._form, explain=self._explains)

    def _begin_again(self) -> None:
        self._lines.clear()
        self.prompt = type(self).prompt

    def onecmd(self, line: str) -> bool:
        """Run a line; True ends the prompt."""
        if line == "EOF":
            return True
        if not self._lines and line.startswith("."):
            name, _, rest = line[1:].strip().partition(" ")
            return self._command(name.lower(), rest.strip())
        if line.strip():
            self.take(line)
        return False

    def emptyline(self) -> bool:
        """Do nothing: an empty line must not repeat a query."""
        return False

    def _command(self, name: str, rest: str) -> bool:
        if name in ("quit", "exit"):
            return True
        if name == "tables":
            print_rows(
                ["name", "version", "location"],
                [(name, table.version, table.uri) for name, table in self._tables.items()],
            )
        elif name == "schema":
            for each in [rest.lower()] if rest else self._tables:
                self._print_schema(each)
        elif name == "engine" and rest in set(QueryEngine):
            self._engine = QueryEngine(rest)
        elif name == "format" and rest in set(OutputFormat) - {OutputFormat.PARQUET}:
            self._form = OutputFormat(rest)
        elif name == "explain" and rest in ("on", "off"):
            self._explains = rest == "on"
        else:
            for line in _HELP.splitlines():
                print_line(line)
        return False

    def _print_schema(self, name: str) -> None:
        table = self._tables.get(name)
        if table is None:
            print_note(f"There is no table {name!r}.")
            return
        columns = [(field.name, str(field.type)) for field in table.schema.fields]
        print_rows([name, "type"], [*columns, *_paths(table)])

    def completenames(self, text: str, *_ignored: object) -> list[str]:
        """Return the completions at the cursor."""
        if not self._completions:
            self._completions = [*_WORDS, *self._tables]
            for table in dict.fromkeys(map(id, self._tables.values())):
                opened = next(each for each in self._tables.values() if id(each) == table)
                self._completions += [field.name for field in opened.schema.fields]
                self._completions += [path for path, _ in _paths(opened)]
        begin = text.lower()
        return [each for each in self._completions if each.lower().startswith(begin)]

    completedefault = completenames


_HELP = """.tables                           the tables and their versions
.schema [TABLE]                   the columns of tables, and the paths of VARIANT columns
.engine auto|local|duckdb|spark   who runs queries
.format table|json|jsonl|csv      the form of the rows
.explain on|off                   whether files that are read and skipped are listed
.quit                             the end (also Ctrl-D)"""


def _paths(table: vl.Table) -> list[tuple[str, str]]:
    """Return the typed paths of VARIANT columns, as a query writes them, and their types."""
    log = LogFiles(table.snapshot)
    found = []
    for column in table.schema.variant_columns(physical=True):
        variant = log.facts.variant(column)
        if variant is not None and len(column) == 1:
            field = next(each for each in table.schema.fields if each.physical_name == column[0])
            found += [
                (str(Ref((field.name,), each.path, "variant")), each.type_name)
                for each in paths_of(variant, _MOST_PATHS).paths
                if each.path.steps and each.type_name not in ("STRUCT", "ARRAY")
            ]
    return found


@contextlib.contextmanager
def _history() -> Iterator[None]:
    """Provide the lines of earlier prompts in the block; only the user can read their file."""
    try:
        import readline
    except ImportError:  # without it, there is no history
        yield
        return
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    file = Path(state, "variantlake", "history")
    readline.set_completer_delims(_DELIMITERS)
    with contextlib.suppress(OSError):
        readline.read_history_file(file)
    readline.set_history_length(1_000)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(file)
            file.chmod(0o600)
