"""The command line as a Markdown page, from the commands themselves: `make docs` writes it."""

from __future__ import annotations

import sys
from typing import Any

import typer

from variantlake.cli.commands import app

_HEAD = """# The command line

Written by `make docs` from the commands; change it there.

Exit codes: 0 fine, 1 what was asked for failed (a sentence says why), 2 wrong usage, 3 loaded but
for files that failed (`autoload`), 130 interrupted. With `VARIANTLAKE_TRACEBACK=1` in the
environment an error shows where it was raised.
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
    value = "" if option.is_flag else f" {option.metavar}"
    return f"`{', '.join(option.opts)}{value}`"


def _with_default(option: Any) -> str:
    if option.default in (None, False):
        return str(option.help)
    return f"{option.help} Default: `{option.default}`."


if __name__ == "__main__":
    sys.stdout.write(reference())
