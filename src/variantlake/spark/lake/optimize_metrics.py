"""The result of OPTIMIZE and REORG in Delta Spark's schema, computed from their commits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from variantlake.delta.actions.actions import AddFile, RemoveFile
from variantlake.delta.log.log_segment import commit_path
from variantlake.delta.log.reconciliation import read_commit
from variantlake.delta.log.snapshot import Snapshot
from variantlake.maintenance.rewrite.run import RewriteResult

_SIZES = "STRUCT<min: BIGINT, max: BIGINT, avg: DOUBLE, totalFiles: BIGINT, totalSize: BIGINT>"
_NUM, _NUM_FILES = "STRUCT<num: BIGINT, size: BIGINT>", "STRUCT<numFiles: BIGINT, size: BIGINT>"
OPTIMIZE = (
    "path STRING, metrics STRUCT<numFilesAdded: BIGINT, numFilesRemoved: BIGINT,"
    f" filesAdded: {_SIZES}, filesRemoved: {_SIZES}, partitionsOptimized: BIGINT,"
    f" zOrderStats: STRUCT<strategyName: STRING, inputCubeFiles: {_NUM}, inputOtherFiles: {_NUM},"
    f" inputNumCubes: BIGINT, mergedFiles: {_NUM}, numOutputCubes: BIGINT, mergedNumCubes: BIGINT>,"
    f" clusteringStats: STRUCT<inputZCubeFiles: {_NUM_FILES}, inputOtherFiles: {_NUM_FILES},"
    f" inputNumZCubes: BIGINT, mergedFiles: {_NUM_FILES}, numOutputZCubes: BIGINT>,"
    " numBins: BIGINT, numBatches: BIGINT, totalConsideredFiles: BIGINT,"
    " totalFilesSkipped: BIGINT, preserveInsertionOrder: BOOLEAN,"
    " numFilesSkippedToReduceWriteAmplification: BIGINT,"
    " numBytesSkippedToReduceWriteAmplification: BIGINT, startTimeMs: BIGINT, endTimeMs: BIGINT,"
    " totalClusterParallelism: BIGINT, totalScheduledTasks: BIGINT,"
    " autoCompactParallelismStats: STRUCT<maxClusterActiveParallelism: BIGINT,"
    " minClusterActiveParallelism: BIGINT, maxSessionActiveParallelism: BIGINT,"
    " minSessionActiveParallelism: BIGINT>,"
    " deletionVectorStats: STRUCT<numDeletionVectorsRemoved: BIGINT,"
    " numDeletionVectorRowsRemoved: BIGINT>,"
    " numTableColumns: BIGINT, numTableColumnsWithStats: BIGINT>"
)
"""The columns of the result. Metrics that only Delta Spark's algorithm has are NULL."""


def optimize_metrics(
    before: Snapshot, done: RewriteResult, considered: int, started: int, ended: int
) -> dict[str, Any]:
    """Return the metrics. `considered` counts the files in scope; times are epoch milliseconds."""
    actions = [
        action
        for version in done.versions
        for action in read_commit(before.store, commit_path(version))
    ]
    adds = [each for each in actions if isinstance(each, AddFile)]
    removes = [each for each in actions if isinstance(each, RemoveFile)]
    vectors = [each.deletion_vector for each in removes if each.deletion_vector is not None]
    rows = sum(each.cardinality for each in vectors)
    partitions = {tuple(sorted(each.partition_values.items())) for each in adds}
    return {
        "numFilesAdded": len(adds),
        "numFilesRemoved": len(removes),
        "filesAdded": _sizes(each.size for each in adds),
        "filesRemoved": _sizes(each.size or 0 for each in removes),
        "partitionsOptimized": len(partitions),
        "numBatches": len(done.versions),
        "totalConsideredFiles": considered,
        "totalFilesSkipped": max(considered - len(removes), 0),
        "preserveInsertionOrder": False,
        "numFilesSkippedToReduceWriteAmplification": 0,
        "numBytesSkippedToReduceWriteAmplification": 0,
        "startTimeMs": started,
        "endTimeMs": ended,
        "deletionVectorStats": (len(vectors), rows) if vectors else None,
        "numTableColumns": len(before.schema.fields),
    }


def _sizes(given: Iterable[int]) -> tuple[int | None, int | None, float, int, int]:
    sizes = list(given)
    total = sum(sizes)
    average = total / len(sizes) if sizes else 0.0
    return min(sizes, default=None), max(sizes, default=None), average, len(sizes), total
