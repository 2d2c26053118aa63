"""Loads through Spark check the contract in their tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import variantlake as vl

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTRACT = {"required": ["n"], "properties": {"n": {"type": "integer", "minimum": 0}}}


@pytest.mark.spark
def test_loads_through_spark_check_a_contract(spark: SparkSession, tmp_path: Path) -> None:
    vl.spark.register(spark)
    lake = vl.spark.connect(spark)
    table = str(tmp_path / "t")
    Path(tmp_path, "a.ndjson").write_text('{"n": 1}\n{"n": -1}\n{}\n')
    done = lake.ingest(table, str(tmp_path / "a.ndjson"), contract=CONTRACT)
    assert (done.rows_written, done.rows_bad) == (1, 2)
    frame = spark.sql(
        """SELECT parse_json(x) AS event FROM VALUES ('{"n": 2}'), ('{"n": "x"}') t(x)"""
    )
    done = lake.append(table, frame)
    assert (done.rows_written, done.rows_bad) == (1, 1)
    done = lake.append(table, frame, contract={"type": "object"})
    assert (done.rows_written, done.rows_bad) == (2, 0)
    contract = vl.Table.open(table).contract
    assert contract is not None
    assert (contract.version, contract.schema) == (2, {"type": "object"})
    with pytest.raises(vl.ContractBroken, match=r"\$\.n is \"x\""):
        lake.append(table, frame, contract=CONTRACT, mode="strict")
    frame.write.format("variantlake").mode("append").save(table)
    assert vl.Table.open(table).scan().count() == 6
