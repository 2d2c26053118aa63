"""Partition columns within data files. Spec: RFC "Materialize Partition Columns"."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import variantlake as vl

FEATURE = {"delta.feature.materializePartitionColumns": "supported"}
PROPERTY = {"delta.writePartitionColumnsToParquet": "true"}
MAPPED = {
    "delta.enableMaterializePartitionColumnsFeature": "true",
    "delta.columnMapping.mode": "name",
}
DAY = dt.date(2026, 1, 1)


def _stored(table: vl.Table, file: str) -> list[tuple[object, ...]]:
    """The partition columns as a file has them."""
    names = [table.schema.fields[at].physical_name for at in (1, 2)]
    columns = pq.read_table(Path(table.uri) / file, columns=names).to_pydict()
    return list(zip(*(columns[name] for name in names), strict=True))


@pytest.mark.parametrize("properties", [FEATURE, PROPERTY, MAPPED], ids=["feature", "", "mapped"])
def test_every_writer_puts_partition_columns_into_files(
    properties: dict[str, str], tmp_path: Path
) -> None:
    table = vl.Table.create(
        tmp_path / "t",
        "event VARIANT, day DATE, k INT",
        partition_by=["day", "k"],
        properties=properties,
    )
    for _ in range(2):
        rows = {"event": ['{"a": 1}', '{"a": 2}'], "day": [DAY, None], "k": [1, None]}
        table.append(pa.table(rows), json_columns=["event"])
    table.optimize()
    table.update({"k": 5}, where="k = 1")
    table.delete("event:a::int = 3")
    assert "materializePartitionColumns" in table.snapshot.features or properties is PROPERTY
    files = table.files().to_pylist()
    assert sorted(map(repr, (_stored(table, file["path"]) for file in files))) == sorted(
        map(repr, ([(DAY, 5)] * 2, [(None, None)] * 2))
    )
    for file in files:
        assert table.schema.fields[2].physical_name not in file["stats"]
    assert table.scan(["k"]).to_arrow()["k"].to_pylist().count(5) == 2


def test_other_tables_have_partition_columns_in_the_log_alone(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", "a INT, k INT", partition_by="k")
    table.append(pa.table({"a": pa.array([1], pa.int32()), "k": pa.array([2], pa.int32())}))
    (file,) = tmp_path.glob("t/*.parquet")
    assert pq.read_schema(file).names == ["a"]
