"""Print the package's log on stderr: warnings, and more on request."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from variantlake.cli.terminal.output import visible
from variantlake.logs import NAME


class _Visible(logging.Formatter):
    """Formats lines without control characters for the terminal, which names of files may have.

    A warning in the output of a command is a sentence; a log has times.
    """

    def __init__(self, *, is_log: bool) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")
        self._is_log = is_log

    def format(self, record: logging.LogRecord) -> str:
        if self._is_log or record.name == f"{NAME}.autoload":
            return visible(super().format(record))
        return visible(f"{record.levelname.capitalize()}: {record.getMessage()}")


@contextmanager
def logged(verbosity: int) -> Iterator[None]:
    """Log to stderr while the block runs: errors at -1, warnings at 0, commits at 1, all at 2."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Visible(is_log=verbosity > 0))
    if verbosity <= 0:
        handler.addFilter(lambda record: not hasattr(record, "in_result"))
    levels = {-1: logging.ERROR, 0: logging.WARNING, 1: logging.INFO}
    with _level(NAME, levels.get(verbosity, logging.DEBUG)) as logger:
        logger.addHandler(handler)
        try:
            yield
        finally:
            logger.removeHandler(handler)


@contextmanager
def batches_logged() -> Iterator[None]:
    """Log each batch of an autoload while the block runs, within `logged`."""
    with _level(f"{NAME}.autoload", min(logging.INFO, logging.getLogger(NAME).level)):
        yield


@contextmanager
def _level(name: str, level: int) -> Iterator[logging.Logger]:
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(level)
    try:
        yield logger
    finally:
        logger.setLevel(before)
