"""Reading what changed between versions of a table, in this process."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from variantlake.delta.log.identity import check_before_read
from variantlake.delta.log.time_travel import epoch_milliseconds
from variantlake.expressions.from_python import Condition, TypedPath
from variantlake.feed.commits import version_range
from variantlake.feed.scan import ChangeScan
from variantlake.feed.snapshots import change_snapshots
from variantlake.scan.table_scan import Scan
from variantlake.sql.select import QueryText
from variantlake.table.changes import TableChanges


class TableChangeFeed(TableChanges):
    """The part of `Table` that reads changes."""

    __slots__ = ()

    def changes(
        self,
        from_version: int | None = None,
        to_version: int | None = None,
        *,
        from_timestamp: dt.datetime | None = None,
        to_timestamp: dt.datetime | None = None,
        select: str | TypedPath | Sequence[str | TypedPath] = "*",
        where: str | Condition | None = None,
    ) -> ChangeScan:
        """The rows that versions inserted, deleted and updated: the change data feed.

        Each row has `_change_type` (`insert`, `delete`, `update_preimage`, `update_postimage`),
        `_commit_version` and `_commit_timestamp` after the table's columns. Files are skipped by
        bounds and paths are read from columns, as in `scan`.

        Args:
            from_version: The first version whose changes are wanted.
            to_version: The last one; this table's version if None.
            from_timestamp: Instead of `from_version`: begins with the first version at or after
                this time. A time without a zone is in UTC.
            to_timestamp: Instead of `to_version`: ends with the last version at or before it.
            select: Columns and paths, as in `scan`; the three columns as well.
            where: A condition, as in `scan`; over the three columns as well.

        Raises:
            InvalidQuery: No range, or an empty one; text as in `scan`.
            MissingSource: A version that does not exist, or is not in the log any more; while rows
                are read, a file that vacuum has removed.
            UnsupportedFeature: A version of the range recorded no changes
                (`delta.enableChangeDataFeed`), or its schema cannot be read as the last one.
        """
        check_before_read(self.snapshot)
        versions = version_range(
            self.snapshot,
            from_version,
            to_version,
            # Versions have no parts of a millisecond: a beginning is rounded up.
            since=None if from_timestamp is None else epoch_milliseconds(from_timestamp, up=True),
            until=None if to_timestamp is None else epoch_milliseconds(to_timestamp),
        )
        snapshots = change_snapshots(self.snapshot, versions)
        text = QueryText(snapshots[0].schema)
        items = text.items(select)
        condition = None if where is None else text.condition(str(where))
        return ChangeScan(tuple(Scan(each, items, condition) for each in snapshots))
