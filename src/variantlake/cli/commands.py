"""The common parts of the commands of `variantlake`, each of which loads when it is called."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import variantlake
from variantlake.cli.registry import COMMANDS, COMMITTING, SYNONYMS

_HELP = {"help_option_names": ["-h", "--help"]}

_LEADING = ("-v", "-vv", "--verbose", "-q", "--quiet")

_WRONG_USAGE: Any = typer.BadParameter.__bases__[0]
"""The base of all errors of arguments, which typer does not export."""

_COMMON = "Options of all commands"


def _value(option: Any, process: Callable[..., Any], ctx: Any, value: Any) -> Any:
    """Process an argument as typer's `process` does, but without it if nothing needs conversion.

    typer would load pydantic, which takes as long as NumPy.
    """
    descriptor = getattr(option, "type_descriptor", None)
    if descriptor is None:  # of another version of typer
        return process(ctx, value)
    settings = getattr(descriptor, "parameter_info", None)
    kind: Any = getattr(descriptor, "annotation", None)
    changes = any(getattr(descriptor, name, True) for name in ("is_path", "is_ranged"))
    changes |= any(getattr(settings, name, None) is not None for name in ("parser", "click_type"))
    if value is None and not option.required:
        value = () if option.multiple or option.nargs == -1 else None
    elif not changes and isinstance(value, str) and value in _names(kind):
        value = kind(value)
    elif changes or kind not in (str, int, bool) or type(value) is not kind:
        return process(ctx, value)
    return value if option.callback is None else option.callback(ctx, option, value)


def _names(kind: Any) -> list[str]:
    """Return the values of an enumeration."""
    is_enum = isinstance(kind, type) and issubclass(kind, enum.Enum)
    return [each.value for each in kind] if is_enum else []


def _quick(options: list[Any]) -> list[Any]:
    """Make `_value` process these options."""
    for option in options:
        if "process_value" not in vars(option):
            option.process_value = functools.partial(_value, option, option.process_value)
    return options


class _Command(TyperCommand):
    """A command whose help shows no "<bool>" for flags."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _quick(_without_bool(super().get_params(ctx)))


class _Commands(TyperGroup):
    """A group that has its commands' lines for the help, and loads only the one that runs."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, entry in COMMANDS.items():
            light = TyperCommand(name, help=entry.line, rich_help_panel=entry.panel)
            self.add_command(light, name)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options before a command."""
        return _quick(_without_bool(super().get_params(ctx)))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Accept `-v` and `-q` before the command, too."""
        count = next((n for n, each in enumerate(args) if each not in _LEADING), 0)
        if count and not args[count].startswith("-"):
            args = [args[count], *args[:count], *args[count + 1 :]]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in SYNONYMS:
            raise _WRONG_USAGE(
                f"No such command {args[0]!r}. Did you mean {SYNONYMS[args[0]]!r}?", ctx=ctx
            )
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and load_command(str(command.name)), rest


app = typer.Typer(
    name="variantlake",
    cls=_Commands,
    help="Semi-structured data in Delta tables as shredded Variant columns.",
    epilog="`variantlake COMMAND -h` shows a command's options, and two examples.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=_HELP,
)


@app.callback(invoke_without_command=True)
def _options(
    *, version: bool = typer.Option(False, "--version", help="Print the version and stop.")
) -> None:
    if version:
        typer.echo(variantlake.__version__)
        raise typer.Exit


def load_command(name: str) -> Any:
    """Load a command by its name in `COMMANDS`, for click."""
    entry = COMMANDS[name]
    module = importlib.import_module(f"variantlake.cli.{entry.module}")
    one = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    function = getattr(module, entry.function or name.replace("-", "_"))
    # typer folds the lines of the first paragraph only, and takes brackets for markup.
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    words = "\n\n".join(" ".join(each.split()) for each in paragraphs)
    examples = "\n".join(["\b\nExamples:", *entry.examples]).replace("[", r"\[")
    one.command(name, cls=_Command, help=words, epilog=examples, context_settings=_HELP)(
        _with_common_options(function, commits=name in COMMITTING)
    )
    return typer.main.get_command(one)


def _without_bool(params: list[Any]) -> list[Any]:
    for option in params:
        if getattr(option, "is_flag", False):
            option.metavar = ""  # else "<bool>"
    return params


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CommonOptions:
    """The options of all commands."""

    no_absolute_paths: Annotated[
        bool,
        typer.Option(
            "--no-absolute-paths",
            help="Refuse tables that name files by absolute paths: for tables that you do not "
            "trust.",
            rich_help_panel=_COMMON,
        ),
    ] = False
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            "-q",
            help="Print results and errors only: no notes, no progress, no warnings.",
            rich_help_panel=_COMMON,
        ),
    ] = False
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            metavar="",
            show_default=False,
            help="Log what is committed. Given twice: also files, skipping and rewrites.",
            rich_help_panel=_COMMON,
        ),
    ] = 0
    storage_option: Annotated[
        list[str] | None,
        typer.Option(
            "--storage-option",
            metavar="[BUCKET:]NAME=VALUE",
            help="How object stores are reached: AWS_PROFILE=lake, or s3://raw:AWS_PROFILE=raw for "
            "one bucket (may be repeated). Other users of the machine see it: keys belong in the "
            "environment or the configuration file.",
            show_default=False,
            rich_help_panel=_COMMON,
        ),
    ] = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CommittingOptions(CommonOptions):
    """The options of all commands that commit versions."""

    commit_property: Annotated[
        list[str] | None,
        typer.Option(
            "--commit-property",
            metavar="NAME=TEXT",
            help="What the history says about the commits, job=nightly (may be repeated).",
            show_default=False,
            rich_help_panel=_COMMON,
        ),
    ] = None


def _with_common_options(command: Callable[..., None], *, commits: bool) -> Callable[..., None]:
    """Add the common options to a command, in its signature, where typer finds them.

    A parameter that is a dataclass of options is replaced by these options.
    """
    # Imported here, because they load rich.
    from variantlake.cli.terminal.configuration import reach_buckets
    from variantlake.cli.terminal.logs import logged
    from variantlake.cli.terminal.output import quieted
    from variantlake.cli.terminal.without_pandas import leave_pandas_out
    from variantlake.delta.actions.commit_properties import committed_with
    from variantlake.delta.log.files.file_paths import set_absolute_paths

    shared = CommittingOptions if commits else CommonOptions

    @functools.wraps(command)
    def run(**given: Any) -> None:
        leave_pandas_out()
        common = _take_options(shared, given)
        if common.no_absolute_paths:
            set_absolute_paths("refuse")
        reach_buckets(common.storage_option or ())
        said = _properties(common.commit_property or ()) if commits else None
        verbosity = -1 if common.quiet else common.verbose
        with quieted(common.quiet), logged(verbosity), committed_with(said):
            command(**{name: _take_options(kind, given) for name, kind in groups.items()}, **given)

    own = list(inspect.signature(command, eval_str=True).parameters.values())
    groups = {each.name: each.annotation for each in own if _is_group(each.annotation)}
    alone = [option for each in own for option in _options_of(each)]
    added = inspect.signature(shared, eval_str=True).parameters.values()
    signature = inspect.Signature([*alone, *added])
    vars(run)["__signature__"] = signature
    run.__annotations__ = {each.name: each.annotation for each in signature.parameters.values()}
    return run


def _take_options(kind: Any, given: dict[str, Any]) -> Any:
    """Take the options of a dataclass from all that are given."""
    return kind(**{each.name: given.pop(each.name) for each in dataclasses.fields(kind)})


def _is_group(kind: Any) -> bool:
    return isinstance(kind, type) and dataclasses.is_dataclass(kind)


def _options_of(parameter: inspect.Parameter) -> Iterable[inspect.Parameter]:
    """Return the options that a parameter stands for: itself, or those of a dataclass."""
    if not _is_group(parameter.annotation):
        return [parameter]
    return inspect.signature(parameter.annotation, eval_str=True).parameters.values()


def _properties(pairs: Iterable[str]) -> dict[str, str] | None:
    found = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not name or not equals:
            raise typer.BadParameter(f"{pair!r}; write NAME=TEXT, job=nightly")
        found[name] = text
    return found or None


def run() -> int:
    """Run the command that the arguments name; returns its exit code. Prints errors on stderr."""
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()  # so that a full disk raises here, and not while the interpreter ends
    except _WRONG_USAGE as error:
        return _say_usage(error)
    except BrokenPipeError:  # the reader has closed the pipe
        _drop_output()
        return 1
    except Exception as error:
        if os.environ.get("VARIANTLAKE_TRACEBACK"):
            raise
        from variantlake.cli.terminal.output import print_error

        print_error(error)
        try:
            sys.stdout.flush()
        except OSError:  # standard output failed
            _drop_output()
        return 1
    if code == 130:  # Ctrl-C: typer turns it into this code
        sys.stderr.write("Interrupted.\n")
    return code if isinstance(code, int) else 0


def _drop_output() -> None:
    """Discard buffered output, on which the interpreter would fail as it ends."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _say_usage(error: Any) -> int:
    # Imported here, because it loads rich.
    from typer.rich_utils import rich_format_error

    from variantlake.cli.terminal.output import visible

    message = error.message.replace("Value error, ", "")  # pydantic adds it
    error.message = visible(message)  # it names arguments, which a shell may make of `*`
    rich_format_error(error)
    return int(error.exit_code)
