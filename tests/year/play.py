"""Playing the year: one process after the other, on a store that does what it is asked."""

from __future__ import annotations

import logging
import random
import traceback
import warnings
from collections.abc import Callable

from tests.simulation.scenario import Scenario
from tests.simulation.world import Actor, Killed, Violation, World
from tests.year.calendar import Calendar
from tests.year.job import Job
from tests.year.measures import Day, measured
from tests.year.metered import MeteredBucket

_NO_STEP = 10**9


def play(
    calendar: Calendar, seed: int, on_day: Callable[[int, Day], None] = lambda *_: None
) -> list[Day]:
    """The figures of each day. Raises Violation if the table is not what the model says."""
    world = World(Scenario(seed, seed, "clustered", {}, 1.0, {}, ()), _NO_STEP)
    world.calm = True
    days: list[Day] = []
    failed: list[str] = []
    bucket = MeteredBucket(world)

    def body(actor: Actor) -> None:
        job = Job(calendar, world, bucket, actor, random.Random(f"year {seed}"))
        try:
            job.create()
            for number in range(calendar.days):
                world.trace.clear()
                days.append(measured(job, lambda: job.live(number)))  # noqa: B023 - called at once
                on_day(number, days[-1])
                if calendar.is_weekly(number, 0) or number == calendar.days - 1:
                    job.check()
        except Killed:
            failed.append(world.violation)
        except Violation as error:
            failed.append(f"day {len(days)}: {error}")
        except Exception:  # noqa: BLE001 - told where it is seen: the thread has no caller
            failed.append(f"day {len(days)}: {traceback.format_exc()}")

    logging.disable(logging.WARNING)
    try:
        with world.patched(), bucket.installed(), warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            world.start(body)
            world.run()
    finally:
        logging.disable(logging.NOTSET)
    if failed:
        raise Violation(failed[0])
    return days
