"""Writing checkpoints: the state of a version in a few Parquet files.

A classic checkpoint is one file, which every reader supports. A table with `delta.checkpointPolicy`
`v2` gets files named by a UUID, with adds and removes in sidecars. A checkpoint only saves readers
time: no version needs one. Spec: PROTOCOL, "Checkpoints", "V1 Spec", "V2 Spec".
"""

from __future__ import annotations

import itertools
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq

from variantlake.delta.actions.actions import (
    Action,
    CheckpointMetadata,
    Metadata,
    Protocol,
    Sidecar,
    Transaction,
    natural,
)
from variantlake.delta.checkpoint.checkpoint_schema import PIECE_FILES, CheckpointRows
from variantlake.delta.checkpoint.clustered_order import clustered_order
from variantlake.delta.checkpoint.sidecar_reuse import (
    ReusedSidecars,
    no_sidecars,
    reusable_sidecars,
)
from variantlake.delta.log.checkpoint_reader import sidecar_path
from variantlake.delta.log.last_checkpoint import write_last_checkpoint
from variantlake.delta.log.log_segment import LOG, SIDECARS
from variantlake.delta.log.reconciliation import LogState
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.log.snapshot_state import read_removes, read_state
from variantlake.delta.protocol.clustering import clustering_columns
from variantlake.delta.protocol.features import check_log_writable, writer_features
from variantlake.delta.protocol.intervals import property_millis
from variantlake.delta.protocol.properties import compression, page_version
from variantlake.errors import MalformedLog, UnsupportedFeature, in_file
from variantlake.parquet.metadata.annotate import annotate
from variantlake.storage.store import Store

DEFAULT_INTERVAL = 10
"""Versions from one checkpoint to the next, unless `delta.checkpointInterval` sets the number."""

SIDECAR_FILES = 500_000
"""The most files of the table that one sidecar describes."""

_STATE = ("txn", "metaData", "protocol", "domainMetadata")


def checkpoint_due(version: int, properties: Mapping[str, str]) -> bool:
    """Whether a checkpoint of this version is due by the table's interval."""
    given = natural(properties.get("delta.checkpointInterval", ""))
    interval = DEFAULT_INTERVAL if given is None else given
    return version > 0 and interval > 0 and version % interval == 0


def write_checkpoint(store: Store, version: int | None = None) -> int:
    """Write the checkpoint of `version` (the newest if None) and its hint; returns the version.

    The checkpoint appears whole or not at all, and replaces an existing classic one by the same
    state. Raises as `Snapshot.read` for a log that cannot be read, and as `write_state`.
    """
    # A checkpoint replaces the commits for good, so read these and not log compactions.
    segment, state = read_state(store, version, tombstones=True, compactions=False)
    write_state(store, segment.version, state)
    return segment.version


def write_state(store: Store, version: int, state: LogState, *, reuse: bool = True) -> list[str]:
    """Write the checkpoint of `version` from its state; returns the paths of its files.

    With `reuse`, some of them may be sidecars of the checkpoint before. If the state has no
    tombstones (None), reads them from the log. Otherwise like `write_checkpoint`. Raises
    UnsupportedFeature, by name, for a protocol that we must not write, and for actions that our
    checkpoint would lose.
    """
    protocol, metadata = state.protocol, state.metadata
    if protocol is None or metadata is None:
        raise MalformedLog("the log has no protocol or no metadata", file=store.uri)
    with in_file(store.uri):
        check_log_writable(protocol)
        check_actions_known(state)
    if state.removes is None:
        state = replace(state, removes=read_removes(store, version))
    configuration = metadata.configuration
    wants_v2 = configuration.get("delta.checkpointPolicy", "classic").lower() == "v2"
    may_v2 = "v2Checkpoint" in writer_features(protocol)
    if wants_v2 and may_v2:
        reused = (reusable_sidecars if reuse else no_sidecars)(store, version, state)
        written = _write_v2(store, version, state, protocol, metadata, reused=reused)
    else:
        written = _write_classic(store, version, state, protocol, metadata)
    paths, size, size_in_bytes = written
    write_last_checkpoint(
        store,
        version=version,
        size=size,
        size_in_bytes=size_in_bytes,
        num_of_add_files=state.files.num_rows,
    )
    return paths


def check_actions_known(state: LogState | Snapshot) -> None:
    """Raise UnsupportedFeature, by name, if our checkpoint would lose actions."""
    if state.unknown_actions:
        names = sorted(state.unknown_actions)
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        raise UnsupportedFeature(
            f"the log has actions that this version does not know ({', '.join(names[:3])}{more}), "
            "and a checkpoint would leave them out",
            hint="the table can be read and written without one; a newer version of this package "
            "may know them",
        )


def _write_classic(
    store: Store, version: int, state: LogState, protocol: Protocol, metadata: Metadata
) -> tuple[list[str], int, int]:
    """Write one file with all actions; returns its path, the number of actions, and its bytes."""
    actions = [*_small_actions(state, protocol, metadata), *_tombstones(state, metadata)]
    always = clustering_columns(state.domains)
    rows = CheckpointRows((*_STATE, "remove"), actions, state.files, protocol, metadata, always)
    path = f"{LOG}/{version:020d}.checkpoint.parquet"
    return [path], rows.count, _write(store, path, rows)


def _write_v2(
    store: Store,
    version: int,
    state: LogState,
    protocol: Protocol,
    metadata: Metadata,
    *,
    reused: ReusedSidecars,
) -> tuple[list[str], int, int]:
    """Write the sidecars, and then the file that names them, which completes the checkpoint."""
    actions: list[Action] = [CheckpointMetadata(version)]
    actions += [*_small_actions(state, protocol, metadata), *reused.sidecars]
    paths = [sidecar_path(store, sidecar) for sidecar in reused.sidecars]
    written, size = sum(sidecar.size_in_bytes for sidecar in reused.sidecars), reused.count
    for rows in _sidecars(state, protocol, metadata, reused):
        name = f"{uuid.uuid4()}.parquet"
        paths.append(f"{SIDECARS}/{name}")
        bytes_ = _write(store, paths[-1], rows)
        actions.append(Sidecar(name, bytes_, _now()))
        written += bytes_
        size += rows.count
    # Delta Spark needs the columns of adds and removes here too, although they are empty.
    keys = ("checkpointMetadata", *_STATE, "sidecar", "remove")
    rows = CheckpointRows(keys, actions, state.files.slice(0, 0), protocol, metadata)
    paths.append(f"{LOG}/{version:020d}.checkpoint.{uuid.uuid4()}.parquet")
    written += _write(store, paths[-1], rows)
    return paths, size + rows.count, written


def _sidecars(
    state: LogState, protocol: Protocol, metadata: Metadata, reused: ReusedSidecars
) -> Iterator[CheckpointRows]:
    """Yield the rows of each new sidecar. Tombstones get a separate one, as they change most."""
    removes: list[Action] = _tombstones(state, metadata)
    always = clustering_columns(state.domains)
    files = clustered_order(reused.others, metadata, state.domains, PIECE_FILES)
    rows = CheckpointRows(("remove",), removes, files.slice(0, 0), protocol, metadata, always)
    if removes or not (files.num_rows or reused.count):
        yield rows
    for start in range(0, files.num_rows, SIDECAR_FILES):
        yield replace(rows, actions=(), files=files.slice(start, SIDECAR_FILES))


def _small_actions(state: LogState, protocol: Protocol, metadata: Metadata) -> list[Action]:
    return [protocol, metadata, *_transactions(state, metadata), *state.domains.values()]


def _transactions(state: LogState, metadata: Metadata) -> list[Transaction]:
    """Return the transactions that have not expired; by default they never do."""
    oldest = _now() - property_millis(
        metadata.configuration, "delta.setTransactionRetentionDuration", "for ever"
    )
    # Keep a transaction without a time, as it may be recent.
    return [
        transaction
        for transaction in state.transactions.values()
        if transaction.last_updated is None or transaction.last_updated >= oldest
    ]


def _tombstones(state: LogState, metadata: Metadata) -> list[Action]:
    """Return the unexpired tombstones, whose files readers of older versions may need."""
    oldest = _now() - property_millis(
        metadata.configuration, "delta.deletedFileRetentionDuration", "interval 1 week"
    )
    removes = (state.removes or {}).values()
    return [remove for remove in removes if (remove.deletion_timestamp or 0) >= oldest]


def _write(store: Store, path: str, rows: CheckpointRows) -> int:
    """Write a file, row group by row group; returns its bytes.

    The file appears whole or not at all. Its bounds of Variants are annotated as Variants.
    """
    properties = rows.metadata.configuration
    with tempfile.TemporaryDirectory(prefix="variantlake-") as folder:
        file = Path(folder, "checkpoint.parquet")
        tables = rows.tables()
        first = next(tables)
        with pq.ParquetWriter(
            file,
            first.schema,
            compression=compression(properties),
            data_page_version=page_version(properties),
            write_page_checksum=True,
        ) as writer:
            for table in itertools.chain([first], tables):
                writer.write_table(table)
        if rows.variants:
            annotate(file, rows.variants)
        store.upload(path, file)
        return file.stat().st_size


def _now() -> int:
    return time.time_ns() // 1_000_000
