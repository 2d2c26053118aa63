"""Blocks of complete lines: every line exactly once, wherever the splits fall."""

from __future__ import annotations

import bz2
import gzip
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.strategies import MORE
from variantlake.errors import MalformedFile, MissingSource
from variantlake.ingest.sources import blocks
from variantlake.ingest.sources.blocks import Block, LongLine, read_blocks
from variantlake.ingest.sources.positions import place_of
from variantlake.ingest.sources.sources import Split, expand, split_sources

PACK: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
    "bz2": bz2.compress,
    "gzip of many members": lambda text: b"".join(
        gzip.compress(text[i : i + 70]) for i in range(0, len(text), 70)
    ),
    "gzip, padded": lambda text: gzip.compress(text) + bytes(300_000),
    "gzip of many members, padded": lambda text: gzip.compress(text) + gzip.compress(b"") + b"\0",
    "zstd behind a frame to skip": lambda text: (
        b"\x5e\x2a\x4d\x18\x04\0\0\0size" + zstandard.compress(text)
    ),
    "zstd of many frames": lambda text: b"".join(
        zstandard.compress(text[i : i + 70]) for i in range(0, len(text), 70)
    ),
}

UNCUT = ("plain", "gzip, padded")
"""Of which less is as good."""

TEXT = b"".join(b'{"n": %d, "text": "%s"}\r\n' % (i, b"x" * (i % 37)) for i in range(40)) + b"\n\n7"


def blocks_of(split: Split, **sizes: int) -> list[Block]:
    found = list(read_blocks(split, **sizes))
    only = [part for part in found if isinstance(part, Block)]
    assert only == found
    return only


def joined(blocks: Iterable[Block]) -> bytes:
    return b"".join(block.text.tobytes() for block in blocks)


lines = st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")), max_size=30)


@settings(max_examples=100 * MORE, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=lines, last=st.booleans(), target=st.integers(1, 60), block=st.integers(1, 40))
@example(lines=[b"", b"a", b""], last=False, target=1, block=1)
def test_every_line_is_in_exactly_one_split(
    tmp_path: Path, lines: list[bytes], last: bool, target: int, block: int
) -> None:
    text = b"\n".join(lines) + (b"\n" if last else b"")
    # The first bytes decide on compression and the byte order mark: keep them ordinary.
    text = b"{}\n" + text
    path = tmp_path / "a.json"
    path.write_bytes(text)
    read = []
    for split in split_sources(expand(path), target):
        for part in blocks_of(split, block_bytes=block):
            content = part.text.tobytes()
            assert text.startswith(content, part.offset)
            assert part.offset == 0 or text[part.offset - 1 : part.offset] == b"\n"
            assert content.endswith(b"\n") or part.offset + len(content) == len(text)
            read.append(content)
    assert b"".join(read) == text


@pytest.mark.parametrize("packing", PACK)
@pytest.mark.parametrize("block", [1, 50, 1 << 20])
def test_compressed_text_is_read_like_plain_text(tmp_path: Path, packing: str, block: int) -> None:
    path = tmp_path / "a"
    path.write_bytes(PACK[packing](TEXT))
    splits = split_sources(expand(path), 100)
    blocks = [part for split in splits for part in blocks_of(split, block_bytes=block)]
    assert joined(blocks) == TEXT
    for part in blocks:
        line = TEXT.count(b"\n", 0, part.offset) + 1
        assert place_of(part.source, part.offset) == {"line": line, "column": 1}


@pytest.mark.parametrize("rest", [b"\0\0x", b"x", b"\x1f\x8b\x08" + b"x" * 50])
def test_what_follows_gzip_and_is_neither_a_member_nor_zeros_is_refused(
    tmp_path: Path, rest: bytes
) -> None:
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(TEXT) + rest)
    (split,) = split_sources(expand(path), 100)
    with pytest.raises(MalformedFile, match="cannot be read"):
        blocks_of(split)


@pytest.mark.parametrize("packing", [name for name in PACK if name not in UNCUT])
def test_a_cut_compressed_source_is_refused(tmp_path: Path, packing: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(PACK[packing](TEXT)[:-3])
    (split,) = split_sources(expand(path), 100)
    with pytest.raises(MalformedFile, match="cannot be read") as caught:
        list(blocks_of(split))
    assert caught.value.file == str(path)


def test_a_byte_order_mark_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"\xef\xbb\xbf{}\n")
    (split,) = split_sources(expand(path), 100)
    (block,) = blocks_of(split)
    assert (block.text.tobytes(), block.offset) == (b"{}\n", 3)


@pytest.mark.parametrize("packing", ["plain", "gzip"])
@pytest.mark.parametrize("end", [b"\n", b"", b"\n2\n", b"\n2"])
@pytest.mark.parametrize("block", [10, 300])
def test_a_line_over_the_limit_is_left_out_with_its_place(
    tmp_path: Path, packing: str, end: bytes, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "MAX_VALUE_BYTES", 100)
    path = tmp_path / "a"
    path.write_bytes(PACK[packing](b"1\n" * 60 + b"x" * 101 + end))
    source = expand(path)[0]
    parts = [
        part
        for split in split_sources([source], 50)
        for part in read_blocks(split, block_bytes=block)
    ]
    assert [part for part in parts if isinstance(part, LongLine)] == [LongLine(source, 120, 100)]
    assert place_of(source, 120) == {"line": 61, "column": 1}
    kept = joined(part for part in parts if isinstance(part, Block))
    assert kept == b"1\n" * 60 + end.removeprefix(b"\n")


@pytest.mark.parametrize("block", [10, 3000])
def test_memory_does_not_follow_a_line_over_the_limit(
    tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "MAX_VALUE_BYTES", 100)
    path = tmp_path / "a"
    path.write_bytes(b"1\n" + b"x" * 5_000_000 + b"\n2\n" + b"y" * 5_000_000 + b"\n3")
    (split,) = split_sources(expand(path), 1 << 30)
    tracemalloc.start()
    parts = list(read_blocks(split, block_bytes=block))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert joined(part for part in parts if isinstance(part, Block)) == b"1\n2\n3"
    assert peak < 1_000_000


def test_a_line_at_the_limit_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "MAX_VALUE_BYTES", 100)
    path = tmp_path / "a"
    path.write_bytes(b"1\n" + b"x" * 100 + b"\n" + b"y" * 100)
    (split,) = split_sources(expand(path), 1000)
    assert joined(blocks_of(split, block_bytes=7)) == path.read_bytes()


def test_a_source_that_vanished_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"1\n")
    source = expand(path)[0]
    path.unlink()
    with pytest.raises(MissingSource):
        list(blocks_of(Split(source, 0, 2)))
