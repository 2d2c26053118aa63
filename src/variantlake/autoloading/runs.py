"""Runs: sorted files of names beside the log, which say what an autoload has done with each file.

A batch writes one run of its own files, and takes smaller ones before it into the new one. So an
autoload of n files has about log2(n) runs, and a batch costs what it holds, not what is known
already. Of a name that stands in several runs the newest counts.
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
"""A row for each file. `name` are the bytes of its path from the source's root, with `/`; `size` in
bytes and `tag` tell whether it is still the same (`listing`). `version` is the one that the batch
was meant to be: `Run` may know better for its newest batch. `modified` is when the file changed
last, in milliseconds since the epoch; null for one that is to be tried again, and in runs of older
versions."""

_PIECE_ROWS = 1 << 16
"""Rows of a run that are in memory at a time."""

MAX_RUN_BYTES = 1 << 30
"""Our limit on a run's size as the log states it."""


@dataclass(frozen=True, slots=True)
class Run:
    """One file of names, as the log refers to it.

    `first` and `last` are the least and the greatest name. `batch` is the newest batch in it, which
    was committed as `version`; until a later batch has looked (`sure`), that is what it was meant
    to be. `until` is the newest `modified` in it, None if one of them is null.
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
    """Reads runs; the bytes of the last ones stay in memory, as rounds read the same again."""

    def __init__(self, store: Store, kept_bytes: int = 64 << 20) -> None:
        self._store = store
        self._kept_bytes = kept_bytes
        self._kept: dict[str, bytes] = {}

    def pieces(self, run: Run) -> Iterator[pa.Table]:
        """The rows of a run in the order of names, a piece at a time; versions are put right.

        Raises MalformedLog if the file is missing or not the one that the log means.
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
        known = self._kept.get(run.path)
        if known is not None:
            return known
        try:
            data = self._store.read(run.path)
        except MissingSource as error:
            raise self._damaged(run, "is missing") from error
        if len(data) != run.size or hashlib.sha256(data).hexdigest() != run.sha256:
            raise self._damaged(run, "is not the file that was written")
        if len(data) <= self._kept_bytes:
            while self._kept and sum(map(len, self._kept.values())) + len(data) > self._kept_bytes:
                self._kept.pop(next(iter(self._kept)))
            self._kept[run.path] = data
        return data

    def _damaged(self, run: Run, what: str) -> MalformedLog:
        return MalformedLog(
            f"a file with the names of what was loaded {what}",
            file=self._store.join(run.path),
            hint="restore it from a copy; an autoload under another name would load all files"
            " again",
        )


def merged(streams: Sequence[Iterator[pa.Table]]) -> Iterator[pa.Table]:
    """The rows of several runs, oldest first, as pieces in the order of names, each name once.

    Memory is that of a piece of each run.
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
    """Rows of several runs, oldest first, sorted by name; of each name the last."""
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
    """How many of the sorted rows have names up to this one."""
    return bisect.bisect_right(range(table.num_rows), name, key=lambda row: _name(table, row))


def _name(table: pa.Table, row: int) -> bytes:
    name: bytes = table.column("name")[row].as_py()
    return name


def _with_modified(piece: pa.Table) -> pa.Table:
    if "modified" in piece.column_names:
        return piece
    return piece.append_column(RUN.field("modified"), pa.nulls(piece.num_rows, pa.int64()))


def remembered(piece: pa.Table, floor: int) -> pa.Table:
    """The rows of files that did not change before `floor`, in milliseconds since the epoch."""
    young: Any = pc.greater_equal(piece.column("modified"), pa.scalar(floor, pa.int64()))
    return piece.filter(pc.fill_null(young, True))


def _with_version(piece: pa.Table, run: Run) -> pa.Table:
    newest: Any = pc.equal(piece.column("batch"), pa.scalar(run.batch, pa.int64()))
    version: Any = pc.if_else(newest, pa.scalar(run.version, pa.int64()), piece.column("version"))
    return piece.set_column(piece.column_names.index("version"), RUN.field("version"), version)


def write_run(
    store: Store, folder: str, pieces: Iterable[pa.Table], batch: int, version: int
) -> Run:
    """Write rows, sorted by name, as a run of its own, durable; at least one row.

    Names compress by their common prefixes, which hold most of their bytes.
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
    """The runs after a batch: `rows`, sorted by name, and small runs before them, become one.

    `version` is the one that the batch is meant to be. Files that changed before `floor` are left
    out of the runs that are written anew, and so are runs that hold no other ones.
    """
    kept = [run for run in runs if run.until is None or run.until >= floor]
    taken: list[Run] = []
    count = rows.num_rows
    while kept and kept[-1].rows < 2 * count:
        count += kept[-1].rows
        taken.insert(0, kept.pop())
    streams = [(remembered(piece, floor) for piece in reader.pieces(run)) for run in taken]
    return (*kept, write_run(store, folder, merged([*streams, iter([rows])]), batch, version))
