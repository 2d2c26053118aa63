"""`variantlake query`: SQL with Variant paths over a table."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import variantlake as vl
from variantlake.cli.output import MAX_SHOWN, print_rows, stderr

VIEW = "t"
"""What the SQL text may call the table."""


def query(
    table: Annotated[
        str, typer.Argument(help="The Delta table: a path or URL.", show_default=False)
    ],
    sql: Annotated[
        str,
        typer.Argument(help="Spark SQL; the table is `t`, or delta.`path`.", show_default=False),
    ],
    *,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say afterwards what was read and what was skipped.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a row.")] = False,
) -> None:
    """Run a query whose paths are read from columns and whose filters skip files."""
    with vl.spark.local_session() as session:
        lake = vl.spark.connect(session)
        tables = {VIEW: table}
        frame = lake.sql(sql, tables=tables)
        if as_json:
            for line in vl.spark.json_rows(frame):
                sys.stdout.write(line + "\n")
        else:
            print_rows(frame.columns, vl.spark.text_rows(frame, MAX_SHOWN + 1))
        if explain:
            report = str(lake.explain(sql, tables=tables))
            stderr().print(report, soft_wrap=True, markup=False)
