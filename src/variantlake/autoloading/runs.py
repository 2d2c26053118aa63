"""Runs: sorted Parquet files that record what an autoload has done with each file.

A batch writes one run with its files, and merges smaller, older runs into it. So an autoload of n
files has about log2(n) runs, and the cost of a batch depends on its own size, not on the number of
known files. If several runs have a name, the newest one counts.
"""

from __future__ import annotations

import bisect
import hashlib
import io
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from variantlake.errors import MalformedLog, MissingSource
from variantlake.storage.store import Store

_FIELDS: list[pa.Field[Any]] = [
    pa.field("name", pa.binary(), nullable=False),
    pa.field("size", pa.int64(), nullable=False),
    pa.field("tag", pa.uint64(), nullable=False),
    pa.field("state", pa.int8(), nullable=False),
    pa.field("rows", pa.int64(), nullable=False),
    pa.field("bad_rows", pa.int64(), nullable=False),
    pa.field("batch", pa.int64(), nullable=False),
    pa.field("version", pa.int64(), nullable=False),
    pa.field("time", pa.timestamp("ms", "UTC"), nullable=False),
    pa.field("error", pa.string()),
    pa.field("modified", pa.int64()),
]
RUN = pa.schema(_FIELDS)
"""A row for each file. `name` is its path from the source's root, as bytes with `/`; `size` in
bytes and `tag` tell whether the file is unchanged (see `listing`). `version` is the one that the
batch expected to commit: `Run` corrects it for its newest batch. `modified` is when the file last
changed, in milliseconds since the epoch; null for a file to retry, and in runs of older releases.
"""

_PIECE_ROWS = 1 << 16
"""Rows of a run in memory at a time."""

MAX_RUN_BYTES = 1 << 30
"""Our limit on a run's size by the log."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run, as the log refers to it.

    `first` and `last` are its least and greatest name. `batch` is the newest batch in it, `version`
    the version that committed it: the expected one until a later batch has checked it (`sure`).
    `until` is the newest `modified` in it, None if one of them is null.
    """

    path: str
    rows: int
    size: int
    sha256: str
    first: bytes
    last: bytes
    batch: int
    version: int
    sure: bool = False
    until: int | None = None


class RunReader:
    """Reads runs, and caches the bytes of recent ones: each round reads the same runs."""

    def __init__(self, store: Store, cache_bytes: int = 64 << 20) -> None:
        self._store = store
        self._cache_bytes = cache_bytes
        self._cache: dict[str, bytes] = {}

    def pieces(self, run: Run) -> Iterator[pa.Table]:
        """The rows of a run sorted by name, a piece at a time, with corrected versions.

        Raises MalformedLog if the file is missing, or is not the one that the log names.
        """
        data = self._bytes(run)
        try:
            file = pq.ParquetFile(pa.BufferReader(data))
            for batch in file.iter_batches(_PIECE_ROWS):
                piece = pa.Table.from_batches([batch])
                if piece.num_rows:
                    yield _with_version(_with_modified(piece), run)
        except (pa.ArrowException, OSError, KeyError) as error:
            raise self._damaged(run, f"cannot be read: {error}") from error

    def _bytes(self, run: Run) -> bytes:
        cached = self._cache.get(run.path)
        if cached is not None:
            return cached
        try:
            data = self._store.read(run.path)
        except MissingSource as error:
            raise self._damaged(run, "is missing") from error
        if len(data) != run.size or hashlib.sha256(data).hexdigest() != run.sha256:
            raise self._damaged(run, "is not the file that was written")
        if len(data) <= self._cache_bytes:
            room = self._cache_bytes - len(data)
            while self._cache and sum(map(len, self._cache.values())) > room:
                self._cache.pop(next(iter(self._cache)))
            self._cache[run.path] = data
        return data

    def _damaged(self, run: Run, what: str) -> MalformedLog:
        return MalformedLog(
            f"a file with the names of what was loaded {what}",
            file=self._store.join(run.path),
            hint="restore it from a copy; an autoload under another name would load all files"
            " again",
        )


def merged(streams: Sequence[Iterator[pa.Table]]) -> Iterator[pa.Table]:
    """Merge runs, given oldest first, into pieces sorted by name, with each name once.

    Holds one piece of each run in memory.
    """
    heads: dict[int, pa.Table] = {}
    for rank, stream in enumerate(streams):
        _refill(heads, rank, stream)
    while heads:
        bound = min(_name(head, head.num_rows - 1) for head in heads.values())
        parts = []
        for rank in sorted(heads):
            cut = upper_bound(heads[rank], bound)
            if cut:
                parts.append(heads[rank].slice(0, cut))
                heads[rank] = heads[rank].slice(cut)
            if not heads[rank].num_rows:
                _refill(heads, rank, streams[rank])
        yield _newest(parts)


def _refill(heads: dict[int, pa.Table], rank: int, stream: Iterator[pa.Table]) -> None:
    heads.pop(rank, None)
    piece = next((each for each in stream if each.num_rows), None)
    if piece is not None:
        heads[rank] = piece.combine_chunks()


def _newest(parts: Sequence[pa.Table]) -> pa.Table:
    """Rows of several runs, given oldest first, sorted by name, with the last row of each name."""
    if len(parts) == 1:
        return parts[0]
    ranks = np.repeat(np.arange(len(parts)), [part.num_rows for part in parts])
    together = pa.concat_tables(parts).append_column("rank", pa.array(ranks))
    order = pc.sort_indices(together, sort_keys=[("name", "ascending"), ("rank", "descending")])
    together = together.take(order).drop_columns(["rank"]).combine_chunks()
    names: Any = together.column("name")
    again: Any = pc.equal(names.slice(1), names.slice(0, len(names) - 1))
    first = np.ones(len(names), np.bool_)
    first[1:] = ~again.to_numpy()
    return together.filter(pa.array(first)).combine_chunks()


def upper_bound(table: pa.Table, name: bytes) -> int:
    """How many of the sorted rows have a name up to this one."""
    return bisect.bisect_right(range(table.num_rows), name, key=lambda row: _name(table, row))


def _name(table: pa.Table, row: int) -> bytes:
    name: bytes = table.column("name")[row].as_py()
    return name


def _with_modified(piece: pa.Table) -> pa.Table:
    if "modified" in piece.column_names:
        return piece
    return piece.append_column(RUN.field("modified"), pa.nulls(piece.num_rows, pa.int64()))


def remembered(piece: pa.Table, floor: int) -> pa.Table:
    """The rows of files changed at or after `floor`, in milliseconds since the epoch, or null."""
    is_recent: Any = pc.greater_equal(piece.column("modified"), pa.scalar(floor, pa.int64()))
    return piece.filter(pc.fill_null(is_recent, True))


def _with_version(piece: pa.Table, run: Run) -> pa.Table:
    newest: Any = pc.equal(piece.column("batch"), pa.scalar(run.batch, pa.int64()))
    version: Any = pc.if_else(newest, pa.scalar(run.version, pa.int64()), piece.column("version"))
    return piece.set_column(piece.column_names.index("version"), RUN.field("version"), version)


def write_run(
    store: Store, folder: str, pieces: Iterable[pa.Table], batch: int, version: int
) -> Run:
    """Write at least one row, sorted by name, as a new durable run.

    Delta encoding stores common prefixes of names, most of their bytes, once.
    """
    buffer = io.BytesIO()
    rows, first, last = 0, b"", b""
    until: int | None = 0
    numbers = [field.name for field in RUN if pa.types.is_integer(field.type)]
    with pq.ParquetWriter(
        buffer,
        RUN,
        compression="zstd",
        use_dictionary=False,
        column_encoding={"name": "DELTA_BYTE_ARRAY"}
        | {name: "DELTA_BINARY_PACKED" for name in numbers if name not in ("tag", "state")},
        write_statistics=False,
    ) as writer:
        for piece in pieces:
            table = piece.select(RUN.names).cast(RUN)
            if not rows:
                first = _name(table, 0)
            rows += table.num_rows
            last = _name(table, table.num_rows - 1)
            newest: Any = pc.max(table.column("modified"), skip_nulls=False).as_py()
            until = None if until is None or newest is None else max(until, newest)
            writer.write_table(table, row_group_size=_PIECE_ROWS)
    data = buffer.getvalue()
    path = f"{folder}/{batch:010d}-{uuid.uuid4().hex}.parquet"
    store.put(path, data)
    digest = hashlib.sha256(data).hexdigest()
    return Run(path, rows, len(data), digest, first, last, batch, version, until=until)


def appended(
    store: Store,
    reader: RunReader,
    runs: Sequence[Run],
    rows: pa.Table,
    *,
    folder: str,
    batch: int,
    version: int,
    floor: int = 0,
) -> tuple[Run, ...]:
    """The runs after a batch: merges `rows`, sorted by name, and small older runs into one.

    `version` is the one that the batch expects to commit. Drops records of files changed before
    `floor` from the merged runs, and runs that have only such records.
    """
    older = [run for run in runs if run.until is None or run.until >= floor]
    small: list[Run] = []
    count = rows.num_rows
    while older and older[-1].rows < 2 * count:
        count += older[-1].rows
        small.insert(0, older.pop())
    streams = [(remembered(piece, floor) for piece in reader.pieces(run)) for run in small]
    return (*older, write_run(store, folder, merged([*streams, iter([rows])]), batch, version))
