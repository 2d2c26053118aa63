"""Several sources that threads run ahead of the caller: their order, errors, bounds and ends."""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import chain

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parallel.pools import outcome
from tests.strategies import MORE
from variantlake.parallel.prefetch import ahead
from variantlake.parallel.streams import STREAM_BYTES, chained


@pytest.fixture(params=[1, 2, 5], autouse=True)
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(pa, "cpu_count", lambda: request.param)
    monkeypatch.setattr("variantlake.parallel.prefetch._pool", None)
    count: int = request.param
    return count


class Sources:
    """Sources of some items each, of which those that are exceptions are raised.

    `most_open` is how many were read at the same time, `ahead` the most items behind the caller's.
    """

    def __init__(
        self, items: list[list[int | Exception]], *, bad_source: int | None = None
    ) -> None:
        self._items = items
        self._bad_source = bad_source
        self._lock = threading.Lock()
        self.open = self.most_open = self.closed = self.given = 0

    def __iter__(self) -> Iterator[Generator[int, None, None]]:
        for number, items in enumerate(self._items):
            if number == self._bad_source:
                raise KeyError(number)
            yield self._source(items)

    def _source(self, items: list[int | Exception]) -> Generator[int, None, None]:
        with self._lock:
            self.open += 1
            self.most_open = max(self.most_open, self.open)
        try:
            for item in items:
                if isinstance(item, Exception):
                    raise item
                self.given += 1
                yield item
        finally:
            with self._lock:
                self.open -= 1
                self.closed += 1


def _check_given(sources: Sources, items: int) -> None:
    """Wait until threads have taken so many items, and check that they take no more."""
    until = time.monotonic() + 20
    while sources.given < items and time.monotonic() < until:
        time.sleep(0.002)
    time.sleep(0.02)
    assert sources.given == items


_ITEMS = st.lists(st.lists(st.integers(0, 99) | st.just(ValueError("bad")), max_size=6), max_size=9)


@settings(max_examples=60 * MORE, deadline=None)
@given(_ITEMS, st.none() | st.integers(0, 9), st.integers(0, STREAM_BYTES))
def test_items_and_errors_come_in_their_places(
    items: list[list[int | Exception]], bad_source: int | None, weight: int
) -> None:
    def plain() -> Iterator[int]:
        for source in Sources(items, bad_source=bad_source):
            yield from source

    sources = Sources(items, bad_source=bad_source)
    assert outcome(chained(iter(sources), lambda _: weight)) == outcome(plain())
    assert sources.open == 0


def test_as_many_sources_are_read_as_there_are_threads(threads: int) -> None:
    sources = Sources([[n] * 20 for n in range(12)])
    results = chained(iter(sources), lambda _: 0)
    assert next(results) == 0
    # Four for each thread, until the caller is there.
    _check_given(sources, 20 * min(4 * threads, 12) if threads > 1 else 1)
    assert sources.most_open == threads
    assert list(results) == [0] * 19 + [n for n in range(1, 12) for _ in range(20)]


def test_sources_without_items_keep_no_thread(threads: int) -> None:
    sources = Sources([[0] * 20, [], [], [1] * 20, [], [2] * 20])
    results = chained(iter(sources), lambda _: STREAM_BYTES // 3)
    assert next(results) == 0
    _check_given(sources, 1 + 3 * min(threads, 3) if threads > 1 else 1)
    assert list(results) == [0] * 19 + [1] * 20 + [2] * 20


def test_a_source_stops_while_enough_of_it_waits(threads: int) -> None:
    sources = Sources([[n] * 20 for n in range(5)])
    results = chained(iter(sources), lambda _: STREAM_BYTES // 3)
    assert next(results) == 0
    # One item was taken; of each source three wait.
    _check_given(sources, 1 + 3 * min(threads, 5) if threads > 1 else 1)
    assert len(list(results)) == 99


def test_a_single_source_is_read_by_the_caller_whose_threads_read_ahead() -> None:
    names = set()

    def source() -> Generator[int, None, None]:
        names.add(threading.current_thread().name)
        yield from ahead(iter(range(30)), int)

    assert list(chained(iter([source()]), lambda _: 0)) == list(range(30))
    assert names == {threading.current_thread().name}


def test_sources_within_sources_do_not_wait_for_each_other() -> None:
    def source(count: int) -> Generator[int, None, None]:
        yield from chained(iter(Sources([[n] for n in range(count)])), lambda _: 0)
        yield from ahead(iter(range(count)), int)

    found = list(chained((source(n) for n in range(12)), lambda _: 0))
    assert found == [item for n in range(12) for item in (*range(n), *range(n))]


def test_two_readers_in_turn_do_not_wait_for_each_other() -> None:
    heavy = lambda _: STREAM_BYTES
    first = chained(iter(Sources([[n] * 5 for n in range(9)])), heavy)
    second = chained(iter(Sources([[n] * 5 for n in range(9)])), heavy)
    assert list(zip(first, second, strict=True)) == [(n, n) for n in range(9) for _ in range(5)]


def test_who_stops_early_closes_the_sources() -> None:
    sources = Sources([[n] * 100 for n in range(50)])
    results = chained(iter(sources), lambda _: STREAM_BYTES // 8)
    with closing(results):
        assert [next(results) for _ in range(3)] == [0, 0, 0]
    given_items = sources.given
    assert sources.open == 0
    time.sleep(0.02)
    assert sources.given == given_items < 100


def test_an_interrupt_closes_the_sources() -> None:
    def interrupted() -> Generator[int, None, None]:
        yield 0
        _thread.interrupt_main()
        time.sleep(0.02)
        yield 1

    sources = Sources([[n] * 5000 for n in range(9)])
    with pytest.raises(KeyboardInterrupt):
        list(chained(chain([interrupted()], sources), lambda _: STREAM_BYTES // 8))
    assert sources.open == 0
    given_items = sources.given
    time.sleep(0.02)
    assert sources.given == given_items


def test_an_error_in_the_middle_closes_the_sources() -> None:
    sources = Sources([[1, 2], [3, ValueError("bad"), 4], [5] * 50, [6] * 50])
    assert outcome(chained(iter(sources), lambda _: 0)) == ([1, 2, 3], "ValueError('bad')")
    assert sources.open == 0
