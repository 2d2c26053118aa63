"""Files whose texts are views, as delta-rs writes them: pyarrow cannot filter or sort those."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

import variantlake as vl

ROWS = pa.table(
    {
        "id": pa.array(range(6), pa.int64()),
        "name": pa.array(["a", "b", None, "d", "e", "f"], pa.string_view()),
        "raw": pa.array([b"1", b"2", b"3", None, b"5", b"6"], pa.binary_view()),
        "more": pa.array(
            [{"text": f"t{n}", "list": [f"l{n}", None]} for n in range(6)],
            pa.struct([("text", pa.string_view()), ("list", pa.list_(pa.string_view()))]),
        ),
    }
)


@pytest.fixture
def table(tmp_path: Path) -> vl.Table:
    """A table of one file of theirs."""
    deltalake.write_deltalake(tmp_path, ROWS)
    table = vl.Table.open(tmp_path)
    (path,) = tmp_path.glob("*.parquet")
    assert b"ARROW:schema" in path.read_bytes()
    return table


def test_rows_are_copied(table: vl.Table) -> None:
    table.delete("id = 1")
    kept = [row for row in ROWS.to_pylist() if row["id"] != 1]
    assert table.scan().to_arrow().sort_by("id").to_pylist() == kept


def test_rows_are_changed_and_merged(table: vl.Table) -> None:
    table.update({"name": "new"}, "name = 'd' OR id = 0")
    table.upsert([{"id": 1, "name": "merged", "raw": b"m", "more": None}], key="id")
    names = table.scan(["id", "name"]).to_arrow().sort_by("id")["name"].to_pylist()
    assert names == ["new", "merged", None, "new", "e", "f"]


def test_files_are_compacted_and_sorted(table: vl.Table) -> None:
    deltalake.write_deltalake(table.uri, ROWS, mode="append")
    table.refresh()
    before = table.digest()
    table.optimize()
    table.set_clustering("name")
    table.cluster()
    assert table.digest() == before
    assert table.scan().to_arrow().num_rows == 12
