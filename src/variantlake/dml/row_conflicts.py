"""Conflicts between concurrent changes of rows, checked row by row.

If the winning commit deleted other rows of a file than we do, the file gets one vector with both.
Rows that it added are a conflict only if our change would have found one of them. The file-level
rules (`delta.transaction.conflicts`) check the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.delta.actions.actions import Action, AddFile, Metadata, RemoveFile
from variantlake.delta.log.files.logical_files import adds_of
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.identity_columns import without_marks
from variantlake.delta.schema.table_schema import StructType
from variantlake.delta.transaction.conflicts import Changes
from variantlake.delta.transaction.new_actions import removes_of
from variantlake.dml.files.deletion_vectors import write_vectors
from variantlake.dml.removed_rows import RemovedRows, vector_rows, with_vector
from variantlake.errors import CommitConflict

DELETED_ROWS = "numDeletedRows"
"""The metric in the history that counts the rows a DELETE removed."""


class FilesMoved(CommitConflict):
    """The rows have moved to other files: find them again on a newer version and retry."""


@dataclass(slots=True)
class RowLevel:
    """Rebases a change of rows on a commit that won: `Changes.rebased`.

    `marked` are the files that get a new vector, `gone` those that are removed and `rewritten`
    those that are rewritten, by their path in the log. `overlaps`: a row that both changes delete
    is no conflict. `finds` tells whether the change would have found a row of a file. `watched` are
    rows that stay but that it depends on. Each rebase appends new vector files to `written`, and
    adds to `lost` the rows that the other change deleted first.
    """

    snapshot: Snapshot
    marked: dict[str, RemovedRows]
    gone: dict[str, RemovedRows]
    rewritten: Mapping[str, RemovedRows]
    overlaps: bool
    finds: Callable[[AddFile], bool]
    watched: Mapping[str, RemovedRows] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    lost: int = 0

    def __call__(
        self, changes: Changes, winner: Sequence[Action], version: int
    ) -> tuple[Changes, Sequence[Action]]:
        """See Rebase. Raises CommitConflict; FilesMoved if the change can be decided again."""
        removed = {each.path: each for each in winner if isinstance(each, RemoveFile)}
        again = {each.path: each for each in winner if isinstance(each, AddFile)}
        if any(isinstance(each, Metadata) and self._is_numbering(each) for each in winner):
            raise FilesMoved(
                f"another writer committed version {version} first, and gave out numbers of an "
                "identity column",
                hint="nothing was committed; open the table again and repeat",
            )
        self._check_watched(removed, again, version)
        touched = self.marked.keys() | self.gone.keys() | self.rewritten.keys()
        for path in touched & (removed.keys() | again.keys()):
            add = again.get(path)
            if add is None or path in self.rewritten or path not in removed:
                raise self._moved(path, version)
            changes = self._after(changes, path, add, version)
        rest: list[Action] = []
        for action in winner:
            match action:
                case RemoveFile():
                    # No decision on one row depends on another row that is gone.
                    continue
                case AddFile() if action.path in touched:
                    continue
                case AddFile() if action.data_change and not self._adds_rows(action):
                    continue
            rest.append(action)
        return changes, rest

    def _is_numbering(self, metadata: Metadata) -> bool:
        """Whether new metadata differs from ours only in the marks of identity columns."""
        ours = self.snapshot.metadata
        if replace(metadata, schema_string=ours.schema_string) != ours:
            return False
        theirs = StructType.from_json(metadata.schema_string)
        return without_marks(theirs) == without_marks(self.snapshot.schema)

    def _check_watched(
        self, removed: Mapping[str, RemoveFile], again: Mapping[str, AddFile], version: int
    ) -> None:
        """Raise if rows that the change depends on were deleted or moved."""
        for path in self.watched.keys() & removed.keys():
            rows, add = self.watched[path], again.get(path)
            if add is None:
                raise self._moved(path, version)
            if np.isin(rows.rows, vector_rows(self.snapshot, add, rows.num_rows)).any():
                raise _same_row(path, version)

    def _after(self, changes: Changes, path: str, add: AddFile, version: int) -> Changes:
        """Rebase the change on a commit that gave one of its files a new vector."""
        taken = self.marked.get(path) or self.gone[path]
        theirs = vector_rows(self.snapshot, add, taken.num_rows)
        if not np.isin(taken.before, theirs).all():
            raise self._moved(path, version)  # the winner restored deleted rows
        lost = int(np.isin(taken.places(), theirs).sum())
        if lost and not self.overlaps:
            raise _same_row(path, version)
        rows = taken.rows if taken.whole else np.setdiff1d(taken.rows, theirs)
        merged = replace(taken, add=add, before=theirs, rows=rows)
        changes = self._without_lost(changes, lost)
        removes = tuple(each for each in changes.removes if each.path != path)
        changes = replace(changes, removes=(*removes, *removes_of([add])))
        if path in self.gone:
            self.gone[path] = merged
            return changes
        if not merged.count:
            # The winner deleted all of our rows. The same inline vector again is the same file.
            del self.marked[path]
            kept = tuple(each for each in changes.adds if each.path != path)
            return replace(changes, adds=kept, removes=removes)
        (vector,), file = write_vectors(self.snapshot.store, [merged.deleted])
        self.written += [] if file is None else [file]
        self.marked[path] = merged
        adds = tuple(each for each in changes.adds if each.path != path)
        return replace(changes, adds=(*adds, with_vector(add, vector, taken.num_rows)))

    def _without_lost(self, changes: Changes, lost: int) -> Changes:
        """Subtract the lost rows from the count in the change's metrics."""
        self.lost += lost
        said = changes.metrics.get(DELETED_ROWS)
        if said is None or not lost:
            return changes
        metrics = {**changes.metrics, DELETED_ROWS: str(int(said) - lost)}
        return replace(changes, metrics=metrics)

    def _adds_rows(self, add: AddFile) -> bool:
        """Whether a file has rows that are new to the change and that it would have found."""
        known = self.snapshot.files.filter(
            pc.equal(self.snapshot.files["path"], pa.scalar(add.path, pa.string()))
        )
        for before in adds_of(known):
            rows = before.num_records
            if rows is not None and self._only_loses(before, add, rows):
                return False
        return self.finds(add)

    def _only_loses(self, before: AddFile, add: AddFile, rows: int) -> bool:
        gone = vector_rows(self.snapshot, before, rows)
        return bool(np.isin(gone, vector_rows(self.snapshot, add, rows)).all())

    def _moved(self, path: str, version: int) -> FilesMoved:
        return FilesMoved(
            f"another writer committed version {version} first and rewrote or removed file "
            f"{path!r}, which this one touches",
            hint="nothing was committed; open the table again and repeat",
        )


def _same_row(path: str, version: int) -> CommitConflict:
    return CommitConflict(
        f"another writer committed version {version} first and changed a row of file {path!r} "
        "that this one changes or depends on",
        hint="nothing was committed; open the table again and repeat",
    )
