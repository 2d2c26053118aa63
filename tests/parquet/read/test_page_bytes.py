"""The bytes of pages: what their frames and checksums say, and nothing else."""

from __future__ import annotations

import random
import zlib
from typing import Any

import pyarrow as pa
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from variantlake.kernels.log.page_headers import (
    CRC,
    DATA_PAGE,
    DATA_PAGE_V2,
    KIND,
    LEVELS,
    NO_CRC,
    OTHER_LEVELS,
    PACKED,
    SLOTS,
    START,
    UNPACKED,
)
from variantlake.parquet.read.page_bytes import PageBytes

bodies = st.lists(st.binary(max_size=40) | st.binary(max_size=9).map(lambda b: b * 3000))


def chunk_of(
    packed: list[bytes], sizes: list[int], codec: str, *, checked: bool = True
) -> tuple[PageBytes, list[list[int]]]:
    """Pages of values without levels, one after the other."""
    pages, start = [], 0
    for body, size in zip(packed, sizes, strict=True):
        page = [0] * SLOTS
        page[KIND], page[START], page[PACKED], page[UNPACKED] = DATA_PAGE, start, len(body), size
        page[CRC] = zlib.crc32(body) if checked else NO_CRC
        pages.append(page)
        start += len(body)
    return PageBytes(memoryview(b"".join(packed)), codec, 0), pages


def values_of(chunk: PageBytes, pages: list[list[int]]) -> list[bytes] | None:
    found = chunk.parts(pages)
    return None if found is None else [bytes(values) for _, values in found]


def packed_by(codec: str, text: bytes, *, says_size: bool = True) -> bytes:
    if codec == "ZSTD":
        return zstandard.ZstdCompressor(write_content_size=says_size).compress(text)
    snappy: Any = pa.Codec("snappy")
    return bytes(snappy.compress(text)) if codec == "SNAPPY" else text


@pytest.mark.rule(36)
@settings(deadline=None)
@given(
    texts=bodies,
    codec=st.sampled_from(["ZSTD", "SNAPPY", "UNCOMPRESSED"]),
    checked=st.booleans(),
    says_size=st.booleans(),
)
def test_pages_are_what_was_packed(
    texts: list[bytes], codec: str, checked: bool, says_size: bool
) -> None:
    packed = [packed_by(codec, text, says_size=says_size) for text in texts]
    chunk, pages = chunk_of(packed, [len(text) for text in texts], codec, checked=checked)
    assert values_of(chunk, pages) == texts


def test_a_long_page_has_the_checksum_of_all_its_bytes() -> None:
    text = random.Random(1).randbytes(300_000)
    for size in (5119, 5120, 5121, 131_072, 131_073, 300_000):
        chunk, pages = chunk_of([text[:size]], [size], "UNCOMPRESSED")
        assert values_of(chunk, pages) == [text[:size]]
        pages[0][CRC] ^= 1
        assert values_of(chunk, pages) is None


def test_a_page_that_has_repetition_levels_is_left_to_pyarrow() -> None:
    for levels, others, sound in ((0, 0, True), (2, 0, True), (0, 2, False), (2, 2, False)):
        chunk, pages = chunk_of([b"abcdef"], [6], "UNCOMPRESSED")
        pages[0][KIND], pages[0][LEVELS], pages[0][OTHER_LEVELS] = DATA_PAGE_V2, levels, others
        assert values_of(chunk, pages) == ([b"abcdef"[levels:]] if sound else None)


@pytest.mark.rule(36)
@pytest.mark.parametrize("change", ["more", "less", "two", "none", "skipped"])
def test_rule_36_what_is_not_one_frame_is_left_to_pyarrow(change: str) -> None:
    frame = zstandard.compress(b"abc" * 99)
    skipped = b"\x50\x2a\x4d\x18\x01\x00\x00\x00x"
    changed = {
        "more": frame + b"x",
        "less": frame[:-1],
        "two": frame + zstandard.compress(b""),
        "none": b"",
        "skipped": skipped + frame,
    }[change]
    for others in (0, 3):
        packed = [frame] * others + [changed]
        chunk, pages = chunk_of(packed, [297] * len(packed), "ZSTD")
        assert values_of(chunk, pages) is None


def test_changed_frames_are_what_the_strict_decompressor_makes_of_them() -> None:
    chance = random.Random(5)
    accepted = 0
    for _ in range(2000):
        texts = [chance.choice((b"", b"ab" * 300, b"c")) * chance.randrange(4) for _ in range(5)]
        sizes = [len(text) for text in texts]
        level = zstandard.ZstdCompressor(write_checksum=chance.random() < 0.5)
        packed = [bytearray(level.compress(text)) for text in texts]
        for _ in range(chance.randrange(3)):
            one = chance.choice(packed)
            one[chance.randrange(len(one))] ^= 1 << chance.randrange(8)
        if chance.random() < 0.3:
            sizes[chance.randrange(5)] += chance.choice((1, 70_000))
        chunk, pages = chunk_of([bytes(each) for each in packed], sizes, "ZSTD")
        found = values_of(chunk, pages)
        if found is None:
            continue
        accepted += 1
        for each, text, size in zip(packed, found, sizes, strict=True):
            whole = zstandard.ZstdDecompressor().decompress(bytes(each), size + 1)
            assert whole == text
            assert len(text) == size
    assert accepted > 300
