"""The entry point: commands, exit codes, and errors without tracebacks.

Exit codes: 0 fine, 1 what was asked for failed, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import os
import sys

import typer

import variantlake
from variantlake.cli import analyze, cat, check, convert, history, inspect, load, query
from variantlake.cli.output import print_error, stderr

app = typer.Typer(
    name="variantlake",
    help="Semi-structured data in Delta tables as shredded Variant columns.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _options(
    *, version: bool = typer.Option(False, "--version", help="Print the version and stop.")
) -> None:
    if version:
        typer.echo(variantlake.__version__)
        raise typer.Exit


app.command("ingest")(load.ingest)
app.command("convert")(convert.convert)
app.command("query")(query.query)
app.command("history")(history.history)
app.command("analyze")(analyze.analyze)
app.command("cat")(cat.cat)
app.command("inspect")(inspect.inspect)
app.command("check")(check.check)


def main() -> None:
    """Run the command that the arguments name, and exit with its code."""
    try:
        app()
    except SystemExit as done:
        if done.code == 130:  # Ctrl-C: typer turns it into this code
            stderr().print("Interrupted.")
        raise
    except Exception as error:
        if os.environ.get("VARIANTLAKE_TRACEBACK"):
            raise
        print_error(error)
        sys.exit(1)


if __name__ == "__main__":
    main()
