"""Worker processes, for work in which threads wait for the GIL.

They start once threads have spent WORTHWHILE_SECONDS on work that processes could do, and end with
this process or after a minute without work. If anything goes wrong in a worker, this process does
the work itself and raises its errors.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import cached_property
from multiprocessing import Pipe
from typing import Generic, TypeVar, cast

import pyarrow as pa

from variantlake.errors import InvalidValue
from variantlake.telemetry.tracing import is_traced

T = TypeVar("T")
R = TypeVar("R")

VARIABLE = "VARIANTLAKE_PROCESSES"
"""The environment variable with the most worker processes; 0 turns them off."""

WORTHWHILE_SECONDS = 1.0
"""Starting a process takes about 0.4 s of a core."""

_MOST = 16
"""Each process takes about 150 MB."""

_LARGE = 4 << 20
_END_SECONDS = 2.0

_START = """
import sys
from multiprocessing.connection import Connection
connection = Connection({number})
sys.path[:] = connection.recv()
from variantlake.parallel.worker import serve
serve(connection, {module!r})
"""


def in_processes(job: Callable[[T], R]) -> Callable[[T], R]:
    """Wrap `job` to run in idle worker processes if there are any; threads may share it.

    The job, its items and its results must pickle and should be small, because they are copied. A
    call that fails in a worker is repeated in this process, so it must have no side effects.

    Raises InvalidValue if VARIABLE is not a number.
    """
    return _Shared(job) if _most() else job


def _most() -> int:
    """Return the most worker processes that are allowed. Raises InvalidValue."""
    limit = os.environ.get(VARIABLE) or str(_MOST)
    if not limit.isdecimal():
        raise InvalidValue(f"{VARIABLE}={limit} is not a number of processes, such as 0 or 4")
    # A worker would lose its spans, and an embedded or frozen interpreter cannot start one.
    if is_traced() or not sys.executable or hasattr(sys, "frozen"):
        return 0
    cores = pa.cpu_count()
    return min(cores, int(limit)) if cores > 1 else 0


class _Shared(Generic[T, R]):
    """A job that this process and its workers share."""

    def __init__(self, job: Callable[[T], R]) -> None:
        self._job = job
        self._is_large = False

    def __call__(self, item: T) -> R:
        # Copying a large result takes longer than computing it in a thread.
        worker = None if self._is_large else _workers.take_idle()
        if worker is not None:
            try:
                answer = worker.run(self._packed, item)
            finally:
                _workers.put_back(worker)
            self._is_large |= len(answer) > _LARGE
            done = pickle.loads(answer) if answer else None  # noqa: S301  # of our own process
            if done is not None:
                return cast("R", done[0])
        start = time.perf_counter()
        result = self._job(item)
        _workers.note(time.perf_counter() - start, type(self._job).__module__)
        return result

    @cached_property
    def _packed(self) -> bytes:
        return pickle.dumps(self._job, pickle.HIGHEST_PROTOCOL)


class _Worker:
    """One worker process, which runs one call at a time."""

    def __init__(self, module: str) -> None:
        self._connection, theirs = Pipe()
        number = theirs.fileno()
        start = _START.format(number=number, module=module)
        with theirs:
            # A new session keeps Ctrl-C from the worker: this process handles it.
            self._process = subprocess.Popen(  # noqa: S603  # this interpreter
                [sys.executable, "-c", start],
                pass_fds=(number,),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._job: bytes | None = None
        self.is_ready = False
        self.is_lost = False
        try:
            self._connection.send(sys.path)
        except OSError:
            self.is_lost = True

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def has_news(self) -> bool:
        """Whether the process has started, or has ended instead."""
        if not self.is_ready and not self.is_lost:
            try:
                if self._connection.poll():
                    self._connection.recv_bytes()
                    self.is_ready = True
            except (OSError, EOFError):
                self.is_lost = True
        return self.is_ready or self.is_lost

    def run(self, job: bytes, item: object) -> bytes:
        """Return the answer of `serve` to a call, empty if the process fails."""
        if self.is_lost:
            return b""
        # A repeated job is not sent again: the worker keeps it, and what it caches of the files.
        call = pickle.dumps((None if job == self._job else job, item), pickle.HIGHEST_PROTOCOL)
        self.is_lost = True  # until we get the answer; otherwise the next call would read it
        try:
            self._connection.send_bytes(call)
            answer = self._connection.recv_bytes()
        except (OSError, EOFError):
            return b""
        self._job, self.is_lost = job, False
        return answer

    def close(self) -> None:
        """Close the connection, which ends the process."""
        with contextlib.suppress(OSError):
            self._connection.close()

    def end(self) -> None:
        """End the process, and wait for its end."""
        self.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def disown(self) -> None:
        """Forget the process in a fork: it is the parent's child."""
        self.close()
        self._process.returncode = 0


class _Workers:
    """The worker processes of this process: none before there is enough work."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Under its lock:
        self._all: list[_Worker] = []
        self._idle: list[_Worker] = []
        self._seconds = 0.0

    def take_idle(self) -> _Worker | None:
        """Reserve an idle worker for the caller until `put_back`; None if there is none."""
        with self._lock:
            worker = next((each for each in self._idle if each.has_news()), None)
            if worker is not None:
                self._idle.remove(worker)
            return worker

    def put_back(self, worker: _Worker) -> None:
        """Make the worker idle again; end it if it is lost."""
        with self._lock:
            if not worker.is_lost:
                self._idle.append(worker)
                return
            self._all.remove(worker)
            # New workers start after as much work again; none if this one failed to start.
            self._seconds = 0.0 if worker.is_ready else float("-inf")
        worker.end()

    def note(self, seconds: float, module: str) -> None:
        """Add seconds that this process worked itself; start the workers if there were enough."""
        with self._lock:
            self._seconds += seconds
            if self._seconds < WORTHWHILE_SECONDS:
                return
            try:
                while len(self._all) < _most():
                    worker = _Worker(module)
                    self._all.append(worker)
                    self._idle.append(worker)
            except OSError:  # the machine allows no more processes or files
                self._seconds = float("-inf")

    def pids(self) -> list[int]:
        """Return the ids of the processes."""
        with self._lock:
            return [worker.pid for worker in self._all]

    def end(self) -> None:
        """End all workers; new ones may start later."""
        with self._lock:
            ending = self._all
            self._all, self._idle, self._seconds = [], [], 0.0
        for worker in ending:
            worker.close()
        for worker in ending:
            worker.end()

    def forget(self) -> None:
        """Forget all workers in a forked process."""
        self._lock = threading.Lock()
        for worker in self._all:
            worker.disown()
        self._all, self._idle, self._seconds = [], [], 0.0


_workers = _Workers()
atexit.register(_workers.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_workers.forget)
