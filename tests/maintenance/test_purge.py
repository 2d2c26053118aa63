"""What `optimize(purge=True)` rewrites: files with deleted rows, and those with dropped columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variantlake as vl
from variantlake.delta.schema.column_mapping import has_others
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.parquet.metadata.footer import read_footer

COLUMNS = "id INT, n INT, event VARIANT, s STRUCT<x: INT, y: INT>, l ARRAY<STRUCT<q: INT, r: INT>>"


def _table(folder: Path, mode: str) -> vl.Table:
    properties = {
        "delta.columnMapping.mode": mode,
        "delta.enableDeletionVectors": "true",
        "delta.enableRowTracking": "true",
    }
    table = vl.Table.create(folder, COLUMNS, properties=properties)
    for number in range(3):
        table.append(
            [
                {"id": n, "n": n, "event": {"k": n}, "s": {"x": n, "y": n}, "l": [{"q": n, "r": n}]}
                for n in range(10 * number, 10 * number + 5)
            ]
        )
    return table


@pytest.mark.parametrize("mode", ["name", "id"])
@pytest.mark.parametrize("dropped", ["n", "event", "s.x", "l.element.q"])
def test_columns_that_were_dropped_leave_the_files(tmp_path: Path, mode: str, dropped: str) -> None:
    table = _table(tmp_path, mode)
    assert table.optimize(purge=True).versions == ()
    table.drop_columns(dropped)
    table.alter(f"ADD COLUMN {dropped} STRING")
    expected = sorted(map(str, table.scan().to_pylist()))
    assert table.optimize(purge=True, dry_run=True).files_read == 3
    done = table.optimize(purge=True)
    assert (done.files_read, done.files_written) == (3, 1)
    assert sorted(map(str, table.scan().to_pylist())) == expected
    (entry,) = table.history(1)
    assert entry.operation == "REORG"
    assert entry.info["operationParameters"] == {"predicate": "[]", "applyPurge": True}
    assert table.optimize(purge=True).versions == ()
    assert table.drop_columns("id").version
    assert table.optimize(purge=True).files_read == 1


def test_a_purge_rewrites_files_with_deleted_rows_and_no_others(tmp_path: Path) -> None:
    table = _table(tmp_path, "name")
    table.delete("id = 11")
    assert table.optimize(purge=True, where="id > 100").versions == ()
    done = table.optimize(purge=True)
    assert (done.files_read, done.deletion_vectors) == (1, 1)
    assert table.scan().count() == 14
    assert table.files().num_rows == 3


def test_files_of_others_with_more_columns_are_purged_without_mapping(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "more": [2]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"a": [3]}), tmp_path / "b.parquet")
    nodes = read_footer(tmp_path / "a.parquet").schema.children
    assert has_others(parse_table_ddl("A BIGINT"), nodes)
    assert not has_others(parse_table_ddl("more BIGINT, A BIGINT, z INT"), nodes)
