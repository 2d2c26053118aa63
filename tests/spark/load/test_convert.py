"""Converting on Spark's executors, and what Spark reads then."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import variantlake as vl
from variantlake.ingest.conversion.plan import Action

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_files_of_all_layouts_become_one_table(spark: SparkSession, tmp_path: Path) -> None:
    files = []
    for number, layout in enumerate(("legacy", "final", "legacy")):
        events = vl.parquet.variant_array(
            [{"kind": "k", "n": number}, {"kind": 5, "rest": [number]}, None]
        )
        files.append(tmp_path / f"{number}.parquet")
        vl.parquet.write_table(
            pa.table({"event": events}),
            files[-1],
            shredding="kind STRING, n INT",
            layout=layout,  # type: ignore[arg-type]  # one of two
        )
    table = tmp_path / "table"
    lake = vl.spark.connect(spark)
    result = lake.convert(table, files)
    assert [step.action for step in result.steps] == [Action.REWRITE, Action.COPY, Action.REWRITE]
    found = lake.sql(
        "SELECT event:n::int AS n, event:kind::string AS kind, event:rest[0]::int AS rest "
        f"FROM delta.`{table}` WHERE event IS NOT NULL ORDER BY n NULLS LAST, rest"
    ).collect()
    assert [tuple(row) for row in found] == [
        (0, "k", None),
        (1, "k", None),
        (2, "k", None),
        (None, "5", 0),
        (None, "5", 1),
        (None, "5", 2),
    ]
