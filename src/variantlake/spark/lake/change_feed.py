"""Reading what changed between versions of a table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from pyspark.sql import DataFrame

from variantlake.errors import InvalidQuery, InvalidValue
from variantlake.expressions.from_python import Condition, TypedPath
from variantlake.feed.commits import version_range
from variantlake.feed.snapshots import change_snapshots
from variantlake.quoting import Parts, quote_string
from variantlake.spark.lake.queries import LakeQueries
from variantlake.spark.query.references import Target
from variantlake.spark.query.table_locations import Location
from variantlake.spark.session.arguments import check_expressions

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class LakeChangeFeed(LakeQueries):
    """The part of `Lake` that reads changes."""

    def changes(
        self,
        table: Location,
        from_version: int | None = None,
        to_version: int | None = None,
        *,
        from_timestamp: dt.datetime | str | None = None,
        to_timestamp: dt.datetime | str | None = None,
        select: str | TypedPath | Sequence[str | TypedPath] = "*",
        where: str | Condition | None = None,
    ) -> DataFrame:
        """The rows that versions of a table brought, took and changed: the change data feed.

        Each row has `_change_type` (`insert`, `delete`, `update_preimage`, `update_postimage`),
        `_commit_version` and `_commit_timestamp` behind the table's columns. Delta Spark's jar is
        not needed.

        Args:
            table: Its name, path or URL, as for `read`.
            from_version: The first version whose changes are wanted.
            to_version: The last one; the newest if None.
            from_timestamp: Instead of a first version: the first one that is not older. Text, and
                a time without a zone, is in the session's time zone.
            to_timestamp: Instead of a last version: the last one that is not newer.
            select: Columns and paths, as in a SELECT list of Spark; the three columns as well.
            where: A condition, as after WHERE. Files are skipped by it here, and not by a `filter`
                on the result.

        Raises:
            InvalidQuery: No range, or an empty one; text that Spark does not take.
            MissingSource: A version that does not exist, or is not in the log any more.
            UnsupportedFeature: A version of the range recorded no changes
                (`delta.enableChangeDataFeed`), or its schema cannot be read as the last one.
        """
        snapshot = self._snapshot(table)
        since, until = self._since_epoch(from_timestamp), self._since_epoch(to_timestamp)
        versions = version_range(
            snapshot,
            from_version,
            to_version,
            since=None if since is None else -(-since // 1000),
            until=None if until is None else until // 1000,
        )
        items = [select] if isinstance(select, str | TypedPath) else list(select)
        check_expressions(items, "what is selected", self._spark)
        if where is not None:
            check_expressions([where], "a condition", self._spark)
        columns = ", ".join(map(str, items)) or "*"
        condition = "" if where is None else f" WHERE ({where})"
        with self._tables.giving(change_snapshots(snapshot, versions)) as keys:
            named = {f"__vl_changes_{number}": key for number, key in enumerate(keys)}

            def resolve(parts: Parts) -> Target | None:
                key = named.get(parts[0].lower()) if len(parts) == 1 else None
                return None if key is None else Target(key, parts, in_spark=False)

            text = " UNION ALL ".join(
                f"SELECT {columns} FROM {name}{condition}"  # noqa: S608 - the user's own query
                for name in named
            )
            return self._runner.run(text, None, resolve)

    def _since_epoch(self, time: dt.datetime | str | None) -> int | None:
        """A time in microseconds since the epoch, by the session's time zone."""
        if time is None:
            return None
        if isinstance(time, dt.datetime):
            if time.tzinfo is not None:
                return (time - _EPOCH) // dt.timedelta(microseconds=1)
            time = time.isoformat(" ", "microseconds")
        if not isinstance(time, str):
            raise InvalidValue(f"a time is a datetime or text, not {type(time).__name__}")
        text = f"SELECT unix_micros(try_cast({quote_string(time)} AS TIMESTAMP))"
        micros: int | None = self._spark.sql(text).collect()[0][0]
        if micros is None:
            raise InvalidQuery(f"{time!r} is not a timestamp")
        return micros
