"""Counts the row groups that a query reads and skips, for Spark's web UI.

Only the footers hold these counts. A background thread reads them, so the query never waits.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import DataFrame

from variantlake.scan.footers import row_groups
from variantlake.spark.query.plans.planned import PlannedTable
from variantlake.spark.session.classic_files import HelperSession

MOST_FILES = 32
"""With more files, the number of files says enough and reading their footers takes too long."""

counting = ThreadPoolExecutor(1, "variantlake-row-groups")


def count_row_groups(helper: HelperSession, planned: PlannedTable, scan: DataFrame) -> None:
    """Count the row groups for `scan` in the background, if the plan may skip some."""
    plan = planned.plan
    if plan.conjuncts and 0 < plan.read_files <= MOST_FILES:
        with contextlib.suppress(RuntimeError):  # the process is shutting down
            counting.submit(_count, helper, planned, scan)


def _count(helper: HelperSession, planned: PlannedTable, scan: DataFrame) -> None:
    table = planned.table
    with contextlib.suppress(Exception):  # costs the UI a figure, but not the query
        counted = row_groups(table.snapshot, planned.plan, table.partition_types)
        if counted is not None:
            helper.count_row_groups(scan, counted.read, counted.total - counted.read)
