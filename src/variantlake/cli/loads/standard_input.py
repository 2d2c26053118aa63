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
from variantlake.errors import MissingSource, StoreFailed
from variantlake.ingest.sources.sources import NamedFile, SourceSpec
from variantlake.storage.unreachable import disk_failure

STANDARD_INPUT = "-"
_NAME = "stdin"


@contextmanager
def with_standard_input(sources: Sequence[str]) -> Iterator[list[SourceSpec]]:
    """The sources, in which a file with all of standard input stands for `-` while the block runs.

    A load reads its sources several times (a sample first, then tasks side by side), which a pipe
    cannot be. Errors and columns name the file `stdin`.

    Raises MissingSource if standard input is closed, StoreFailed where it cannot be copied.
    """
    if STANDARD_INPUT not in sources:
        yield list(sources)
        return
    if sources.count(STANDARD_INPUT) > 1:
        raise typer.BadParameter("- stands for standard input, which can be read once")
    if sys.stdin is None:  # so Python says that it is closed
        raise MissingSource(
            "standard input is closed", file=_NAME, hint="name a file, or send text into a pipe"
        )
    if sys.stdin.isatty():
        print_note("Reading standard input; Ctrl-D ends it.")
    with _folder() as folder:
        file = Path(folder, _NAME)
        try:
            with file.open("wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy, 1 << 20)
        except OSError as error:
            raise _not_copied(error, folder) from error
        copied = NamedFile(str(file), _NAME)
        yield [copied if source == STANDARD_INPUT else source for source in sources]


@contextmanager
def _folder() -> Iterator[str]:
    try:
        folder = tempfile.mkdtemp(prefix="variantlake-")
    except OSError as error:
        raise _not_copied(error, "") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _not_copied(error: OSError, folder: str) -> StoreFailed:
    failed = disk_failure(error, folder, "standard input cannot be copied to a temporary file")
    failed.hint = "give TMPDIR a folder with room for all of the input, or load from a file"
    return failed
