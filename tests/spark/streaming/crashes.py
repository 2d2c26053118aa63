"""Batches of the sink, killed at every moment around a storage call: each document is there once.

The process that plans, the tasks and the process that commits are one here, and no JVM runs: what
is between them is tried by `kills`. A repeat is what Spark does with a batch that it has not noted.
`python -m tests.spark.streaming.crashes` kills at all moments; prints the counts.
"""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

import variantlake as vl
from tests.delta.crashes import Operation, main
from variantlake.autoloading import auto_compact
from variantlake.spark.load.sink_options import SinkOptions
from variantlake.spark.streaming.sink import TableStreamWriter

COLUMNS = StructType([StructField("event", StringType()), StructField("n", IntegerType())])
TASKS = 2
DOCUMENTS = 3
"""Documents of each task of a batch."""


def ids(root: Path) -> list[int]:
    """The ids in the table, sorted."""
    rows = vl.Table.open(root).scan("event:id::bigint AS id").to_arrow()
    found: list[Any] = rows["id"].to_pylist()
    return sorted(found)


def load(root: Path, number: int, **options: str) -> None:
    """One batch as Spark's processes carry it out, with a document that is not one."""
    given = {"path": str(root), "queryId": "q", "jsonColumns": "event", "mode": "quarantine"}
    sink = TableStreamWriter(SinkOptions.of(given | options), COLUMNS, {})
    first = number * TASKS * DOCUMENTS
    parts = []
    for task in range(TASKS):
        numbers = range(first + task * DOCUMENTS, first + (task + 1) * DOCUMENTS)
        texts = [json.dumps({"id": each}) for each in numbers]
        rows = {"event": [*texts, "none"], "n": pa.array([0, 1, 0, 1], pa.int32())}
        copy = pickle.loads(pickle.dumps(sink))  # noqa: S301 - our own
        parts.append(copy.write(iter([pa.record_batch(rows)])))
    TableStreamWriter(sink._options, COLUMNS, {}).commit(parts, number)


def loaded(root: Path, batches: int, **options: str) -> None:
    """The batches before the one that is interrupted."""
    vl.Table.create(
        root,
        "event VARIANT, n INT",
        partition_by=["n"] if "partitionBy" in options else [],
        properties={"delta.checkpointInterval": "3"},
    )
    for number in range(batches):
        load(root, number, **options)


def operation(batches: int, **options: str) -> Operation:
    """The batch that comes after some others."""

    def check(root: Path) -> None:
        assert ids(root) == list(range((batches + 1) * TASKS * DOCUMENTS))
        transactions = vl.Table.open(root).snapshot.transactions
        assert {name: each.version for name, each in transactions.items()} == {"q": batches}

    def prepare(root: Path) -> None:
        if batches:
            loaded(root, batches, **options)

    def operate(root: Path) -> None:
        with patch.object(auto_compact, "MIN_FILES", 4):
            load(root, batches, **options)

    return Operation(prepare, operate, in_steps=True, check_done=check)


OPERATIONS = {
    "the first batch": operation(0),
    "a batch": operation(1),
    "a batch with its checkpoint": operation(2),
    "a batch of partitions": operation(1, partitionBy="n"),
    "a batch that joins small files": operation(1, autoCompact="true"),
}


if __name__ == "__main__":
    main(OPERATIONS)
