"""How the tasks of a load learn that they should stop: a small file beside the table's data.

Spark does not reliably end Python workers of a cancelled job, and knows nothing of a task that
failed as data. So the driver raises a flag before the tasks start and lowers it at the end; tasks
look at it now and then. A task that fails notes its number: tasks of later parts of the input stop
then, earlier ones go on, so that the first bad line of the input is the one that is reported.
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
    """The flag of one load. If there is no local disk to look at, tasks run to their end."""

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
        """The smallest number noted, `none` when none is, -1 when the flag is down."""
        try:
            text = path.read_text()
        except OSError:
            return -1
        return int(text) if text.endswith("\n") else none
