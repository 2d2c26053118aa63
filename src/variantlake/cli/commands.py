"""The commands of `variantlake`, and what they have in common."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

import variantlake
from variantlake.cli import query
from variantlake.cli.changes import changes, delete, erase
from variantlake.cli.loads import autoload, convert, load, loads
from variantlake.cli.maintenance import (
    checkpoint,
    cluster,
    drift,
    drop_feature,
    health,
    optimize,
    reshred,
    restore,
    vacuum,
)
from variantlake.cli.tables import analyze, cat, check, history, profile, report
from variantlake.cli.tables import inspect as inspect_command
from variantlake.cli.terminal.logs import logged
from variantlake.cli.terminal.output import print_error, print_note, visible
from variantlake.delta.log.file_paths import ABSOLUTE_PATHS, set_absolute_paths

app = typer.Typer(
    name="variantlake",
    help="Semi-structured data in Delta tables as shredded Variant columns.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

_WRONG_USAGE: type[Exception] = typer.BadParameter.__bases__[0]
"""What all errors of arguments derive from; typer does not export it."""


@app.callback(invoke_without_command=True)
def _options(
    *, version: bool = typer.Option(False, "--version", help="Print the version and stop.")
) -> None:
    if version:
        typer.echo(variantlake.__version__)
        raise typer.Exit


RefuseOption = Annotated[
    bool,
    typer.Option(
        "--refuse-absolute-paths",
        help="Refuse tables that name files by absolute paths. Use it for tables that you do not "
        f"trust (also: {ABSOLUTE_PATHS}=refuse).",
    ),
]


VerboseOption = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        show_default=False,
        help="Log what is committed. Given twice: also files, skipping and rewrites.",
    ),
]


def _with_common_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options that all commands have, for typer to find in its signature."""
    common = {"refuse_absolute_paths": (False, RefuseOption), "verbose": (0, VerboseOption)}

    @functools.wraps(command)
    def run(**given: Any) -> None:
        if given.pop("refuse_absolute_paths"):
            set_absolute_paths("refuse")
        with logged(given.pop("verbose")):
            command(**given)

    own = inspect.signature(command, eval_str=True)
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (default, kind) in common.items()
    ]
    signature = own.replace(parameters=[*own.parameters.values(), *added])
    vars(run)["__signature__"] = signature
    run.__annotations__ = {each.name: each.annotation for each in signature.parameters.values()}
    return run


_COMMANDS: dict[str, Callable[..., None]] = {
    "ingest": load.ingest,
    "autoload": autoload.autoload,
    "loads": loads.loads,
    "convert": convert.convert,
    "query": query.query,
    "history": history.history,
    "analyze": analyze.analyze,
    "cluster": cluster.cluster,
    "reshred": reshred.reshred,
    "drop-feature": drop_feature.drop_feature,
    "drift": drift.drift,
    "cat": cat.cat,
    "inspect": inspect_command.inspect,
    "profile": profile.profile,
    "report": report.report,
    "check": check.check,
    "checkpoint": checkpoint.checkpoint,
    "health": health.health,
    "restore": restore.restore,
    "optimize": optimize.optimize,
    "vacuum": vacuum.vacuum,
    "changes": changes.changes,
    "delete": delete.delete,
    "erase": erase.erase,
}
for _name, _command in _COMMANDS.items():
    app.command(_name)(_with_common_options(_command))


def run() -> int:
    """Run the command that the arguments name; its exit code. Errors are said on stderr."""
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()  # a full disk is said here, and not while the interpreter ends
    except _WRONG_USAGE as error:
        return _say_usage(error)
    except BrokenPipeError:  # who reads has seen enough
        _drop_output()
        return 1
    except Exception as error:
        if os.environ.get("VARIANTLAKE_TRACEBACK"):
            raise
        print_error(error)
        try:
            sys.stdout.flush()
        except OSError:  # standard output is what failed
            _drop_output()
        return 1
    if code == 130:  # Ctrl-C: typer turns it into this code
        print_note("Interrupted.")
    return code if isinstance(code, int) else 0


def _drop_output() -> None:
    """Throw away what standard output did not take: the interpreter would fail by it as it ends."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _say_usage(error: Any) -> int:
    # Loads what draws the frame.
    from typer.rich_utils import rich_format_error

    error.message = visible(error.message)  # it names arguments, which a shell's `*` may have made
    rich_format_error(error)
    return int(error.exit_code)
