"""Tables of random rows beside a view of the same rows, for which Spark alone answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException

import variantlake as vl
from tests.spark.layouts import PLAINLY, changed
from variantlake.spark.lake import Lake, connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Judged:
    """A table, and the view of the same rows that Spark alone answers for.

    In the text of a query `{t}` stands for the one or the other.
    """

    spark: SparkSession
    lake: Lake
    location: str
    judge: str

    def ours(self, query: str) -> DataFrame:
        return self.lake.sql(query.format(t=f"delta.`{self.location}`"))

    def explained(self, query: str) -> list[dict[str, Any]]:
        found = self.lake.explain(query.format(t=f"delta.`{self.location}`"))
        tables: list[dict[str, Any]] = found.to_dict()["tables"]
        return tables

    def read(self, query: str) -> int:
        return sum(table["files"]["read"] for table in self.explained(query))

    def right(self, query: str) -> tuple[DataFrame | None, Counter[str]]:
        """Spark's own answer: the frame, None for an error, and its rows or the error's class."""
        with changed(self.spark, PLAINLY):
            return _answer(lambda: self.spark.sql(query.format(t=self.judge)))

    def found(self, query: str, right: Counter[str]) -> DataFrame | None:
        """Our frame, None for an error; AssertionError where it does not give these rows."""
        ours, found = _answer(lambda: self.ours(query))
        assert found == right, f"missing {right - found}, wrong {found - right}\n{query}"
        return ours

    def agree(self, query: str) -> None:
        """AssertionError where our answer is not Spark's."""
        _, right = self.right(query)
        self.found(query, right)


def _answer(frame: Callable[[], DataFrame]) -> tuple[DataFrame | None, Counter[str]]:
    try:
        made = frame()
        return made, Counter(map(_shown, made.collect()))
    except PySparkException as error:
        return None, Counter([str(error.getCondition())])


def _shown(row: Any) -> str:
    """Without the sign of zeros, which grouping may give either way."""
    return repr([each + 0.0 if isinstance(each, float) else each for each in row])


def judged_table(
    spark: SparkSession,
    folder: Path,
    judge: str,
    parts: Sequence[pa.Table],
    *,
    schema: str,
    shredding: str,
    columns: Sequence[str],
    properties: Mapping[str, str],
    deleted: tuple[str, Sequence[Any]] | None,
) -> Judged:
    """A table with a file of each part, and the view `judge`, of `columns` beside the Variant.

    With `deleted`, a column and values of it, the table has partitions by `p` and mapped columns,
    and its rows with these values are deleted.
    """
    if deleted is not None:
        odd = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
        properties = {**properties, **odd}
    table = vl.Table.create(
        folder / "t",
        schema,
        partition_by=[] if deleted is None else ["p"],
        properties=dict(properties),
        shredding={"event": shredding},
    )
    for part in parts:
        table = table.refresh()
        table.append(part, json_columns=["event"])
    kept = pa.concat_tables(parts)
    if deleted is not None:
        name, values = deleted
        table.refresh().delete(f"{name} IN ({', '.join(map(str, values))})")
        kept = kept.take([at for at, v in enumerate(kept[name].to_pylist()) if v not in values])
    pq.write_table(kept, folder / "judge.parquet")
    spark.read.parquet(str(folder / "judge.parquet")).selectExpr(
        "parse_json(event) AS event", *columns
    ).createOrReplaceTempView(judge)
    return Judged(spark, connect(spark), str(folder / "t"), judge)
