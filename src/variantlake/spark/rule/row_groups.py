"""How many row groups a query reads and skips, for Spark's pages.

Only footers tell. So they are read while Spark goes on with the query, which waits for none of it.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import DataFrame

from variantlake.scan.footers import row_groups
from variantlake.spark.query.plans.planned import PlannedTable
from variantlake.spark.session.classic_files import HelperSession

MOST_FILES = 32
"""More of them tell enough by their own number, and their footers take long."""

counting = ThreadPoolExecutor(1, "variantlake-row-groups")


def count_row_groups(helper: HelperSession, planned: PlannedTable, scan: DataFrame) -> None:
    """Count the row groups of the table's files for its `scan`; soon, if some may be skipped."""
    plan = planned.plan
    if plan.conjuncts and 0 < plan.read_files <= MOST_FILES:
        with contextlib.suppress(RuntimeError):  # this process ends
            counting.submit(_count, helper, planned, scan)


def _count(helper: HelperSession, planned: PlannedTable, scan: DataFrame) -> None:
    table = planned.table
    with contextlib.suppress(Exception):  # the pages show less; the query is not concerned
        counted = row_groups(table.snapshot, planned.plan, table.partition_types)
        if counted is not None:
            helper.count_row_groups(scan, counted.read, counted.total - counted.read)
