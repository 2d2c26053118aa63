"""Deleting many files: a few requests at a time, and what fails is told by name at the end."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from variantlake.batches import batched
from variantlake.errors import VariantLakeError
from variantlake.storage.store import LocalStore, Store

FILES_AT_ONCE = 1000
"""Files of one request: S3 takes no more."""

MAX_NAMED = 20
"""Failures that are told by name; the others are counted."""

_THREADS = 8


@dataclass(slots=True)
class Deletion:
    """How far it came. `failures` are sentences, the first ones of `failed`."""

    deleted: int = 0
    failed: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, deleted: int, errors: Iterable[VariantLakeError]) -> None:
        """Count what became of some files."""
        self.deleted += deleted
        for error in errors:
            self.failed += 1
            if len(self.failures) < MAX_NAMED:
                self.failures.append(error.sentence())


def delete_files(
    store: Store,
    paths: Iterable[str],
    spared: Callable[[list[str]], list[str]],
    done: Deletion,
    progress: Callable[[Deletion], object],
) -> None:
    """Delete these files; `spared` gives those of some that go, asked just before they do.

    An interruption leaves what was begun to end, and begins no more. Failures are put into `done`.
    """
    running: deque[Future[tuple[int, list[VariantLakeError]]]] = deque()

    def end_one() -> None:
        done.add(*running.popleft().result())
        progress(done)

    with ThreadPoolExecutor(_THREADS) as pool:
        try:
            for some in batched(paths, FILES_AT_ONCE):
                if len(running) == 2 * _THREADS:
                    end_one()
                going = spared(list(some))
                if going:
                    running.append(pool.submit(_delete_some, store, going))
            while running:
                end_one()
        except BaseException:
            for each in running:
                if not each.cancel():
                    with contextlib.suppress(VariantLakeError):
                        done.add(*each.result())
            raise


def _delete_some(store: Store, paths: list[str]) -> tuple[int, list[VariantLakeError]]:
    try:
        store.delete_all(paths)
    except VariantLakeError:
        errors = []
        for path in paths:
            try:
                store.delete(path)
            except VariantLakeError as error:
                errors.append(error)
        return len(paths) - len(errors), errors
    return len(paths), []


def delete_empty_folders(store: Store, folders: Iterable[str]) -> int:
    """Remove those of a disk's folders that are empty; how many. Inner ones come first."""
    if not isinstance(store, LocalStore):
        return 0
    removed = 0
    for folder in folders:
        with contextlib.suppress(OSError):  # not empty, or removed by another process
            (store.root / folder).rmdir()
            removed += 1
    return removed
