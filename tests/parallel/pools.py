"""Worker processes for tests, in which they are off, and what threads gave."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

from variantlake.parallel import processes


@contextmanager
def worker_processes(module: str, count: int = 2) -> Iterator[list[bool]]:
    """So many that are ready, and a list of whether each call of theirs had an answer."""
    answered: list[bool] = []
    run = processes._Worker.run

    def noted(worker: processes._Worker, job: bytes, item: object) -> bytes:
        answer = run(worker, job, item)
        answered.append(bool(answer) and pickle.loads(answer) is not None)  # noqa: S301
        return answer

    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(processes.VARIABLE, str(count))
        patched.setattr(pa, "cpu_count", lambda: max(count, 2))
        patched.setattr(processes._Worker, "run", noted)
        processes._workers.note(processes.WORTHWHILE_SECONDS, module)
        try:
            while not all(worker.has_news() for worker in processes._workers._all):
                time.sleep(0.01)
            assert len(processes._workers.pids()) == count
            yield answered
        finally:
            processes._workers.end()


def outcome(results: Iterator[int]) -> tuple[list[int], str]:
    """The numbers, and the error that came behind them."""
    seen: list[int] = []
    try:
        seen.extend(results)
    except (KeyError, ValueError) as error:
        return seen, repr(error)
    return seen, ""
