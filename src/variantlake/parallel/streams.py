"""Run several iterators ahead in threads, and read them one after the other.

`ahead` takes the items of one source in turn: a second thread gains little if most of the work is
in the source, as when pyarrow decodes the columns of a row group. Here each source has a thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Generic, TypeVar

from variantlake.parallel.prefetch import pool, thread_count

R = TypeVar("R")

STREAM_BYTES = 48 << 20
"""Bytes of waiting items at which a source pauses: most of a row group of Variants."""

_MOST_STREAMS = 8
"""The most sources that run at once, however many threads there are."""

_MOST_WAITING = 4
"""The most open sources per running one: some are short or empty."""


def chained(
    sources: Iterator[Generator[R, None, None]], weigh: Callable[[R], int]
) -> Generator[R, None, None]:
    """Yield all items of the first source, then those of the second, and so on.

    As many sources run as there are threads, at most _MOST_STREAMS. A source pauses while its
    waiting items have STREAM_BYTES or more by `weigh`. An error is raised after the items before
    it, and ends the items. If the caller stops early, this waits until the threads have stopped.
    """
    threads = min(thread_count(), _MOST_STREAMS)
    if threads == 1:
        yield from chain.from_iterable(sources)
        return
    streams = _Streams(sources, weigh, threads)
    try:
        yield from streams.results()
    finally:
        streams.stop()


@dataclass(slots=True, eq=False)
class _Stream(Generic[R]):
    """One source, and its items that wait for the consumer."""

    source: Generator[R, None, None]
    waiting: deque[R] = field(default_factory=deque)
    bytes: int = 0
    error: BaseException | None = None
    is_done: bool = False
    running: Future[None] | None = None


class _Streams(Generic[R]):
    """The open sources, in their order."""

    def __init__(
        self,
        sources: Iterator[Generator[R, None, None]],
        weigh: Callable[[R], int],
        most: int,
    ) -> None:
        self._sources = sources
        self._weigh = weigh
        self._most = most
        self._changed = threading.Condition()
        # Under its lock:
        self._open: deque[_Stream[R]] = deque()
        self._is_stopped = False

    def results(self) -> Iterator[R]:
        """Yield the items in order."""
        self._open_more()
        if len(self._open) == 1 and not self._open[0].is_done:
            # A single source runs in this thread, where it can itself read ahead.
            yield from self._open[0].source
            return
        while self._open:
            with self._changed:
                first = self._open[0]
                self._go_on()
                while not first.waiting and not first.is_done:
                    self._changed.wait()
                if not first.waiting:
                    if first.error is not None:
                        raise first.error
                    self._open.popleft()
                    self._open_more()
                    continue
                item = first.waiting.popleft()
                first.bytes -= self._weigh(item)
                self._go_on()
            yield item
            del item

    def stop(self) -> None:
        """Start no more work, wait for what is in progress, and close the sources."""
        with self._changed:
            self._is_stopped = True
            running: list[Future[Any]] = [
                each.running
                for each in self._open
                if each.running is not None and not each.running.cancel()
            ]
        wait(running)
        for each in self._open:
            each.source.close()

    def _has_room(self) -> bool:
        """Whether another source may be opened; finished sources need no thread."""
        return (
            sum(not each.is_done for each in self._open) < self._most
            and len(self._open) < _MOST_WAITING * self._most
            and sum(each.bytes for each in self._open) < STREAM_BYTES * self._most
        )

    def _open_more(self) -> None:
        while self._has_room():
            try:
                source = next(self._sources, None)
            except BaseException as error:  # noqa: BLE001  # raised after the items before it
                self._open.append(_Stream(_nothing(), error=error, is_done=True))
                self._sources = iter(())
                return
            if source is None:
                return
            self._open.append(_Stream(source))

    def _go_on(self) -> None:
        if self._is_stopped:
            return
        self._open_more()
        for each in self._open:
            if each.running is None and not each.is_done and each.bytes < STREAM_BYTES:
                each.running = pool().submit(self._step, each)

    def _step(self, stream: _Stream[R]) -> None:
        """Take one item, and free the thread: the source may have to wait for the consumer."""
        error, items = None, []
        try:
            items = [next(stream.source)]
        except StopIteration:
            stream.is_done = True
        except BaseException as raised:  # noqa: BLE001  # raised in its place
            error = raised
        with self._changed:
            stream.running = None
            stream.error = error
            stream.is_done |= error is not None
            stream.waiting.extend(items)
            stream.bytes += sum(map(self._weigh, items))
            self._go_on()
            self._changed.notify()


def _nothing() -> Generator[Any, None, None]:
    yield from ()
