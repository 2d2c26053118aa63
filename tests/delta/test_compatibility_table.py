"""Each row of the table "Compatibility with other Delta Features" of the Variant RFC, as it is now.

Spec: delta-variant-type, and the final protocol, which lifts the row on statistics where
`variantShredding` is enabled. What those statistics are stands in test_stats.
"""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.delta.actions.actions import Protocol
from variantlake.delta.protocol.features import check_readable, check_writable
from variantlake.delta.schema.table_schema import StructType
from variantlake.errors import InvalidSchema, UnsupportedFeature
from variantlake.parquet.variant.variant_arrays import variant_array
from variantlake.table import Table

SCHEMA = "v VARIANT, day DATE, n BIGINT"


def rows() -> pa.Table:
    values = variant_array([vl.parse_json('{"a": 1}'), None])
    return pa.table({"v": values, "day": [dt.date(2026, 1, 2)] * 2, "n": [1, 2]})


def schema_with(name: str, kind: str, metadata: dict[str, Any]) -> StructType:
    """The Variant column `v`, and one more."""
    fields = [
        {"name": "v", "type": "variant", "nullable": True, "metadata": {}},
        {"name": name, "type": kind, "nullable": True, "metadata": metadata},
    ]
    return StructType.from_json(json.dumps({"type": "struct", "fields": fields}))


def protocol(*features: str) -> Protocol:
    return Protocol(3, 7, ("variantType",), ("variantType", *features))


def test_partition_columns(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", SCHEMA, partition_by=["day"])
    table.append(rows())
    assert Table.open(tmp_path / "t").files().num_rows == 1
    with pytest.raises(InvalidSchema, match="'v' is a Variant, which cannot partition"):
        Table.create(tmp_path / "u", SCHEMA, partition_by=["v"])


def test_clustered_tables(tmp_path: Path) -> None:
    Table.create(tmp_path / "t", SCHEMA, cluster_by=["day"]).append(rows())
    with pytest.raises(InvalidSchema, match="'v' is a Variant, which cannot cluster"):
        Table.create(tmp_path / "u", SCHEMA, cluster_by=["v"])


@pytest.mark.parametrize("shredded", ["true", "false"])
def test_column_statistics(tmp_path: Path, shredded: str) -> None:
    properties = {"delta.enableVariantShredding": shredded}
    Table.create(tmp_path / "t", SCHEMA, properties=properties).append(rows())
    (add,) = Table.open(tmp_path / "t").snapshot.add_files()
    stats = json.loads(add.stats or "{}")
    assert stats["nullCount"]["v"] == 1
    for bounds in (stats["minValues"], stats["maxValues"]):
        assert ("v" in bounds) == (shredded == "true")


@pytest.mark.parametrize(
    ("feature", "properties", "metadata"),
    [
        ("generatedColumns", {}, {"delta.generationExpression": "variant_get(v, '$.a', 'int')"}),
        ("checkConstraints", {"delta.constraints.c": "variant_get(v, '$.a', 'int') > 0"}, {}),
    ],
    ids=["generated-columns", "check-constraints"],
)
def test_expressions_of_a_variant(
    feature: str, properties: dict[str, str], metadata: dict[str, str]
) -> None:
    """Generated columns and CHECK constraints: Spark evaluates them, and we read what it wrote."""
    schema = schema_with("n", "integer", metadata)
    check_readable(protocol(feature), properties, schema)
    check_writable(protocol(feature), properties, schema, evaluated=True)
    with pytest.raises(UnsupportedFeature, match=feature):
        check_writable(protocol(feature), properties, schema)


def test_default_column_values(tmp_path: Path) -> None:
    """A Variant column's default is null, which is what a column that is not given holds."""
    table = Table.create(tmp_path / "t", schema_with("w", "variant", {"CURRENT_DEFAULT": "NULL"}))
    table.append(pa.table({"v": rows()["v"]}))
    found = Table.open(tmp_path / "t").scan("v:a::int AS a, w").to_arrow()
    assert found.to_pylist() == [{"a": 1, "w": None}, {"a": None, "w": None}]
    other = schema_with("w", "variant", {"CURRENT_DEFAULT": "parse_json('1')"})
    with pytest.raises(InvalidSchema, match="whose default is NULL"):
        Table.create(tmp_path / "u", other)


def test_change_data_feed(tmp_path: Path) -> None:
    properties = {"delta.enableChangeDataFeed": "true"}
    table = Table.create(tmp_path / "t", SCHEMA, properties=properties)
    table.append(rows())
    table.delete("v:a::int = 1")
    changes = (
        Table.open(tmp_path / "t").changes(1, select="v:a::int AS a, n, _change_type").to_arrow()
    )
    kept = [(each["a"], each["n"], each["_change_type"]) for each in changes.to_pylist()]
    assert sorted(kept, key=str) == [(1, 1, "delete"), (1, 1, "insert"), (None, 2, "insert")]
