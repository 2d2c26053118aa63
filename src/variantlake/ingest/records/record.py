"""One record of a file, and functions that the readers of all formats share."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from variantlake.errors import VariantLakeError
from variantlake.extras import extra_library
from variantlake.ingest.sources.sources import Source
from variantlake.ingest.sources.streams import Stream, open_source

MAX_BYTES = 128 << 20
"""The most bytes of a record, or of a block of records."""


@dataclass(frozen=True, slots=True)
class FileRecord:
    """The value of a record, or its error; `row` counts from 0 in its file.

    `offset` is its start in the file's bytes, and `raw` are its bytes, if the reader knows them.
    """

    row: int
    value: Any = None
    error: VariantLakeError | None = None
    offset: int | None = None
    raw: bytes | None = None


@contextmanager
def opened(source: Source) -> Iterator[io.BufferedReader]:
    """Open the decompressed bytes of a source as a Python file. Raises as `open_source`."""
    with open_source(source) as stream:
        yield io.BufferedReader(_Raw(stream), 1 << 20)


def library(name: str, form: str) -> Any:
    """Import a library that reads a format. Raises MissingDependency."""
    return extra_library(name, form, f"reads {form}")


class _Raw(io.RawIOBase):
    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        return self._stream.readinto(memoryview(buffer))
