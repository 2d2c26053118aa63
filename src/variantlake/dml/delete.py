"""DELETE in this process, without Spark."""

from __future__ import annotations

import time
from collections.abc import Callable

from variantlake.delta.log.snapshot import Snapshot
from variantlake.dml.files.new_files import NewFiles
from variantlake.dml.found_rows import find_rows, finds_any
from variantlake.dml.result import ChangeResult
from variantlake.dml.row_change import RowChange, check_not_append_only, predicate_parameter
from variantlake.dml.row_conflicts import FilesMoved
from variantlake.errors import UnsupportedFeature
from variantlake.expressions.tree import is_by_bounds
from variantlake.scan.table_scan import Scan
from variantlake.sql.select import QueryText

MAX_DECISIONS = 10
"""How often to try a change if other writers keep moving its rows to other files."""


def delete(
    snapshot: Snapshot,
    where: str | None,
    *,
    dry_run: bool = False,
    table: str = "",
    utc: bool = True,
    computed: bool = True,
    max_bytes: int | None = None,
) -> ChangeResult:
    """Delete the rows for which `where` is true, or all rows if it is None.

    `where` may qualify columns with the name `table`. With `utc`, its timestamps without a zone are
    in UTC; otherwise they are refused. Conditions that compute are refused unless `computed`,
    because a session's settings and functions may change their meaning. If the files that may hold
    such rows exceed `max_bytes`, the delete is refused and left to Spark.

    Raises InvalidQuery; UnsupportedFeature, by name, for anything that only Spark supports;
    InvalidValue if a cast in the condition fails; CommitConflict.
    """
    condition = None
    if where is not None:
        condition = QueryText(snapshot.schema, table, utc=utc).condition(where)
        if not computed and not is_by_bounds(condition):
            raise UnsupportedFeature("the local engine computes nothing in place of a session")
    scan = Scan(snapshot, (), condition)
    if max_bytes is not None and condition is not None and scan.read_bytes > max_bytes:
        raise UnsupportedFeature("the files that may hold the rows are too large for one process")

    def change(newest: Snapshot) -> ChangeResult:
        # Choose the files again only if another writer has moved the rows.
        again = scan if newest is snapshot else Scan(newest, (), condition)
        return _delete(again, where, dry_run=dry_run)

    return decided_again(snapshot, change)


def decided_again(snapshot: Snapshot, change: Callable[[Snapshot], ChangeResult]) -> ChangeResult:
    """Try a change; retry on a newer version, MAX_DECISIONS tries in all, if its rows moved."""
    for _ in range(MAX_DECISIONS - 1):
        try:
            return change(snapshot)
        except FilesMoved:
            snapshot = snapshot.refresh()
    return change(snapshot)


def _delete(scan: Scan, where: str | None, *, dry_run: bool) -> ChangeResult:
    started = time.perf_counter()
    snapshot, condition = scan.snapshot, scan.condition
    check_not_append_only(snapshot)
    files = NewFiles.of(snapshot, evaluated=True)
    change = RowChange(
        snapshot,
        "DELETE",
        {"predicate": predicate_parameter(where)},
        find_rows(scan),
        lambda add: finds_any(snapshot, condition, add),
        started,
        time.perf_counter(),
    )
    return change.planned(files) if dry_run else change.commit(files)
