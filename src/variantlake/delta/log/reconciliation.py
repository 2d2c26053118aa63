"""Action reconciliation: what remains of a log when its commits are applied in order.

The state is columns, not objects: a checkpoint's files stay in Arrow, and only the files that later
commits touch are handled one by one. Spec: PROTOCOL, "Action Reconciliation".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import arrow_array, numpy_array
from variantlake.delta.actions.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    Transaction,
    UnknownAction,
    parse_log,
)
from variantlake.delta.log.files.file_keys import (
    KEY_END,
    Key,
    key_of,
    key_text,
    keys_of,
    without_keys,
)
from variantlake.delta.log.files.logical_files import (
    LogicalFiles,
    adds_of,
    files_of,
    one_chunk,
)
from variantlake.delta.log.files.parted_files import PartedFiles, is_unread
from variantlake.delta.log.files.path_index import PathIndex, repeated
from variantlake.errors import MalformedLog, in_file
from variantlake.parquet.stats.fact_columns import Bools
from variantlake.storage.store import Store


@dataclass(frozen=True, slots=True)
class LogState:
    """What a log says at one version.

    `removes` holds the tombstones by key, or is None if the caller did not request them. `protocol`
    and `metadata` are None until an action sets them. `unknown_actions` names the kinds of actions
    that this version does not know: a checkpoint of the state would lose them. `checkpoint` is the
    version of the checkpoint that was read, -1 if all is from commits.
    """

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    files: LogicalFiles = field(default_factory=partial(files_of, ()))
    removes: Mapping[Key, RemoveFile] | None = None
    transactions: Mapping[str, Transaction] = field(default_factory=dict)
    domains: Mapping[str, DomainMetadata] = field(default_factory=dict)
    commit_info: CommitInfo | None = None
    unknown_actions: frozenset[str] = frozenset()
    checkpoint: int = field(default=-1, compare=False)
    index: PathIndex = field(default_factory=PathIndex, compare=False, repr=False)


def read_commit(store: Store, path: str) -> list[Action]:
    """Read the actions of one commit file.

    An empty file gives no actions, as in Delta Spark: such a version changes nothing.

    Raises MalformedLog naming file and line, also for actions that contradict each other (PROTOCOL,
    "Delta Log Entries" under "Additional Requirements").
    """
    file = store.join(path)
    actions = list(parse_log(store.stream(path), file))
    with in_file(file):
        _check_commit(actions)
    return actions


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit: its adds by columns, the keys of these as text, and its other actions."""

    adds: LogicalFiles
    keys: Any
    others: Sequence[Action]


def read_large_commit(store: Store, path: str) -> Commit:
    """Like `read_commit`, but by columns, which is faster for large files."""
    from variantlake.delta.log.commit_reader import read_by_columns

    file = store.join(path)
    adds, others = read_by_columns(store.stream(path), file)
    with in_file(file):
        _check_commit(others)
        commit = Commit(adds, keys_of(adds), others)
        _check_adds(commit)
    return commit


def _check_adds(commit: Commit) -> None:
    """Check the adds as `_check_commit` does, but by columns."""
    keys = commit.keys
    removed = [key_text(key_of(a)) for a in commit.others if isinstance(a, RemoveFile)]
    if removed:
        both = keys.filter(pc.is_in(keys, value_set=arrow_array(removed, pa.string())))
        if len(both):
            path = both[0].as_py().partition(KEY_END)[0]
            raise MalformedLog(f"one commit adds and removes {path!r}")
    # Rare, so compare objects: the same action may occur twice.
    rows = repeated(keys)
    if len(rows):
        _check_commit([*adds_of(commit.adds.take(rows))])


def apply_commits(state: LogState, commits: Iterable[list[Action] | Commit]) -> LogState:
    """Return the state after these commits, oldest first."""
    protocol, metadata, info = state.protocol, state.metadata, state.commit_info
    transactions, domains = dict(state.transactions), dict(state.domains)
    unknown = set(state.unknown_actions)
    changes = _FileChanges(state.removes)
    for commit in commits:
        info = None
        if isinstance(commit, Commit):
            changes.add_all(commit)
        for action in commit.others if isinstance(commit, Commit) else commit:
            match action:
                case AddFile():
                    changes.add(action)
                case RemoveFile():
                    changes.remove(action)
                case Protocol():
                    protocol = action
                case Metadata():
                    metadata = action
                case Transaction():
                    transactions[action.app_id] = action
                case DomainMetadata():
                    domains[action.domain] = action
                case CommitInfo():
                    info = action
                case UnknownAction():
                    unknown.add(action.name)
    index = state.files.index if isinstance(state.files, PartedFiles) else state.index
    files = changes.applied(state.files, index)
    return LogState(
        protocol=protocol,
        metadata=metadata,
        files=files,
        removes=changes.removes,
        transactions=transactions,
        domains={name: domain for name, domain in domains.items() if not domain.removed},
        commit_info=info,
        unknown_actions=frozenset(unknown),
        checkpoint=state.checkpoint,
        index=index if is_unread(files) else index.of(files),
    )


class _FileChanges:
    """Adds and removes in the order of their commits: the last one of each file counts."""

    def __init__(self, removes: Mapping[Key, RemoveFile] | None) -> None:
        self.removes = None if removes is None else dict(removes)
        self._tables: list[LogicalFiles] = []
        self._keys: list[Any] = []
        self._is_add: list[Bools] = []
        # Collects single actions, because a table for each would be slow.
        self._waiting: list[tuple[str, AddFile | None]] = []

    def add(self, add: AddFile) -> None:
        """Add a file to the table."""
        key = key_of(add)
        self._waiting.append((key_text(key), add))
        if self.removes is not None:
            self.removes.pop(key, None)

    def add_all(self, commit: Commit) -> None:
        """Add the files of a commit to the table."""
        self._flush()
        self._append(commit.keys, np.ones(commit.adds.num_rows, np.bool_), commit.adds)
        removed = {key_text(key): key for key in self.removes or ()}
        if self.removes and removed:
            back = commit.keys.filter(
                pc.is_in(commit.keys, value_set=arrow_array([*removed], pa.string()))
            )
            for text in back.to_pylist():
                self.removes.pop(removed[text], None)

    def remove(self, action: RemoveFile) -> None:
        """Remove a file from the table."""
        key = key_of(action)
        self._waiting.append((key_text(key), None))
        if self.removes is not None:
            self.removes[key] = action

    def applied(self, files: LogicalFiles, index: PathIndex) -> LogicalFiles:
        """Return the files after the changes. Batches without changes keep their memory."""
        self._flush()
        if not self._keys:
            return files
        keys, is_add = pa.chunked_array(self._keys, pa.string()), np.concatenate(self._is_add)
        superseded = _superseded(keys)
        added = LogicalFiles.joined(self._tables)
        if superseded[is_add].any():
            added = added.filter(arrow_array(~superseded[is_add]))
        if is_unread(files):
            return files.changed(keys, _merged(added))
        kept = files.of_batches([*without_keys(files, keys, index)])
        return _merged(LogicalFiles.joined([kept, added]))

    def _flush(self) -> None:
        if self._waiting:
            keys, adds = zip(*self._waiting, strict=True)
            is_add = np.array([add is not None for add in adds], np.bool_)
            table = files_of([add for add in adds if add is not None])
            self._append(arrow_array(keys, pa.string()), is_add, table)
            self._waiting = []

    def _append(self, keys: Any, is_add: Bools, files: LogicalFiles) -> None:
        self._keys += keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]
        self._is_add.append(is_add)
        self._tables.append(files)


def _superseded(keys: pa.ChunkedArray[Any]) -> Bools:
    """Return a mask of the rows whose key occurs again in a later row."""
    rows, found = repeated(keys), np.zeros(len(keys), np.bool_)
    if len(rows):
        encoded: Any = one_chunk(keys.take(arrow_array(rows))).dictionary_encode()
        codes = numpy_array(encoded.indices)
        last = np.empty(len(encoded.dictionary), np.int64)
        last[codes] = rows
        found[rows] = last[codes] != rows
    return found


_FEW_ROWS, _MANY_BATCHES = 4096, 8


def _merged(files: LogicalFiles) -> LogicalFiles:
    """Return the same files; joins small batches if there are many."""
    batches = files.listed.to_batches()
    if sum(batch.num_rows < _FEW_ROWS for batch in batches) <= _MANY_BATCHES:
        return files.of_batches(batches)
    small = files.of_batches([batch for batch in batches if batch.num_rows < _FEW_ROWS])
    large = files.of_batches([batch for batch in batches if batch.num_rows >= _FEW_ROWS])
    return LogicalFiles.joined([large, LogicalFiles.of(small.whole().combine_chunks())])


def _check_commit(actions: Sequence[Action]) -> None:
    adds: dict[Key, AddFile] = {}
    removes: set[Key] = set()
    once: set[tuple[str, ...]] = set()
    for action in actions:
        if isinstance(action, AddFile):
            key = key_of(action)
            if adds.setdefault(key, action) != action:
                raise MalformedLog(f"one commit adds {action.path!r} twice")
        elif isinstance(action, RemoveFile):
            removes.add(key_of(action))
        else:
            name = _single(action)
            if name in once:
                raise MalformedLog(f"one commit holds two {' '.join(name)}")
            if name:
                once.add(name)
    if both := removes.intersection(adds):
        raise MalformedLog(f"one commit adds and removes {min(path for path, _ in both)!r}")


def _single(action: Action) -> tuple[str, ...]:
    """Return a name for an action of which a commit may have only one; empty for other actions."""
    match action:
        case Protocol() | Metadata():
            return (action.KEY, "actions")
        case Transaction(name) | DomainMetadata(name):
            return (action.KEY, f"actions of {name}")
    return ()
