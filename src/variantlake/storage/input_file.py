"""Files open for range reads, on a disk or in an object store; Parquet readers read from these.

Reads of a local file go straight to the operating system. An object is read in few large requests:
first its end, which holds a Parquet footer, then the ranges that the caller announces.
"""

from __future__ import annotations

import bisect
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import pyarrow as pa

from variantlake.errors import StoreFailed

TAIL_BYTES = 64 << 10
"""How many bytes at the end of an object are read first."""

WINDOW_BYTES = 1 << 20
"""The least bytes that a read fetches from an object outside of announced ranges."""

PREFETCH_BYTES = 256 << 20
"""The most bytes to prefetch. If a caller announces more, each read is a separate request."""


ReadTail = Callable[[int], tuple[bytes, int]]
"""Returns the last bytes of an object, or all if there are fewer, and its size."""

ReadRanges = Callable[[Sequence[int], Sequence[int]], list[memoryview]]
"""Reads ranges (starts, lengths) within an object. Raises MissingSource, StoreFailed."""


class InputFile:
    """An open file. Arrow reads from `native`; errors call the file `name`.

    `data` holds all its bytes if they are in memory. As a context manager, it closes the file
    unless somebody else opened it.
    """

    __slots__ = ("_is_ours", "_object", "data", "name", "native")

    def __init__(
        self,
        name: str,
        native: Any,
        found: ObjectFile | None = None,
        *,
        is_ours: bool = True,
        data: bytes | None = None,
    ) -> None:
        self.name = name
        self.data = data
        self.native = native  # a pa.NativeFile: its methods lack their parameters in the stubs
        self._object = found
        self._is_ours = is_ours

    @classmethod
    def of_object(cls, found: ObjectFile) -> Self:
        """Open an object as a file."""
        handle: Any = found  # what pyarrow needs of a file
        return cls(found.name, pa.PythonFile(handle, "r"), found)

    def borrowed(self) -> InputFile:
        """A view of the file whose `close` leaves the file open."""
        return InputFile(self.name, self.native, self._object, is_ours=False, data=self.data)

    def in_memory(self) -> InputFile:
        """Read all bytes into memory and return a file of them, independent of this one."""
        size = self.size
        if self._object is not None:
            self._object.prefetch([(0, size)])
        held = self.read_at(size, 0)
        return InputFile(self.name, pa.BufferReader(held), data=held)

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        found: int = self.native.size()
        return found

    def read_at(self, size: int, offset: int) -> bytes:
        """Read `size` bytes from `offset`; fewer at the end of the file."""
        found: bytes = self.native.read_at(size, offset)
        return found

    def prefetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Announce the ranges (start, length) to read next, in place of those announced before.

        Fetches them now if this is an object, near ones together. Does nothing for local files.
        """
        if self._object is not None:
            self._object.prefetch(ranges)

    def close(self) -> None:
        """Close the file, unless somebody else opened it."""
        if self._is_ours:
            self.native.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ObjectFile:
    """A read-only file over an object, which caches its last requests.

    Errors call it `name`. Without a `size`, the constructor requests the object's end to learn it.
    A read that is not cached fetches at least `window` bytes.
    """

    closed = False

    def __init__(
        self,
        name: str,
        read_tail: ReadTail,
        read_ranges: ReadRanges,
        size: int | None = None,
        window: int = WINDOW_BYTES,
    ) -> None:
        self.name = name
        self._read_ranges = read_ranges
        self._window = window
        self._position = 0
        self._ranges: list[tuple[int, memoryview]] = []
        self._last = (0, memoryview(b""))
        tail = b""
        if size is None:
            tail, size = read_tail(TAIL_BYTES)
        self._size = size
        self._tail = (size - len(tail), memoryview(tail))

    def prefetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """See InputFile."""
        inside = [
            (start, length)
            for start, length in sorted(ranges)
            if start >= 0 and length > 0 and start + length <= self._size
        ]
        self._ranges = []
        lacking = [each for each in inside if self._find_range(*each) is None]
        if not lacking or sum(length for _, length in lacking) > PREFETCH_BYTES:
            return
        starts, lengths = zip(*lacking, strict=True)
        self._ranges = list(zip(starts, self._fetched(starts, lengths), strict=True))

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Set the position, in bytes, and return it."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        """Return the position of the next byte to read."""
        return self._position

    def read(self, size: int = -1, /) -> bytes:
        """Read exactly `size` bytes, fewer only at the end; all the rest if `size` is negative."""
        left = max(self._size - self._position, 0)
        data = bytes(self._read_at(left if size < 0 else min(size, left)))
        self._position += len(data)
        return data

    def readinto(self, buffer: memoryview, /) -> int:
        """Read into the buffer the bytes at hand, else one request's; returns 0 at the end."""
        left = max(self._size - self._position, 0)
        data = self._read_at(min(len(buffer), left, self._at_hand() or self._window))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def close(self) -> None:
        """Do nothing: no connection is open between requests."""

    def _at_hand(self) -> int:
        """Return how many bytes of the last request follow the position."""
        start, data = self._last
        return max(start + len(data) - self._position, 0) if start <= self._position else 0

    def _read_at(self, length: int) -> memoryview:
        if not length:
            return memoryview(b"")
        held = self._find_range(self._position, length)
        if held is None:
            wanted = min(max(length, self._window), self._size - self._position)
            (data,) = self._fetched([self._position], [wanted])
            self._last = (self._position, data)
            held = data[:length]
        return held

    def _find_range(self, start: int, length: int) -> memoryview | None:
        """Return the bytes if one earlier request fetched them all, else None."""
        place = bisect.bisect_right(self._ranges, start, key=lambda each: each[0])
        for at, data in (*self._ranges[max(place - 1, 0) : place], self._last, self._tail):
            if at <= start and start + length <= at + len(data):
                return data[start - at : start - at + length]
        return None

    def _fetched(self, starts: Sequence[int], lengths: Sequence[int]) -> list[memoryview]:
        found = self._read_ranges(starts, lengths)
        if [len(data) for data in found] != list(lengths):
            raise StoreFailed("the object became shorter while it was read", file=self.name)
        return found
