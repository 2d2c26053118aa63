"""Finds the version of a table that a DataFrame reads, by the names of our views in its plan.

Filters, joins and views over the DataFrame keep these names. The version is unknown if Spark cuts
the plan off (`checkpoint`, `createDataFrame`), or reads the table itself.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from pyspark.sql import DataFrame

from variantlake.delta.log.identity import replaced
from variantlake.delta.log.snapshot import Snapshot
from variantlake.spark.scan.tables import TableVersion
from variantlake.spark.session.jvm import is_connect, plan_of

_MARK = re.compile(r"__vl_[0-9a-f]{8}_\d+_([0-9a-f]{16})_([0-9a-f]{16})_v(\d+)\b")


def view_mark(table: TableVersion) -> str:
    """Return the suffix that marks a view of this table; empty for a version that the caller chose.

    A caller who overwrites a table with its own older rows means to do so.
    """
    snapshot = table.snapshot
    return "" if table.chosen else f"_{'_'.join(_names(snapshot))}_v{snapshot.version}"


def version_read(frame: DataFrame, snapshot: Snapshot) -> int | None:
    """Return the oldest version of the snapshot's table that a DataFrame reads, None if unknown.

    Raises TableReplaced if it reads another table that was at the location before.
    """
    location, table = _names(snapshot)
    found = [match.groups() for match in _MARK.finditer(_plan(frame))]
    here = [(identity, int(version)) for place, identity, version in found if place == location]
    if any(identity != table for identity, _ in here):
        raise replaced(snapshot.store)
    return min((version for _, version in here), default=None)


def _names(snapshot: Snapshot) -> tuple[str, str]:
    """Short hashes of the table's location and id."""
    texts = (snapshot.store.uri, snapshot.metadata.id)
    return (_short(texts[0]), _short(texts[1]))


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plan(frame: DataFrame) -> str:
    """Return the text of the analysed plan; through Connect, the server's explanation."""
    if is_connect(frame.sparkSession):
        remote: Any = frame
        return str(remote._explain_string(extended=True))  # noqa: SLF001 # as `explain` prints
    return str(plan_of(frame).toString())
