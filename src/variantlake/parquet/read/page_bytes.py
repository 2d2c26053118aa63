"""Verify the checksums of a column chunk's pages, and decompress them.

A long call releases the GIL and has to wait for it afterwards, which does not pay for short calls.
So zlib gets short bodies in small pieces, and zstd all pages of a chunk in one call.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import zstandard

from variantlake.kernels.log.page_headers import (
    CRC,
    DATA_PAGE_V2,
    DICTIONARY_PAGE,
    IS_PACKED,
    KIND,
    LEVELS,
    NO_CRC,
    OTHER_LEVELS,
    PACKED,
    START,
    UNPACKED,
)

_own = threading.local()

Page = list[int]
"""The SLOTS that `find_pages` fills for a page."""
Parts = tuple[memoryview, memoryview]
"""The definition levels and the values of a page; a dictionary has no levels."""

_HELD = 5 << 10
"""Bytes that zlib checks without releasing the GIL."""
_SHORT = 128 << 10
"""A body with more bytes is checked in one call, which releases the GIL."""

_MAGIC = b"\x28\xb5\x2f\xfd"
_BLOCKS = 1 << 12
"""The most blocks of a page's frame; other writers' blocks are 128 KB."""


@dataclass(frozen=True, slots=True)
class PageBytes:
    """The bytes of a chunk, its codec, and the highest definition level, `most`."""

    data: memoryview
    codec: str
    most: int

    def parts(self, pages: Sequence[Page]) -> list[Parts] | None:
        """Return the parts of some pages, None if one is unusual or fails its checksum."""
        heads: list[memoryview] = []
        bodies: list[memoryview] = []
        sizes: list[int] = []
        packed: list[bool] = []
        for page in pages:
            body, size = self._body(page), page[UNPACKED]
            if body is None:
                return None
            has_levels = page[KIND] == DATA_PAGE_V2
            ahead = page[LEVELS] if has_levels else 0
            if has_levels and not (page[OTHER_LEVELS] == 0 and 0 <= ahead <= min(len(body), size)):
                return None
            heads.append(body[:ahead])
            bodies.append(body[ahead:])
            sizes.append(size - ahead)
            is_packed = page[KIND] != DATA_PAGE_V2 or (page[IS_PACKED] != 0 and len(body) > ahead)
            packed.append(is_packed)
        chosen = [at for at, each in enumerate(packed) if each]
        found = self._unpacked([bodies[at] for at in chosen], [sizes[at] for at in chosen])
        if found is None:
            return None
        for at, each in zip(chosen, found, strict=True):
            bodies[at] = each
        return self._apart(pages, heads, bodies)

    def _apart(
        self, pages: Sequence[Page], heads: list[memoryview], bodies: list[memoryview]
    ) -> list[Parts] | None:
        """Split the bodies of version 1 data pages, which have levels and values in one piece."""
        parts: list[Parts] = []
        for page, head, body in zip(pages, heads, bodies, strict=True):
            if page[KIND] in (DATA_PAGE_V2, DICTIONARY_PAGE) or not self.most:
                parts.append((head, body))
                continue
            size = int.from_bytes(body[:4], "little")
            if size > len(body) - 4:
                return None
            parts.append((body[4 : 4 + size], body[4 + size :]))
        return parts

    def _body(self, page: Page) -> memoryview | None:
        """Return the compressed bytes of a page, None if they fail its checksum."""
        start, checksum = page[START], page[CRC]
        body = self.data[start : start + page[PACKED]]
        if checksum != NO_CRC and _checksum(body) != checksum & 0xFFFFFFFF:
            return None
        return body

    def _unpacked(self, bodies: list[memoryview], sizes: list[int]) -> list[memoryview] | None:
        """Decompress bodies to these sizes; None for another codec, size or any error."""
        try:
            if self.codec == "UNCOMPRESSED":
                found: Any = bodies
            elif self.codec == "ZSTD":
                found = _of_zstd(bodies, sizes)
            elif self.codec == "SNAPPY":
                found = _of_snappy(bodies, sizes)
            else:
                return None
        except MemoryError:  # an ArrowException too, and the file may be whole
            raise
        except (pa.ArrowException, OSError, zstandard.ZstdError):
            return None
        found = [memoryview(each) for each in found]
        return found if list(map(len, found)) == sizes else None


def _checksum(body: memoryview) -> int:
    if len(body) > _SHORT:
        return zlib.crc32(body)
    found = 0
    for start in range(0, len(body), _HELD):
        found = zlib.crc32(body[start : start + _HELD], found)
    return found


def _of_zstd(bodies: list[memoryview], sizes: list[int]) -> list[Any]:
    """Decompress frames at once; returns an empty list if a body is not exactly one frame."""
    if not all(_is_frame(body) for body in bodies):
        return []
    zstd = _decompressor()
    if len(bodies) < 2 or 0 in sizes:
        declared = [zstandard.frame_content_size(body) for body in bodies]
        if any(each not in (-1, size) for each, size in zip(declared, sizes, strict=True)):
            return []  # zstd would allocate the size that the frame declares
        return [
            zstd.decompress(body, max(size, 1)) for body, size in zip(bodies, sizes, strict=True)
        ]
    frames: list[Any] = [*bodies]
    lengths = np.array(sizes, np.uint64).tobytes()
    found: Any = zstd.multi_decompress_to_buffer(frames, decompressed_sizes=lengths, threads=1)
    return [found[at] for at in range(len(bodies))]


def _decompressor() -> zstandard.ZstdDecompressor:
    """Return this thread's decompressor; making one is as slow as decompressing a short page."""
    if not hasattr(_own, "zstd"):
        _own.zstd = zstandard.ZstdDecompressor()
    found: zstandard.ZstdDecompressor = _own.zstd
    return found


def _is_frame(body: memoryview) -> bool:
    """Whether the bytes are one frame from the first to the last. Spec: RFC 8878, 3.1.1."""
    if len(body) < 6 or body[:4] != _MAGIC:
        return False
    about = body[4]
    whole = about >> 5 & 1
    at = 6 - whole + (0, 1, 2, 4)[about & 3] + (whole, 2, 4, 8)[about >> 6]
    for _ in range(_BLOCKS):
        header = int.from_bytes(body[at : at + 3], "little")
        # A block that repeats one byte stores only that byte.
        at += 3 + (1 if header >> 1 & 3 == 1 else header >> 3)
        if at > len(body):
            return False
        if header & 1:
            return at + (about & 4) == len(body)
    return False


def _of_snappy(bodies: list[memoryview], sizes: list[int]) -> list[Any]:
    """Decompress bodies one by one; returns an empty list if one declares another size."""
    # Arrow would leave the rest of the buffer uninitialized if a body were shorter.
    if any(_snappy_size(body[:5]) != size for body, size in zip(bodies, sizes, strict=True)):
        return []
    codec: Any = pa.Codec("snappy")
    return [codec.decompress(body, size) for body, size in zip(bodies, sizes, strict=True)]


def _snappy_size(head: memoryview) -> int:
    """Return the size that Snappy data declares for its decompressed bytes, -1 if none."""
    size = 0
    for at, byte in enumerate(head):
        size |= (byte & 127) << 7 * at
        if byte < 128:
            return size
    return -1
