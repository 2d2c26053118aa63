"""Stop commands that run until a signal."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from variantlake.logs import logger


@contextmanager
def stopping(what: str) -> Iterator[threading.Event]:
    """Set an event at SIGTERM or the first Ctrl-C, to end after the round. Another ends at once."""
    stop = threading.Event()

    def ask(number: int, _frame: object) -> None:
        if stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.set()
        logger(what).info("stopping after this round")

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, ask) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
