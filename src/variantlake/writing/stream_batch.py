"""Micro-batches of a stream: detect repeated ones, and record each in its commit.

The commit of the rows has a `txn` with the query's id and the batch's number. So stream and table
cannot disagree, and a repeated batch is detected. A streaming query repeats only its last batch: a
smaller number means that its checkpoint is not the one that wrote the table.
Spec: PROTOCOL, "Transaction Identifiers".
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from variantlake.delta.actions.actions import CommitInfo, Transaction, info_of
from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import InvalidValue, LostCheckpoint
from variantlake.writing.commit_record import CommitRecord, find_commit
from variantlake.writing.options.load_options import MAX_LOAD_ID

_LOG = logging.getLogger("variantlake.streaming")

OPERATION = "STREAMING UPDATE"
"""What Delta Spark's history calls a batch of a stream."""

_STREAM, _BATCH = "queryId", "epochId"
_SEARCHED_VERSIONS = 1000
"""How many commits are searched for a batch's, newest first."""


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """One batch of a query into a table.

    `query` is the query's id in the table (the `appId` of `txn`), `number` is the batch's number.
    `stream` is the id that Spark keeps in the query's checkpoint; empty if unknown.
    """

    query: str
    number: int
    stream: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.query, str) or not 0 < len(self.query) <= MAX_LOAD_ID:
            raise InvalidValue(
                f"the query is {self.query!r:.60}", hint=f"a text of 1 to {MAX_LOAD_ID} characters"
            )
        whole = isinstance(self.number, int) and not isinstance(self.number, bool)
        if not whole or not 0 <= self.number < 1 << 63:
            raise InvalidValue(f"the batch id is {self.number!r:.60}", hint="a number from 0 on")

    def version_in(self, snapshot: Snapshot) -> int | None:
        """The version that committed this batch; None if the table does not have it.

        It is the newest version if the log no longer holds that commit.

        Raises LostCheckpoint if the table is ahead of the query, or if a query with another
        checkpoint wrote the batch of this number: its rows may differ from these.
        """
        found = snapshot.transactions.get(self.query)
        if found is None:
            if self.number == 0 and self.query == self.stream:
                _warn_of_others(snapshot, self.query)
            return None
        if found.version < self.number:
            return None
        if found.version > self.number:
            raise self._lost(snapshot, f"the table has its batches up to {found.version}")
        version, written_by = _commit_of(snapshot, found.version, self.query)
        if self.stream and written_by not in {"", self.query, self.stream}:
            raise self._lost(
                snapshot, f"the table has this batch of another checkpoint ({written_by})"
            )
        return version

    def record(self) -> CommitRecord:
        """What the commit records of this batch."""

        def is_stale(snapshot: Snapshot) -> bool:
            found = snapshot.transactions.get(self.query)
            return found is not None and found.version >= self.number

        parameters = {
            "outputMode": "Append",
            _STREAM: self.stream or self.query,
            _BATCH: str(self.number),
        }
        return CommitRecord(
            transactions=(Transaction(self.query, self.number, time.time_ns() // 1_000_000),),
            domains=(),
            is_stale=is_stale,
            version_in=self.version_in,
            provenance={"operation": OPERATION, "operationParameters": parameters},
        )

    def _lost(self, snapshot: Snapshot, why: str) -> LostCheckpoint:
        return LostCheckpoint(
            f"the query {self.query!r} comes with batch {self.number}, but {why}: its checkpoint "
            "was lost or is an old one, or two queries share the name; nothing was written",
            file=snapshot.store.uri,
            hint="start it with the checkpoint that it had. Without one give it another query id, "
            "and begin the source after what the table has: rows that are read again come twice",
        )


def _commit_of(snapshot: Snapshot, batch: int, query: str) -> tuple[int, str]:
    """The version that committed a batch, and its stream id; empty if the log does not tell."""
    oldest = max(-1, snapshot.version - _SEARCHED_VERSIONS)
    found = find_commit(snapshot.store, range(snapshot.version, oldest, -1), query, batch)
    if found is None:
        return snapshot.version, ""
    version, actions = found
    info = info_of(actions)
    return version, _stream_in(info)


def _stream_in(info: CommitInfo | None) -> str:
    parameters = info.fields.get("operationParameters") if info is not None else None
    if info is None or info.operation != OPERATION or not isinstance(parameters, dict):
        return ""
    stream = parameters.get(_STREAM)
    return stream if isinstance(stream, str) else ""


def _warn_of_others(snapshot: Snapshot, query: str) -> None:
    """Warn that a new checkpoint begins in a table that other queries wrote to.

    One of them may be this query with its checkpoint lost.
    """
    others = [each for each in snapshot.transactions if not each.startswith("variantlake.")]
    if others:
        _LOG.warning(
            "%s: the stream %s begins with batch 0, and %d other queries have written here. If "
            "it is one of them whose checkpoint was lost, rows that it reads again come twice; a "
            "stream with a queryId of its own is refused then.",
            snapshot.store.uri,
            query,
            len(others),
        )
