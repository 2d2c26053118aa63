"""Rows of small files, read at once and converted together, are those of files read one by one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.maintenance.test_optimize import SHREDDED, filled, rows_of
from variantlake.errors import MalformedFile
from variantlake.maintenance.rewrite import stored_rows
from variantlake.table.table import Table


def mixed(folder: Path) -> Table:
    """Small files of two layouts and of an older schema, with deleted rows and row ids."""
    table = Table.create(
        folder,
        "event VARIANT, day STRING",
        properties={
            **SHREDDED,
            "delta.enableRowTracking": "true",
            "delta.enableDeletionVectors": "true",
            "variantlake.shredding.event": "id BIGINT, kind STRING, o STRUCT<x: DECIMAL(9,2)>",
        },
    )
    table = filled(table, 5, day="x")
    table.delete("event:id::bigint IN (3, 17, 18)")
    table.refresh().set_properties({"variantlake.shredding.event": "id BIGINT"})
    filled(table.refresh(), 3, day="y")
    table.refresh().add_column("late INT")
    return filled(table.refresh(), 2, day="z", late=7)


def in_order(table: Table) -> list[tuple[object, ...]]:
    """The rows with their ids, file by file."""
    paths = sorted(str(path) for path in table.files()["path"].to_pylist())
    assert len(paths) == 1
    with Path(table.uri, paths[0]).open("rb") as file:
        stored = pa.BufferReader(file.read())
    return [tuple(row.values()) for row in pq.read_table(stored).to_pylist()]


def test_files_at_once_and_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = mixed(tmp_path / "a")
    expected = rows_of(table)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    shutil.copytree(tmp_path / "a", tmp_path / "c")
    done = table.optimize()
    assert (done.files_read, done.rows_rewritten, done.files_written) == (10, 97, 1)
    assert rows_of(table.refresh()) == expected
    monkeypatch.setattr(stored_rows, "SMALL_BYTES", 0)
    plain = Table.open(tmp_path / "b")
    slowly = plain.optimize()
    assert (slowly.encoded, slowly.reshredded) == (done.encoded, done.reshredded)
    assert in_order(plain.refresh()) == in_order(table.refresh())
    # What unpacks to more than it may is read as it is asked for.
    monkeypatch.setattr(stored_rows, "SMALL_BYTES", 4 << 20)
    monkeypatch.setattr(stored_rows, "AHEAD_BYTES", 0)
    monkeypatch.setattr(stored_rows, "GATHERED_ROWS", 15)
    lazy = Table.open(tmp_path / "c")
    lazy.optimize()
    assert in_order(lazy.refresh()) == in_order(table.refresh())


def test_a_damaged_page_names_its_file(tmp_path: Path) -> None:
    table = filled(Table.create(tmp_path, "event VARIANT", properties=SHREDDED), 4)
    third = Path(table.uri) / str(table.files()["path"].to_pylist()[2])
    data = bytearray(third.read_bytes())
    data[30:60] = bytes(30)
    third.write_bytes(bytes(data))
    with pytest.raises(MalformedFile) as raised:
        table.optimize()
    assert raised.value.file == str(third)
