"""`variantlake serve`: a Spark whose clients have nothing of this package."""

from __future__ import annotations

import threading
from typing import Annotated

import typer

import variantlake as vl
from variantlake.cli.terminal.output import print_note
from variantlake.errors import InvalidValue


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
            help="Where Spark's Thrift server listens, for JDBC. Not started without.",
            show_default=False,
        ),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A setting of Spark's (may be repeated)."),
    ] = None,
) -> None:
    """Serve Spark to clients, whose queries read paths from typed columns and skip files.

    Whoever reaches the ports can read and write all that this process can. Ctrl-C ends it.
    """
    with vl.spark.local_session(settings=dict(map(_setting, conf or ()))) as session:
        server = vl.spark.serve(session, host=host, port=port, thrift_port=thrift_port)
        try:
            typer.echo(f'Spark Connect: SparkSession.builder.remote("{server.connect}")')
            if server.jdbc is not None:
                typer.echo(f"JDBC: {server.jdbc}")
            print_note("Ctrl-C ends it.")
            threading.Event().wait()
        finally:
            server.stop()


def _setting(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not (name and sign):
        raise InvalidValue(f"--conf {text} is no setting", hint="as spark.driver.memory=4g")
    return name, value
