"""Action reconciliation: what remains of a log when its commits are applied in order.

The state is columns, not objects: a checkpoint's files stay in Arrow, and only the files that later
commits touch are looked at one by one. Spec: PROTOCOL, "Action Reconciliation".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from variantlake.delta.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    Transaction,
    parse_log,
)
from variantlake.delta.files import FILES, files_of, values, vector_id
from variantlake.delta.locations import decode_path, decoded_paths
from variantlake.delta.store import Store
from variantlake.errors import MalformedLog

Key = tuple[str, str | None]
"""A logical file: its decoded path and the id of its deletion vector."""


@dataclass(frozen=True, slots=True)
class State:
    """What a log says at one version.

    `removes` holds the tombstones by key where they were asked for, else None. `protocol` and
    `metadata` are None in the state before the first commit only.
    """

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    files: pa.Table = field(default_factory=FILES.empty_table)
    removes: Mapping[Key, RemoveFile] | None = None
    transactions: Mapping[str, Transaction] = field(default_factory=dict)
    domains: Mapping[str, DomainMetadata] = field(default_factory=dict)
    commit_info: CommitInfo | None = None


def read_commit(store: Store, path: str) -> list[Action]:
    """The actions of one commit file.

    Raises MalformedLog naming file and line, also for an empty file and for actions that
    contradict each other (PROTOCOL, "Delta Log Entries" under "Additional Requirements").
    """
    file = store.join(path)
    actions = list(parse_log(store.stream(path), file))
    if not actions and store.size(path) == 0:
        raise MalformedLog("the commit is empty", file=file, hint="was its writer interrupted?")
    _check_commit(actions, file)
    return actions


def apply_commits(state: State, commits: Iterable[list[Action]]) -> State:
    """The state after these commits, oldest first."""
    protocol, metadata, info = state.protocol, state.metadata, state.commit_info
    transactions, domains = dict(state.transactions), dict(state.domains)
    touched: dict[Key, AddFile | None] = {}
    removes = None if state.removes is None else dict(state.removes)
    for actions in commits:
        info = None
        for action in actions:
            match action:
                case AddFile():
                    key = _key(action)
                    touched[key] = action
                    if removes is not None:
                        removes.pop(key, None)
                case RemoveFile():
                    key = _key(action)
                    touched[key] = None
                    if removes is not None:
                        removes[key] = action
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
    return State(
        protocol=protocol,
        metadata=metadata,
        files=_apply_files(state.files, touched),
        removes=removes,
        transactions=transactions,
        domains={name: domain for name, domain in domains.items() if not domain.removed},
        commit_info=info,
    )


def check_unique_paths(files: pa.Table) -> None:
    """Raise MalformedLog unless each data file stands in the state once, with one vector."""
    paths = decoded_paths(files["path"])
    if pc.count_distinct(paths).as_py() != len(paths):
        counts = values(pc.value_counts(paths.combine_chunks()))
        twice = next(item["values"] for item in counts if item["counts"] > 1)
        raise MalformedLog(f"file {twice!r} is in the table twice, with two deletion vectors")


def _apply_files(files: pa.Table, touched: Mapping[Key, AddFile | None]) -> pa.Table:
    if not touched:
        return files
    added = [add for add in touched.values() if add is not None]
    kept = files.filter(_untouched(files, touched)) if files.num_rows else files
    return pa.concat_tables([kept, files_of(added)]) if added else kept


def _untouched(files: pa.Table, touched: Mapping[Key, AddFile | None]) -> Any:
    """A mask of the rows that no later commit speaks of.

    Paths are compared in columns, whole keys only where the path is known.
    """
    paths = decoded_paths(files["path"])
    names = pa.array({path for path, _ in touched}, pa.string())
    keep = pc.invert(pc.is_in(paths, value_set=names))
    rows = values(pc.indices_nonzero(pc.invert(keep)))
    if not rows:
        return keep
    flags = values(keep)
    vectors = values(files["deletion_vector"].take(rows))
    for row, vector in zip(rows, vectors, strict=True):
        flags[row] = (paths[row].as_py(), vector_id(vector)) not in touched
    return pa.chunked_array([pa.array(flags, pa.bool_())])


def _key(action: AddFile | RemoveFile) -> Key:
    path, vector = action.key
    return (decode_path(path) if "%" in path or ":" in path else path, vector)


def _check_commit(actions: list[Action], file: str) -> None:
    adds: dict[Key, AddFile] = {}
    removes: set[Key] = set()
    once: set[tuple[str, str]] = set()
    for action in actions:
        if isinstance(action, AddFile):
            key = _key(action)
            if adds.setdefault(key, action) != action:
                raise MalformedLog(f"one commit adds {action.path!r} twice", file=file)
        elif isinstance(action, RemoveFile):
            removes.add(_key(action))
        else:
            for name in _single(action):
                if name in once:
                    raise MalformedLog(f"one commit holds two {' '.join(name)}", file=file)
                once.add(name)
    if both := removes.intersection(adds):
        raise MalformedLog(f"one commit adds and removes {min(both)[0]!r}", file=file)


def _single(action: Action) -> Iterator[tuple[str, str]]:
    """What must stand at most once in a commit."""
    match action:
        case Protocol() | Metadata():
            yield (action.KEY, "actions")
        case Transaction():
            yield (action.KEY, f"actions of {action.app_id}")
        case DomainMetadata():
            yield (action.KEY, f"actions of {action.domain}")
