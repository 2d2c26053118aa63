"""Work of threads ahead of the caller: order, errors in their place, bounds, and a clean stop."""

from __future__ import annotations

import _thread
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import variantlake as vl
from tests.parallel.pools import outcome
from tests.strategies import MORE
from variantlake.encoding.metadata import encode_metadata
from variantlake.errors import MalformedFile
from variantlake.parallel.prefetch import AHEAD_BYTES, ahead
from variantlake.shredding.ddl import parse_ddl
from variantlake.shredding.layout import arrow_type


@pytest.fixture(params=[1, 2, 5], autouse=True)
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(pa, "cpu_count", lambda: request.param)
    monkeypatch.setattr("variantlake.parallel.prefetch._pool", None)
    count: int = request.param
    return count


def test_results_keep_the_order_of_their_items() -> None:
    def work(item: int) -> int:
        time.sleep(0.002 * (item % 3))
        return item * item

    assert list(ahead(iter(range(50)), work)) == [item * item for item in range(50)]
    assert list(ahead(iter([]), work)) == []


@settings(max_examples=40 * MORE, deadline=None)
@given(st.integers(0, 12), st.none() | st.integers(0, 12), st.none() | st.integers(0, 12))
def test_an_error_comes_in_its_place_and_is_the_last(
    count: int, bad_item: int | None, bad_work: int | None
) -> None:
    def source() -> Iterator[int]:
        for item in range(count):
            if item == bad_item:
                raise KeyError(item)
            yield item

    def work(item: int) -> int:
        if item == bad_work:
            raise ValueError(item)
        return item

    assert outcome(ahead(source(), work)) == outcome(map(work, source()))


def test_no_more_is_under_way_than_is_allowed(threads: int) -> None:
    taken = []

    def source() -> Iterator[int]:
        for item in range(40):
            taken.append(item)
            yield item

    for done, _ in enumerate(ahead(source(), int)):
        time.sleep(0.001)
        assert len(taken) <= done + 1 + threads + 1


def test_large_items_come_one_at_a_time() -> None:
    under_way, most = 0, 0
    lock = threading.Lock()

    def work(item: int) -> int:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        time.sleep(0.003)
        with lock:
            under_way -= 1
        return item

    results = ahead(iter(range(12)), work, lambda _: AHEAD_BYTES)
    # What the first one weighs is known when it is taken.
    assert next(results) == 0
    assert list(results) == list(range(1, 12))
    assert most == 1


class Slow:
    """Work that takes a while, and notes what was begun and what is done.

    The item `interrupts` interrupts the main thread, as Ctrl-C does.
    """

    def __init__(self, interrupts: int | None = None) -> None:
        self.begun: list[int] = []  # threads append at once, and lose nothing
        self.done: list[int] = []
        self._interrupts = interrupts

    def __call__(self, item: int) -> int:
        self.begun.append(item)
        if item == self._interrupts:
            _thread.interrupt_main()
        time.sleep(0.005)
        self.done.append(item)
        return item

    def check_it_stopped(self) -> None:
        begun = len(self.begun)
        assert begun == len(self.done) < 100
        time.sleep(0.02)
        assert len(self.begun) == begun


def test_who_stops_early_stops_the_threads() -> None:
    work = Slow()
    for item in ahead(iter(range(1000)), work):
        if item == 3:
            break
    work.check_it_stopped()


def test_an_interrupt_stops_the_threads(threads: int) -> None:
    work = Slow(interrupts=9)
    with pytest.raises(KeyboardInterrupt):
        list(ahead(iter(range(1000)), work))
    if threads > 1:  # else it hit the work itself
        work.check_it_stopped()


def test_a_line_within_a_line_does_not_wait_for_itself() -> None:
    def work(item: int) -> int:
        return sum(ahead(iter(range(item)), int))

    assert list(ahead(iter(range(20)), work)) == [sum(range(item)) for item in range(20)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is nothing to fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # this process has threads: that is it
def test_a_forked_process_has_threads_of_its_own() -> None:
    assert list(ahead(iter(range(5)), int)) == list(range(5))
    child = os.fork()
    if child == 0:
        os._exit(0 if list(ahead(iter(range(5)), int)) == list(range(5)) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_file_s_rows_keep_their_order_and_numbers(tmp_path: Path) -> None:
    metadata = encode_metadata(["a"])
    rows = [
        {"metadata": metadata, "value": None, "typed_value": {"a": {"typed_value": n}}}
        for n in range(3000)
    ]
    kind = arrow_type(parse_ddl("STRUCT<a: BIGINT>"))
    good, bad = tmp_path / "good.parquet", tmp_path / "bad.parquet"
    pq.write_table(pa.table({"v": pa.array(rows, kind)}), good, row_group_size=700)
    texts = [
        text
        for batch in vl.parquet.iter_batches(good, 50, variant_columns=["v"])
        for text in vl.to_json(batch.column("v")).to_pylist()
    ]
    assert texts == [f'{{"a":{n}}}' for n in range(3000)]
    assert vl.to_json(vl.parquet.read_table(good)["v"]).to_pylist() == texts
    rows[2345]["value"] = b"\x00"
    pq.write_table(pa.table({"v": pa.array(rows, kind)}), bad, row_group_size=700)
    batches = vl.parquet.iter_batches(bad, 50, variant_columns=["v"])
    assert sum(next(batches).num_rows for _ in range(46)) == 2300
    with pytest.raises(MalformedFile) as error:
        next(batches)
    assert error.value.row == 2345
