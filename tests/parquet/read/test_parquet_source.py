"""Errors of a file's row groups: damage is told from a lack of memory."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from variantlake.errors import MalformedFile
from variantlake.parquet.metadata.footer import read_footer
from variantlake.parquet.read.parquet_source import ParquetSource, open_parquet


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (pa.ArrowMemoryError("malloc of size 1048576 failed"), MemoryError),
        (pa.ArrowException("Unknown error: Failed to launch worker thread: x"), MemoryError),
        (pa.ArrowException("Unknown error: of another kind"), MalformedFile),
        (OSError("Couldn't deserialize thrift"), MalformedFile),
    ],
)
def test_a_row_group_without_memory_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, raised: type[Exception]
) -> None:
    def fail(*_: object) -> None:
        raise error

    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"n": [1, 2]}), path)
    source = open_parquet(str(path), "f.parquet", read_footer(path))
    monkeypatch.setattr(ParquetSource, "_batches", fail)
    with pytest.raises(raised):
        list(source.batches(0, [0], 10))
