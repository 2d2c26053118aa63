"""What every handle of a table has: its version, and the newest one that it has seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import pyarrow as pa

from variantlake.delta.actions.actions import Protocol
from variantlake.delta.log.identity import check_before_read, check_same_table
from variantlake.delta.log.snapshot import HistoryEntry, Snapshot
from variantlake.delta.schema.table_schema import StructType
from variantlake.engine.prepared import PreparedQueries
from variantlake.errors import InvalidValue
from variantlake.scan.decoded_log import DecodedLog
from variantlake.shown import Shown


@dataclass(frozen=True, slots=True, repr=False)
class TableHandle(Shown):
    """A Delta table at one version.

    `snapshot` is the state that the log gives for the version; it never changes.
    """

    snapshot: Snapshot
    _latest: _Latest = field(init=False, repr=False, compare=False)
    _decoded: DecodedLog = field(init=False, repr=False, compare=False, default_factory=DecodedLog)
    _prepared: PreparedQueries = field(
        init=False, repr=False, compare=False, default_factory=PreparedQueries
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "_latest", _Latest(self.snapshot))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.uri!r}, version={self.version})"

    @property
    def uri(self) -> str:
        """Where the table is: an absolute path or a URL."""
        return self.snapshot.store.uri

    @property
    def version(self) -> int:
        """The version that this is; the first of a table is 0."""
        return self.snapshot.version

    @property
    def schema(self) -> StructType:
        """The columns by their names, with the partition columns, in the table's order.

        `schema.to_arrow()` gives them as Arrow's: VARIANT is struct<metadata: binary, value:
        binary>. Spec: Delta protocol, "Schema Serialization Format".
        """
        return self.snapshot.schema

    @property
    def protocol(self) -> Protocol:
        """Versions and features that readers and writers need.

        Spec: Delta protocol, "Protocol Evolution", "Table Features".
        """
        return self.snapshot.protocol

    @property
    def properties(self) -> dict[str, str]:
        """The table properties, as texts by name: Delta's, ours (`variantlake.…`) and the user's.

        A property that nobody has set is not there. Spec: Delta protocol, "Change Metadata".
        """
        return self.snapshot.properties

    def files(self) -> pa.Table:
        """One row for each data file of this version, as its `add` action in the log says it.

        Columns are the action's fields (Delta protocol, "Add File and Remove File"), named in
        snake_case, among them:

        - `path`: as the log has it: relative to the table, or a URL.
        - `size` in bytes, `modification_time` in milliseconds since 1970 in UTC.
        - `partition_values`: texts by column; NULL is NULL.
        - `stats`: the statistics as JSON text.
        - `tags`, `deletion_vector`, `base_row_id`: NULL if the action has none.
        """
        return self.snapshot.files

    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """The commits up to this version that the log still holds, newest first.

        `limit` is how many at the most, None for all. Times are in milliseconds since 1970 in UTC.
        Spec: Delta protocol, "Commit Provenance Information".

        Raises TableReplaced if another table is at the location by now, InvalidValue for a limit
        below 0.
        """
        check_limit(limit)
        check_before_read(self.snapshot)
        return self.snapshot.history(limit)

    def refresh(self) -> Self:
        """The newest version of the table at the location.

        Where it was removed and made again, that is the new one's. This handle stays as it is.

        Raises NotADeltaTable if it was removed, MalformedLog and UnsupportedFeature for a log
        that cannot be read, StoreFailed.
        """
        return type(self)(self._latest.snapshot.refresh())

    def _newest(self) -> Snapshot:
        """What a write is decided on. Raises TableReplaced."""
        newest = self._latest.snapshot.refresh()
        check_same_table(self.snapshot, newest)
        self._latest.snapshot = newest
        return newest


def check_limit(limit: int | None) -> None:
    """Raise InvalidValue for what is not a number of rows."""
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        raise InvalidValue(f"the limit is {limit!r}", hint="a whole number from 0 on; None for all")


@dataclass(slots=True)
class _Latest:
    """The newest version that a handle has seen: it need not be read again for the next write."""

    snapshot: Snapshot
