"""Run the tasks of a job in threads of this process."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

import pyarrow as pa

from variantlake.jobs.tasks import Tasks, flag_of

_POLL_SECONDS = 0.2


def run_in_threads(task: Tasks, watch: Callable[[int], None]) -> list[bytes]:
    """Run all tasks in as many threads as pyarrow uses; kernels and encoder release the GIL.

    Ctrl-C stops the running tasks at their next block of lines.
    """
    payloads: list[bytes] = []
    pool = ThreadPoolExecutor(pa.cpu_count(), thread_name_prefix="variantlake-load")
    try:
        running = {
            pool.submit(lambda at: list(task(at)), number) for number in range(len(task.groups))
        }
        while running:
            finished, running = wait(running, _POLL_SECONDS, FIRST_COMPLETED)
            for future in finished:
                payloads += future.result()
            watch(len(task.groups) - len(running))
    except BaseException:
        flag_of(task.files).down()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return payloads
