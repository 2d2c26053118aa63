"""`variantlake serve`: a Spark whose clients have nothing of this package."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Annotated

import typer

import variantlake as vl
from variantlake.cli.terminal.options import json_option
from variantlake.cli.terminal.output import print_json, print_note
from variantlake.errors import InvalidValue

if TYPE_CHECKING:
    from variantlake.spark import Server


def serve(
    *,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="The address to listen at.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="PORT", help="Where Spark Connect listens; 0 for a free port.")
    ] = 15002,
    thrift_port: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            help="Where Spark's Thrift server listens, for JDBC, likewise. Not started without.",
            show_default=False,
        ),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A setting of Spark's (may be repeated)."),
    ] = None,
    as_json: Annotated[bool, json_option("How to connect, as one JSON object.")] = False,
) -> None:
    """Serve Spark to clients, whose queries read paths from typed columns and skip files.

    Whoever reaches the ports can read and write all that this process can. Ctrl-C ends it.
    """
    with vl.spark.local_session(settings=dict(map(_setting, conf or ()))) as session:
        server = vl.spark.serve(session, host=host, port=port, thrift_port=thrift_port)
        try:
            if as_json:
                print_json({"connect": server.connect, "jdbc": server.jdbc})
            else:
                _print(server)
            sys.stdout.flush()
            threading.Event().wait()
        finally:
            server.stop()


def _print(server: Server) -> None:
    typer.echo(f'Spark Connect: SparkSession.builder.remote("{server.connect}")')
    if server.jdbc is not None:
        typer.echo(f"JDBC: {server.jdbc}")
    print_note("Ctrl-C ends it.")


def _setting(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not (name and sign):
        raise InvalidValue(f"--conf {text} is no setting", hint="as spark.driver.memory=4g")
    return name, value
