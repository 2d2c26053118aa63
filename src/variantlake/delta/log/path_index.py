"""Which batches of files may hold some paths, so that a commit costs what it changes."""

from __future__ import annotations

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
    """Sorted hashes of the paths of a batch, which stay in memory as long as this does."""

    paths: pa.Array[Any]
    hashes: Hashes


class PathIndex:
    """Hashes of the paths in the batches of a table's files, made when a batch is asked about.

    A version takes over those of the batches that it shares with the one before. None are pickled.
    """

    def __init__(self) -> None:
        self._batches: dict[tuple[int, ...], _Batch] = {}

    def __reduce__(self) -> tuple[type[PathIndex], tuple[()]]:
        return PathIndex, ()

    def may_hold(self, paths: pa.Array[Any], wanted: Hashes) -> bool:
        """Whether one of the hashes is that of a path in a batch, decoded; rarely wrongly true."""
        key = _key(paths)
        if key not in self._batches:
            hashes = np.sort(hashes_of(one_chunk(decoded_paths(pa.chunked_array([paths])))))
            self._batches[key] = _Batch(paths, hashes)
        hashes = self._batches[key].hashes
        places = np.minimum(np.searchsorted(hashes, wanted), len(hashes) - 1)
        return bool(len(hashes)) and bool((hashes[places] == wanted).any())

    def of(self, files: LogicalFiles) -> PathIndex:
        """What is known of the batches of these files, and of no others."""
        index = PathIndex()
        for paths in files["path"].chunks:
            key = _key(paths)
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
    order = np.sort(joined)
    twice = order[1:][order[1:] == order[:-1]]
    return np.flatnonzero(np.isin(joined, twice)) if len(twice) else np.zeros(0, np.int64)


def _key(paths: Any) -> tuple[int, ...]:
    """Where the paths of a batch are in memory."""
    places = [0 if buffer is None else buffer.address for buffer in paths.buffers()]
    return (len(paths), paths.offset, *places)
