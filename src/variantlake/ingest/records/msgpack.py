"""Read a sequence of MessagePack values.

Timestamps become timestamps, with nanoseconds if they have any. Keys must be strings; records with
other extension types are bad. Spec: MessagePack, "Types", "Timestamp extension type".
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np

from variantlake.encoding.scalar import Scalar
from variantlake.errors import InvalidValue, LimitExceeded, MalformedFile
from variantlake.ingest.records.record import MAX_BYTES, FileRecord, library, opened
from variantlake.ingest.sources.sources import Source
from variantlake.types import Primitive


def read_msgpack(source: Source) -> Iterator[FileRecord]:
    """Read the values of a file. Raises MalformedFile at the first byte that is not MessagePack."""
    msgpack = library("msgpack", "msgpack")
    with opened(source) as file:
        counted = _CountedBytes(file)
        unpacker = msgpack.Unpacker(
            counted,
            raw=False,
            strict_map_key=False,  # a key that is not a string is a bad record, not a bad file
            unicode_errors="surrogateescape",
            object_pairs_hook=_object,
            ext_hook=_Extension,
            timestamp=0,
            max_buffer_size=MAX_BYTES,
        )
        row, offset = 0, 0
        while True:
            try:
                value = next(unpacker)
            except StopIteration:
                break
            except (ValueError, RecursionError, MemoryError, msgpack.UnpackException) as error:
                why = f": {error}" if str(error) else f": {type(error).__name__}"
                raise _malformed(source, row, offset, why) from None
            yield _record(row, value, offset, msgpack.Timestamp)
            row, offset = row + 1, unpacker.tell()
        if offset != counted.count:
            raise _malformed(source, row, offset, ": the file ends within it")


def _malformed(source: Source, row: int, offset: int, why: str) -> MalformedFile:
    return MalformedFile(
        f"no MessagePack value can be read at byte {offset:,}{why}",
        file=source.label,
        row=row,
        offset=offset,
        hint="is the file complete? values follow each other, with nothing between them",
    )


def _record(row: int, value: Any, offset: int, timestamp: type) -> FileRecord:
    try:
        return FileRecord(row, _plain(value, timestamp), None, offset)
    except InvalidValue as error:
        return FileRecord(row, None, error, offset)
    except RecursionError:
        return FileRecord(row, None, LimitExceeded("it is nested too deep"), offset)


class _Twice(dict[Any, Any]):
    """An object with a repeated key."""


class _Keyless(dict[Any, Any]):
    """An object with a key that is an array or an object."""


class _Extension:
    def __init__(self, code: int, _data: bytes) -> None:
        self.code = code


class _CountedBytes:
    """A file that counts the bytes read from it."""

    def __init__(self, file: io.BufferedReader) -> None:
        self.count = 0
        self._file = file

    def read(self, size: int) -> bytes:
        found = self._file.read(size)
        self.count += len(found)
        return found


def _object(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    try:
        found = dict(pairs)
    except TypeError:
        return _Keyless()
    return found if len(found) == len(pairs) else _Twice(pairs)


def _plain(value: Any, timestamp: type) -> Any:
    """Convert the timestamps of a value for Variants. Raises InvalidValue."""
    if isinstance(value, _Twice):
        raise InvalidValue("an object has a key twice")
    if isinstance(value, _Keyless):
        raise InvalidValue("a key of an object is not a string")
    if isinstance(value, dict):
        return {key: _plain(each, timestamp) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each, timestamp) for each in value]
    if isinstance(value, _Extension):
        raise InvalidValue(f"no Variant type holds the extension type {value.code}")
    if isinstance(value, timestamp):
        return _timestamp(value)
    return value


def _timestamp(value: Any) -> Scalar:
    nanos = value.seconds * 10**9 + value.nanoseconds
    kind = Primitive.TIMESTAMP_NANOS if nanos % 1000 else Primitive.TIMESTAMP
    number = nanos if nanos % 1000 else nanos // 1000
    if not np.iinfo(np.int64).min <= number <= np.iinfo(np.int64).max:
        raise InvalidValue(f"no Variant type holds the time {value}")
    return Scalar(kind, number)
