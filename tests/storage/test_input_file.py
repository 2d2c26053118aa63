"""Files read by ranges: few requests to a store, and the same bytes wherever they are kept."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import variantlake as vl
from variantlake.errors import InvalidValue, MissingSource, StoreFailed
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.read.reader import VariantFile
from variantlake.storage.input_file import WINDOW_BYTES, InputFile, ObjectFile
from variantlake.storage.opening import open_file
from variantlake.storage.options import fall_back_to, set_storage_options, storage_options


class Requests:
    """An object in memory that writes down what is asked of it."""

    name = "s3://b/x"

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.requested: list[tuple[int, int]] = []

    def tail(self, length: int) -> tuple[bytes, int]:
        self.requested.append((max(len(self.data) - length, 0), len(self.data)))
        return self.data[-length:], len(self.data)

    def read(self, starts: Sequence[int], lengths: Sequence[int]) -> list[memoryview]:
        self.requested += [(s, s + n) for s, n in zip(starts, lengths, strict=True)]
        whole = memoryview(self.data)
        return [whole[s : s + n] for s, n in zip(starts, lengths, strict=True)]


def _file(found: Requests, size: int | None = None, window: int = WINDOW_BYTES) -> ObjectFile:
    return ObjectFile(found.name, found.tail, found.read, size, window)


@given(st.data())
def test_an_object_reads_as_a_file_does(data: st.DataObject) -> None:
    text = bytes(range(256)) * 3
    size = data.draw(st.sampled_from([None, len(text)]))
    found = _file(Requests(text), size, window=data.draw(st.integers(1, 300)))
    peer = io.BytesIO(text)
    for _ in range(data.draw(st.integers(1, 8))):
        match data.draw(st.sampled_from(["seek", "read", "into", "prefetch"])):
            case "seek":
                whence = data.draw(st.sampled_from([io.SEEK_SET, io.SEEK_END]))
                offset = data.draw(st.integers(0, 500)) - (whence and 500)
                assert found.seek(offset, whence) == peer.seek(offset, whence)
            case "read":
                wanted = data.draw(st.integers(-1, 400))
                assert found.read(wanted) == peer.read(wanted)
            case "into":
                buffer = bytearray(data.draw(st.integers(1, 300)))
                count = found.readinto(memoryview(buffer))
                assert bytes(buffer[:count]) == peer.read(count)
                assert count or not peer.read(1)
            case "prefetch":
                ranges = st.tuples(st.integers(-9, 800), st.integers(-9, 800))
                found.prefetch(data.draw(st.lists(ranges, max_size=4)))
        assert found.tell() == peer.tell()


def test_a_row_group_takes_one_request_for_the_columns_it_needs_and_the_footer_one() -> None:
    sink = io.BytesIO()
    numbers = pa.array(range(40_000), pa.int64())
    columns = dict.fromkeys("abc", numbers)
    pq.write_table(
        pa.table(columns), sink, row_group_size=20_000, compression="none", use_dictionary=False
    )
    requests = Requests(sink.getvalue())
    file = InputFile.of_object(_file(requests))
    footer = read_footer(file)
    with VariantFile(file, ["b"]) as opened:
        rows = sum(batch.num_rows for batch in opened.batches(row_groups=[1]))
    assert rows == 20_000
    chunk = footer.row_groups[1].columns[1]
    start = chunk.first_page
    assert requests.requested[1:] == [(start, start + chunk.compressed_size)]


def test_an_object_that_became_shorter_is_an_error() -> None:
    requests = Requests(b"0123456789")
    found = _file(requests, 10)
    requests.data = b"01234"
    with pytest.raises(StoreFailed, match="shorter"):
        found.read(8)


def test_a_local_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingSource, match="no such file"):
        open_file(tmp_path / "none")
    with pytest.raises(MissingSource, match="a folder"):
        open_file(tmp_path)


def test_sparks_settings_serve_until_credentials_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in storage_options():
        monkeypatch.delenv(name)
    spark = {"AWS_ACCESS_KEY_ID": "of spark", "AWS_SECRET_ACCESS_KEY": "s"}
    fall_back_to(spark)
    try:
        monkeypatch.setenv("AWS_REGION", "here")
        assert storage_options() == {**spark, "AWS_REGION": "here"}
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of the environment")
        assert "AWS_SECRET_ACCESS_KEY" not in storage_options()
    finally:
        fall_back_to({})


def test_options_are_given_once_and_win_over_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://environment")
    monkeypatch.setenv("AWS_REGION", "here")
    assert storage_options()["AWS_ENDPOINT_URL"] == "http://environment"
    try:
        vl.set_storage_options({"aws_endpoint": "http://given"})
        found = storage_options()
        assert found["AWS_ENDPOINT"] == "http://given"
        assert "AWS_ENDPOINT_URL" not in found
        assert found["AWS_REGION"] == "here"
        with pytest.raises(InvalidValue, match="AWS_ENDPOINTS"):
            set_storage_options({"AWS_ENDPOINTS": "x"})
    finally:
        set_storage_options({})
