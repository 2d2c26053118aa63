"""What the job does on a day, with the package's own calls, and the plain model beside it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import variantlake as vl
from tests.simulation.bucket import SOURCES
from tests.simulation.log_files import TABLE
from tests.simulation.world import START, Actor, Violation, World
from tests.year.calendar import DAY, HOUR, Calendar
from tests.year.metered import MeteredBucket

Row = tuple[dict[str, Any], str | None]
"""A document, and the column `region`."""

_KINDS = 5
_AT = "event:at::bigint"
_ID = "event:id::bigint"


@dataclass(slots=True)
class Job:
    """The job and its model: `rows` by `$.id`; `versions` are the rows of some versions."""

    calendar: Calendar
    world: World
    bucket: MeteredBucket
    actor: Actor
    chance: random.Random
    rows: dict[int, Row] = field(default_factory=dict)
    versions: dict[int, dict[int, Row]] = field(default_factory=dict)
    erased: set[str] = field(default_factory=set)
    next_id: int = 0
    day: int = 0

    @property
    def location(self) -> str:
        """The table, as today's process calls it."""
        return f"{self.actor.host}/{TABLE}"

    def table(self, version: int | None = None) -> vl.Table:
        """The table, opened now."""
        return vl.Table.open(self.location, version)

    def restart(self) -> vl.Table:
        """The table, opened by a process that knows nothing of it."""
        self.actor.process += 1
        return self.table()

    def create(self) -> None:
        """The table, with nothing in it."""
        vl.Table.create(
            self.location,
            "event VARIANT, region STRING",
            cluster_by=_AT,
            shredding={"event": "id BIGINT, at BIGINT, person STRING, kind STRING, v BIGINT"},
            properties={
                "delta.deletedFileRetentionDuration": "interval 2 days",
                "delta.logRetentionDuration": "interval 4 days",
                "delta.setTransactionRetentionDuration": "interval 4 days",
            },
        )

    # A day

    def live(self, day: int) -> None:
        """Everything that happens on a day; its clock is at the end of it then."""
        self.day = day
        upgrades = self.calendar.upgrades(day)
        if upgrades:
            self.table().set_properties(upgrades)
        for hour in range(self.calendar.loads):
            self.wait_until(day * DAY + hour * DAY // self.calendar.loads)
            self.load(hour)
        self.wait_until((day + 1) * DAY - HOUR)
        self.correct()
        self.expire()
        if self.calendar.is_weekly(day, 2):
            self.erase()
        if self.calendar.is_monthly(day, 3):
            self.undo_a_mistake()
        self.name_versions()
        if self.calendar.upkeep:
            self.keep_in_shape()
        self.bucket.expire(SOURCES, self.world.now - self.calendar.source_days * DAY)
        # A version before a checkpoint of today may be gone; that of now is kept for a day.
        self.versions = {self.table().version: dict(self.rows)}

    def wait_until(self, millis: int) -> None:
        """The clock is at this time of the year, or later if the work took longer."""
        self.world.now = max(self.world.now, START + millis)

    def load(self, hour: int) -> None:
        """A file appears, now and then with old rows, and all that is new is loaded."""
        late = self.chance.random() < 0.15
        days = self.chance.randrange(1, 4) if late else 0
        rows = [
            self.document(days) for _ in range(self.chance.randrange(1, 2 * self.calendar.rows))
        ]
        lines = [json.dumps(each) for each in rows]
        if self.chance.random() < 0.05:
            lines.insert(0, '{"id": 1, ')
        # A late file has a name before those that were loaded.
        name = f"{self.day - days:04d}/{hour:02d}-{self.chance.randrange(1 << 30):08x}.json"
        self.bucket.land(f"{SOURCES}/{name}", "".join(f"{line}\n" for line in lines).encode())
        done = self.table().autoload(
            f"s3://sources/{SOURCES}", name="job", column="event", mode="quarantine",
            max_file_age=f"{self.calendar.source_days + 3}d",
        )  # fmt: skip
        if done.rows_written != len(rows):
            raise Violation(f"an hour of {len(rows)} rows loads {done.rows_written}")
        self.rows |= {each["id"]: (each, None) for each in rows}

    def document(self, days_late: int = 0) -> dict[str, Any]:
        """A new document; its fields change with the months."""
        era = self.day // self.calendar.month
        key, self.next_id = self.next_id, self.next_id + 1
        found: dict[str, Any] = {
            "id": key,
            "at": self.world.now - days_late * DAY,
            "person": f"person-{self.chance.randrange(self.calendar.people):05d}",
            "kind": f"k{key % _KINDS}",
            "v": self.chance.randrange(1000),
            f"field{era}": {"a": key, "b": [f"text {key % 17}"] * (era % 3)},
        }
        if era % 2 and key % 7 == 0:
            found["v"] = str(found["v"])  # a writer of another version
        return found

    def correct(self) -> None:
        """An upsert of some rows and new ones, a delete, and an update of a column."""
        known = sorted(self.rows)[-200:]
        changed = {}
        for key in self.chance.sample(known, min(10, len(known))):
            changed[key] = {**self.rows[key][0], "v": self.chance.randrange(1000)}
        for fresh in (self.document() for _ in range(3)):
            changed[fresh["id"]] = fresh
        events = [json.dumps(each) for each in changed.values()]
        source = pa.table({"event": events, "region": ["corrected"] * len(events)})
        self.table().upsert(source, _ID, json_columns=["event"])
        self.rows |= {key: (each, "corrected") for key, each in changed.items()}
        gone = set(self.chance.sample(known, min(5, len(known))))
        self.table().delete(f"{_ID} IN ({', '.join(map(str, gone))})")
        self._keep(lambda key, _: key not in gone)
        person = f"person-{self.chance.randrange(self.calendar.people):05d}"
        self.table().update({"region": f"r{self.day % 9}"}, f"event:person::string = '{person}'")
        for key, (document, _) in self.rows.items():
            if document["person"] == person:
                self.rows[key] = (document, f"r{self.day % 9}")

    def expire(self) -> None:
        """Rows that are older than the job keeps them."""
        before = self.world.now - self.calendar.keep * DAY
        self.table().delete(f"{_AT} < {before}")
        self._keep(lambda _, row: row["at"] >= before)

    def erase(self) -> None:
        """A person asks to be forgotten; a later event may name the person anew."""
        person = f"person-{self.chance.randrange(self.calendar.people):05d}"
        keys = [key for key, (row, _) in self.rows.items() if row["person"] == person]
        done = self.table().erase(f"event:person::string = '{person}'")
        if done.rows_erased != len(keys):
            raise Violation(f"{done.rows_erased} rows of {person} are erased, not {len(keys)}")
        self._keep(lambda _, row: row["person"] != person)

    def undo_a_mistake(self) -> None:
        """Somebody empties a kind; the version before comes back."""
        table = self.table()
        before = table.version
        table.delete(f"event:kind::string = 'k{self.day % _KINDS}'")
        self.table().restore(before)

    def name_versions(self) -> None:
        """A version gets a name each month, for a week."""
        month = self.day // self.calendar.month
        if self.calendar.is_monthly(self.day, 0):
            self.table().tag(f"month-{month}")
        if self.calendar.is_monthly(self.day, self.calendar.week):
            for named in self.table().tags():
                self.table().untag(named.name)

    def keep_in_shape(self) -> None:
        """Small files are joined each day, rows ordered each week, columns chosen each month."""
        self.table().optimize()
        if self.calendar.is_weekly(self.day, 1):
            self.table().cluster()
        if self.calendar.is_monthly(self.day, 4):
            table = self.table()
            era = self.day // self.calendar.month
            table.reshred(
                "id BIGINT, at BIGINT, person STRING, kind STRING, v BIGINT, "
                f"field{era} STRUCT<a: BIGINT>"
            )
        self.table().vacuum(quarantine=True)

    def _keep(self, stays: Callable[[int, dict[str, Any]], bool]) -> None:
        self.rows = {key: row for key, row in self.rows.items() if stays(key, row[0])}

    # What must be true

    def check(self) -> None:
        """The table holds the model's rows, today and as it was a day ago."""
        compare(self.table(), self.rows)
        for version, rows in self.versions.items():
            compare(self.table(version), rows)


def compare(table: vl.Table, expected: dict[int, Row]) -> None:
    """Raise Violation if the table holds other rows."""
    found: dict[int, Row] = {}
    read = table.scan(["event", "region"]).to_arrow()
    events: list[Any] = read["event"].to_pylist()
    for event, region in zip(events, read["region"].to_pylist(), strict=True):
        document: Any = vl.Variant(event["metadata"], event["value"]).to_python()
        if document["id"] in found:
            raise Violation(f"version {table.version} holds row {document['id']} twice")
        found[document["id"]] = (document, region)
    if found != expected:
        lost, more = expected.keys() - found.keys(), found.keys() - expected.keys()
        other = [k for k in expected.keys() & found.keys() if expected[k] != found[k]]
        raise Violation(
            f"version {table.version} lacks {len(lost)} rows, has {len(more)} more, and "
            f"{len(other)} others, such as {[(expected[k], found[k]) for k in other[:1]]}"
        )
