"""The text of a source as a stream of bytes, wherever it is kept and however it is compressed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, cast

import pyarrow as pa

from variantlake.arrow.sources import Compression, Source
from variantlake.errors import MalformedFile, MissingSource, VariantLakeError
from variantlake.storage.store import ObjectStore, is_local, open_object

BOM = b"\xef\xbb\xbf"
"""The byte order mark, which is no part of the first document."""

_REQUEST_BYTES = 8 << 20
"""Read from an object store at once."""


class Stream(Protocol):
    """What plain files and decompressing streams share (these do not seek)."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Read some bytes; 0 at the end."""

    def seek(self, position: int, /) -> int:
        """Go to a byte of the text."""


@contextmanager
def open_source(source: Source) -> Iterator[Stream]:
    """The source's text, decompressed; what goes wrong while it is read names the file.

    Raises MissingSource when it has vanished, MalformedFile when it is cut or damaged, StoreFailed
    when an object store fails.
    """
    try:
        if source.compression is not Compression.NONE:
            with (
                _packed(source) as packed,
                pa.CompressedInputStream(packed, source.compression.value) as stream,
            ):
                yield stream
        elif is_local(source.path):
            with Path(source.path).open("rb", buffering=0) as file:
                yield file
        else:
            yield _RangeReader(source)
    except VariantLakeError:
        raise  # some are OSErrors too
    except FileNotFoundError as error:
        raise MissingSource("the source does not exist", file=source.path) from error
    except OSError as error:
        raise MalformedFile(
            f"the source cannot be read: {error}", file=source.path, hint="is the file complete?"
        ) from error


def fill(stream: Stream, view: memoryview) -> int:
    """Read until `view` is full or the stream ends; the bytes read."""
    filled = 0
    while filled < len(view):
        read = stream.readinto(view[filled:])
        if not read:
            break
        filled += read
    return filled


def _packed(source: Source) -> pa.NativeFile:
    if is_local(source.path):
        return pa.OSFile(source.path, "rb")
    return pa.PythonFile(cast("Any", _RangeReader(source)), "r")


class _RangeReader:
    """An object read in order, by requests of a range each; a file for pyarrow as well."""

    closed = False

    def __init__(self, source: Source) -> None:
        self._store: ObjectStore
        self._store, self._name = open_object(source.path)
        self._size = source.size
        self._position = 0
        self._piece = memoryview(b"")

    def seek(self, position: int, /) -> int:
        self._position, self._piece = position, memoryview(b"")
        return position

    def readinto(self, buffer: memoryview, /) -> int:
        if not self._piece and self._position < self._size:
            length = min(_REQUEST_BYTES, self._size - self._position)
            self._piece = memoryview(self._store.read_range(self._name, self._position, length))
            if not self._piece:
                raise OSError("the object ends early")
        count = min(len(buffer), len(self._piece))
        buffer[:count] = self._piece[:count]
        self._piece = self._piece[count:]
        self._position += count
        return count

    def read(self, size: int, /) -> bytes:
        buffer = bytearray(size)
        return bytes(buffer[: fill(self, memoryview(buffer))])

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        """Nothing is held open between two requests."""
