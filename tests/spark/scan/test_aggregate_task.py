"""Partial rows of tasks: merged they are the groups of all rows, however many a task holds."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.expressions.tree import Compare, Literal, Ref
from variantlake.expressions.typing import aggregate
from variantlake.paths import Path as VariantPath
from variantlake.planning.log_files import LogFiles
from variantlake.spark.scan import aggregate_task
from variantlake.spark.scan.aggregate_task import AggregateTask, Groups, flag

NAME = Ref(("event",), VariantPath.parse("$.name"), "string")
K = Ref(("k",), None, "int")
SMALL = Compare("<", K, Literal(40, "int"))
_FIELDS: list[Any] = [
    ("name", pa.string()),
    ("small", pa.bool_()),
    ("rows", pa.int64()),
    ("most", pa.int32()),
]
SCHEMA = pa.schema(_FIELDS)
ROWS, FILES = 60, 3


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> vl.Table:
    made = vl.Table.create(tmp_path_factory.mktemp("task") / "t", "event VARIANT, k INT")
    for _ in range(FILES):
        documents = [json.dumps({"name": f"n{k % 7}"} if k % 5 else {}) for k in range(ROWS)]
        rows = pa.table({"event": documents, "k": pa.array(range(ROWS), pa.int32())})
        made = made.refresh()
        made.append(rows, json_columns=["event"])
    return made.refresh()


def _task(table: vl.Table, where: Compare | None = None) -> AggregateTask:
    groups = Groups(
        (NAME, flag(0)),
        (aggregate("count", None), aggregate("max", K)),
        where,
        (SMALL,),
    )
    files = LogFiles(table.snapshot)
    return AggregateTask.of(
        table.snapshot, list(files.files(np.arange(files.rows))), groups, SCHEMA
    )


def _expected(*, where: bool = False) -> Counter[tuple[str | None, bool]]:
    kept = [k for k in range(ROWS) if k < 40 or not where]
    return Counter({
        (name, small): FILES * count
        for (name, small), count in Counter(
            (f"n{k % 7}" if k % 5 else None, k < 40) for k in kept
        ).items()
    })  # fmt: skip


@pytest.mark.parametrize("held", [1, 5, 1 << 16])
@pytest.mark.parametrize("where", [None, SMALL])
def test_partial_rows_are_parts_of_all_groups(
    table: vl.Table, monkeypatch: pytest.MonkeyPatch, held: int, where: Compare | None
) -> None:
    monkeypatch.setattr(aggregate_task, "MERGED", held)
    task: AggregateTask = pickle.loads(pickle.dumps(_task(table, where)))  # noqa: S301 - our own
    found: Counter[tuple[str | None, bool]] = Counter()
    rows = 0
    for number in range(len(task.parts)):
        for batch in task(number):
            rows += batch.num_rows
            for row in batch.to_pylist():
                found[row["name"], row["small"]] += row["rows"]
                assert row["most"] < 40 or not row["small"]
    expected = _expected(where=where is not None)
    assert found == expected
    # Of few groups each is given once by a task.
    assert rows == len(expected) if held > 5 else rows > len(expected)


def test_rows_that_the_log_gives_are_those_of_the_first_task(table: vl.Table) -> None:
    known = pa.record_batch([["x"], [True], [7], pa.array([1], pa.int32())], schema=SCHEMA)
    task = AggregateTask.of(table.snapshot, [], _task(table).groups, SCHEMA, known=known)
    assert [batch.to_pylist() for batch in task(0)] == [known.to_pylist()]


def test_a_sample_tells_rows_and_groups_of_the_first_row_group(table: vl.Table) -> None:
    assert _task(table).sample() == (ROWS, len(_expected()))
    assert _task(table, Compare("<", K, Literal(0, "int"))).sample() == (0, 0)


def test_a_task_reads_more_files_than_one_that_gives_all_rows(table: vl.Table) -> None:
    """Few columns are read of each; one task for each 64 MB would start for almost nothing."""
    at_rest = list(LogFiles(table.snapshot).files(np.arange(FILES)))
    files = [replace(file, size=60 << 20) for file in at_rest * 4]
    groups = Groups((NAME,), (aggregate("count", None),))
    task = AggregateTask.of(table.snapshot, files, groups, SCHEMA, tasks=2)
    assert [len(part) for part in task.parts] == [6, 6]
    assert [each.file for part in task.parts for each in part] == files
