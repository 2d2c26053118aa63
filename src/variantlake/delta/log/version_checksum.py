"""Version checksums: `N.crc` describes the state of version N.

A checksum is optional. This module ignores one that cannot be parsed or that belongs to another
commit of the version. One that contradicts the log is an error, because one of the two was changed.
Spec: PROTOCOL, "Version Checksum File".
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow.compute as pc

from variantlake.arrays import numpy_array
from variantlake.delta.actions.actions import CommitInfo, Metadata, Protocol, info_of
from variantlake.delta.log.files.logical_files import bytes_of
from variantlake.delta.log.files.parted_files import is_unread
from variantlake.delta.log.log_segment import LogSegment, checksum_path, commit_path
from variantlake.delta.log.reconciliation import LogState, read_commit
from variantlake.delta.protocol.features import check_log_writable, writer_features
from variantlake.errors import MalformedLog, MissingSource, StoreFailed, VariantLakeError
from variantlake.storage.store import Store

_MB = 1 << 20
_SIZE_BINS = [
    0,
    *(1 << power for power in range(13, 23)),
    *(
        size * _MB
        for first, last, step in (
            (8, 40, 4),
            (48, 120, 8),
            (124, 144, 4),
            (160, 576, 16),
            (640, 1408, 64),
            (1536, 2048, 128),
            (2304, 4096, 256),
        )
        for size in range(first, last + 1, step)
    ),
    *(1 << power for power in range(33, 39)),
]
"""Where the bins of file sizes begin: those of Delta Kernel and Delta Spark."""
_DELETED_BINS = [0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 2**31 - 1]
"""Where the bins of deleted rows begin. Spec: PROTOCOL, "Deleted Record Counts Histogram"."""

MAX_BINNED = 100_000
"""The most files for which a checksum has histograms: with more, they would slow commits."""

MAX_CHECKSUM_BYTES = 64 << 20
"""The most bytes of a checksum that is read: a larger one lists all files, as the log does."""


def write_checksum(store: Store, version: int, state: LogState) -> None:
    """Write the checksum of a version that is in the log, unless there is one.

    Writes none if the state's files are not in memory, as that would read all of them.

    Raises UnsupportedFeature, by name, for a protocol that we must not write.
    """
    if state.protocol is not None:
        check_log_writable(state.protocol)
    if is_unread(state.files):
        return
    store.put_if_absent(checksum_path(version), orjson.dumps(checksum(state)))


def checksum(state: LogState) -> dict[str, Any]:
    """Build the document of a checksum. Raises MalformedLog without protocol or metadata."""
    if state.protocol is None or state.metadata is None:
        raise MalformedLog("a version without protocol or metadata has no checksum")
    document: dict[str, Any] = {
        "tableSizeBytes": bytes_of(state.files),
        "numFiles": state.files.num_rows,
        "numMetadata": 1,
        "numProtocol": 1,
        "setTransactions": [action.to_json() for action in state.transactions.values()],
        "domainMetadata": [action.to_json() for action in state.domains.values()],
        "metadata": state.metadata.to_json(),
        "protocol": state.protocol.to_json(),
        **_histograms(state),
    }
    info = state.commit_info
    if info is not None and info.txn_id is not None:
        document["txnId"] = info.txn_id
    if info is not None and info.in_commit_timestamp is not None:
        document["inCommitTimestampOpt"] = info.in_commit_timestamp
    return document


def _histograms(state: LogState) -> dict[str, Any]:
    """Histograms of file sizes and, if the table can have deletion vectors, of deleted rows.

    The optional list of all files is never written: it would copy all statistics in every commit.
    """
    sizes: Any = state.files["size"]
    if len(sizes) > MAX_BINNED:
        return {}
    found: dict[str, Any] = {"fileSizeHistogram": _binned(numpy_array(sizes))}
    protocol = state.protocol
    if protocol is not None and "deletionVectors" in writer_features(protocol):
        vectors: Any = state.files["deletion_vector"]
        counts = numpy_array(pc.struct_field(vectors, "cardinality"))
        bins = np.searchsorted(_DELETED_BINS, counts, side="right") - 1
        found |= {
            "numDeletedRecordsOpt": int(counts.sum()),
            "numDeletionVectorsOpt": len(vectors) - vectors.null_count,
            "deletedRecordCountsHistogramOpt": {
                "deletedRecordCounts": np.bincount(bins, minlength=len(_DELETED_BINS)).tolist()
            },
        }
    return found


def _binned(sizes: npt.NDArray[np.int64]) -> dict[str, list[int]]:
    bins = np.searchsorted(_SIZE_BINS, sizes, side="right") - 1
    counts = np.bincount(bins, minlength=len(_SIZE_BINS))
    sums = np.zeros(len(_SIZE_BINS), np.int64)
    np.add.at(sums, bins, sizes)
    return {
        "sortedBinBoundaries": _SIZE_BINS,
        "fileCounts": counts.tolist(),
        "totalBytes": sums.tolist(),
    }


def verify_checksum(store: Store, segment: LogSegment, state: LogState) -> None:
    """Compare the state of a version with its checksum, if it has one for the same commit.

    Raises MalformedLog naming the checksum and what differs.
    """
    if segment.checksum is None or segment.checksum.size > MAX_CHECKSUM_BYTES:
        return
    path = segment.checksum.path
    try:
        document = orjson.loads(store.read(path))
    except (MissingSource, StoreFailed, orjson.JSONDecodeError):
        return
    if not isinstance(document, dict):
        return
    for what, found, recorded in _compared(document, state):
        if recorded is None or recorded == found:
            continue
        if _speaks_of(document, store, segment.version, state.commit_info):
            raise MalformedLog(
                f"the checksum of version {segment.version} and its log disagree about {what}: "
                f"{_short(recorded)} and {_short(found)}",
                file=store.join(path),
                hint="a log file was changed; delete the checksum if the log is right",
            )


def _speaks_of(
    document: dict[str, Any], store: Store, version: int, info: CommitInfo | None
) -> bool:
    """Whether a checksum belongs to the present commit, and not to one that was overwritten."""
    recorded = document.get("txnId")
    if recorded is None:
        return True
    if info is None:  # the state comes from a checkpoint, which has no commitInfo
        try:
            actions = read_commit(store, commit_path(version))
        except VariantLakeError:
            return False
        info = info_of(actions)
    return info is not None and info.txn_id == recorded


def _compared(document: dict[str, Any], state: LogState) -> list[tuple[str, Any, Any]]:
    """Return the values to compare: name, value in the log, value in the checksum or None."""
    protocol, metadata = document.get("protocol"), document.get("metadata")
    files: list[tuple[str, Any, Any]] = []
    if not is_unread(state.files):
        files = [
            ("the number of files", state.files.num_rows, document.get("numFiles")),
            (
                "the size of the table in bytes",
                bytes_of(state.files),
                document.get("tableSizeBytes"),
            ),
        ]
    return [
        *files,
        ("the protocol", _meant(state.protocol), _meant(_parsed(Protocol, protocol))),
        ("the metadata", _meant(state.metadata), _meant(_parsed(Metadata, metadata))),
    ]


def _parsed(kind: type[Protocol | Metadata], fields: Any) -> Protocol | Metadata | None:
    if not isinstance(fields, dict):
        return None
    try:
        return kind.from_json(fields)
    except VariantLakeError:
        return None


def _meant(action: Protocol | Metadata | None) -> dict[str, Any] | None:
    """Return an action in a form without the order of features and the spelling of its schema."""
    if action is None:
        return None
    fields = action.to_json()
    for name in ("readerFeatures", "writerFeatures"):
        if name in fields:
            fields[name] = sorted(set(fields[name]))
    if isinstance(action, Metadata):
        with contextlib.suppress(orjson.JSONDecodeError):
            fields["schemaString"] = orjson.loads(action.schema_string)
    return fields


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 200 else f"{text[:200]}…"
