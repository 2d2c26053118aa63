"""Open the text of a source as a stream of bytes, whatever its store and compression."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, cast

import pyarrow as pa

from variantlake.errors import MalformedFile, MissingSource, VariantLakeError
from variantlake.ingest.sources.gzip_stream import GzipStream
from variantlake.ingest.sources.signatures import Compression
from variantlake.ingest.sources.sources import Source
from variantlake.storage.input_file import ObjectFile
from variantlake.storage.objects import open_object
from variantlake.storage.store import is_local

BOM = b"\xef\xbb\xbf"
"""The byte order mark, which is not part of the first document."""


class Stream(Protocol):
    """A plain file, or a decompressing stream, which cannot seek."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Read some bytes; 0 at the end."""

    def seek(self, position: int, /) -> int:
        """Move to a byte of the text."""


@contextmanager
def open_source(source: Source) -> Iterator[Stream]:
    """Open the source's text, decompressed; errors while it is read name the file.

    Raises MissingSource when it has vanished, MalformedFile when it is cut or damaged, StoreFailed
    when an object store fails.
    """
    try:
        if source.compression is Compression.GZIP:
            with _packed(source) as packed:
                yield GzipStream(packed)
        elif source.compression is not Compression.NONE:
            with (
                _packed(source) as packed,
                pa.CompressedInputStream(packed, source.compression.value) as stream,
            ):
                yield stream
        elif is_local(source.path):
            with Path(source.path).open("rb", buffering=0) as file:
                yield file
        else:
            yield _object(source)
    except VariantLakeError:
        raise  # some are OSErrors too
    except FileNotFoundError as error:
        raise MissingSource("the source does not exist", file=source.label) from error
    except (OSError, zlib.error) as error:
        raise MalformedFile(
            f"the source cannot be read: {error}", file=source.label, hint="is the file complete?"
        ) from error


def fill(stream: Stream, view: memoryview) -> int:
    """Read until `view` is full or the stream ends; returns the number of bytes read."""
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
    return pa.PythonFile(cast("Any", _object(source)), "r")


def _object(source: Source) -> ObjectFile:
    store, name = open_object(source.path)
    return store.open_in_order(name, source.size)
