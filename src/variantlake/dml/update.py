"""UPDATE in this process: find rows as DELETE does, compute new ones with the local engine."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from variantlake.delta.log.snapshot import Snapshot
from variantlake.dml.delete import decided_again
from variantlake.dml.files.new_files import NewFiles
from variantlake.dml.found_rows import find_rows, finds_any
from variantlake.dml.new_values import NewValues
from variantlake.dml.removed_rows import RemovedRows, removed_rows_of
from variantlake.dml.result import ChangeResult
from variantlake.dml.row_change import (
    NewRows,
    RowChange,
    check_not_append_only,
    predicate_parameter,
)
from variantlake.dml.row_ids import RowIds
from variantlake.expressions.tree import Predicate
from variantlake.scan.table_scan import Scan
from variantlake.sql.select import QueryText


def update(
    snapshot: Snapshot, given: Mapping[str, Any], where: str | None, *, dry_run: bool = False
) -> ChangeResult:
    """Set columns in the rows for which `where` is true, or in all rows if it is None.

    Raises InvalidQuery; UnsupportedFeature, by name, for anything that only Spark supports or that
    the table demands of new rows; InvalidValue for a value that cannot be cast or stored;
    CommitConflict.
    """
    condition = None if where is None else QueryText(snapshot.schema).condition(where)
    values = NewValues.of(snapshot, given)
    return decided_again(
        snapshot, lambda newest: _update(newest, values, condition, where, dry_run=dry_run)
    )


def _update(
    snapshot: Snapshot,
    values: NewValues,
    condition: Predicate | None,
    where: str | None,
    *,
    dry_run: bool,
) -> ChangeResult:
    started = time.perf_counter()
    check_not_append_only(snapshot)
    files = NewFiles.of(snapshot, evaluated=False)
    taken = find_rows(Scan(snapshot, (), condition))

    ids = RowIds.of(snapshot)

    def updated() -> Iterator[pa.Table]:
        for each in taken:
            new = map(values.applied, removed_rows_of(snapshot, [each]))
            yield from ids.updated(new, each.add, each.file, each.places())

    change = RowChange(
        snapshot,
        "UPDATE",
        {"predicate": "[]" if where is None else predicate_parameter(where)},
        taken,
        lambda add: finds_any(snapshot, condition, add),
        started,
        time.perf_counter(),
        NewRows(updated=updated, updated_count=sum(each.count for each in taken)),
        preimages=_by_places(taken),
    )
    return change.planned(files) if dry_run else change.commit(files)


def _by_places(taken: list[RemovedRows]) -> list[RemovedRows]:
    """Return the rows with explicit places, for `whole` files too."""
    return [
        RemovedRows(each.add, each.file, each.places(), each.num_rows, each.before)
        for each in taken
    ]
