"""Commit one change of rows: rows removed from files, and rows added."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import orjson
import pyarrow as pa

from variantlake.delta.actions.actions import AddCdcFile, AddFile, Metadata, Protocol
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.identity_columns import identity_columns
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import Changes, whole_table
from variantlake.delta.transaction.new_actions import removes_of
from variantlake.dml.files.change_feed import (
    AFTER,
    BEFORE,
    DELETE,
    INSERT,
    Changed,
    needs_changes,
    write_changes,
)
from variantlake.dml.files.copied_files import copy_files
from variantlake.dml.files.deletion_vectors import write_vectors
from variantlake.dml.files.new_files import NewFiles
from variantlake.dml.removed_rows import (
    ROW_TRACKING,
    FileOutcomes,
    RemovedRows,
    file_outcomes,
    is_on,
    removed_rows_of,
    with_vector,
)
from variantlake.dml.result import ChangeResult
from variantlake.dml.row_conflicts import DELETED_ROWS, RowLevel
from variantlake.dml.row_ids import RowIds
from variantlake.errors import UnsupportedFeature
from variantlake.sql.changes import Clause
from variantlake.writing.commit_files import NOT_COMMITTED, with_numbers

Tables = Callable[[], Iterable[pa.Table]]
"""Returns rows as `rows_at` does, from the start at each call; `tuple` returns none."""


@dataclass(frozen=True, slots=True)
class NewRows:
    """The rows that a change adds: `updated` ones that replace old ones, and `inserted` ones.

    If Spark tasks have written them already, `adds` are the data files and `change_files` their
    change files. The counts include the rows of these files.
    """

    updated: Tables = tuple
    inserted: Tables = tuple
    updated_count: int = 0
    inserted_count: int = 0
    adds: tuple[AddFile, ...] = ()
    change_files: tuple[AddCdcFile, ...] = ()


@dataclass(frozen=True, slots=True)
class RowChange:
    """One change of rows. `removed` holds the deleted rows and the old forms of updated ones.

    `operation`, `parameters` and `metrics` are for the history. `finds` tells whether the change
    would have found a row in a file that another writer added. `started` and `searched` are the
    times (`time.perf_counter`) when it began and when it had found its rows. `preimages` are the
    removed rows that an update brings back, `watched` rows that stay but that it depends on.
    `is_exclusive`: it also depends on other rows of the table, so no other change may be committed
    first. `altered` is the new protocol and metadata, which `snapshot` already has.
    """

    snapshot: Snapshot
    operation: str
    parameters: Mapping[str, str]
    removed: Sequence[RemovedRows]
    finds: Callable[[AddFile], bool]
    started: float
    searched: float
    new: NewRows = NewRows()
    preimages: Sequence[RemovedRows] = ()
    watched: Sequence[RemovedRows] = ()
    is_exclusive: bool = False
    altered: tuple[Protocol | None, Metadata] | None = None
    metrics: Mapping[str, str] = field(default_factory=dict)

    def planned(self, files: NewFiles) -> ChangeResult:
        """Return what it would do, for a dry run. Raises as `commit` does before it writes."""
        decided = file_outcomes(self.snapshot, self.removed)
        files.check(self._new_rows())
        return replace(self._result(decided, (), 0), version=None, dry_run=True)

    def commit(self, files: NewFiles) -> ChangeResult:
        """Write and commit it, unless it changes no row and not the table.

        If anything fails before the commit, all new files are removed. Raises CommitConflict,
        FilesMoved.
        """
        has_rows = self.removed or self.new.inserted_count or self.new.adds
        if not has_rows and self.altered is None:
            return self._result(file_outcomes(self.snapshot, ()), (), 0)
        decided = file_outcomes(self.snapshot, self.removed)
        with files.taken_back_on(BaseException):
            changes, done = self._written(files, decided)
        with files.taken_back_on(*NOT_COMMITTED):
            version = commit(self.snapshot, changes)
        lost = changes.rebased.lost if isinstance(changes.rebased, RowLevel) else 0
        return replace(
            done,
            version=version,
            rows_deleted=done.rows_deleted - lost,
            seconds=time.perf_counter() - self.started,
        )

    def _written(self, files: NewFiles, decided: FileOutcomes) -> tuple[Changes, ChangeResult]:
        """Write all files of the change; returns the commit that names them, and the result."""
        adds_rows = bool(self.new.updated_count or self.new.inserted_count)
        fed = needs_changes(self.snapshot, decided, adds_rows=adds_rows)
        change_files = self.new.change_files
        if fed:
            change_files += write_changes(files, self._changed())
        copies = copy_files(self.snapshot, files.plan.load_id, decided.rewritten)
        rows = (*self.new.adds, *files.write(self._new_rows()))
        adds = (*rows, *copies)
        store = self.snapshot.store
        vectors, path = write_vectors(store, [each.deleted for each in decided.marked])
        files.others += [] if path is None else [path]
        marked = tuple(
            with_vector(each.add, vector, each.num_rows)
            for each, vector in zip(decided.marked, vectors, strict=True)
        )
        more = sum(each.size for each in change_files)
        more += sum(each.size_in_bytes for each in vectors)
        done = self._result(decided, adds, more)
        changes = Changes(
            operation=self.operation,
            adds=(*marked, *adds),
            removes=removes_of(each.add for each in self.removed),
            change_files=change_files,
            protocol=self.altered and self.altered[0],
            metadata=self._metadata(rows),
            reads=whole_table,
            # The table's expressions were evaluated for rows that stay when they were written.
            evaluated=files.target.evaluated or not adds_rows,
            numbered=files.target.numbered,
            rebased=None
            if self.is_exclusive
            else RowLevel(
                self.snapshot,
                marked=by_path(decided.marked),
                gone=by_path(decided.gone),
                rewritten=by_path(decided.rewritten),
                overlaps=not adds_rows and not change_files,
                finds=self.finds,
                watched=by_path(self.watched),
                written=files.others,
            ),
            keeps_row_ids=is_on(self.snapshot, ROW_TRACKING)
            or not (self.new.updated_count or decided.rewritten),
            file_metrics=False,
            parameters=self.parameters,
            metrics={**self._metrics(decided, done, len(change_files)), **self.metrics},
        )
        return changes, done

    def _metadata(self, rows: Sequence[AddFile]) -> Metadata | None:
        """Return the new metadata, None if unchanged; `rows` are files of updated and new rows."""
        metadata = self.snapshot.metadata if self.altered is None else self.altered[1]
        if self.new.inserted_count and identity_columns(self.snapshot.schema):
            metadata = with_numbers(metadata, rows)
        is_new = self.altered is not None or metadata != self.snapshot.metadata
        return metadata if is_new else None

    def _changed(self) -> Iterator[Changed]:
        """Yield the rows for the change feed, with both images of updated ones."""
        updated = {each.add.path: each for each in self.preimages}
        for each in self.removed:
            both = updated.get(each.add.path)
            if both is None:
                yield DELETE, removed_rows_of(self.snapshot, [each])
                continue
            yield BEFORE, removed_rows_of(self.snapshot, [both])
            rest = each.without(both)
            if rest.count:
                yield DELETE, removed_rows_of(self.snapshot, [rest])
        yield AFTER, RowIds.of(self.snapshot).without(self.new.updated())
        yield INSERT, self.new.inserted()

    def _new_rows(self) -> Iterator[pa.Table]:
        yield from self.new.updated()
        inserted = self.new.inserted()
        if self.new.updated_count:  # updated rows in the same file have a column of row ids
            inserted = RowIds.of(self.snapshot).inserted(inserted)
        yield from inserted

    def _result(self, decided: FileOutcomes, adds: Sequence[AddFile], more: int) -> ChangeResult:
        return ChangeResult(
            version=self.snapshot.version,
            rows_deleted=sum(each.count for each in self.removed) - self.new.updated_count,
            rows_updated=self.new.updated_count,
            rows_inserted=self.new.inserted_count,
            files_touched=len(self.removed),
            files_removed=len(decided.gone),
            files_rewritten=len(decided.rewritten),
            files_written=len(adds),
            files_marked=len(decided.marked),
            rows_copied=sum(each.left for each in decided.rewritten),
            bytes_written=sum(add.size for add in adds) + more,
            seconds=time.perf_counter() - self.started,
        )

    def _metrics(
        self, decided: FileOutcomes, done: ChangeResult, change_files: int
    ) -> dict[str, str]:
        """Return the metrics as Delta Spark names and counts them; times are in milliseconds."""
        out = (*decided.gone, *decided.rewritten)
        had = sum(each.add.deletion_vector is not None for each in out)
        again = sum(each.add.deletion_vector is not None for each in decided.marked)
        now = time.perf_counter()
        found = {
            "numRemovedFiles": len(out),
            "numRemovedBytes": sum(each.add.size for each in out),
            "numAddedFiles": done.files_written,
            "numAddedBytes": done.bytes_written,
            "numCopiedRows": done.rows_copied,
            "numAddedChangeFiles": change_files,
            "numDeletionVectorsAdded": done.files_marked,
            "numDeletionVectorsRemoved": had + again,
            "numDeletionVectorsUpdated": again,
            "scanTimeMs": round((self.searched - self.started) * 1000),
            "rewriteTimeMs": round((now - self.searched) * 1000),
            "executionTimeMs": round((now - self.started) * 1000),
        }
        if self.operation == "DELETE":
            found[DELETED_ROWS] = done.rows_deleted
        elif self.operation == "UPDATE":
            found["numUpdatedRows"] = done.rows_updated
        elif self.operation == "WRITE":
            found = _of_overwrite(found, done)
        elif self.operation == "MERGE":
            by_source = self.parameters.get("notMatchedBySourcePredicates") != "[]"
            found = _of_merge(found, done, by_source=by_source)
        return {name: str(number) for name, number in found.items()}


def _of_overwrite(found: Mapping[str, int], done: ChangeResult) -> dict[str, int]:
    """Return the metrics of an overwrite of the rows that a condition finds."""
    kept = ("numRemovedFiles", "numRemovedBytes", "numCopiedRows", "numAddedChangeFiles")
    return {
        "numFiles": found["numAddedFiles"],
        "numOutputBytes": found["numAddedBytes"],
        "numOutputRows": done.rows_inserted + done.rows_copied,
        DELETED_ROWS: done.rows_deleted,
        **{name: found[name] for name in kept},
    }


def _of_merge(found: Mapping[str, int], done: ChangeResult, *, by_source: bool) -> dict[str, int]:
    """Return the metrics under the names that a MERGE has for them.

    With WHEN NOT MATCHED BY SOURCE it leaves out the counts by kind of clause, which are unknown
    here.
    """
    named = {_MERGE_METRICS.get(name, name): number for name, number in found.items()}
    named |= {
        "numTargetRowsInserted": done.rows_inserted,
        "numTargetRowsUpdated": done.rows_updated,
        "numTargetRowsDeleted": done.rows_deleted,
        "numOutputRows": done.rows_inserted + done.rows_updated + done.rows_copied,
    }
    if not by_source:
        named |= {
            "numTargetRowsMatchedUpdated": done.rows_updated,
            "numTargetRowsMatchedDeleted": done.rows_deleted,
            "numTargetRowsNotMatchedBySourceUpdated": 0,
            "numTargetRowsNotMatchedBySourceDeleted": 0,
        }
    return named


_MERGE_METRICS = {
    "numRemovedFiles": "numTargetFilesRemoved",
    "numRemovedBytes": "numTargetBytesRemoved",
    "numAddedFiles": "numTargetFilesAdded",
    "numAddedBytes": "numTargetBytesAdded",
    "numCopiedRows": "numTargetRowsCopied",
    "numAddedChangeFiles": "numTargetChangeFilesAdded",
    "numDeletionVectorsAdded": "numTargetDeletionVectorsAdded",
    "numDeletionVectorsRemoved": "numTargetDeletionVectorsRemoved",
    "numDeletionVectorsUpdated": "numTargetDeletionVectorsUpdated",
}


def check_not_append_only(snapshot: Snapshot) -> None:
    """Raise UnsupportedFeature if the table is append-only."""
    if is_on(snapshot, "delta.appendOnly"):
        raise UnsupportedFeature(
            "the table is append-only (delta.appendOnly)",
            file=snapshot.store.uri,
            hint="ALTER TABLE ... SET TBLPROPERTIES ('delta.appendOnly' = 'false') lets rows go",
        )


def predicate_parameter(text: str | None) -> str:
    """Return a condition as the history stores it: a JSON list."""
    return orjson.dumps(["true" if text is None else text]).decode()


def clause_predicates(clauses: Iterable[Clause], when: str) -> str:
    """Return a MERGE's clauses of the kind `when` as the history stores them: a JSON list."""
    found = [
        {"actionType": clause.then}
        | ({} if clause.condition is None else {"predicate": clause.condition})
        for clause in clauses
        if clause.when == when
    ]
    return orjson.dumps(found).decode()


def by_path(taken: Sequence[RemovedRows]) -> dict[str, RemovedRows]:
    """Key the rows by their file's path in the log."""
    return {each.add.path: each for each in taken}
