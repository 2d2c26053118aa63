"""Which batches of files may hold some paths, so that a commit costs what it changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from variantlake.delta.log.file_paths import decoded_paths
from variantlake.delta.log.logical_files import LogicalFiles, one_chunk
from variantlake.kernels.log.path_hashes import hash_texts
from variantlake.parquet.stats.fact_columns import Int64s

Hashes = Int64s


@dataclass(frozen=True, slots=True)
class _Batch:
    """Sorted hashes of the paths of a batch; its `origin` stays in memory as long as this does."""

    origin: pa.Array[Any]
    hashes: Hashes


class PathIndex:
    """Hashes of the paths in the batches of a table's files, made when a batch is asked about.

    A version takes over those of the batches that it shares with the one before. None are pickled.
    """

    def __init__(self) -> None:
        self._batches: dict[tuple[int, ...], _Batch] = {}

    def __reduce__(self) -> tuple[type[PathIndex], tuple[()]]:
        return PathIndex, ()

    def put(self, origin: pa.Array[Any], hashes: Hashes) -> None:
        """Remember the sorted hashes of the paths, decoded, in the batch with this `origin`."""
        self._batches[_key(origin)] = _Batch(origin, hashes)

    def hashes(self, files: LogicalFiles, batch: pa.RecordBatch) -> Hashes:
        """Those of a batch of `listed`."""
        origin = batch.column("origin")
        if _key(origin) not in self._batches:
            paths = decoded_paths(files.of_batches([batch])["path"])
            self.put(origin, np.sort(hashes_of(one_chunk(paths))))
        return self._batches[_key(origin)].hashes

    def may_hold(self, files: LogicalFiles, batch: pa.RecordBatch, wanted: Hashes) -> bool:
        """Whether a hash is that of a path in a batch of `listed`, decoded; rarely wrongly true."""
        hashes = self.hashes(files, batch)
        places = np.minimum(np.searchsorted(hashes, wanted), len(hashes) - 1)
        return bool(len(hashes)) and bool((hashes[places] == wanted).any())

    def of(self, files: LogicalFiles) -> PathIndex:
        """What is known of the batches of these files, and of no others."""
        index = PathIndex()
        for origin in files.listed["origin"].chunks:
            key = _key(origin)
            if key in self._batches:
                index._batches[key] = self._batches[key]
        return index


def hashes_of(texts: Any) -> Hashes:
    """The hashes of an Arrow array of strings without nulls."""
    _, offsets, data = texts.buffers()
    hashes = np.empty(len(texts), np.int64)
    places = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    hash_texts(np.frombuffer(data or b"", np.uint8), places, hashes)
    return hashes


def repeated(texts: pa.ChunkedArray[Any]) -> Int64s:
    """The rows of texts without nulls that may stand there more than once: by their hashes.

    Mostly there are none, and the caller compares no texts.
    """
    if len(texts) < 2:
        return np.zeros(0, np.int64)
    joined = np.concatenate([hashes_of(chunk) for chunk in texts.chunks])
    twice = repeated_hashes([joined])
    return np.flatnonzero(np.isin(joined, twice)) if len(twice) else np.zeros(0, np.int64)


def repeated_hashes(parts: Sequence[Hashes]) -> Hashes:
    """The hashes that come again."""
    order = np.concatenate([*parts, np.zeros(0, np.int64)])
    order.sort()
    found: Hashes = order[1:][order[1:] == order[:-1]]
    return found


def _key(origin: Any) -> tuple[int, ...]:
    """Where a column of a batch is in memory."""
    places = [0 if buffer is None else buffer.address for buffer in origin.buffers()]
    return (len(origin), origin.offset, *places)
