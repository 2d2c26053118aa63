"""Documents from standard input: `-` among the sources."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer

from variantlake.cli.terminal.output import print_note
from variantlake.errors import MissingSource
from variantlake.ingest.sources.copies import copied
from variantlake.ingest.sources.sources import SourceSpec

STANDARD_INPUT = "-"
_NAME = "stdin"


@contextmanager
def with_standard_input(sources: Sequence[str]) -> Iterator[list[SourceSpec]]:
    """Replace `-` in the sources by a copy of standard input, which exists while the block runs.

    A load reads its sources several times (first a sample, then parallel tasks), but a pipe can be
    read once. Errors and columns call the file `stdin`.

    Raises MissingSource if standard input is closed, StoreFailed if it cannot be copied.
    """
    if STANDARD_INPUT not in sources:
        yield list(sources)
        return
    if sources.count(STANDARD_INPUT) > 1:
        raise typer.BadParameter("- stands for standard input, which can be read once")
    if sys.stdin is None:  # Python's form of a closed stream
        raise MissingSource(
            "standard input is closed", file=_NAME, hint="name a file, or send text into a pipe"
        )
    if sys.stdin.isatty():
        print_note("Reading standard input; Ctrl-D ends it.")
    with copied(sys.stdin.buffer, _NAME) as file:
        yield [file if source == STANDARD_INPUT else source for source in sources]
