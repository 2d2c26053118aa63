"""Delete many files, a few requests at a time; failures are collected by name."""

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
"""Files in one request; S3 allows no more."""

MAX_NAMED = 20
"""Failures that are reported by name; the others are only counted."""

_THREADS = 8


@dataclass(slots=True)
class Deletion:
    """The progress of a deletion. `failures` describes the first of the `failed` files."""

    deleted: int = 0
    failed: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, deleted: int, errors: Iterable[VariantLakeError]) -> None:
        """Count deleted files and errors."""
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
    """Delete these files, and count them and failures in `done`.

    `spared` is called for each batch just before its deletion, and returns the files of it that may
    go. An interruption lets running requests finish, and starts no more.
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
    """Remove the empty ones of these local folders, inner ones first; returns their number."""
    if not isinstance(store, LocalStore):
        return 0
    removed = 0
    for folder in folders:
        with contextlib.suppress(OSError):  # not empty, or removed by another process
            (store.root / folder).rmdir()
            removed += 1
    return removed
