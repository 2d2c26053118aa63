"""List what the autoloads of a table have done with each file, and retry failed files."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from variantlake.autoloading.runs import RUN, RunReader
from variantlake.autoloading.state import (
    FileState,
    LoadState,
    names_of_autoloads,
    read_state,
    with_versions,
)
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.transaction.commit import commit
from variantlake.delta.transaction.conflicts import Changes
from variantlake.errors import InvalidValue, did_you_mean
from variantlake.ingest.sources.find_files import pattern_regex
from variantlake.shown import Result, utf8_text

_FIELDS: list[pa.Field[Any]] = [
    pa.field("name", pa.string()),
    pa.field("file", pa.string()),
    pa.field("state", pa.string()),
    pa.field("rows", pa.int64()),
    pa.field("bad_rows", pa.int64()),
    pa.field("version", pa.int64()),
    pa.field("time", pa.timestamp("ms", "UTC")),
    pa.field("size", pa.int64()),
    pa.field("error", pa.string()),
]
LOADS = pa.schema(_FIELDS)
"""A row for each file. `name` is the autoload's, `file` the path from its root, `state` a label of
FileState, `size` the bytes when it was loaded, `error` the reason why it was not."""


@cache
def _labels() -> pa.Array[Any]:
    # Created on first use: Arrow imports pandas when it converts Python values.
    return pa.array([None, *(state.label for state in FileState)], pa.string())


def list_loads(
    snapshot: Snapshot,
    *,
    name: str | None = None,
    file: str | None = None,
    state: str | None = None,
) -> Iterator[pa.Table]:
    """The files of one autoload, or of all, as pieces of LOADS, sorted by autoload and file.

    `file` is a glob pattern, `state` a label of FileState.

    Raises InvalidValue for an unknown autoload or state.
    """
    wanted = None if state is None else _state_of(state)
    matches = None if file is None else re.compile(pattern_regex(file)).fullmatch
    reader = RunReader(snapshot.store)
    for known in _states(snapshot, name):
        for piece in with_versions(known, snapshot).sorted_pieces(reader):
            if wanted is not None:
                piece = piece.filter(pc.equal(piece.column("state"), pa.scalar(wanted, pa.int8())))  # noqa: PLW2901
            names: list[Any] = piece.column("name").to_pylist()
            files = [utf8_text(os.fsdecode(each)) for each in names]
            rows = _listed(known.name, piece, files)
            if matches is not None:
                is_match = [matches(each) is not None for each in files]
                rows = rows.filter(pa.array(is_match, pa.bool_()))
            if rows.num_rows:
                yield rows


def _listed(name: str, piece: pa.Table, files: list[str]) -> pa.Table:
    columns: dict[str, Any] = {
        each: piece.column(each) for each in RUN.names if each in LOADS.names
    }
    columns["name"] = pa.array([name] * piece.num_rows, pa.string())
    columns["file"] = pa.array(files, pa.string())
    columns["state"] = _labels().take(piece.column("state").combine_chunks())
    return pa.table({each: columns[each] for each in LOADS.names}, schema=LOADS)


def _states(snapshot: Snapshot, name: str | None) -> Iterator[LoadState]:
    known = names_of_autoloads(snapshot)
    if name is not None and name not in known:
        raise InvalidValue(
            f"the table has no autoload {name!r}",
            file=snapshot.store.uri,
            hint=did_you_mean(name, known) or f"its autoloads: {', '.join(known) or 'none'}",
        )
    for each in known if name is None else [name]:
        state = read_state(snapshot, each)
        if state is not None:
            yield state


def _state_of(label: str) -> FileState:
    for state in FileState:
        if state.label == label:
            return state
    labels = ", ".join(state.label for state in FileState)
    raise InvalidValue(f"the state of a file is {label!r}", hint=f"one of {labels}")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RetryResult(Result):
    """How many files the next round of an autoload will retry; `version` is the last commit."""

    files_retried: int = 0


def retry_failed(
    snapshot: Snapshot, *, name: str | None = None, file: str | None = None
) -> RetryResult:
    """Mark failed files, so that the next round of their autoload tries them again.

    Makes one commit per autoload. `file` is a glob pattern.

    Raises CommitConflict if the autoload committed a batch meanwhile, else as `list_loads`.
    """
    matches = None if file is None else re.compile(pattern_regex(file)).fullmatch
    started = time.perf_counter()
    reader = RunReader(snapshot.store)
    count = 0
    for known in list(_states(snapshot, name)):
        rows = [
            row | {"state": int(FileState.RETRY), "error": None, "modified": None}
            for piece in known.sorted_pieces(reader)
            for row in piece.filter(
                pc.equal(piece.column("state"), pa.scalar(FileState.FAILED, pa.int8()))
            ).to_pylist()
            if matches is None or matches(utf8_text(os.fsdecode(row["name"]))) is not None
        ]
        if rows:
            snapshot = _commit_retry(snapshot, known, reader, rows)
            count += len(rows)
    return RetryResult(
        version=snapshot.version, files_retried=count, seconds=time.perf_counter() - started
    )


def _commit_retry(
    snapshot: Snapshot, state: LoadState, reader: RunReader, rows: list[dict[str, Any]]
) -> Snapshot:
    now, version = time.time_ns() // 1_000_000, snapshot.version + 1
    changed = [row | {"batch": state.batch + 1, "version": version, "time": now} for row in rows]
    # `listed=0` makes the next listing complete: these names are not after the last one.
    following = with_versions(state, snapshot).next(
        snapshot.store,
        reader,
        pa.Table.from_pylist(changed, schema=RUN),
        after=state.after,
        listed=0,
        ordered=state.ordered,
        version=version,
    )
    record = following.record(state, now)
    commit(
        snapshot,
        Changes(
            operation="RETRY LOADS",
            transactions=record.transactions,
            domains=record.domains,
            parameters={"name": state.name},
            metrics={"numFiles": str(len(rows))},
        ),
    )
    return snapshot.refresh()
