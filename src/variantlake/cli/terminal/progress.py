"""Show the progress of long work in a line on stderr."""

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
    """Yield a function to call with the progress: a `Progress`, or a text.

    Shows nothing if stderr is not a terminal. `with_results` tells that the block prints results.
    """
    if not _is_shown():
        yield lambda _: None
        return
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    spinner = Spinner("line")
    # On a terminal, results are printed above the line; for a file or a pipe nothing changes.
    redirects = with_results and sys.stdout.isatty()
    with Live(spinner, console=stderr(), transient=True, redirect_stdout=redirects):
        yield lambda at: spinner.update(
            # Do not wrap the line: a narrow terminal would keep the rest of it.
            text=Text(visible(str(at)), no_wrap=True, overflow="ellipsis")
        )


@contextmanager
def rows_of_files() -> Iterator[Callable[[str], OnProgress]]:
    """Yield a function that returns the progress callback for the name of a file."""
    with counting(with_results=True) as show:
        # The name is last, because it may be too long for the line.
        yield lambda file: lambda at: show(f"{at} in {Path(file).name}")


@contextmanager
def bytes_bar(
    doing: str, *, before: str = "Starting", files: str = "files"
) -> Iterator[OnProgress]:
    """Show a bar of the bytes read in the block; nothing if stderr is not a terminal.

    It shows `before` until the first call, then `doing`, and `files` after the number of files
    written.
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
    """Show the bar of commands that rewrite files; at Ctrl-C, print the state of the table."""
    whole = "The table is whole. What is committed stays, a repeat does the rest."
    with staying_whole(whole), bytes_bar("Rewriting", before="Planning", files="new files") as bar:
        yield bar


@contextmanager
def staying_whole(words: str) -> Iterator[None]:
    """Print `words` if Ctrl-C ends the block."""
    try:
        yield
    except KeyboardInterrupt:
        print_note(words)
        raise
