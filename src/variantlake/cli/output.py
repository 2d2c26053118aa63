"""What the commands print: tables for people, JSON lines for programs, errors as one sentence."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table as Grid
from rich.text import Text

from variantlake.errors import VariantLakeError

WIDE = 100_000
"""Columns of a table that goes to a file or a pipe: nothing is folded there."""

MAX_SHOWN = 1_000
"""Rows that a table for people shows; JSON output has no limit."""


def stdout() -> Console:
    """Where results go."""
    width = None if sys.stdout.isatty() else WIDE
    return Console(width=width, highlight=False, emoji=False, soft_wrap=False)


def stderr() -> Console:
    """Where errors and progress go."""
    # `event:a::int` holds the name of an emoji.
    return Console(stderr=True, highlight=False, emoji=False)


@contextmanager
def rows_of_files() -> Iterator[Callable[[str], Callable[[int, int], None]]]:
    """A line on stderr while the block runs, for work that goes through the rows of files.

    Gives, for the name of a file, what is to be called with its rows that are done and all of them.
    Where stderr is no terminal nothing is shown.
    """
    console = stderr()
    if not console.is_terminal:
        yield lambda _: lambda _done, _rows: None
        return
    spinner = Spinner("line")
    # Of two terminals, results stand above the line; a file or a pipe gets them as ever.
    with Live(spinner, console=console, transient=True, redirect_stdout=sys.stdout.isatty()):

        def shown(file: str) -> Callable[[int, int], None]:
            name = Path(file).name
            return lambda done, rows: spinner.update(text=Text(f"{name}: row {done:,} of {rows:,}"))

        yield shown


def print_error(error: BaseException) -> None:
    """One sentence and a hint, without a traceback."""
    message, _, hint = str(error).strip().partition("\nHint: ")
    if not isinstance(error, VariantLakeError):
        # Other libraries' messages may run over many lines (Spark's, the JVM's stack).
        first = message.splitlines()[0] if message else ""
        message = f"{type(error).__name__}: {first}" if first else type(error).__name__
    console = stderr()
    console.print(Text.assemble(("Error: ", "bold red"), message), soft_wrap=True)
    if hint:
        console.print(Text.assemble(("Hint: ", "bold"), hint), soft_wrap=True)


def print_json(value: Any) -> None:
    """One JSON value on one line; decimals keep their digits as strings."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, default=plain) + "\n")


def print_rows(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table for people: at most MAX_SHOWN rows, with a note when there are more."""
    grid = Grid()
    for name in names:
        grid.add_column(Text(name))
    more = False
    for number, row in enumerate(rows):
        if number == MAX_SHOWN:
            more = True
            break
        grid.add_row(*(Text("NULL", style="dim") if v is None else Text(str(v)) for v in row))
    stdout().print(grid)
    if more:
        stderr().print(f"Only the first {MAX_SHOWN:,} rows are shown; --json prints all.")


def print_fields(fields: dict[str, Any]) -> None:
    """Names and values, one to a line."""
    console = stdout()
    width = max(map(len, fields), default=0)
    for name, value in fields.items():
        line = Text.assemble((f"{name:<{width}}", "bold"), "  ", str(value))
        console.print(line, soft_wrap=True)


def size(count: int) -> str:
    """Bytes for people: `1.5 MB`, in powers of ten."""
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} bytes"


def plain(value: Any) -> Any:
    """A value that JSON has no form for, as text."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    return str(value)
