"""Some days of the job, and whether growth is seen."""

from __future__ import annotations

import json
import random
from pathlib import Path

from tests.year.__main__ import write
from tests.year.calendar import SHORT, UPGRADES
from tests.year.measures import MEASURES, Day, growing, growth
from tests.year.play import play


def test_some_days_end_as_the_model_says(tmp_path: Path) -> None:
    """Takes longer than other tests: everything that happens in a year happens in it."""
    days = play(SHORT, 1)
    assert len(days) == SHORT.days
    assert all(day[measure.name] > 0 for day in days for measure in MEASURES)
    write(tmp_path, SHORT, days)
    recorded = json.loads((tmp_path / "assets" / "year.json").read_text())
    assert len(recorded["days"]) == SHORT.days
    page = (tmp_path / "maintainers" / "year.md").read_text()
    picture = (tmp_path / "assets" / "year.svg").read_text()
    assert all(measure.title in page and measure.title in picture for measure in MEASURES)


def test_every_upgrade_has_its_day_in_the_first_half() -> None:
    found = [name for day in range(SHORT.days // 2) for name in SHORT.upgrades(day)]
    assert sorted(found) == sorted(name for _, name, _ in UPGRADES)


def a_year(**slopes: float) -> list[Day]:
    """Days of noise about 1,000, on which some figures grow by so much a day."""
    chance = random.Random(5)
    return [
        {
            measure.name: 1000 + slopes.get(measure.name, 0) * day + chance.uniform(-50, 50)
            for measure in MEASURES
        }
        for day in range(365)
    ]


def test_what_grows_is_named_and_noise_is_not() -> None:
    assert growing(a_year()) == []
    (found,) = growing(a_year(log_objects=2.0))
    assert found[0].name == "log_objects"
    assert 0.15 < found[1] < 0.35


def test_what_grows_with_the_rows_is_no_growth_where_it_should() -> None:
    days = a_year(rows=1.0, table_bytes=1.0, files=1.0)
    by = {measure.name: growth(days, measure) for measure in MEASURES}
    assert abs(by["table_bytes"]) < 0.05
    assert by["files"] > 0.1


def test_a_machine_that_becomes_busy_is_no_growth() -> None:
    days = [{**day, "reference_ms": 1000 + at} for at, day in enumerate(a_year(cpu_seconds=1.0))]
    by = {measure.name: growth(days, measure) for measure in MEASURES}
    assert abs(by["cpu_seconds"]) < 0.05
    busy = [{**day, "reference_ms": 1000} for day in days]
    assert growth(busy, next(m for m in MEASURES if m.name == "cpu_seconds")) > 0.1


def test_few_days_say_nothing() -> None:
    assert growing(a_year(files=100.0)[:20]) == []
