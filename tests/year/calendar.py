"""When the job does what: a year, or a few days in which everything happens as well."""

from __future__ import annotations

from dataclasses import dataclass

HOUR = 3_600_000
DAY = 24 * HOUR

UPGRADES: tuple[tuple[float, str, str], ...] = (
    (0.10, "delta.enableDeletionVectors", "true"),
    (0.18, "delta.enableChangeDataFeed", "true"),
    (0.26, "delta.enableInCommitTimestamps", "true"),
    (0.34, "delta.checkpointPolicy", "v2"),
    (0.42, "delta.columnMapping.mode", "name"),
)
"""Properties that need another feature of readers or writers, by the share of the year."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """How long it lasts. `loads` are of a day, of about `rows`
    rows each, which are of so many `people`; rows older than `keep` days are deleted.

    What happens once in a week or a month happens every `week` and `month` days. Landed files stay
    for `source_days`; `upkeep` says that the table is compacted, clustered and vacuumed.
    """

    days: int = 365
    loads: int = 24
    rows: int = 12
    people: int = 400
    keep: int = 60
    week: int = 7
    month: int = 30
    source_days: int = 7
    upkeep: bool = True

    def upgrades(self, day: int) -> dict[str, str]:
        """The properties that are set on that day."""
        return {name: value for at, name, value in UPGRADES if int(at * self.days) == day}

    def is_weekly(self, day: int, at: int) -> bool:
        """Whether something is done that is done on the day `at` of each week."""
        return day % self.week == at % self.week

    def is_monthly(self, day: int, at: int) -> bool:
        """Whether something is done that is done on the day `at` of each month."""
        return day % self.month == at % self.month


SHORT = Calendar(days=10, loads=3, rows=8, people=12, keep=4, week=3, month=5, source_days=2)
"""For `make test`: seconds."""
