"""The result of a change of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from variantlake.shown import Result


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ChangeResult(Result):
    """What a change of rows did, or would do (`dry_run`).

    `files_touched` counts the files with deleted or updated rows. Of these, `files_removed` lost
    all of their rows, `files_rewritten` were rewritten without those rows, and `files_marked` got a
    deletion vector. `files_written` hold new and rewritten rows. `bytes_written` includes vectors
    and change files. `rows_copied` counts the unchanged rows of rewritten files.
    """

    rows_deleted: int = 0
    rows_updated: int = 0
    rows_inserted: int = 0
    rows_copied: int = 0
    files_touched: int = 0
    files_removed: int = 0
    files_rewritten: int = 0
    files_marked: int = 0
    files_written: int = 0
    bytes_written: int = 0

    @property
    def rows_changed(self) -> int:
        """Rows that were deleted, updated or inserted."""
        return self.rows_deleted + self.rows_updated + self.rows_inserted

    def to_dict(self) -> dict[str, Any]:
        """The fields by name with `rows_changed`, for JSON."""
        # Not super(): a dataclass with slots is a copy of the class that is written here.
        return {"rows_changed": self.rows_changed, **Result.to_dict(self)}
