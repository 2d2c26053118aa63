"""The proof of a rewrite: rows that get lost or change on the way stop it before the commit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.encoding.json import parse_json
from variantlake.errors import MalformedFile
from variantlake.maintenance.digest import FileDigester
from variantlake.maintenance.rewrite.stored_rows import InputRows, StoredRows
from variantlake.parquet.variant.variant_arrays import variant_array
from variantlake.parquet.write.file_writer import FileWriter


def rows(start: int, stop: int) -> pa.Table:
    texts = [json.dumps({"n": i, "k": f"k{i}", "x": [i, {"y": i / 4}]}) for i in range(start, stop)]
    return pa.table(
        {
            "id": pa.array(range(start, stop), pa.int64()),
            "event": variant_array([parse_json(text) for text in texts]),
            "at": pa.array([{"Lon": i / 2, "p": [i]} for i in range(start, stop)]),
        }
    )


def made(folder: Path, **options: Any) -> vl.Table:
    ddl = "id BIGINT, event VARIANT, at STRUCT<Lon: DOUBLE, p: ARRAY<BIGINT>>"
    vl.Table.create(folder, ddl, **options)
    for number in range(3):
        vl.Table.open(folder).append(rows(number * 20, number * 20 + 20))
    return vl.Table.open(folder)


@pytest.mark.parametrize("mode", ["none", "name"])
def test_a_rewrite_that_keeps_its_rows_is_committed(tmp_path: Path, mode: str) -> None:
    """With mapped columns the new file is read again, for names in structs differ."""
    table = made(tmp_path, properties={"delta.columnMapping.mode": mode})
    digest = table.digest()
    done = table.optimize()
    assert len(done.versions) == 1
    assert vl.Table.open(tmp_path).digest() == digest
    assert vl.Table.open(tmp_path).check_rewrite().equal


@pytest.mark.parametrize(
    "shredding", ["n BIGINT, x ARRAY<VARIANT>", "k STRING, nothing STRUCT<a: INT>"]
)
def test_files_are_read_once_where_all_is_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shredding: str
) -> None:
    """Also rows whose Variants are shredded anew, and files of both kinds."""
    table = made(tmp_path, shredding={"event": shredding})
    table.set_properties({"variantlake.shredding.event": "k STRING, n BIGINT"})
    vl.Table.open(tmp_path).append(rows(60, 90))
    monkeypatch.setattr(FileDigester, "digest", None)
    assert len(vl.Table.open(tmp_path).optimize().versions) == 1


def change(table: Any, row: int) -> Any:
    """The rows with another id in one of them."""
    ids = table["id"].to_pylist()
    ids[row] += 1000
    return table.set_column(0, table.schema.field(0), pa.array(ids, pa.int64()))


def test_a_row_that_changes_on_the_way_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path)
    stored = InputRows._stored

    def broken(self: InputRows, pieces: Any) -> StoredRows:
        found = stored(self, pieces)
        assert [piece.file.path for piece in pieces][1] == second  # rows of all files at once
        return StoredRows(change(found.batch, 27), found.notes, found.apart)

    second = [add.path for add in table.snapshot.add_files()][1]
    monkeypatch.setattr(InputRows, "_stored", broken)
    with pytest.raises(MalformedFile, match="changed this row") as raised:
        table.optimize()
    assert raised.value.row == 7
    assert raised.value.file == table.snapshot.location(second)
    left = vl.Table.open(tmp_path)
    assert left.version == table.version
    assert len(list(tmp_path.glob("*.parquet"))) == 3
    assert len(table.optimize(digest=False).versions) == 1


def test_rows_that_a_writer_loses_or_doubles_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path)
    write = FileWriter._write_row_group

    def broken(self: FileWriter, given: Any) -> None:
        write(self, pa.concat_tables([given.slice(0, 1), given.slice(0, 1), given.slice(2)]))

    monkeypatch.setattr(FileWriter, "_write_row_group", broken)
    with pytest.raises(MalformedFile, match="lost or changed") as raised:
        table.optimize()
    assert raised.value.row == 1
    assert vl.Table.open(tmp_path).version == table.version
