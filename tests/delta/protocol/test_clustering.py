"""Clustered tables: PROTOCOL, "Clustered Table"."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint
from variantlake.delta.log.log_segment import commit_path

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


def test_clustering_columns_are_in_the_domain_that_the_protocol_names(tmp_path: Path) -> None:
    vl.Table.create(tmp_path, DDL, cluster_by=["last"])
    lines = (tmp_path / "_delta_log" / f"{0:020}.json").read_text().splitlines()
    (domain,) = [d for line in lines if (d := json.loads(line).get("domainMetadata"))]
    assert domain["domain"] == "delta.clustering"
    assert json.loads(domain["configuration"])["clusteringColumns"] == [["last"]]
