"""Progress of a job: the finished tasks as bytes of its input."""

from __future__ import annotations

import time
from collections.abc import Callable

from variantlake.jobs.tasks import Tasks
from variantlake.progress import OnProgress, Progress
from variantlake.storage.store import Store
from variantlake.writing.files import count_files

_PROGRESS_SECONDS = 0.5


def bytes_read(done: int, total: int, files_written: int) -> Progress:
    """The progress of a job in bytes of its stored input."""
    return Progress(done, total, "bytes", "read", files_written)


def watcher(task: Tasks, store: Store, progress: OnProgress | None) -> Callable[[int], None]:
    """A function that takes the number of finished tasks and reports their share of the input.

    On a local disk it also reports how many files are begun.
    """
    total = sum(split.size for group in task.groups for split in group)
    last = 0.0

    def watch(finished: int) -> None:
        nonlocal last
        if progress is None or time.monotonic() < last + _PROGRESS_SECONDS:
            return
        last = time.monotonic()
        read = total * min(finished, len(task.groups)) // len(task.groups)
        progress(bytes_read(read, total, max(count_files(store, task.files.load_id), 0)))

    return watch
