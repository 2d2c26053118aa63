"""A table whose files stay in its checkpoint: Spark's tasks find those that a query reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

import variantlake as vl
from tests.delta.parts import in_parts
from variantlake.delta.log.files.parted_files import is_unread
from variantlake.spark.lake import connect
from variantlake.spark.scan import tables
from variantlake.spark.session import jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_job_finds_the_files_that_a_query_reads(spark: SparkSession, tmp_path: Path) -> None:
    made = vl.Table.create(tmp_path / "t", "event VARIANT, n INT")
    for at in range(5):
        made.append([{"event": {"a": at}, "n": at}])
    made.checkpoint()
    made.append([{"event": {"a": 9}, "n": 9}])
    text = f"SELECT n, event:a::bigint AS a FROM delta.`{tmp_path}/t` WHERE event:a::bigint >= 4"
    wanted = connect(spark).explain(text).to_dict()
    run = jobs.run_tasks
    with (
        in_parts(),
        patch.object(tables, "JOB_FILES", 1),
        patch.object(jobs, "run_tasks", side_effect=run) as asked,
    ):
        lake = connect(spark)
        rows = lake.sql(text).collect()
        descriptions = [call.kwargs["description"] for call in asked.call_args_list]
        assert any(each.startswith("variantlake: find files of") for each in descriptions)
        assert sorted(map(tuple, rows)) == [(4, 4), (9, 9)]
        assert lake.explain(text).to_dict() == wanted
        frame = lake.table(f"{tmp_path}/t").where("n = 2").select("n")
        assert [tuple(row) for row in frame.collect()] == [(2,)]
        assert is_unread(lake._session.tables.open(f"{tmp_path}/t").snapshot.files)
        # A change of rows counts them by all files.
        lake.delete(f"{tmp_path}/t", "event:a::bigint = 3")
    assert vl.Table.open(tmp_path / "t").scan("n").to_arrow().sort_by("n")["n"].to_pylist() == [
        0, 1, 2, 4, 9,
    ]  # fmt: skip
