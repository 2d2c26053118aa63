"""The command line as a Markdown page, from the commands themselves: `make docs` writes it."""

from __future__ import annotations

import sys
from typing import Any

import typer

from variantlake.cli.commands import app

_HEAD = """# The command line

This page is generated from the `--help` texts of the commands.

| exit code | meaning |
|---|---|
| 0 | success |
| 1 | the command failed and says why, `check` found a broken rule, `health --fail-on` a problem |
| 2 | wrong usage |
| 3 | `autoload --once` could not load some files, and loaded the others |
| 129, 130, 143 | ended by SIGHUP, SIGINT (Ctrl-C), SIGTERM: what was begun is tidied up |

With `VARIANTLAKE_TRACEBACK=1` in the environment, an error shows where in the code it was raised.
"""


def reference() -> str:
    """The whole page."""
    commands: dict[str, Any] = getattr(typer.main.get_command(app), "commands", {})
    return _HEAD + "".join(_section(name, command) for name, command in commands.items())


def _section(name: str, command: Any) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    usage = " ".join(each.metavar or each.name.upper() for each in arguments)
    rows = [(f"`{each.metavar or each.name.upper()}`", each.help) for each in arguments]
    rows += [(_option(each), _with_default(each)) for each in options]
    table = "".join(f"| {_cell(left)} | {_cell(right)} |\n" for left, right in rows)
    return (
        f"\n## {name}\n\n`variantlake {name} [OPTIONS] {usage}`\n\n{command.help}\n\n"
        f"| argument | meaning |\n|---|---|\n{table}"
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _option(option: Any) -> str:
    takes_no_value = option.is_flag or option.count
    value = "" if takes_no_value else f" {option.metavar}"
    return " / ".join(
        f"`{', '.join(names)}{value}`" for names in (option.opts, option.secondary_opts) if names
    )


def _with_default(option: Any) -> str:
    if option.default in (None, False) or option.count:
        return str(option.help)
    default = option.opts[0] if option.default is True else option.default
    return f"{option.help} Default: `{default}`."


if __name__ == "__main__":
    sys.stdout.write(reference())
