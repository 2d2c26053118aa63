"""Print tables for people, JSON lines for programs, and errors as one sentence.

All text from data, from names of files or from other libraries goes through `visible` or, as JSON,
through `escaped`, so that no value can control a terminal.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain
from typing import TYPE_CHECKING, Any, TextIO

from variantlake.errors import VariantLakeError
from variantlake.shown import json_default
from variantlake.storage.unreachable import disk_hint

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

WIDE = 100_000
"""The width of a table in a file or a pipe, where no line is folded."""

MAX_SHOWN = 1_000
"""The most rows of a table for people; JSON output has no limit."""


_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters (C0, DEL, C1), marks for directions and lines, and lone surrogates."""

# Java's Parquet reader quotes bytes of a file that is not Parquet; do not print them.
_FOUND_BYTES = re.compile(r",? but found \[[-\d, ]*\]")


def visible(text: str) -> str:
    """Escape control characters in a text for a terminal."""
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def escaped(line: str) -> str:
    """Escape control characters in a line of JSON, whose value stays the same."""
    if line.isascii() and "\x7f" not in line:
        return line  # JSON already escapes the other control characters
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


def is_styled(stream: TextIO) -> bool:
    """Whether Rich may print styles to a stream; for others it need not be loaded."""
    is_forced = os.environ.get("FORCE_COLOR") or os.environ.get("TTY_COMPATIBLE")
    return stream.isatty() or bool(is_forced)


def stdout() -> Console:
    """Return the console for results."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else WIDE
    return Console(width=width, highlight=False, emoji=False, soft_wrap=False)


_QUIET = ContextVar("_QUIET", default=False)


@contextmanager
def quieted(quiet: bool) -> Iterator[None]:
    """Print neither notes nor progress while the block runs, if `quiet`."""
    before = _QUIET.set(quiet)
    try:
        yield
    finally:
        _QUIET.reset(before)


def is_quiet() -> bool:
    """Whether the command prints results and errors only."""
    return _QUIET.get()


def stderr() -> Console:
    """Return the console for notes and progress."""
    from rich.console import Console

    # Without emoji: `event:a::int` contains the name of one.
    return Console(stderr=True, highlight=False, emoji=False, quiet=is_quiet())


def print_error(error: BaseException) -> None:
    """Print an error as one sentence, with its hint for the command line, without a traceback."""
    hint = ""
    if isinstance(error, VariantLakeError):
        message = error.sentence()
        hint = error.hint if error.cli_hint is None else error.cli_hint
    elif isinstance(error, OSError) and error.strerror:
        reason, hint = error.strerror, disk_hint(error)
        message = reason if error.filename is None else f"{error.filename}: {reason.lower()}"
    elif isinstance(error, MemoryError):
        message, hint = "there is not enough memory", "do it on less at a time, or elsewhere"
    else:
        # Messages of other libraries may have many lines (Spark's, the JVM's stack).
        lines = _FOUND_BYTES.sub("", str(error)).strip().splitlines()
        message = ": ".join([type(error).__name__, *lines[:1]])
    with quieted(False):
        print_note(message, "Error: ", "bold red")
        if hint:
            print_note(hint, "Hint: ")


def print_note(text: str, label: str = "", style: str = "bold") -> None:
    """Print a line on stderr."""
    if is_styled(sys.stderr):
        from rich.text import Text

        stderr().print(Text.assemble((label, style), visible(text)), soft_wrap=True)
    elif not is_quiet():
        sys.stderr.write(f"{label}{visible(text)}\n")


def print_line(text: str, style: str = "") -> None:
    """Print a line of results for people."""
    _print_parts((visible(text), style))


def _print_parts(*parts: tuple[str, str]) -> None:
    """Print a line of results of several texts, each with its style."""
    if is_styled(sys.stdout):
        from rich.text import Text

        stdout().print(Text.assemble(*parts), soft_wrap=True)
    else:
        sys.stdout.write("".join(text for text, _ in parts) + "\n")


def print_json(value: Any) -> None:
    """Print one JSON value on one line; decimals keep their digits as strings."""
    print_json_lines([json.dumps(value, ensure_ascii=False, default=json_default)])


def print_json_lines(lines: Iterable[str]) -> None:
    """Print JSON values, one per line."""
    sys.stdout.writelines(f"{escaped(line)}\n" for line in lines)


def print_rows(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table for people: at most MAX_SHOWN rows, with a note if there are more.

    For a pipe or a file, print all rows as lines with tabs.
    """
    if not sys.stdout.isatty():
        for row in chain([names], rows):
            cells = ("NULL" if value is None else visible(str(value)) for value in row)
            sys.stdout.write("\t".join(cells) + "\n")
        return
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid()
    for name in names:
        grid.add_column(Text(visible(name)))
    more = False
    for number, row in enumerate(rows):
        if number == MAX_SHOWN:
            more = True
            break
        grid.add_row(*(_cell(value) for value in row))
    stdout().print(grid)
    if more:
        print_note(f"Only the first {MAX_SHOWN:,} rows are shown; a pipe or --json gets all.")


def _cell(value: Any) -> Text:
    from rich.text import Text

    return Text("NULL", style="dim") if value is None else Text(visible(str(value)))


def print_fields(fields: dict[str, Any]) -> None:
    """Print names and values, one pair per line."""
    shown = {visible(name): visible(str(value)) for name, value in fields.items()}
    width = max(map(len, shown), default=0)
    for name, value in shown.items():
        _print_parts((f"{name:<{width}}", "bold"), ("  ", ""), (value, ""))


def heading(text: str) -> None:
    """Print a title after an empty line."""
    print_line("")
    print_line(text, "bold")


def count(number: int | None) -> str:
    """Write a number with separated thousands; empty for None."""
    return "" if number is None else f"{number:,}"
