"""Play the year: `python -m tests.year`, or some days of it, `--days 30`.

Writes the picture, the figures as JSON and the page of the documentation. Exits with 1 if a figure
grows without bound, or if the table is not what the model says.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from tests.corpora import REPOSITORY
from tests.simulation.world import Violation
from tests.year.calendar import Calendar
from tests.year.measures import Day, growing
from tests.year.page import page, picture
from tests.year.play import play

_SHOWN_DAYS = 10


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.year", description=__doc__)
    parser.add_argument("--days", type=int, default=Calendar().days, help="so many days (365)")
    parser.add_argument("--seed", type=int, default=1, help="the seed of what happens (1)")
    parser.add_argument("--no-upkeep", action="store_true", help="no compaction and no vacuum")
    parser.add_argument("--figures", type=Path, help="draw these figures again, play nothing")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "docs", help="the folder (docs)")
    options = parser.parse_args(arguments)
    if os.environ.get("PYTHONHASHSEED") != "0":
        command = [sys.executable, "-m", "tests.year", *arguments]
        env = {**os.environ, "PYTHONHASHSEED": "0"}
        return subprocess.run(command, env=env, check=False).returncode
    calendar = replace(Calendar(), days=options.days, upkeep=not options.no_upkeep)
    if options.figures:
        recorded = json.loads(options.figures.read_text())
        calendar, days = Calendar(**recorded["calendar"]), recorded["days"]
    else:
        try:
            days = play(calendar, options.seed, _say)
        except Violation as error:
            sys.stderr.write(f"{error}\n")
            return 1
    write(options.out, calendar, days)
    grown = growing(days)
    for measure, by in grown:
        sys.stderr.write(
            f"{measure.title} grew by {by:.1%} in half a year, more than {measure.limit:.0%}\n"
        )
    return 1 if grown else 0


def write(folder: Path, calendar: Calendar, days: Sequence[Day]) -> None:
    """Write picture, figures and page."""
    assets, pages = folder / "assets", folder / "maintainers"
    for each in (assets, pages):
        each.mkdir(parents=True, exist_ok=True)
    rounded = [{name: float(f"{value:.6g}") for name, value in day.items()} for day in days]
    figures = {"calendar": asdict(calendar), "days": rounded}
    (assets / "year.json").write_text(json.dumps(figures, separators=(",", ":")) + "\n")
    (assets / "year.svg").write_text(picture(rounded))
    (pages / "year.md").write_text(page(calendar, rounded))


def _say(day: int, figures: Day) -> None:
    if day % _SHOWN_DAYS == _SHOWN_DAYS - 1:
        sys.stdout.write(
            f"day {day + 1}: {figures['rows']:,.0f} rows, {figures['stored_bytes'] / 1e6:.1f} MB, "
            f"{time.process_time():.0f} s of CPU time\n"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
