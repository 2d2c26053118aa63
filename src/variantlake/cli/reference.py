"""Write the reference of the command line in Markdown, from the commands; see `make docs`."""

from __future__ import annotations

import sys
from typing import Any

from variantlake.cli.commands import load_command
from variantlake.cli.registry import COMMANDS

_HEAD = """# The command line

This page is generated from the `--help` texts of the commands.

| exit code | meaning |
|---|---|
| 0 | success |
| 1 | the command failed and says why |
| 2 | wrong usage |
| 3 | `autoload --once` could not load some files, and loaded the others |
| 4 | findings: `check` found a broken rule or rows that differ, `health --fail-on` a problem |
| 129, 130, 143 | ended by SIGHUP, SIGINT (Ctrl-C), SIGTERM: what was begun is tidied up |

All commands take `-h` (`--help`), `-q` (`--quiet`: print results and errors only), `-v`
(`--verbose`: log what is committed; twice, also files, skipping and rewrites),
`--storage-option` (see below) and `--no-absolute-paths` (refuse
[tables that name files by absolute paths](readers.md#tables-that-you-do-not-trust)). `-q` and `-v`
may also stand before the command.
`variantlake --version` prints the version, and `variantlake --install-completion` lets your shell
complete commands and options.

A table is a path or a URL, or a name of the configuration. The file `variantlake.toml` in the
working folder gives names; so does the one in your own folder of settings (on Linux
`~/.config/variantlake/variantlake.toml`). `VARIANTLAKE_CONFIG` names another file instead of both.
`./events` is always the folder:

```toml
[tables]
events = "s3://lake/events"
users = "lake/users" # from the folder of this file

[storage."s3://lake"]
AWS_PROFILE = "lake"
```

`[storage."s3://lake"]` says how a bucket is reached, with the
[options of object stores](how-to/object-stores.md). `--storage-option AWS_PROFILE=lake` says it
for all buckets, and `--storage-option s3://raw:AWS_PROFILE=raw` for one of them. Keys do not belong
on a command line, which other users of the machine see.

With `VARIANTLAKE_TRACEBACK=1` in the environment, an error shows where in the code it was raised.
"""

_COMMON = {"quiet", "verbose", "no_absolute_paths", "storage_option"}
"""Options of all commands, which the head of the page lists."""


def reference() -> str:
    """Write the whole page."""
    return _HEAD + "".join(_section(name, load_command(name)) for name in COMMANDS)


def _section(name: str, command: Any) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    usage = " ".join(each.metavar or each.name.upper() for each in arguments)
    rows = [(f"`{each.metavar or each.name.upper()}`", each.help) for each in arguments]
    rows += [(_option(each), _with_default(each)) for each in options if each.name not in _COMMON]
    table = "".join(f"| {_cell(left)} | {_cell(right)} |\n" for left, right in rows)
    examples = "\n".join(COMMANDS[name].examples)
    return (
        f"\n## {name}\n\n`variantlake {name} [OPTIONS] {usage}`\n\n{command.help}\n\n"
        f"```bash\n{examples}\n```\n\n| argument | meaning |\n|---|---|\n{table}"
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
