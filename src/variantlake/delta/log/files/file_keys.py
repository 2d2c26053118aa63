"""The keys of logical files: an action supersedes earlier ones of the log with the same key.

Spec: PROTOCOL, "Action Reconciliation".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from variantlake.arrays import arrow_array
from variantlake.delta.actions.actions import AddFile, RemoveFile
from variantlake.delta.log.files.file_paths import decode_path, decoded_paths
from variantlake.delta.log.files.logical_files import LogicalFiles, one_chunk, values, vector_id
from variantlake.delta.log.files.path_index import PathIndex, hashes_of, repeated
from variantlake.errors import MalformedLog

Key = tuple[str, str | None]
"""A logical file: its decoded path and the id of its deletion vector."""


KEY_END = "\0"
"""Separates the path from the vector in the text of a key; no path contains it."""


def keys_of(files: LogicalFiles) -> Any:
    """Return the keys of files as text."""
    paths = decoded_paths(files["path"])
    vectors = files["deletion_vector"]
    if vectors.null_count == len(vectors):
        return paths
    keys = zip(values(paths), values(vectors), strict=True)
    texts = [key_text((path, vector_id(vector))) for path, vector in keys]
    return pa.chunked_array([arrow_array(texts, pa.string())])


def key_text(key: Key) -> str:
    """Return a key as text."""
    path, vector = key
    return path if vector is None else f"{path}{KEY_END}{vector}"


def check_unique_paths(files: LogicalFiles) -> None:
    """Raise MalformedLog unless each data file is in the state once, with at most one vector."""
    paths = decoded_paths(files["path"])
    rows = repeated(paths)
    if not len(rows):
        return
    counts = values(pc.value_counts(paths.take(rows)))
    twice = next((item["values"] for item in counts if item["counts"] > 1), None)
    if twice is not None:
        raise MalformedLog(f"file {twice!r} is in the table twice, with two deletion vectors")


def key_of(action: AddFile | RemoveFile) -> Key:
    """Return the key of the file that an action adds or removes."""
    path, vector = action.key
    return (decode_path(path) if "%" in path or ":" in path else path, vector)


_FEW_KEYS = 4096
"""The most keys for which it pays to look first which batches may hold them."""


def without_keys(files: LogicalFiles, keys: Any, index: PathIndex) -> Iterator[pa.RecordBatch]:
    """Yield the batches of `listed` without the rows of these keys, which are texts."""
    wanted = None
    if len(keys) <= _FEW_KEYS:
        wanted = hashes_of(
            arrow_array([key.partition(KEY_END)[0] for key in keys.to_pylist()], pa.string())
        )
    spoken: Any = one_chunk(keys) if files.num_rows else None
    for batch in files.listed.to_batches():
        if wanted is not None and not index.may_hold(files, batch, wanted):
            if batch.num_rows:
                yield batch
            continue
        touched: Any = pc.is_in(keys_of(files.of_batches([batch])), value_set=spoken)
        if pc.any(touched).as_py():
            batch = batch.filter(pc.invert(touched).combine_chunks())  # noqa: PLW2901
        if batch.num_rows:
            yield batch
