"""`variantlake query`: SQL with Variant paths over a table."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Annotated, Any, Protocol

import pyarrow as pa
import typer

import variantlake as vl
from variantlake.cli.terminal.configuration import named_tables
from variantlake.cli.terminal.formats import (
    OutputFormat,
    OutputFormatOption,
    OutputOption,
    Printer,
    chosen_format,
)
from variantlake.cli.terminal.local_rows import LocalRows, shows
from variantlake.cli.terminal.local_spark import spark_session
from variantlake.cli.terminal.options import (
    QueryEngine,
    QueryEngineOption,
    TableArgument,
    TimestampOption,
    VersionOption,
    json_option,
)
from variantlake.cli.terminal.output import escaped, print_note
from variantlake.cli.terminal.zones import zone_is_utc
from variantlake.engine.run import LocalQuery
from variantlake.engine.text import names_of_table, read_query
from variantlake.errors import InvalidQuery, UnsupportedFeature, VariantLakeError, did_you_mean
from variantlake.sql.select import parse_select
from variantlake.sql.statements import QUERIES, first_word, not_a_query

_NAMES = {
    QueryEngine.LOCAL: "the local engine",
    QueryEngine.DUCKDB: "DuckDB",
    QueryEngine.SPARK: "Spark",
}

_BY_DUCKDB = "--engine duckdb runs it, by DuckDB's own rules"


class Report(Protocol):
    """The result of `explain`, of any engine."""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""


def query(
    table: TableArgument,
    sql: Annotated[
        str | None,
        typer.Argument(
            metavar="SQL",
            help="Spark SQL. The table goes by its own name, or `t`. @FILE reads the text from a "
            "file, - from standard input.",
            show_default=False,
        ),
    ] = None,
    *,
    file: Annotated[
        str | None,
        typer.Option(
            "-f", "--file", metavar="FILE", help="Read the SQL from this file.", show_default=False
        ),
    ] = None,
    engine: QueryEngineOption = QueryEngine.AUTO,
    version: VersionOption = None,
    timestamp: TimestampOption = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Print on stderr what was read and what was skipped, with --json as JSON.",
        ),
    ] = False,
    output_format: OutputFormatOption = None,
    output: OutputOption = None,
    as_json: Annotated[bool, json_option("Short for --output-format jsonl.")] = False,
) -> None:
    """Run a query. Paths are read from typed columns, and conditions skip files."""
    check_is_no_query(table)
    text = sql_text(sql, file)
    form = chosen_format(output_format, output, as_json=as_json)
    if (refused := not_a_query(text)) is not None:
        raise refused
    opened = vl.Table.open(table, version, timestamp=timestamp)
    configured = [name.lower() for name, location in named_tables().items() if location == table]
    run_query(
        dict.fromkeys([*names_of_table(opened.uri), *configured], opened),
        text,
        engine,
        form,
        output=output,
        explain=explain,
    )


def check_is_no_query(table: str) -> None:
    """Raise BadParameter for a query in place of a table."""
    if re.match(r"\s*(select|with|from)\s", table, re.IGNORECASE):
        raise typer.BadParameter(
            "a table comes before the query: variantlake query TABLE 'SELECT …'"
        )


def sql_text(sql: str | None, file: str | None) -> str:
    """Read the text of a query from the argument, a file or standard input.

    Raises BadParameter, InvalidQuery for input that is not text, OSError.
    """
    if (sql is None) == (file is None):
        raise typer.BadParameter("give the query as 'SQL', or a file of it by -f")
    source = file or (sql[1:] if sql and sql.startswith("@") else None)
    try:
        if "-" in (sql, source):
            text = sys.stdin.read() if sys.stdin else ""
        else:
            text = Path(source).read_text(encoding="utf-8") if source else sql or ""
    except UnicodeDecodeError:
        raise InvalidQuery("the query is not text in UTF-8", file=source or "stdin") from None
    text = text.strip().removesuffix(";")
    if not text:
        raise typer.BadParameter("the query is empty")
    return text


def run_query(
    tables: dict[str, vl.Table],
    sql: str,
    engine: QueryEngine,
    form: OutputFormat,
    *,
    output: str | None = None,
    explain: bool = False,
) -> None:
    """Run a query of tables by their names; print its rows, and the engine that ran it."""
    reports: list[Report] = []
    if engine is QueryEngine.DUCKDB:
        stream = next(iter(tables.values())).sql(sql, engine="duckdb", tables=tables)
        Printer(LocalRows(stream), form).print(output)
        reports = list(stream.explain()) if explain else []
    else:
        found, refusal = _local(tables, sql, engine, form)
        engine = QueryEngine.SPARK if found is None else QueryEngine.LOCAL
        if found is None:
            shown = reports if explain else None
            _run_spark(tables, sql, refusal, form=form, output=output, reports=shown)
        else:
            scan, printer = found
            printer.print(output)
            reports = [scan.explain()] if explain else []
    for report in reports:
        _print_report(report, as_json=form is not OutputFormat.TABLE)
    if form is OutputFormat.TABLE:
        print_note(f"Run by {_NAMES[engine]}.")


def _local(
    tables: dict[str, vl.Table], sql: str, engine: QueryEngine, form: OutputFormat
) -> tuple[tuple[LocalQuery, Printer] | None, VariantLakeError | None]:
    """Return the result of the local engine, or the reason why Spark must run the query.

    Raises UnsupportedFeature and InvalidQuery if no other engine may run it.
    """
    if engine is QueryEngine.SPARK:
        return None, None
    required = engine is QueryEngine.LOCAL
    refusal: VariantLakeError | None = None
    try:
        # With the engine `auto`, refuse timestamps that Spark may read in another zone than UTC.
        name, parsed = read_query(
            sql,
            {name: table.schema for name, table in tables.items()},
            utc=required or zone_is_utc(),
            run=lambda name, query: LocalQuery(tables[name].snapshot, query).to_batches(),
        )
        found = LocalQuery(tables[name].snapshot, parsed)
        if required or all(shows(column.type) for column in found.schema):
            return (found, Printer(LocalRows(found), form)), None
    except UnsupportedFeature as error:
        if "--version" not in (error.cli_hint or ""):  # that hint is better
            error.cli_hint = f"--engine spark runs it; {_BY_DUCKDB}"
        refusal = error
    except InvalidQuery as error:
        # Spark parses some text that our parser does not; for other text it would fail, too.
        refusal = error
        word = first_word(sql)
        if parses(sql) or (word not in QUERIES and did_you_mean(word, QUERIES)):
            raise
    if required and refusal is not None:
        raise refusal
    return None, refusal


def parses(sql: str) -> bool:
    """Whether our parser accepts a text."""
    try:
        parse_select(sql)
    except InvalidQuery:
        return False
    return True


def _run_spark(
    tables: dict[str, vl.Table],
    sql: str,
    refusal: VariantLakeError | None,
    *,
    form: OutputFormat,
    output: str | None,
    reports: list[Report] | None,
) -> None:
    """Print the rows of Spark; `reports` gets the explanation of its reads."""
    if any(vl.Table.open(table.uri).version != table.version for table in tables.values()):
        hint = "write FROM t VERSION AS OF 3, without --version and --timestamp"
        raise refusal or UnsupportedFeature("Spark reads older versions by the text", cli_hint=hint)
    locations = {name: table.uri for name, table in tables.items()}
    with spark_session(refusal, instead=_BY_DUCKDB) as session:
        lake = vl.spark.connect(session)
        Printer(_SparkRows(lake.sql(sql, tables=locations)), form).print(output)
        if reports is not None:
            reports.append(lake.explain(sql, tables=locations))


class _SparkRows:
    """The rows of a DataFrame, in Spark's text and JSON."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.names: list[str] = frame.columns

    def text(self) -> Any:
        return vl.spark.text_rows(self._frame)

    def json(self) -> Any:
        return vl.spark.json_rows(self._frame)

    def arrow(self) -> pa.RecordBatchReader:
        table: pa.Table = self._frame.toArrow()
        return table.to_reader()


def _print_report(report: Report, *, as_json: bool) -> None:
    """Print on stderr what was read and skipped."""
    if as_json:
        sys.stderr.write(escaped(json.dumps(report.to_dict(), ensure_ascii=False)) + "\n")
        return
    for line in str(report).splitlines():
        print_note(line)
