"""Bad documents become lines of the quarantine many at once, the same ones as one by one."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import orjson
import pytest

from tests.kernels.json.test_bad_document import damaged
from tests.strategies import MORE
from variantlake.ingest.encode import bad_documents
from variantlake.ingest.encode.bad_documents import Batch, bad_row, quarantine_lines
from variantlake.ingest.encode.documents import read_batches
from variantlake.ingest.sources.positions import PlaceCounter
from variantlake.ingest.sources.sources import Documents, json_files, ndjson, split_sources
from variantlake.kernels.json.json_reader import JsonReader


def compare(documents: Documents, *, block_bytes: int) -> int:
    """Compare the lines of all bad documents; returns how many there are."""
    (split,) = split_sources(documents.sources, 1 << 30)
    counter, one_by_one, count = PlaceCounter(split.source), PlaceCounter(split.source), 0
    for batch in read_batches(split, block_bytes=block_bytes):
        assert isinstance(batch, Batch)
        tape = JsonReader().read(batch.block.padded, batch.starts, batch.ends)
        rows = np.flatnonzero(tape.status)
        if len(rows):
            lines = b"".join(map(bytes, quarantine_lines(batch, tape, rows, counter)))
            wanted = [bad_row(batch, tape, row, one_by_one).to_json() for row in rows.tolist()]
            assert list(map(orjson.loads, lines.splitlines())) == list(map(orjson.loads, wanted))
        counter.leave(batch.block)
        one_by_one.leave(batch.block)
        count += len(rows)
    return count


@pytest.mark.parametrize("block_bytes", [1 << 9, 1 << 22])
@pytest.mark.parametrize("large", [16 << 20, 40])
def test_lines_are_those_of_single_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int, large: int
) -> None:
    monkeypatch.setattr(bad_documents, "_LARGE", large)
    rnd = random.Random(3)
    lines = [damaged(rnd).replace(b"\n", b" ") for _ in range(1000 * MORE)]
    lines += [b'{"a": "\xff"}', b"\xff", b'{"a": "\x7f\x1f"}', b' \t[1, "\xc3\xa9" 2]\r', b"{}"]
    rnd.shuffle(lines)
    source = tmp_path / 'a "é".ndjson'
    source.write_bytes(b"\xef\xbb\xbf" + b"\n".join(lines))
    assert compare(ndjson(source), block_bytes=block_bytes) > 500 * MORE


def test_a_mistake_on_a_later_line_of_a_document(tmp_path: Path) -> None:
    source = tmp_path / "a.json"
    source.write_bytes(b'\n  {"a": 1,\n "\xc3\xa9":\n "\xc3\xa9" x}\n')
    assert compare(json_files(source), block_bytes=1 << 22) == 1
