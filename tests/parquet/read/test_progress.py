"""Whoever reads or writes a file can show how far it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake.parquet as vp
from variantlake.parquet.write.file_writer import WriteOptions
from variantlake.progress import Progress

ROWS = 20_000
WORK: dict[str, Callable[..., Any]] = {
    "read_table": vp.read_table,
    "iter_batches": lambda file, progress: list(vp.iter_batches(file, 700, progress=progress)),
    "one row group": lambda file, progress: list(
        vp.iter_batches(file, row_groups=[1], progress=progress)
    ),
    "read_paths": lambda file, progress: vp.read_paths(file, {"a": "v:a"}, progress=progress),
    "iter_paths": lambda file, progress: list(
        vp.iter_paths(file, {"a": "v:a"}, 700, progress=progress)
    ),
    "check_file": lambda file, progress: list(vp.check_file(file, progress=progress)),
    "inspect_file": lambda file, progress: vp.inspect_file(file, progress=progress),
}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    column = vp.variant_array([{"a": i, "b": [i]} for i in range(100)])
    return pa.table({"v": pa.chunked_array([column] * (ROWS // 100))})


@pytest.fixture(scope="module")
def file(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("progress") / "t.parquet"
    vp.write_table(table, path, shredding="a INT", options=WriteOptions(row_group_rows=15_000))
    return path


def is_progress(calls: list[Progress], rows: int) -> bool:
    done = [each.done for each in calls]
    return done == sorted(set(done)) and done[-1] == rows and {at.total for at in calls} == {rows}


@pytest.mark.parametrize("name", WORK)
def test_progress_of_reading(file: Path, name: str) -> None:
    calls: list[Progress] = []
    WORK[name](file, progress=calls.append)
    assert is_progress(calls, 5_000 if name == "one row group" else ROWS)
    assert len(calls) > 1 or name == "one row group"


def test_progress_of_writing(table: pa.Table, tmp_path: Path) -> None:
    calls: list[Progress] = []
    vp.write_table(table, tmp_path / "t.parquet", progress=calls.append)
    assert is_progress(calls, ROWS)


def test_the_variants_of_a_file(file: Path) -> None:
    assert vp.find_variants(file) == ("v",)
