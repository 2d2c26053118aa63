"""How far a job is: its finished tasks as bytes of its input."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from variantlake.jobs.tasks import Tasks
from variantlake.storage.store import Store
from variantlake.writing.files import count_files

_PROGRESS_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far a load is: bytes of the sources as stored, and files begun so far."""

    bytes_read: int
    bytes_total: int
    files: int


def watcher(
    task: Tasks, store: Store, progress: Callable[[LoadProgress], None] | None
) -> Callable[[int], None]:
    """Finished tasks as progress: their share of the input, and files counted on a local disk."""
    total = sum(split.size for group in task.groups for split in group)

    last = 0.0

    def watch(finished: int) -> None:
        nonlocal last
        if progress is None or time.monotonic() < last + _PROGRESS_SECONDS:
            return
        last = time.monotonic()
        read = total * min(finished, len(task.groups)) // len(task.groups)
        progress(LoadProgress(read, total, count_files(store, task.files.load_id)))

    return watch
