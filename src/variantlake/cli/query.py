"""`variantlake query`: SQL with Variant paths over a table."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any, Protocol

import typer

import variantlake as vl
from variantlake.cli.terminal.local_rows import LocalRows, shows
from variantlake.cli.terminal.local_spark import spark_session
from variantlake.cli.terminal.options import Engine, EngineOption, TableArgument, json_option
from variantlake.cli.terminal.output import (
    MAX_SHOWN,
    escaped,
    print_json_lines,
    print_note,
    print_rows,
)
from variantlake.cli.terminal.zones import zone_is_utc
from variantlake.engine.run import LocalQuery
from variantlake.engine.text import read_query
from variantlake.errors import InvalidQuery, UnsupportedFeature, VariantLakeError
from variantlake.sql.select import parse_select
from variantlake.sql.statements import not_a_query
from variantlake.storage.opening import open_store

VIEW = "t"
"""What the SQL text may call the table."""


class Report(Protocol):
    """What `explain` gives, of either engine."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready values."""


def query(
    table: TableArgument,
    sql: Annotated[
        str,
        typer.Argument(
            metavar="SQL",
            help="Spark SQL; the table is `t`, or delta.`path`.",
            show_default=False,
        ),
    ],
    *,
    engine: EngineOption = Engine.AUTO,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Print on stderr what was read and what was skipped, with --json as JSON.",
        ),
    ] = False,
    as_json: Annotated[bool, json_option("Print one JSON object per row.")] = False,
) -> None:
    """Run a query. Paths are read from typed columns, and conditions skip files."""
    if (refused := not_a_query(sql)) is not None:
        raise refused
    required = engine is Engine.LOCAL
    local: LocalRows[LocalQuery] | None = None
    refusal: VariantLakeError | None = None
    if engine is not Engine.SPARK:
        opened = vl.Table.open(table)
        try:
            local = _local(opened, sql, required=required)
        except UnsupportedFeature as error:
            if required:
                raise
            refusal = error
        except InvalidQuery as error:
            # Spark reads texts that our parser does not. Else it would say the same.
            if required or parses(sql):
                raise
            refusal = error
    here = local is not None and _ran_here(local, required=required, as_json=as_json)
    if local is not None and here:
        if explain:
            _print_report(local.scan.explain(), as_json=as_json)
    else:
        _run_spark(table, sql, refusal, explain=explain, as_json=as_json)
    if not as_json:
        print_note(f"Run by {'the local engine' if here else 'Spark'}.")


def _local(opened: vl.Table, sql: str, *, required: bool) -> LocalRows[LocalQuery] | None:
    """The query for the local engine; None if only Spark shows what it gives.

    Raises UnsupportedFeature and InvalidQuery.
    """
    # Left to choose, it takes no timestamp that Spark may read in another zone than UTC.
    parsed = read_query(sql, opened.schema, VIEW, utc=required or zone_is_utc())
    found = LocalQuery(opened.snapshot, parsed)
    here = all(shows(column.type) for column in found.schema)
    if not required and not here:
        return None
    return LocalRows(found)


def parses(sql: str) -> bool:
    """Whether our parser reads a text, whatever it means."""
    try:
        parse_select(sql)
    except InvalidQuery:
        return False
    return True


def _ran_here(rows: LocalRows[LocalQuery], *, required: bool, as_json: bool) -> bool:
    """Print the rows; False, with nothing printed, where a value turns up that only Spark casts."""
    printed = False
    try:
        if as_json:
            for line in rows.json():
                print_json_lines([line])
                printed = True
        else:
            print_rows(rows.names, list(rows.text(MAX_SHOWN + 1)))
    except UnsupportedFeature as error:
        if required or printed:
            error.hint = error.hint or "--engine spark runs it"
            raise
        return False
    return True


def _run_spark(
    table: str, sql: str, refusal: VariantLakeError | None, *, explain: bool, as_json: bool
) -> None:
    with spark_session(refusal) as session:
        lake = vl.spark.connect(session)
        tables = {VIEW: open_store(table).uri}  # a bare word is a folder here, and no name
        frame = lake.sql(sql, tables=tables)
        if as_json:
            print_json_lines(vl.spark.json_rows(frame))
        else:
            print_rows(frame.columns, vl.spark.text_rows(frame, MAX_SHOWN + 1))
        if explain:
            _print_report(lake.explain(sql, tables=tables), as_json=as_json)


def _print_report(report: Report, *, as_json: bool) -> None:
    """What was read and skipped, beside the rows: on stderr."""
    if as_json:
        sys.stderr.write(escaped(json.dumps(report.to_dict(), ensure_ascii=False)) + "\n")
        return
    for line in str(report).splitlines():
        print_note(line)
