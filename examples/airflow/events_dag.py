"""Every hour: load what is new, join small files, remove what no version needs."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import dag, task

SOURCE = os.environ.get("EVENTS_SOURCE", "/incoming")
TABLE = os.environ.get("EVENTS_TABLE", "/lake/events")


@task(retries=3, retry_delay=timedelta(minutes=5))
def load() -> dict[str, Any]:
    """Load each new file once; a repeated task goes on where the table is."""
    import variantlake as vl  # here, as Airflow reads this file every few seconds

    return vl.autoload(TABLE, SOURCE, name="events", mode="quarantine").to_dict()


@task
def optimize() -> dict[str, Any]:
    """Join small files; loads may go on meanwhile."""
    import variantlake as vl

    return vl.Table.open(TABLE).optimize().to_dict()


@task
def vacuum() -> int:
    """Remove files that no version within the retention needs."""
    import variantlake as vl

    return vl.Table.open(TABLE).vacuum().files_removed


@dag(schedule="@hourly", start_date=datetime(2026, 1, 1, tzinfo=UTC), catchup=False)
def events() -> None:
    """One run after another: `max_active_runs` may be left as it is."""
    load() >> optimize() >> vacuum()


events_dag = events()

if __name__ == "__main__":
    done = events_dag.test()
    if str(done.state) not in ("success", "DagRunState.SUCCESS"):
        raise SystemExit(f"the run ended as {done.state}")
