"""Explain what a query reads from each table, as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from variantlake.planning.explain import Explanation, explain
from variantlake.scan.footers import row_groups
from variantlake.spark.lake.session import LakeSession
from variantlake.spark.query.connect_splices import ConnectTable
from variantlake.spark.query.plans.planned import PlannedTable
from variantlake.spark.query.table_locations import (
    Location,
)
from variantlake.spark.rule.accelerate import planner_of
from variantlake.spark.session.arguments import (
    check_text,
    is_frame,
)
from variantlake.spark.session.jvm import dataset_of, frame_of, plan_of

NOT_ACCELERATED = "the session reads tables as Spark does: see vl.spark.accelerate"
LEFT_AS_IT_IS = "all Variants are read as Spark reads them"


@dataclass(frozen=True, slots=True)
class TableExplanation:
    """What one reference to a table in a query reads; `table` is its text in the query.

    `note` says why whole Variants are read although the query uses only paths; empty otherwise.
    `joined` are conditions made from the values of a small joined side. `aggregated`: our tasks
    group the rows, or the log answers for their groups, and Spark merges the groups.
    """

    table: str
    version: int
    scan: Explanation
    whole: tuple[str, ...]
    note: str
    joined: tuple[str, ...] = ()
    aggregated: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as JSON-ready values."""
        return {
            "table": self.table,
            "version": self.version,
            "whole_variants": list(self.whole),
            "note": self.note,
            "joined": list(self.joined),
            "aggregated": self.aggregated,
            **self.scan.to_dict(),
        }

    def __str__(self) -> str:
        lines = [f"{self.table}, version {self.version}"]
        lines += [f"  {line}" for line in str(self.scan).splitlines()]
        lines += [f"  by the values of a joined side: {text}" for text in self.joined]
        if self.aggregated:
            lines.append("  grouped before Spark sees rows: it merges groups")
        if self.whole:
            lines.append(f"  whole Variants: {', '.join(self.whole)}")
        if self.note:
            lines.append(f"  note: {self.note}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class QueryExplanation:
    """A query's tables in the order of its text; `note` tells what Spark reads without us."""

    tables: tuple[TableExplanation, ...]
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as JSON-ready values."""
        return {"tables": [table.to_dict() for table in self.tables], "note": self.note}

    def __str__(self) -> str:
        parts = [str(table) for table in self.tables]
        if self.note:
            parts.append(f"note: {self.note}")
        return "\n".join(parts)


def explain_text(
    session: LakeSession,
    query: str,
    args: Mapping[str, Any] | list[Any] | None,
    tables: Mapping[str, Location] | None,
) -> QueryExplanation:
    """Explain what a SQL text would read. Raises as `Lake.sql`."""
    given = dict(args) if isinstance(args, Mapping) else args
    prepared = session.runner.plan(query, given, session.resolver(tables))
    return QueryExplanation(tuple(map(_explained, prepared.tables)), prepared.note)


def explain_frame(spark: SparkSession, frame: DataFrame) -> QueryExplanation:
    """Explain what the rule of an accelerated session would read for a DataFrame."""
    if not is_frame(frame):
        check_text(frame)
    planner = planner_of(spark)
    if planner is None:
        return QueryExplanation((), NOT_ACCELERATED)
    if frame.isStreaming:  # Spark optimizes each batch, but never the whole plan
        return QueryExplanation((), LEFT_AS_IT_IS)
    with planner.explaining() as tables:
        # A new DataFrame of the same plan, since one that ran is optimized already.
        dataset_of(frame_of(spark, plan_of(frame))).queryExecution().optimizedPlan()
    note = "" if tables else LEFT_AS_IT_IS
    return QueryExplanation(tuple(map(_explained, tables)), note)


def _explained(planned: PlannedTable | ConnectTable) -> TableExplanation:
    plan, table = planned.plan, planned.table
    groups = row_groups(table.snapshot, plan, table.partition_types)
    found = TableExplanation(
        table=planned.source,
        version=table.snapshot.version,
        scan=explain(plan, row_groups=groups, properties=table.snapshot.properties),
        whole=planned.whole,
        note=planned.note if isinstance(planned, ConnectTable) else "",
    )
    if isinstance(planned, ConnectTable):
        return found
    joined, pushed = tuple(map(str, planned.joined)), planned.pushed
    found = replace(found, joined=joined, aggregated=pushed is not None)
    if pushed is None or not pushed.answered:
        return found
    scan = replace(
        found.scan,
        answered=pushed.answered,
        read_files=len(pushed.files),
        read_bytes=pushed.files.size,
        row_groups=None,
    )
    return replace(found, scan=scan)
