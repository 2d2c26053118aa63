"""Blocks of complete lines: every line exactly once, wherever the splits fall."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from variantlake.arrow.blocks import Block, line_number, read_blocks
from variantlake.arrow.sources import Split, expand, split_sources
from variantlake.errors import LimitExceeded, MalformedFile, MissingSource

PACK: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
    "bz2": bz2.compress,
    "gzip of many members": lambda text: b"".join(
        gzip.compress(text[i : i + 70]) for i in range(0, len(text), 70)
    ),
    "zstd of many frames": lambda text: b"".join(
        zstandard.compress(text[i : i + 70]) for i in range(0, len(text), 70)
    ),
}

TEXT = b"".join(b'{"n": %d, "text": "%s"}\r\n' % (i, b"x" * (i % 37)) for i in range(40)) + b"\n\n7"


def joined(blocks: Iterable[Block]) -> bytes:
    return b"".join(block.text.tobytes() for block in blocks)


lines = st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")), max_size=30)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
        for part in read_blocks(split, block_bytes=block):
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
    blocks = [part for split in splits for part in read_blocks(split, block_bytes=block)]
    assert joined(blocks) == TEXT
    for part in blocks:
        assert line_number(part.source, part.offset) == TEXT.count(b"\n", 0, part.offset) + 1


@pytest.mark.parametrize("packing", [name for name in PACK if name != "plain"])
def test_a_cut_compressed_source_is_refused(tmp_path: Path, packing: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(PACK[packing](TEXT)[:-3])
    (split,) = split_sources(expand(path), 100)
    with pytest.raises(MalformedFile, match="cannot be read") as caught:
        list(read_blocks(split))
    assert caught.value.file == str(path)


def test_a_byte_order_mark_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"\xef\xbb\xbf{}\n")
    (split,) = split_sources(expand(path), 100)
    (block,) = read_blocks(split)
    assert (block.text.tobytes(), block.offset) == (b"{}\n", 3)


@pytest.mark.parametrize("packing", ["plain", "gzip"])
@pytest.mark.parametrize("end", [b"\n", b""])
@pytest.mark.parametrize("block", [10, 300])
def test_a_line_over_the_limit_is_refused_with_its_position(
    tmp_path: Path, packing: str, end: bytes, block: int
) -> None:
    path = tmp_path / "a"
    path.write_bytes(PACK[packing](b"1\n" * 60 + b"x" * 101 + end))
    splits = split_sources(expand(path), 50)

    def read() -> list[Block]:
        sizes = {"block_bytes": block, "max_line_bytes": 100}
        return [part for split in splits for part in read_blocks(split, **sizes)]

    with pytest.raises(LimitExceeded) as caught:
        read()
    assert (caught.value.file, caught.value.line, caught.value.column) == (str(path), 61, 1)


def test_a_line_at_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"1\n" + b"x" * 100 + b"\n" + b"y" * 100)
    (split,) = split_sources(expand(path), 1000)
    assert joined(read_blocks(split, block_bytes=7, max_line_bytes=100)) == path.read_bytes()


def test_a_source_that_vanished_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"1\n")
    source = expand(path)[0]
    path.unlink()
    with pytest.raises(MissingSource):
        list(read_blocks(Split(source, 0, 2)))
