"""Work that threads do ahead of who waits for it: results in order, a few of them at a time.

One pool serves the process, of as many threads as pyarrow uses (`pyarrow.cpu_count()`). What it
runs releases the GIL for most of its time: pyarrow's decoding, and kernels.
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
"""Items of more bytes than so many together are not taken ahead, but for one."""

_THREAD_NAME = "variantlake-ahead"

_pool: ThreadPoolExecutor | None = None
_lock = threading.Lock()


def ahead(
    source: Iterator[T], work: Callable[[T], R], weigh: Callable[[T], int] = lambda _: 0
) -> Iterator[R]:
    """`work` on each item of `source`, in its order.

    One thread at a time takes the next item, any of them does the work. At most as many items as
    there are threads, and one more, are under way or wait to be taken; fewer if `weigh`, the
    bytes of an item, makes them more than AHEAD_BYTES. What `source` or `work` raises comes in its
    place, and is the last. When the caller stops early, so do the threads before this returns.
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
    """How many threads may work for the caller: none but itself if it is one of the pool's."""
    return 1 if threading.current_thread().name.startswith(_THREAD_NAME) else pa.cpu_count()


def pool() -> ThreadPoolExecutor:
    """The threads of this process."""
    global _pool  # noqa: PLW0603  # the process has one
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(pa.cpu_count(), thread_name_prefix=_THREAD_NAME)
        return _pool


def _forget_threads() -> None:
    """A forked process has none of them."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


class _Line(Generic[T, R]):
    """The items of one source on their way."""

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
        # Under its lock: what is not taken yet, in order; the thread that takes an item, if any.
        self._slots: deque[Future[R]] = deque()
        self._taking: Future[None] | None = None
        self._is_done = False

    def results(self) -> Iterator[R]:
        """What the work gave, item by item."""
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
        """Begin nothing more, and wait for what is under way."""
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
