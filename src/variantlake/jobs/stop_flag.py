"""Stop the tasks of a load by a flag: a small file in the table's folder.

Spark does not reliably end Python workers of a cancelled job, and does not notice a task that
returns its failure as data. So the driver raises the flag before the tasks start and lowers it at
the end; tasks check it now and then. A task that fails writes its number into the file: then tasks
of later parts of the input stop, and earlier ones go on, so that the first bad line of the input is
reported.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from variantlake.storage.store import LocalStore, Store
from variantlake.storage.unreachable import disk_failure


class LoadStopped(Exception):
    """The load was cancelled, or failed in an earlier part of the input."""


@dataclass(frozen=True, slots=True)
class LoadFlag:
    """The flag of one load. Without a local disk there is none, and tasks run to their end."""

    store: Store
    load_id: str

    def up(self) -> None:
        """Let tasks run. Raises StoreFailed if nothing can be written."""
        if path := self._path:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("")
            except OSError as error:
                raise disk_failure(error, self.store.uri, "the table cannot be written") from error

    def down(self) -> None:
        """Stop every task that still runs."""
        if path := self._path:
            path.unlink(missing_ok=True)

    def fail(self, task: int) -> None:
        """Stop the tasks after this one."""
        path = self._path
        # Two tasks that fail at the same instant may overwrite each other: then some run longer.
        if path is not None and task < self._first_failure(path, none=task + 1):
            with contextlib.suppress(OSError), path.open("r+") as file:
                file.write(f"{task:010d}\n")

    def check(self, task: int) -> None:
        """Raise LoadStopped unless this task should go on."""
        path = self._path
        if path is not None and self._first_failure(path, none=task) < task:
            raise LoadStopped

    @property
    def _path(self) -> Path | None:
        # Not hidden by its name, so that VACUUM removes one that a killed driver left.
        if isinstance(self.store, LocalStore):
            return self.store.root / f"variantlake-load-{self.load_id}.running"
        return None

    @staticmethod
    def _first_failure(path: Path, *, none: int) -> int:
        """The number of the first failed task, `none` if none failed, -1 if the flag is down."""
        try:
            text = path.read_text()
        except OSError:
            return -1
        return int(text) if text.endswith("\n") else none
