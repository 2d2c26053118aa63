"""Arguments that cannot be meant are refused with a sentence; nothing is read or written then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake.parquet as vp
from variantlake.errors import InvalidPath, InvalidSchema, InvalidValue, VariantLakeError

ROWS = pa.table({"event": vp.variant_array([{"a": 1}, None])})
ANY: Any = vp  # its functions without their types: what is tested here they forbid


@pytest.fixture
def file(tmp_path: Path) -> Path:
    vp.write_table(ROWS, tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda f: vp.read_table(f, "event"), InvalidPath, "list of names"),
        (lambda f: vp.read_table(f, variant_columns="event"), InvalidPath, "list of names"),
        (lambda f: vp.read_table(f, variant_columns=["x.y"]), InvalidPath, "no group 'x.y'"),
        (lambda f: list(vp.check_file(f, variant_columns=["x"])), InvalidPath, "no group 'x'"),
        (lambda f: vp.inspect_file(f, variant_columns=["x"]), InvalidPath, "no group 'x'"),
        (lambda f: list(vp.iter_batches(f, row_groups=[1])), InvalidValue, "no row group 1"),
        (lambda f: list(vp.iter_batches(f, row_groups=[-1])), InvalidValue, "no row group -1"),
        (lambda f: vp.read_paths(f, {"a": "event:a"}, on_mismatch="x"), InvalidValue, "'x'"),
        (lambda f: ANY.write_table([{"a": 1}], f), InvalidValue, "list is not an Arrow table"),
        (lambda f: ANY.write_table(ROWS, f, shredding=5), InvalidSchema, "type int"),
        (lambda f: ANY.write_table(ROWS, f, shredding={"event": ["a"]}), InvalidSchema, "list"),
    ],
)
def test_what_cannot_be_meant(
    file: Path, call: Callable[[Path], object], error: type[VariantLakeError], message: str
) -> None:
    before = file.read_bytes()
    with pytest.raises(error, match=message):
        call(file)
    assert file.read_bytes() == before


def test_a_record_batch_is_written_as_a_table(tmp_path: Path) -> None:
    vp.write_table(ROWS.to_batches()[0], tmp_path / "t.parquet", shredding="a INT")
    assert vp.variants(vp.read_table(tmp_path / "t.parquet")["event"]) == vp.variants(ROWS["event"])
