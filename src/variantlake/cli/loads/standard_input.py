"""Documents from standard input: `-` among the sources."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from variantlake.cli.terminal.output import print_note

STANDARD_INPUT = "-"


@contextmanager
def with_standard_input(sources: Sequence[str]) -> Iterator[list[str]]:
    """The sources, in which a file with all of standard input stands for `-` while the block runs.

    A load reads its sources several times (a sample first, then tasks side by side), which a pipe
    cannot be. Errors name the file `stdin`.
    """
    if STANDARD_INPUT not in sources:
        yield list(sources)
        return
    if sources.count(STANDARD_INPUT) > 1:
        raise typer.BadParameter("- stands for standard input, which can be read once")
    if sys.stdin.isatty():
        print_note("Reading standard input; Ctrl-D ends it.")
    with tempfile.TemporaryDirectory(prefix="variantlake-") as folder:
        file = Path(folder, "stdin")
        with file.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy, 1 << 20)
        yield [str(file) if source == STANDARD_INPUT else source for source in sources]
