"""A line on stderr that says how far long work is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from variantlake.cli.terminal.output import stderr, visible

T = TypeVar("T")


@contextmanager
def counting(words: Callable[[T], str]) -> Iterator[Callable[[T], None]]:
    """Gives what is to be called with how far it is; `words` says that in a few.

    Where stderr is no terminal nothing is shown.
    """
    console = stderr()
    if not console.is_terminal:
        yield lambda _: None
        return
    spinner = Spinner("line")
    with Live(spinner, console=console, transient=True, redirect_stdout=False):
        yield lambda at: spinner.update(text=Text(visible(words(at))))
