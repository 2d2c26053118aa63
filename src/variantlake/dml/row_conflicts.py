"""Two changes at the same time, held against each other row by row.

A commit that came first may have taken other rows of a file than we do: then the file gets one
vector of both. It may have added rows: they matter only if ours would have found one of them. What
remains is for the rules of files (`delta.transaction.conflicts`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.delta.actions.actions import Action, AddFile, Metadata, RemoveFile
from variantlake.delta.log.logical_files import adds_of
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.identity_columns import without_marks
from variantlake.delta.schema.table_schema import StructType
from variantlake.delta.transaction.conflicts import Changes
from variantlake.delta.transaction.new_actions import removes_of
from variantlake.dml.files.deletion_vectors import write_vectors
from variantlake.dml.removed_rows import RemovedRows, vector_rows, with_vector
from variantlake.errors import CommitConflict

DELETED_ROWS = "numDeletedRows"
"""What the history of a DELETE calls the rows that it took."""


class FilesMoved(CommitConflict):
    """The rows are in other files now: the change has to be decided again."""


@dataclass(slots=True)
class RowLevel:
    """What a change of rows needs to go on after another one: `Changes.rebased`.

    `marked` and `gone` are the files with a new vector, and those that go, by their path in the
    log. `overlaps` says that a row that both take away is not a contradiction. `finds` tells
    whether the change would have found a row of a file. `watched` are rows that stay, and that it
    depends on. `written` are the vector files, kept up to date, and `lost` counts the rows that
    another change took first.
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
                    # Each row was decided by itself: one that is gone changes nothing for others.
                    continue
                case AddFile() if action.path in touched:
                    continue
                case AddFile() if action.data_change and not self._adds_rows(action):
                    continue
            rest.append(action)
        return changes, rest

    def _is_numbering(self, metadata: Metadata) -> bool:
        """Whether a change of the table is no more than that numbers were given out."""
        ours = self.snapshot.metadata
        if replace(metadata, schema_string=ours.schema_string) != ours:
            return False
        theirs = StructType.from_json(metadata.schema_string)
        return without_marks(theirs) == without_marks(self.snapshot.schema)

    def _check_watched(
        self, removed: Mapping[str, RemoveFile], again: Mapping[str, AddFile], version: int
    ) -> None:
        """Raise if rows that the change depends on are gone, or were moved."""
        for path in self.watched.keys() & removed.keys():
            rows, add = self.watched[path], again.get(path)
            if add is None:
                raise self._moved(path, version)
            if np.isin(rows.rows, vector_rows(self.snapshot, add, rows.num_rows)).any():
                raise _same_row(path, version)

    def _after(self, changes: Changes, path: str, add: AddFile, version: int) -> Changes:
        """The change if the other one took rows of one of its files as well."""
        taken = self.marked.get(path) or self.gone[path]
        theirs = vector_rows(self.snapshot, add, taken.num_rows)
        if not np.isin(taken.before, theirs).all():
            raise self._moved(path, version)  # rows came back
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
            # They took all of our rows. An inline vector of the same rows would be the same file.
            del self.marked[path]
            kept = tuple(each for each in changes.adds if each.path != path)
            return replace(changes, adds=kept, removes=removes)
        (vector,), file = write_vectors(self.snapshot.store, [merged.deleted])
        self.written += [] if file is None else [file]
        self.marked[path] = merged
        adds = tuple(each for each in changes.adds if each.path != path)
        return replace(changes, adds=(*adds, with_vector(add, vector, taken.num_rows)))

    def _without_lost(self, changes: Changes, lost: int) -> Changes:
        """The change, whose history counts the rows that it still takes."""
        self.lost += lost
        said = changes.metrics.get(DELETED_ROWS)
        if said is None or not lost:
            return changes
        metrics = {**changes.metrics, DELETED_ROWS: str(int(said) - lost)}
        return replace(changes, metrics=metrics)

    def _adds_rows(self, add: AddFile) -> bool:
        """Whether a file has rows that the change would have found, and could not."""
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
