"""Commands that run until they are told to stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from variantlake.logs import logger


@contextmanager
def stopping(what: str) -> Iterator[threading.Event]:
    """SIGTERM and the first Ctrl-C ask for an end after the round, a second one ends it at once."""
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
