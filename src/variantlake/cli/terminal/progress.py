"""A line on stderr that says how far long work is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from variantlake.cli.terminal.output import is_quiet, is_styled, print_note, stderr, visible
from variantlake.progress import OnProgress, Progress


def _is_shown() -> bool:
    return not is_quiet() and is_styled(sys.stderr) and stderr().is_terminal


@contextmanager
def counting(*, with_results: bool = False) -> Iterator[Callable[[object], None]]:
    """Gives what is to be called with how far it is: a `Progress`, or other words for it.

    If stderr is not a terminal nothing is shown. `with_results` says that the block
    prints results.
    """
    if not _is_shown():
        yield lambda _: None
        return
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    spinner = Spinner("line")
    # Of two terminals, results stand above the line; a file or a pipe gets them as ever.
    redirects = with_results and sys.stdout.isatty()
    with Live(spinner, console=stderr(), transient=True, redirect_stdout=redirects):
        yield lambda at: spinner.update(
            # One line: what a narrow terminal wraps would stay there.
            text=Text(visible(str(at)), no_wrap=True, overflow="ellipsis")
        )


@contextmanager
def rows_of_files() -> Iterator[Callable[[str], OnProgress]]:
    """Gives, for the name of a file, what is to be called with how far its reading is."""
    with counting(with_results=True) as show:
        # The name last: it may be too long for the line.
        yield lambda file: lambda at: show(f"{at} in {Path(file).name}")


@contextmanager
def bytes_bar(
    doing: str, *, before: str = "Starting", files: str = "files"
) -> Iterator[OnProgress]:
    """A bar of bytes read while the block runs; nothing if stderr is not a terminal.

    `before` stands there until the first call, `doing` from then on, and `files` behind the number
    of files that are written.
    """
    if not _is_shown():
        yield lambda _: None
        return
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TextColumn(f"{{task.fields[files]}} {files}"),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=stderr(), transient=True) as bar:
        line = bar.add_task(before, total=None, files=0)

        def show(state: Progress) -> None:
            written = state.files_written
            bar.update(
                line, description=doing, completed=state.done, total=state.total, files=written
            )

        yield show


@contextmanager
def rewriting() -> Iterator[OnProgress]:
    """The bar of commands that rewrite files; Ctrl-C says what becomes of the table."""
    whole = "The table is whole. What is committed stays, a repeat does the rest."
    with staying_whole(whole), bytes_bar("Rewriting", before="Planning", files="new files") as bar:
        yield bar


@contextmanager
def staying_whole(words: str) -> Iterator[None]:
    """Say so if Ctrl-C ends the block."""
    try:
        yield
    except KeyboardInterrupt:
        print_note(words)
        raise
