"""Clustered tables: PROTOCOL, "Clustered Table"."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint
from variantlake.delta.log.log_segment import commit_path
from variantlake.errors import InvalidQuery, InvalidSchema

DDL = "first INT, event VARIANT, last INT"


@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_clustering_columns_have_statistics_wherever_they_stand(
    tmp_path: Path, policy: str
) -> None:
    properties = {
        "delta.dataSkippingNumIndexedCols": "1",
        "delta.checkpoint.writeStatsAsJson": "false",
        "delta.checkpointPolicy": policy,
    }
    table = vl.Table.create(tmp_path, DDL, cluster_by=["last"], properties=properties)
    rows = pa.table({"first": pa.array([1], pa.int32()), "last": pa.array([7], pa.int32())})
    table.append(rows)
    table.overwrite(rows)
    expected = {"first": 1, "last": 7}
    (add,) = table.refresh().snapshot.add_files()
    assert json.loads(add.stats or "")["maxValues"] == expected
    # And in a checkpoint that has nothing else.
    write_checkpoint(table.snapshot.store)
    for version in range(3):
        (tmp_path / commit_path(version)).unlink()
    (add,) = vl.Table.open(tmp_path).snapshot.add_files()
    assert json.loads(add.stats or "")["maxValues"] == expected


def test_fields_of_structs_cluster_a_table(tmp_path: Path) -> None:
    """And columns that cannot are refused: nothing is passed over."""
    ddl = "a INT, s STRUCT<x: INT, y: STRING>, event VARIANT, l ARRAY<INT>"
    properties = {"delta.columnMapping.mode": "name", "delta.dataSkippingNumIndexedCols": "0"}
    table = vl.Table.create(tmp_path, ddl, cluster_by=["s.x", "a"], properties=properties)
    s = pa.array([{"x": 7, "y": "q"}], pa.struct([("x", pa.int32()), ("y", pa.string())]))
    table.append(pa.table({"a": pa.array([1], pa.int32()), "s": s}))
    assert table.scan(where="a = 2").explain().to_dict()["files"]["skipped"] == 1
    table.alter("CLUSTER BY (S.y)")
    (entry,) = table.history(1)
    assert entry.info["operationParameters"] == {
        "oldClusteringColumns": "s.x,a",
        "newClusteringColumns": "s.y",
    }
    with pytest.raises(InvalidSchema, match="clustered by it"):
        table.drop_columns("s.y")
    table.rename_column("s.y", "z")
    for column in ("s", "event", "l", "l.element", "nope", "s.nope"):
        with pytest.raises(InvalidSchema):
            table.alter(f"CLUSTER BY ({column})")
    for text in ("CLUSTER BY (a b)", "CLUSTER BY (a + 1)", "CLUSTER BY ()", "CLUSTER BY a"):
        with pytest.raises(InvalidQuery):
            table.alter(text)
    table.alter("CLUSTER BY (`s`.z)")
    assert table.history(1)[0].operation == "RENAME COLUMN"  # it is so already
    table.alter("CLUSTER BY (`s`.z, a)")
    (entry,) = table.history(1)
    assert entry.info["operationParameters"]["oldClusteringColumns"] == "s.z"


def test_clustering_columns_are_in_the_domain_that_the_protocol_names(tmp_path: Path) -> None:
    vl.Table.create(tmp_path, DDL, cluster_by=["last"])
    lines = (tmp_path / "_delta_log" / f"{0:020}.json").read_text().splitlines()
    (domain,) = [d for line in lines if (d := json.loads(line).get("domainMetadata"))]
    assert domain["domain"] == "delta.clustering"
    assert json.loads(domain["configuration"])["clusteringColumns"] == [["last"]]
