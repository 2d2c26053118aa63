"""Find the batches of files that may have some paths, so that a commit costs only its changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from variantlake.delta.log.files.file_paths import decoded_paths
from variantlake.delta.log.files.logical_files import LogicalFiles, one_chunk
from variantlake.kernels.log.path_hashes import hash_texts
from variantlake.parquet.stats.fact_columns import Int64s

Hashes = Int64s


@dataclass(frozen=True, slots=True)
class _Batch:
    """Sorted hashes of the paths of a batch. Keeps `origin` in memory: its address is the key."""

    origin: pa.Array[Any]
    hashes: Hashes


class PathIndex:
    """Hashes of the paths in the batches of a table's files, computed at the first use of a batch.

    A version takes over the hashes of batches that it shares with the version before. Hashes are
    not pickled.
    """

    def __init__(self) -> None:
        self._batches: dict[tuple[int, ...], _Batch] = {}

    def __reduce__(self) -> tuple[type[PathIndex], tuple[()]]:
        return PathIndex, ()

    def put(self, origin: pa.Array[Any], hashes: Hashes) -> None:
        """Remember the sorted hashes of the paths, decoded, in the batch with this `origin`."""
        self._batches[_key(origin)] = _Batch(origin, hashes)

    def hashes(self, files: LogicalFiles, batch: pa.RecordBatch) -> Hashes:
        """Return the sorted hashes of a batch of `listed`."""
        origin = batch.column("origin")
        if _key(origin) not in self._batches:
            paths = decoded_paths(files.of_batches([batch])["path"])
            self.put(origin, np.sort(hashes_of(one_chunk(paths))))
        return self._batches[_key(origin)].hashes

    def may_hold(self, files: LogicalFiles, batch: pa.RecordBatch, wanted: Hashes) -> bool:
        """Whether any hash in `wanted` is that of a decoded path in a batch of `listed`."""
        hashes = self.hashes(files, batch)
        places = np.minimum(np.searchsorted(hashes, wanted), len(hashes) - 1)
        return bool(len(hashes)) and bool((hashes[places] == wanted).any())

    def of(self, files: LogicalFiles) -> PathIndex:
        """Return a new index with the known hashes of the batches of these files alone."""
        index = PathIndex()
        for origin in files.listed["origin"].chunks:
            key = _key(origin)
            if key in self._batches:
                index._batches[key] = self._batches[key]
        return index


def hashes_of(texts: Any) -> Hashes:
    """Return the hashes of an Arrow array of strings without nulls."""
    _, offsets, data = texts.buffers()
    hashes = np.empty(len(texts), np.int64)
    places = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    hash_texts(np.frombuffer(data or b"", np.uint8), places, hashes)
    return hashes


def repeated(texts: pa.ChunkedArray[Any]) -> Int64s:
    """Return the rows of texts, without nulls, whose hash occurs more than once.

    Mostly there are none, and the caller need not compare texts.
    """
    if len(texts) < 2:
        return np.zeros(0, np.int64)
    joined = np.concatenate([hashes_of(chunk) for chunk in texts.chunks])
    twice = repeated_hashes([joined])
    return np.flatnonzero(np.isin(joined, twice)) if len(twice) else np.zeros(0, np.int64)


def repeated_hashes(parts: Sequence[Hashes]) -> Hashes:
    """Return the hashes that occur more than once: n - 1 times each, if n times in `parts`."""
    order = np.concatenate([*parts, np.zeros(0, np.int64)])
    order.sort()
    found: Hashes = order[1:][order[1:] == order[:-1]]
    return found


def _key(origin: Any) -> tuple[int, ...]:
    """Return the length, offset and buffer addresses of a column: its identity in memory."""
    places = [0 if buffer is None else buffer.address for buffer in origin.buffers()]
    return (len(origin), origin.offset, *places)
