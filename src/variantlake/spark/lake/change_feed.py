"""Read the change data feed of a table as one query over its versions."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from variantlake.delta.log.snapshot import Snapshot
from variantlake.expressions.from_python import Expr
from variantlake.feed.commits import version_range
from variantlake.feed.snapshots import change_snapshots
from variantlake.quoting import Parts
from variantlake.spark.lake.session import LakeSession
from variantlake.spark.query.names import Target
from variantlake.spark.session.arguments import (
    check_expressions,
)
from variantlake.units import Time, milliseconds


def read_changes(
    session: LakeSession,
    snapshot: Snapshot,
    *,
    versions: tuple[int | None, int | None],
    times: tuple[Time | None, Time | None],
    items: Sequence[str | Expr],
    where: str | Expr | None,
) -> DataFrame:
    """Return the changed rows between two versions or times. Raises as `Lake.changes`."""
    since, until = times
    chosen = version_range(
        snapshot,
        *versions,
        # Times of versions are whole milliseconds, so round the start up.
        since=None if since is None else milliseconds("starting_timestamp", since, up=True),
        until=None if until is None else milliseconds("ending_timestamp", until),
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
