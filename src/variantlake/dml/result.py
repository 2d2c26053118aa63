"""What a change of rows did."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from variantlake.shown import Result


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ChangeResult(Result):
    """What a change of rows did, or would do (`dry_run`).

    `version` is the one with the change; that of the table before it where no row was found, and
    for a dry run. `files_touched` are the files with such rows: of these `files_removed` are gone
    with all of their rows, `files_rewritten` were written anew without them, `vectors` got a
    deletion vector. `files_added` hold new and rewritten rows, `bytes_written` are those of files,
    vectors and change files, `rows_copied` the rows of rewritten files that did not change.
    """

    version: int
    deleted: int = 0
    updated: int = 0
    inserted: int = 0
    files_touched: int = 0
    files_removed: int = 0
    files_rewritten: int = 0
    files_added: int = 0
    vectors: int = 0
    rows_copied: int = 0
    bytes_written: int = 0
    seconds: float = 0.0
    dry_run: bool = False

    @property
    def rows(self) -> int:
        """Rows that were deleted, updated or inserted."""
        return self.deleted + self.updated + self.inserted

    def to_dict(self) -> dict[str, Any]:
        """The fields by name with `rows`, for JSON."""
        return {"rows": self.rows, **asdict(self)}
