"""Deletion vectors: which rows of a data file are gone.

The protocol's text defines one serialised form. Its inline example uses an older one, with another
magic number, that Delta Spark still reads. This module reads both. Spec: PROTOCOL, "Deletion
Vectors", "Deletion Vector Format".
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap, BitMap64

from variantlake.delta.actions.actions import AddFile, DeletionVectorDescriptor, parse_log
from variantlake.delta.log.files.file_paths import locate
from variantlake.delta.log.log_segment import LOG, all_checkpoints, all_commits
from variantlake.delta.stats import z85
from variantlake.errors import MalformedLog, VariantLakeError, in_file
from variantlake.storage.opening import store_of
from variantlake.storage.store import Store

MAX_BYTES = 1 << 30
"""Our limit on one serialised vector."""

_MAGIC = 1681511377
_OLDER_MAGIC = 1681511376
_FILE_VERSION = 1
_UUID_CHARACTERS = 20
_FRAME = 4
"""Bytes before the data (its size) and after it (its checksum) in a file."""


def deleted_rows(
    store: Store, vector: DeletionVectorDescriptor, num_records: int
) -> npt.NDArray[np.int64]:
    """Read the deleted rows of a file of `num_records` rows: 0-based, rising, in an int64 array.

    Raises MalformedLog if the vector does not match its descriptor. The error names the vector's
    file or, for an inline vector, the file of the log that holds it. Raises MissingSource for a
    file that is not there.
    """
    with _in_log_file(store, vector):
        vector.check()  # those of checkpoints are not checked yet
        place = "" if vector.storage_type == "i" else vector_location(store, vector)
    with in_file(place) if place else _in_log_file(store, vector):
        if not 0 <= vector.cardinality <= num_records:
            raise MalformedLog(
                f"a deletion vector of {vector.cardinality} rows cannot be of a file with "
                f"{num_records}"
            )
        if not 0 <= vector.size_in_bytes <= MAX_BYTES:
            raise MalformedLog(f"a deletion vector of {vector.size_in_bytes} bytes")
        data = _inline(vector) if not place else _stored(place, vector)
        return _rows(data, vector.cardinality, num_records)


@contextmanager
def _in_log_file(store: Store, vector: DeletionVectorDescriptor) -> Iterator[None]:
    """Name the newest file of the log with the vector in each MalformedLog that names no file."""
    try:
        yield
    except MalformedLog as error:
        place = None if error.file else _log_file(store, vector)
        if place is not None:
            error.file, what = place
            error.say_first(what)
        error.file = error.file or store.uri
        raise


def _log_file(store: Store, vector: DeletionVectorDescriptor) -> tuple[str, str] | None:
    """Find the file of the log, and describe the vector there; slow, so only for errors."""
    for version, entry in reversed(all_commits(store).items()):
        file = store.join(entry.path)
        with suppress(VariantLakeError):
            for action in parse_log(store.stream(entry.path), file):
                if isinstance(action, AddFile) and action.deletion_vector == vector:
                    return file, f"the deletion vector of {action.path}, of version {version}"
    checkpoints = all_checkpoints(store.list_from(LOG))
    newest = max(checkpoints, key=attrgetter("version"), default=None)
    if newest is None:
        return None
    what = f"a deletion vector of the checkpoint of version {newest.version}"
    return store.join(newest.files[0].path), what


def vector_location(store: Store, vector: DeletionVectorDescriptor) -> str:
    """Return the file of a vector that is not inline, in the form of `Snapshot.location`."""
    return locate(vector_path(store, vector), store.uri)


def vector_path(store: Store, vector: DeletionVectorDescriptor) -> str:
    """Return the file of a vector that is not inline, as a path in the log. Raises MalformedLog."""
    if vector.storage_type == "p":
        return vector.path_or_inline_dv
    text = vector.path_or_inline_dv
    prefix, encoded = text[:-_UUID_CHARACTERS], text[-_UUID_CHARACTERS:]
    data = z85.decode(encoded)
    if len(data) != 16 or (prefix and not prefix.isalnum()):
        raise MalformedLog(f"{text!r} names no deletion vector", file=store.uri)
    name = f"deletion_vector_{uuid.UUID(bytes=data)}.bin"
    return f"{prefix}/{name}" if prefix else name


def _inline(vector: DeletionVectorDescriptor) -> bytes:
    data = z85.decode(vector.path_or_inline_dv)
    if len(data) < vector.size_in_bytes or any(data[vector.size_in_bytes :]):
        raise MalformedLog(
            f"an inline deletion vector of {len(data)} bytes says {vector.size_in_bytes}"
        )
    return data[: vector.size_in_bytes]


def _stored(place: str, vector: DeletionVectorDescriptor) -> bytes:
    """Read the vector in a file: big-endian size, data, CRC-32 of the data."""
    store, name = store_of(place)
    version = store.read_range(name, 0, 1)
    if version != bytes([_FILE_VERSION]):
        raise MalformedLog("the file is of no version of deletion vectors that is known")
    # The first byte is the version, so no vector starts there.
    start = vector.offset or 1
    if start < 0:
        raise MalformedLog(f"deletion vector at offset {start}")
    frame = store.read_range(name, start, vector.size_in_bytes + 2 * _FRAME)
    size, data = frame[:_FRAME], frame[_FRAME : _FRAME + vector.size_in_bytes]
    checksum = frame[_FRAME + vector.size_in_bytes :]
    if int.from_bytes(size, "big") != vector.size_in_bytes or len(checksum) != _FRAME:
        raise MalformedLog("the file is cut, or holds another deletion vector", offset=start)
    if int.from_bytes(checksum, "big") != zlib.crc32(data):
        raise MalformedLog("the deletion vector does not fit its checksum", offset=start)
    return data


def _rows(data: bytes, cardinality: int, num_records: int) -> npt.NDArray[np.int64]:
    try:
        rows = _deserialised(data, cardinality)
    except VariantLakeError:
        raise
    except (ValueError, IndexError, OverflowError, MemoryError) as error:
        raise MalformedLog(f"deletion vector is damaged: {error}") from error
    # A damaged bitmap may have its containers in any order.
    if rows.size and (int(rows[-1]) >= num_records or bool((np.diff(rows) <= 0).any())):
        raise MalformedLog("the rows of a deletion vector are out of order or beyond the file")
    return rows


def _deserialised(data: bytes, cardinality: int) -> npt.NDArray[np.int64]:
    """Read the rows of a bitmap in either form; checks their number before it allocates memory."""
    magic = data[:4]
    bitmaps: list[tuple[int, Any]]
    if int.from_bytes(magic, "little") == _MAGIC:
        bitmaps = [(0, BitMap64.deserialize(data[4:]))]
    elif int.from_bytes(magic, "big") == _OLDER_MAGIC:
        bitmaps = _older_bitmaps(data)
    else:
        raise MalformedLog("deletion vector of an unknown format")
    found = sum(len(bitmap) for _, bitmap in bitmaps)
    if found != cardinality:
        raise MalformedLog(f"a deletion vector of {found} rows says {cardinality}")
    parts = [
        np.fromiter(bitmap, dtype=np.int64, count=len(bitmap)) + base for base, bitmap in bitmaps
    ]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def _older_bitmaps(data: bytes) -> list[tuple[int, Any]]:
    """Read the bitmaps of the older form: a count, then for each 2^32 rows a size and a bitmap."""
    count, position = int.from_bytes(data[4:8], "big"), 8
    bitmaps = []
    for high in range(count):
        size = int.from_bytes(data[position : position + 4], "big")
        position += 4 + size
        if position > len(data):
            raise MalformedLog("the deletion vector is cut")
        bitmaps.append((high << 32, BitMap.deserialize(data[position - size : position])))
    return bitmaps
