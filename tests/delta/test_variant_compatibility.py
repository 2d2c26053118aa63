"""The table "Compatibility with other Delta Features" of the Variant data type, row by row."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.delta.schema.ddl import parse_table_ddl
from variantlake.delta.schema.table_schema import StructType
from variantlake.errors import InvalidSchema

DDL = "event VARIANT, n INT, day STRING"
DATA = pa.table({"event": ['{"a": 1}'], "n": pa.array([1], pa.int32()), "day": ["mon"]})


def _with(column: str, **metadata: Any) -> StructType:
    fields = parse_table_ddl(DDL).fields
    keys = {key.replace("delta_", "delta."): value for key, value in metadata.items()}
    return StructType(
        tuple(replace(field, metadata=keys) if field.name == column else field for field in fields)
    )


def test_partition_columns(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", DDL, partition_by=["day"])
    assert table.append(DATA, json_columns=["event"]).version == 1
    with pytest.raises(InvalidSchema, match="'event' is a Variant, which cannot partition"):
        vl.Table.create(tmp_path / "u", DDL, partition_by=["event"])


def test_clustered_tables(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", DDL, cluster_by=["n"])
    assert table.append(DATA, json_columns=["event"]).version == 1
    assert {"clustering", "domainMetadata"} <= table.snapshot.features
    with pytest.raises(InvalidSchema, match="'event' is a Variant, which cannot cluster"):
        vl.Table.create(tmp_path / "u", DDL, cluster_by=["event"])
    with pytest.raises(InvalidSchema, match="either partitioned or clustered"):
        vl.Table.create(tmp_path / "u", DDL, cluster_by=["n"], partition_by=["day"])


@pytest.mark.parametrize("shredding", ["true", "false"])
def test_column_statistics(tmp_path: Path, shredding: str) -> None:
    properties = {"delta.enableVariantShredding": shredding}
    table = vl.Table.create(tmp_path, DDL, properties=properties)
    table.append(DATA, json_columns=["event"])
    (add,) = table.refresh().snapshot.add_files()
    stats = json.loads(add.stats or "")
    assert stats["nullCount"]["event"] == 0
    bounded = shredding == "true"
    assert [("event" in stats[side]) for side in ("minValues", "maxValues")] == [bounded, bounded]


def test_generated_columns(tmp_path: Path) -> None:
    source = _with("n", delta_generationExpression="variant_get(event, '$.a', 'int')")
    table = vl.Table.create(tmp_path / "t", source)
    assert "generatedColumns" in table.snapshot.features
    with pytest.raises(InvalidSchema, match="'event' is generated, and holds a Variant"):
        vl.Table.create(
            tmp_path / "u", _with("event", delta_generationExpression="parse_json('1')")
        )


def test_check_constraints(tmp_path: Path) -> None:
    constraint = {"delta.constraints.a": "variant_get(event, '$.a', 'int') > 0"}
    table = vl.Table.create(tmp_path, DDL, properties=constraint)
    assert "checkConstraints" in table.snapshot.features


def test_default_column_values(tmp_path: Path) -> None:
    table = vl.Table.create(tmp_path / "t", _with("event", CURRENT_DEFAULT="NULL"))
    assert "allowColumnDefaults" in table.snapshot.features
    assert table.append(DATA.drop_columns(["event"])).version == 1
    with pytest.raises(InvalidSchema, match="whose default is NULL"):
        vl.Table.create(tmp_path / "u", _with("event", CURRENT_DEFAULT="parse_json('1')"))


def test_change_data_feed(tmp_path: Path) -> None:
    """Delta Spark reads the changes: `test_delta_spark_writes`."""
    table = vl.Table.create(tmp_path, DDL, properties={"delta.enableChangeDataFeed": "true"})
    assert "changeDataFeed" in table.snapshot.features
    assert table.append(DATA, json_columns=["event"]).version == 1
