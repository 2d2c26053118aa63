"""Readers of the table as the source of a stream, driven as Spark drives them.

A query's checkpoint outlives its processes: it says to where it has read, and where the batch ends
that is under way. Whoever goes on reads that same batch.
"""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.model import Work
from tests.simulation.readers import SELECT
from tests.simulation.rows import Row, difference
from tests.simulation.scenario import Op
from tests.simulation.session import Session
from tests.simulation.world import Violation
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.protocol.features import SCAN_FEATURES
from variantlake.errors import MissingSource
from variantlake.spark.streaming.offsets import NONE_READ, Offset
from variantlake.spark.streaming.source import TableStream
from variantlake.spark.streaming.source_options import StreamOptions
from variantlake.spark.streaming.stream_columns import stream_schema

_COLUMNS = ", ".join(SELECT)
_FEED = f"{_COLUMNS}, _change_type, _commit_version"
_RESTARTS = 0.3
"""So often a query is started again when it is known where a batch ends."""
_MOST = 8
"""Batches that one piece of work reads."""

Rows = Counter[tuple[int, Row]]


@dataclass(slots=True)
class Checkpoint:
    """What outlives a query's processes. `rows` are those that its batches have given so far."""

    options: dict[str, str]
    start: dict[str, Any]
    first: Offset
    end: dict[str, Any] | None = None
    rows: Rows = field(default_factory=Counter)

    @property
    def follows_changes(self) -> bool:
        """Whether it reads the change of each row, and not what versions append."""
        return "readChangeFeed" in self.options


def subscribe(session: Session, op: Op, _work: Work) -> None:
    """Some batches of a query that reads what each version appends, or how it changes rows."""
    checkpoint = session.checkpoint
    if checkpoint is not None and not _is_there(session, checkpoint):
        checkpoint = session.checkpoint = None  # it was away for too long
    if checkpoint is None:
        session.stream = None
        options = _options(session, op)
        start = _stream(session, options).initialOffset()
        checkpoint = session.checkpoint = Checkpoint(options, start, Offset.of(start))
        session.model.checkpoints.append(checkpoint)
        if not checkpoint.first.is_starting and checkpoint.follows_changes:
            checkpoint.rows = Counter(session.model.rows.at(checkpoint.first.version - 1).items())
    for _ in range(_MOST):
        if not follow(session, checkpoint):
            return


def _options(session: Session, op: Op) -> dict[str, str]:
    options = {"path": session.location, "maxFilesPerTrigger": str(1 + op.b % 3)}
    if session.world.scenario.keeps_changes and op.a % 3:
        options |= {"readChangeFeed": "true", "select": _FEED}
    else:
        options |= {"skipChangeCommits": "true", "select": _COLUMNS}
    return options | ({"startingVersion": "latest"} if op.b % 5 == 0 else {})


def _stream(session: Session, options: dict[str, str]) -> TableStream:
    """The source of this process, which keeps it."""
    options = {**options, "path": session.location}
    if session.stream is None or session.stream.options.location != session.location:
        chosen = StreamOptions.of(options, "UTC")
        opened = Snapshot.read(session.location, applies=SCAN_FEATURES)
        schema = stream_schema(opened, chosen)
        session.stream = TableStream(chosen, lambda: opened, schema, {})
    return session.stream


def _is_there(session: Session, checkpoint: Checkpoint) -> bool:
    """Whether what comes next can still be read."""
    offset = Offset.of(checkpoint.start)
    before = offset.version if offset.is_starting else offset.version - 1
    return session.model.is_young(max(before, 0))


def follow(session: Session, checkpoint: Checkpoint) -> bool:
    """Read one batch; whether there was one. Raises Violation for rows that should not be."""
    stream = _stream(session, checkpoint.options)
    lasting = _is_there(session, checkpoint)
    try:
        if checkpoint.end is None:
            end = stream.next_offset(checkpoint.start, limited=True)
            if end == checkpoint.start:
                _check(session, checkpoint)
                return False
            checkpoint.end = end
            if session.world.chance.random() < _RESTARTS:
                session.stream = None
                stream = _stream(session, checkpoint.options)
        rows = _batch(stream, checkpoint.start, checkpoint.end)
    except MissingSource:
        if lasting:
            raise
        session.checkpoint = None
        return False
    if checkpoint.follows_changes:
        _apply(checkpoint, rows)
    else:
        checkpoint.rows.update(map(_item, rows))
    checkpoint.start, checkpoint.end = checkpoint.end, None
    _check(session, checkpoint)
    return True


def follow_all(checkpoint: Checkpoint, session: Session, _op: Op, _work: Work) -> None:
    """Read what is left, in a new process; nothing if that was away for too long."""
    session.stream = None
    while _is_there(session, checkpoint) and follow(session, checkpoint):
        pass


def _batch(stream: TableStream, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a batch, as tasks in other processes read them."""
    parts = [pickle.loads(pickle.dumps(part)) for part in stream.partitions(start, end)]  # noqa: S301 - our own
    return [row for part in parts for batch in stream.read(part) for row in batch.to_pylist()]


def _item(row: dict[str, Any]) -> tuple[int, Row]:
    return row["id"], (row["val"], row["v"])


def _apply(checkpoint: Checkpoint, rows: list[dict[str, Any]]) -> None:
    """Change the rows as a batch of the change feed says, version by version."""
    for version in sorted({row["_commit_version"] for row in rows}):
        those = [row for row in rows if row["_commit_version"] == version]
        for kinds, change in (
            (("delete", "update_preimage"), -1),
            (("insert", "update_postimage"), 1),
        ):
            for row in those:
                if row["_change_type"] in kinds:
                    item = _item(row)
                    checkpoint.rows[item] += change
                    if checkpoint.rows[item] not in (0, 1):
                        raise Violation(f"a stream has row {item} of version {version} twice")
    checkpoint.rows += Counter()  # those that are gone


def _check(session: Session, checkpoint: Checkpoint) -> None:
    """Raise Violation unless all versions before the offset have given their rows, once."""
    offset = Offset.of(checkpoint.start)
    if offset == checkpoint.first:
        return
    is_whole = offset.index == NONE_READ
    expected = _expected(session, checkpoint, offset.version - is_whole)
    found = checkpoint.rows
    if is_whole and found != expected:
        what = difference(dict(expected), dict(found)) or "some come twice"
        raise Violation(f"a stream that has read version {offset.version - 1}: {what}")
    if not is_whole and found - expected:
        raise Violation(
            f"a stream within version {offset.version} has {list(found - expected)[:3]}"
        )


def _expected(session: Session, checkpoint: Checkpoint, last: int) -> Rows:
    """The rows that all versions from the first one on give."""
    model, first = session.model, checkpoint.first
    if checkpoint.follows_changes:
        return Counter(model.rows.at(last).items())
    expected: Rows = Counter()
    if first.is_starting:
        expected.update(model.rows.at(first.version).items())
    for number in range(first.version + first.is_starting, last + 1):
        if model.versions[number].appends:
            rows = model.rows.at(number)
            expected.update((key, rows[key]) for key in model.rows.new_in(number))
    return expected
