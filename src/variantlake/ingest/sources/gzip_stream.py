"""Decompress gzip as a stream: all members, and zeros that may follow the last one.

Tapes and some tools pad files with zeros, which RFC 1952 does not forbid and gzip(1) skips.
"""

from __future__ import annotations

import io
import zlib
from typing import NoReturn, Protocol

_STEP_BYTES = 256 << 10
_FORMAT = 16 + zlib.MAX_WBITS
"""Expect a gzip header and trailer; zlib verifies the checksum."""


class _Packed(Protocol):
    def read(self, size: int, /) -> bytes:
        """Read some bytes; none at the end."""


class GzipStream:
    """The decompressed bytes of a stream; it cannot seek.

    Raises OSError and zlib.error for cut or damaged data.
    """

    def __init__(self, packed: _Packed) -> None:
        self._packed = packed
        self._inflate = zlib.decompressobj(_FORMAT)
        self._left = b""
        self._at_end = False

    def readinto(self, buffer: memoryview, /) -> int:
        """Read some bytes; 0 at the end."""
        while not self._at_end and len(buffer):
            text = self._inflate.decompress(self._left, len(buffer))
            self._left = self._inflate.unconsumed_tail
            if self._inflate.eof:
                self._begin_member(self._inflate.unused_data)
            elif not text and not self._left:
                self._left = self._packed.read(_STEP_BYTES)
                if not self._left:
                    raise OSError("it ends within its compressed data")
            if text:
                buffer[: len(text)] = text
                return len(text)
        return 0

    def seek(self, _position: int, /) -> NoReturn:
        """Refuse: a position cannot be read without the text before it."""
        raise io.UnsupportedOperation("seek")

    def _begin_member(self, left: bytes) -> None:
        left = left or self._packed.read(_STEP_BYTES)
        if left.startswith(b"\0"):
            while left:
                if left.strip(b"\0"):
                    raise OSError("something follows the zeros behind the compressed data")
                left = self._packed.read(_STEP_BYTES)
        self._at_end = not left
        self._left = left
        self._inflate = zlib.decompressobj(_FORMAT)
