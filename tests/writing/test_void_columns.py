"""VOID columns: NULL for readers, and in no file that we write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variantlake as vl
from tests.delta.tables import append, create_table
from variantlake.delta.actions.actions import AddFile
from variantlake.delta.log.snapshot import Snapshot
from variantlake.delta.schema.table_schema import StructType
from variantlake.errors import InvalidSchema
from variantlake.maintenance.rewrite.copy_group import why_not_copied
from variantlake.maintenance.rewrite.groups import FileGroup, RewriteInput, Tier
from variantlake.parquet.write import copy_row_groups
from variantlake.storage.opening import open_store

STRUCT = pa.struct(
    [("a", pa.int64()), ("n", pa.null()), ("e", pa.struct([("n", pa.null()), ("b", pa.int64())]))]
)
COLUMNS: Any = [("id", pa.int64()), ("v", pa.null()), ("s", STRUCT)]
ROWS: Any = [
    {"id": 1, "v": None, "s": {"a": 1, "n": None, "e": {"n": None, "b": 2}}},
    {"id": 2, "v": None, "s": None},
    {"id": 3, "v": None, "s": {"a": None, "n": None, "e": None}},
]


def _create(root: Path, columns: Any, **properties: str) -> vl.Table:
    schema = StructType.from_arrow(pa.schema(columns))
    create_table(open_store(root), schema, properties=properties)
    return vl.Table.open(root)


def _stored(root: Path) -> set[tuple[str, ...]]:
    """The columns of every file below the table's folder but the log's, with their leaves."""
    files = [each for each in root.rglob("*.parquet") if "_delta_log" not in each.parts]
    assert files
    schemas = [pq.ParquetFile(each).schema for each in files]
    return {tuple(each.column(at).path for at in range(len(each))) for each in schemas}


@pytest.mark.parametrize("mapping", ["none", "name", "id"])
def test_no_statement_writes_a_void_column(tmp_path: Path, mapping: str) -> None:
    table = _create(
        tmp_path,
        COLUMNS,
        **{"delta.columnMapping.mode": mapping, "delta.enableChangeDataFeed": "true"},
    )
    rows = pa.Table.from_pylist(ROWS, pa.schema(COLUMNS))
    table.append(rows)
    table.append(rows.slice(0, 1), order_by=["id"])
    table = vl.Table.open(tmp_path)
    table.update({"id": vl.expr("7")}, "id = 2")
    table.delete("id = 3")
    table.optimize()
    table.checkpoint()
    names = {name for stored in _stored(tmp_path) for name in stored}
    leaves = {name.rpartition(".")[2] for name in names}
    assert len(names) == len({"id", "s.a", "s.e.b", "_change_type"})
    if mapping == "none":
        assert names == {"id", "s.a", "s.e.b", "_change_type"}
    assert "n" not in leaves
    assert "v" not in leaves
    found = vl.Table.open(tmp_path).scan().to_arrow()
    assert found.schema.field("v").type == pa.null()
    wanted = [ROWS[0], ROWS[0], {**ROWS[1], "id": 7}]
    assert sorted(found.to_pylist(), key=lambda row: row["id"]) == wanted
    assert vl.Table.open(tmp_path).scan(["id"], where="v IS NOT NULL").to_arrow().num_rows == 0
    assert vl.Table.open(tmp_path).scan(["v"], where="v IS NULL").to_arrow().num_rows == 3


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([("id", pa.int64()), ("a", pa.list_(pa.null()))], r"column 'a' is array<void>"),
        ([("id", pa.int64()), ("m", pa.map_(pa.string(), pa.null()))], "column 'm' is map"),
        ([("id", pa.int64()), ("s", pa.struct([("n", pa.null())]))], "column 's' is struct"),
        ([("id", pa.int64()), ("l", pa.list_(STRUCT))], "column 'l' is array"),
        ([("v", pa.null())], "all of its columns are VOID"),
    ],
)
def test_a_table_that_files_cannot_hold_is_not_written(
    tmp_path: Path, columns: list[tuple[str, Any]], message: str
) -> None:
    table = _create(tmp_path, columns)
    rows = pa.table({name: pa.nulls(2, kind) for name, kind in columns})
    with pytest.raises(InvalidSchema, match=message):
        table.append(rows)
    assert vl.Table.open(tmp_path).scan().to_arrow().num_rows == 0
    # What writes no file goes on.
    table.set_properties({"delta.checkpointInterval": "7"})


def test_files_with_a_void_column_are_read_and_rewritten_without(tmp_path: Path) -> None:
    _create(tmp_path, COLUMNS)
    rows = pa.Table.from_pylist(ROWS, pa.schema(COLUMNS))
    files = [tmp_path / f"{number}.parquet" for number in range(2)]
    for file in files:
        pq.write_table(rows, file)
    append(Snapshot.read(tmp_path), [AddFile(file.name, file.stat().st_size, 1) for file in files])
    before = vl.Table.open(tmp_path).scan().to_arrow()
    assert before.to_pylist() == [*ROWS, *ROWS]
    vl.Table.open(tmp_path).optimize()
    (add,) = Snapshot.read(tmp_path).add_files()
    assert "v" not in pq.read_schema(tmp_path / add.path).names
    assert vl.Table.open(tmp_path).scan().to_arrow() == before


def test_row_groups_with_a_void_column_are_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_row_groups, "MIN_ROW_GROUP_BYTES", 0)
    _create(tmp_path, COLUMNS[:2])
    rows = pa.table({"id": [1, 2], "v": pa.nulls(2)})
    for number in range(2):
        file = tmp_path / f"{number}.parquet"
        pq.write_table(rows, file)
        append(Snapshot.read(tmp_path), [AddFile(file.name, file.stat().st_size, 1)])
    snapshot = Snapshot.read(tmp_path)
    group = FileGroup(
        0,
        tuple(RewriteInput(add.path, add.size, tier=Tier.COPY) for add in snapshot.add_files()),
    )
    assert "VOID" in (why_not_copied(snapshot, group) or "")


def test_a_converted_file_leaves_its_void_column_behind(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "v": pa.nulls(1)}), tmp_path / "a.parquet")
    vl.convert(tmp_path / "t", str(tmp_path / "a.parquet"))
    assert _stored(tmp_path / "t") == {("id",)}
    assert vl.Table.open(tmp_path / "t").scan().to_arrow().to_pylist() == [{"id": 1, "v": None}]
