"""Physical names in a schema count only in a mode, and with the feature. Spec: "Column Mapping"."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import variantlake as vl
from variantlake.spark.lake import connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = [{"a": n, "s": {"x": -n}, "p": "k"} for n in range(3)]
MODES = {"none": "none", "no property": None, "no feature": "name"}


def table_with_names_left(path: Path, mode: str | None) -> vl.Table:
    """A table whose schema has physical names and ids that its files do not have."""
    table = vl.Table.create(path, "a INT, s STRUCT<x: INT>, p STRING", partition_by=["p"])
    table.append(ROWS)
    log = path / f"_delta_log/{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            schema = json.loads(action["metaData"]["schemaString"])
            named(schema)
            action["metaData"]["schemaString"] = json.dumps(schema)
            if mode is not None:
                action["metaData"]["configuration"]["delta.columnMapping.mode"] = mode
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))
    for checksum in path.glob("_delta_log/*.crc"):
        checksum.unlink()
    return vl.Table.open(path)


def named(struct: dict[str, Any]) -> None:
    for number, field in enumerate(struct["fields"], 1):
        field["metadata"] = {
            "delta.columnMapping.id": number,
            "delta.columnMapping.physicalName": f"col-{field['name']}",
        }
        if isinstance(field["type"], dict):
            named(field["type"])


@pytest.mark.parametrize("mode", MODES)
def test_files_have_the_names_of_the_table(tmp_path: Path, mode: str) -> None:
    table = table_with_names_left(tmp_path, MODES[mode])
    assert sorted(table.scan().to_pylist(), key=lambda row: row["a"]) == ROWS
    assert table.scan("a", where="a = 1 AND p = 'k' AND s.x = -1").to_pylist() == [{"a": 1}]
    if mode != "no feature":
        table.append([{"a": 3, "s": {"x": -3}, "p": "k"}])
        table.set_properties({"delta.columnMapping.mode": "name"})
        table.rename_column("a", "b")
        assert sorted(row["b"] for row in table.scan().to_pylist()) == [0, 1, 2, 3]


@pytest.mark.spark
def test_spark_reads_them_so(spark: SparkSession, tmp_path: Path) -> None:
    lake = connect(spark)
    for mode, value in MODES.items():
        path = tmp_path / mode.replace(" ", "_")
        table_with_names_left(path, value)
        rows = lake.sql(f"SELECT a, s.x, p FROM delta.`{path}` WHERE a > 0 ORDER BY a").collect()
        assert [tuple(row) for row in rows] == [(1, -1, "k"), (2, -2, "k")], mode
