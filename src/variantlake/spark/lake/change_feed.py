"""Reads the change data feed of a table as one query over its versions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import (
    InvalidQuery,
    InvalidValue,
)
from variantlake.expressions.from_python import Condition, TypedPath
from variantlake.feed.commits import version_range
from variantlake.feed.snapshots import change_snapshots
from variantlake.quoting import Parts, quote_string
from variantlake.spark.lake.session import LakeSession
from variantlake.spark.query.references import Target
from variantlake.spark.session.arguments import (
    check_expressions,
)

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def read_changes(
    session: LakeSession,
    snapshot: Snapshot,
    *,
    versions: tuple[int | None, int | None],
    times: tuple[dt.datetime | str | None, dt.datetime | str | None],
    items: Sequence[str | TypedPath],
    where: str | Condition | None,
) -> DataFrame:
    """The changed rows between two versions or times. Raises as `Lake.changes`."""
    since, until = (_since_epoch(session.spark, time) for time in times)
    chosen = version_range(
        snapshot,
        *versions,
        since=None if since is None else -(-since // 1000),
        until=None if until is None else until // 1000,
    )
    check_expressions(items, "what is selected", session.spark)
    if where is not None:
        check_expressions([where], "a condition", session.spark)
    columns = ", ".join(map(str, items)) or "*"
    condition = "" if where is None else f" WHERE ({where})"
    with session.tables.giving(change_snapshots(snapshot, chosen)) as keys:
        named = {f"__vl_changes_{number}": key for number, key in enumerate(keys)}

        def resolve(parts: Parts) -> Target | None:
            key = named.get(parts[0].lower()) if len(parts) == 1 else None
            return None if key is None else Target(key, parts, in_spark=False)

        text = " UNION ALL ".join(
            f"SELECT {columns} FROM {name}{condition}"  # noqa: S608 - the user's own query
            for name in named
        )
        return session.runner.run(text, None, resolve)


def _since_epoch(spark: SparkSession, time: dt.datetime | str | None) -> int | None:
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
    micros: int | None = spark.sql(text).collect()[0][0]
    if micros is None:
        raise InvalidQuery(f"{time!r} is not a timestamp")
    return micros
