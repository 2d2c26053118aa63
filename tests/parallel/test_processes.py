"""Worker processes: the same results, whatever becomes of them, and nothing that stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import Pipe, connection
from pathlib import Path

import pyarrow as pa
import pytest

import variantlake as vl
from tests.parallel.pools import worker_processes
from variantlake.errors import InvalidValue
from variantlake.parallel import processes, worker
from variantlake.parallel.prefetch import ahead
from variantlake.parallel.processes import in_processes


@dataclass(frozen=True)
class Squares:
    """A job; `at` are items for which something happens in a worker process, or in any."""

    home: int
    crash: int = -1
    fail: int = -1
    always: bool = False

    def __call__(self, item: int) -> tuple[int, int]:
        here = os.getpid()
        if item == self.crash and here != self.home:
            os.kill(here, signal.SIGKILL)
        if item == self.fail and (self.always or here != self.home):
            raise InvalidValue(f"{item} cannot be squared")
        return item * item, here


def squares(job: Squares, count: int = 20) -> tuple[list[int], set[int]]:
    """The results in order, and the processes that gave them."""
    found = list(ahead(iter(range(count)), in_processes(job)))
    return [result for result, _ in found], {pid for _, pid in found}


RIGHT = [item * item for item in range(20)]


def gone(pid: int) -> bool:
    """Whether a process has ended, or does so soon."""
    for _ in range(1000):
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat")
            if state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.01)
    return False


def test_they_do_the_work_in_the_order_of_the_items() -> None:
    with worker_processes(__name__) as answered:
        theirs = set(processes._workers.pids())
        results, pids = squares(Squares(os.getpid()))
        assert results == RIGHT
        assert pids <= theirs | {os.getpid()}
        assert pids & theirs
        assert all(answered)
    assert all(map(gone, theirs))


def test_there_are_none_before_there_is_work_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(processes.VARIABLE, "2")
    monkeypatch.setattr(pa, "cpu_count", lambda: 2)
    assert squares(Squares(os.getpid())) == (RIGHT, {os.getpid()})
    assert processes._workers.pids() == []
    monkeypatch.setattr(processes, "WORTHWHILE_SECONDS", 0.0)
    try:
        assert squares(Squares(os.getpid()))[0] == RIGHT
        assert len(processes._workers.pids()) == 2
    finally:
        processes._workers.end()


def test_one_that_is_killed_is_replaced_and_its_work_is_done_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with worker_processes(__name__) as answered:
        before = set(processes._workers.pids())
        assert squares(Squares(os.getpid(), crash=3))[0] == RIGHT
        assert not all(answered)
        monkeypatch.setattr(processes, "WORTHWHILE_SECONDS", 0.0)
        for victim in processes._workers.pids():
            os.kill(victim, signal.SIGKILL)
        assert squares(Squares(os.getpid()))[0] == RIGHT
        assert squares(Squares(os.getpid()))[0] == RIGHT
        assert set(processes._workers.pids()) - before


def test_what_fails_there_is_done_again_here() -> None:
    with worker_processes(__name__):
        assert squares(Squares(os.getpid(), fail=3))[0] == RIGHT
        with pytest.raises(InvalidValue, match="3 cannot be squared"):
            squares(Squares(os.getpid(), fail=3, always=True))
        assert squares(Squares(os.getpid()))[0] == RIGHT


def test_large_results_are_made_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_LARGE", 8)
    with worker_processes(__name__) as answered:
        for _ in range(3):
            assert squares(Squares(os.getpid()))[0] == RIGHT
        assert answered.count(True) <= 6


def test_one_that_cannot_start_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_START", "import sys; sys.exit(3) # {number} {module}")
    monkeypatch.setattr(processes, "WORTHWHILE_SECONDS", 0.0)
    with worker_processes(__name__):
        for _ in range(3):
            assert squares(Squares(os.getpid())) == (RIGHT, {os.getpid()})
        assert processes._workers.pids() == []


def test_an_interrupted_call_leaves_no_answer_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> bytes:
        raise KeyboardInterrupt

    with worker_processes(__name__, 1):
        with monkeypatch.context() as patched:
            patched.setattr(connection.Connection, "recv_bytes", interrupted)
            with pytest.raises(KeyboardInterrupt):
                in_processes(Squares(os.getpid()))(7)
        assert in_processes(Squares(os.getpid()))(4) == (16, os.getpid())


def test_one_without_work_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = Pipe()
    monkeypatch.setattr(worker, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(pa, "set_cpu_count", lambda _: None)
    worker.serve(theirs, "json")
    assert ours.recv_bytes() == b""


def test_a_forked_process_has_none_and_ends_none() -> None:
    with worker_processes(__name__) as answered:
        child = os.fork()
        if not child:
            right = processes._workers.pids() == [] and squares(Squares(os.getpid()))[0] == RIGHT
            os._exit(0 if right else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert squares(Squares(os.getpid()))[0] == RIGHT
        assert answered
        assert all(answered)


SCRIPT = """
import os, signal, sys, time
from tests.parallel.pools import worker_processes
from variantlake.parallel import processes
pool = worker_processes("json")
pool.__enter__()
print(*processes._workers.pids(), flush=True)
if sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(("way", "status"), [("ends", 0), ("killed", -signal.SIGKILL)])
def test_they_end_with_their_process(way: str, status: int) -> None:
    command = [sys.executable, "-W", "error", "-c", SCRIPT, way]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert done.stderr == ""
    pids = list(map(int, done.stdout.split()))
    assert len(pids) == 2
    assert all(map(gone, pids))


@pytest.mark.parametrize("text", ["two", "-1", "1.5"])
def test_a_number_that_is_none_is_named(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(processes.VARIABLE, text)
    with pytest.raises(InvalidValue, match=f"VARIANTLAKE_PROCESSES={text} is not a number"):
        in_processes(len)


@pytest.mark.parametrize(
    "reason", [("sys", "executable", ""), ("sys", "frozen", True), ("pa", "cpu_count", lambda: 1)]
)
def test_where_they_cannot_be_they_are_not(
    reason: tuple[str, str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(processes.VARIABLE, "2")
    monkeypatch.setattr(pa, "cpu_count", lambda: 2)
    job: Callable[[int], tuple[int, int]] = Squares(os.getpid())
    assert in_processes(job) is not job
    module, name, value = reason
    monkeypatch.setattr({"sys": sys, "pa": pa}[module], name, value, raising=False)
    assert in_processes(job) is job


def test_spans_are_those_of_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opentelemetry.trace")
    monkeypatch.setenv(processes.VARIABLE, "2")
    monkeypatch.setattr(pa, "cpu_count", lambda: 2)
    vl.set_tracing()
    try:
        assert in_processes(len) is len
    finally:
        vl.set_tracing(False)
