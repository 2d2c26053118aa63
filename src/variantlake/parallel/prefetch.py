"""Compute a few results ahead of their consumer in threads, and return them in order.

The process has one pool of as many threads as pyarrow uses (`pyarrow.cpu_count()`). Its work
releases the GIL most of the time: pyarrow's decoding, and kernels.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Generic, TypeVar

import pyarrow as pa

T = TypeVar("T")
R = TypeVar("R")

AHEAD_BYTES = 64 << 20
"""The most bytes of items that are taken ahead; one item always is."""

_THREAD_NAME = "variantlake-ahead"

_pool: ThreadPoolExecutor | None = None
_lock = threading.Lock()


def ahead(
    source: Iterator[T], work: Callable[[T], R], weigh: Callable[[T], int] = lambda _: 0
) -> Iterator[R]:
    """Yield the result of `work` for each item of `source`, in order.

    One thread at a time takes the next item; any thread does the work. At most one item more than
    there are threads is in progress or waits for the consumer, and fewer if their bytes by `weigh`
    exceed AHEAD_BYTES. An error of `source` or `work` is raised in order, and ends the results.
    If the caller stops early, this waits until the threads have stopped.
    """
    threads = thread_count()
    if threads == 1:
        yield from map(work, source)
        return
    line = _Line(source, work, weigh, threads)
    try:
        yield from line.results()
    finally:
        line.stop()


def thread_count() -> int:
    """Return how many threads may work for the caller; 1 if the caller is a thread of the pool."""
    return 1 if threading.current_thread().name.startswith(_THREAD_NAME) else pa.cpu_count()


def pool() -> ThreadPoolExecutor:
    """Return the pool of this process."""
    global _pool  # noqa: PLW0603  # the process has one
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(pa.cpu_count(), thread_name_prefix=_THREAD_NAME)
        return _pool


def _forget_threads() -> None:
    """Make a forked process start its own pool."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


class _Line(Generic[T, R]):
    """The items of one source that are in progress."""

    def __init__(
        self,
        source: Iterator[T],
        work: Callable[[T], R],
        weigh: Callable[[T], int],
        threads: int,
    ) -> None:
        self._source = source
        self._work = work
        self._weigh = weigh
        self._most = threads + 1
        self._wanted = self._most
        self._changed = threading.Condition()
        # Under its lock: results not yet consumed, in order; the running call of `_take`, if any.
        self._slots: deque[Future[R]] = deque()
        self._taking: Future[None] | None = None
        self._is_done = False

    def results(self) -> Iterator[R]:
        """Yield the results in order."""
        while True:
            with self._changed:
                self._go_on()
                while not self._slots and not self._is_done:
                    self._changed.wait()
                if not self._slots:
                    return
                slot = self._slots[0]
            result = slot.result()
            with self._changed:
                self._slots.popleft()
                self._go_on()
            del slot
            yield result

    def stop(self) -> None:
        """Start no more work, and wait for what is in progress."""
        with self._changed:
            self._is_done = True
            running: list[Future[Any]] = [*self._slots]
            if self._taking is not None and not self._taking.cancel():
                running.append(self._taking)
        wait(running)

    def _go_on(self) -> None:
        if self._taking is None and not self._is_done and len(self._slots) < self._wanted:
            self._taking = pool().submit(self._take)

    def _take(self) -> None:
        """Take one item, let another thread take the next one, and do the work."""
        slot: Future[R] = Future()
        try:
            item = next(self._source)
            weight = self._weigh(item)
        except StopIteration:
            self._end()
            return
        except BaseException as error:  # noqa: BLE001  # raised if the results are read
            slot.set_exception(error)
            self._end(slot)
            return
        with self._changed:
            self._taking = None
            self._slots.append(slot)
            self._wanted = max(1, min(self._most, AHEAD_BYTES // max(weight, 1)))
            self._go_on()
            self._changed.notify()
        try:
            slot.set_result(self._work(item))
        except BaseException as error:  # noqa: BLE001
            slot.set_exception(error)

    def _end(self, *last: Future[R]) -> None:
        with self._changed:
            self._taking = None
            self._is_done = True
            self._slots.extend(last)
            self._changed.notify()
