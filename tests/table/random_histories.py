"""Random histories of one table by Python's verbs, beside a plain model of its rows.

`python -m tests.table.random_histories --seconds 600` runs seeds until the time is over, `--seed N`
one of them again. After each step the table must have the rows of the model, after the last one
every version must, and the change data feed must say what differs between two of them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import variantlake as vl

Row = dict[str, Any]

STEPS = 14
FEATURES = {
    "deletionVectors": "delta.enableDeletionVectors",
    "rowTracking": "delta.enableRowTracking",
    "inCommitTimestamp": "delta.enableInCommitTimestamps",
    "changeDataFeed": "delta.enableChangeDataFeed",
}
WIDER = {"INT": "BIGINT", "FLOAT": "DOUBLE", "BIGINT": "DECIMAL(20,0)"}
KINDS = ("red", "green", "blue")


@dataclass
class History:
    """A table while it is changed, and what it must hold: the rows by their ids."""

    table: vl.Table
    choose: random.Random
    types: dict[str, str]
    rows: dict[int, Row] = field(default_factory=dict)
    states: list[tuple[dict[str, str], dict[int, Row]]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    last_id: int = 0

    @classmethod
    def begin(cls, folder: Path, seed: int) -> History:
        """A new table with some features."""
        choose = random.Random(seed)
        properties = {key: "true" for key in FEATURES.values() if choose.random() < 0.4}
        properties["delta.columnMapping.mode"] = choose.choice(["none", "name", "id"])
        properties["delta.checkpointPolicy"] = choose.choice(["classic", "v2"])
        properties["delta.checkpointInterval"] = str(choose.choice([3, 10]))
        types = {"id": "INT", "kind": "STRING", "a": "INT", "f": "FLOAT", "e": "VARIANT"}
        table = vl.Table.create(
            folder / f"history-{seed}",
            ", ".join(f"{name} {type_}" for name, type_ in types.items()),
            partition_by=["kind"] if choose.random() < 0.5 else None,
            properties=properties,
        )
        made = cls(table, choose, types)
        made.remember("create")
        return made

    def step(self, number: int) -> None:
        """One verb, and what it makes of the model."""
        verb = History.append if number < 2 else self.choose.choice(VERBS)
        verb(self)
        self.remember(verb.__name__)
        assert self.found(self.table) == self.expected(self.types, self.rows), self.said[-1]

    def remember(self, verb: str) -> None:
        """The versions that there are now are these rows."""
        self.said.append(f"{self.table.version}: {verb}")
        while len(self.states) <= self.table.version:
            self.states.append((dict(self.types), dict(self.rows)))

    @staticmethod
    def expected(types: dict[str, str], rows: dict[int, Row]) -> list[Row]:
        """The rows of the model with the columns of a version, by their ids."""
        found = ({name: row.get(name) for name in types} for row in rows.values())
        return sorted(found, key=lambda row: row["id"])

    @staticmethod
    def found(table: vl.Table) -> list[Row]:
        """The rows of a version, by their ids."""
        return sorted(table.scan().to_pylist(), key=lambda row: row["id"])

    # What a table has.

    def new_row(self, key: int) -> Row:
        """A row for every column of the table; some values are missing."""
        number = self.choose.randrange(50)
        values: Row = {
            "id": key,
            "kind": self.choose.choice([*KINDS, None]),
            "e": {"n": number, "deep": {"t": f"t{number}"}},
        }
        for name in self.types:
            values.setdefault(name, None if number % 7 == 0 else number)
        return values

    def new_rows(self) -> list[Row]:
        """Rows with ids of their own."""
        first, self.last_id = self.last_id + 1, self.last_id + self.choose.randrange(1, 30)
        return [self.new_row(key) for key in range(first, self.last_id + 1)]

    def some(self) -> tuple[str, Callable[[Row], bool]]:
        """A condition, and what it says of a row."""
        number, kind = self.choose.randrange(40), self.choose.choice(KINDS)
        conditions: list[tuple[str, Callable[[Row], bool]]] = [
            (f"id % 5 = {number % 5}", lambda row: row["id"] % 5 == number % 5),
            (f"id <= {number}", lambda row: row["id"] <= number),
            (f"kind = '{kind}'", lambda row: row["kind"] == kind),
            ("kind IS NULL", lambda row: row["kind"] is None),
            (f"e:n::int > {number}", lambda row: row["e"]["n"] > number),
            (f"e:deep.t::string = 't{number}'", lambda row: row["e"]["n"] == number),
        ]
        return self.choose.choice(conditions)

    def matching(self, where: Callable[[Row], bool]) -> list[int]:
        """The ids of the rows for which it is true."""
        return [key for key, row in self.rows.items() if where(row)]

    # Verbs.

    def append(self) -> None:
        rows = self.new_rows()
        self.table.append(rows)
        self.rows |= {row["id"]: row for row in rows}

    def delete(self) -> None:
        text, where = self.some()
        gone = self.matching(where)
        assert self.table.delete(text).rows_deleted == len(gone)
        for key in gone:
            del self.rows[key]

    def update(self) -> None:
        text, where = self.some()
        kind = self.choose.choice(KINDS)
        changed = self.matching(where)
        done = self.table.update({"kind": kind, "e": vl.expr("e")}, text)
        assert done.rows_updated == len(changed)
        self.rows |= {key: {**self.rows[key], "kind": kind} for key in changed}

    def _pairs(self) -> list[Row]:
        """Rows of which some ids are there already."""
        rows = self.new_rows()
        there = self.choose.sample(list(self.rows), min(5, len(self.rows)))
        return rows + [self.new_row(key) for key in there]

    def upsert(self) -> None:
        rows = self._pairs()
        self.table.upsert(rows, "id")
        self.rows |= {row["id"]: row for row in rows}

    def merge(self) -> None:
        rows = [{"id": row["id"], "kind": row["kind"], "e": row["e"]} for row in self._pairs()]
        self.table.merge(
            rows,
            "t.id = s.id",
            "WHEN MATCHED AND s.kind IS NULL THEN DELETE",
            "WHEN MATCHED THEN UPDATE SET kind = s.kind",
            "WHEN NOT MATCHED THEN INSERT (id, kind, e) VALUES (s.id, s.kind, s.e)",
        )
        for row in rows:
            if row["id"] not in self.rows:
                self.rows[row["id"]] = row
            elif row["kind"] is None:
                del self.rows[row["id"]]
            else:
                self.rows[row["id"]] = {**self.rows[row["id"]], "kind": row["kind"]}

    def overwrite(self) -> None:
        if not self.table.snapshot.partition_columns:
            return
        kind = self.choose.choice(KINDS)
        rows = [{**row, "kind": kind} for row in self.new_rows()]
        self.table.overwrite(rows, where=f"kind = '{kind}'")
        for key in self.matching(lambda row: row["kind"] == kind):
            del self.rows[key]
        self.rows |= {row["id"]: row for row in rows}

    def stage(self) -> None:
        rows = self.new_rows()
        stage = self.table.stage(rows)
        assert self.found(self.table) == self.expected(self.types, self.rows)
        self.delete()
        self.remember("delete before it")
        stage.publish()
        self.table.refresh()
        self.rows |= {row["id"]: row for row in rows}

    def rename(self) -> None:
        old = self.choose.choice([name for name in self.types if name not in ("id", "kind", "e")])
        new = f"{old[:1]}{self.table.version}"
        self.table.rename_column(old, new, enable_column_mapping=True)
        self.types = {new if name == old else name: each for name, each in self.types.items()}
        for key, row in self.rows.items():
            self.rows[key] = {new if name == old else name: value for name, value in row.items()}

    def drop(self) -> None:
        names = [name for name in self.types if name not in ("id", "kind", "e")]
        if len(names) > 1:
            old = self.choose.choice(names)
            self.table.drop_columns(old, enable_column_mapping=True)
            self.types = {name: each for name, each in self.types.items() if name != old}
            for key, row in self.rows.items():
                self.rows[key] = {name: value for name, value in row.items() if name != old}

    def add(self) -> None:
        name, kind = f"z{self.table.version}", self.choose.choice(["INT", "FLOAT"])
        self.table.add_column(f"{name} {kind}")
        self.types = {**self.types, name: kind}

    def widen(self) -> None:
        for name, kind in self.types.items():
            if name not in ("id", "kind", "e") and kind in WIDER:
                self.table.change_type(name, WIDER[kind], enable_type_widening=True)
                self.types = {**self.types, name: WIDER[kind]}
                return

    def restore(self) -> None:
        version = self.choose.randrange(1, self.table.version + 1)
        self.table.restore(version)
        types, rows = self.states[version]
        self.types, self.rows = dict(types), dict(rows)

    def switch(self) -> None:
        name = self.choose.choice(list(FEATURES))
        on = self.table.properties.get(FEATURES[name]) == "true"
        if on and name == "deletionVectors" and self.choose.random() < 0.5:
            self.table.drop_feature(name)
        else:
            self.table.set_properties({FEATURES[name]: str(not on).lower()})

    def narrow(self) -> None:
        if "typeWidening" in self.table.snapshot.features:
            self.table.drop_feature("typeWidening")

    def unmap(self) -> None:
        if self.choose.random() < 0.5:
            self.table.set_properties({"delta.columnMapping.mode": "none"})
        elif "columnMapping" in self.table.snapshot.features:
            self.table.drop_feature("columnMapping")

    def optimize(self) -> None:
        self.table.optimize(purge=self.choose.random() < 0.5)

    def cluster(self) -> None:
        with contextlib.suppress(vl.errors.InvalidSchema):  # of a column that is not shredded
            self.table.set_clustering(self.choose.choice(["id", "e:n"]))
            self.table.cluster()

    def unshred(self) -> None:
        self.table.unshred()

    def checkpoint(self) -> None:
        self.table.checkpoint()
        self.table.vacuum()

    # What must hold in the end.

    def check_versions(self) -> None:
        """Every version has its rows, and a clone of the last one has them, too."""
        for version, (types, rows) in enumerate(self.states):
            old = vl.Table.open(self.table.uri, version=version)
            assert self.found(old) == self.expected(types, rows), version
            assert old.scan().count() == len(rows), version
        clone = Path(self.table.uri).parent / "clone"
        self.table.clone(clone, deep=self.choose.random() < 0.5)
        copy = vl.Table.open(clone)
        assert self.found(copy) == self.expected(self.types, self.rows)
        shutil.rmtree(clone)

    def check_changes(self) -> None:
        """The feed says which rows differ between two versions of one schema."""
        for version in range(1, len(self.states)):
            (before, old), (after, new) = self.states[version - 1], self.states[version]
            table = vl.Table.open(self.table.uri, version=version)
            if before != after or table.properties.get(FEATURES["changeDataFeed"]) != "true":
                continue
            try:
                feed = table.changes(version, version).to_pylist()
            except vl.errors.VariantLakeError:
                continue  # the commit is from before the feed
            difference = Counter[str]()
            for row in feed:
                plain = {name: row[name] for name in after}
                inserts = row["_change_type"] in ("insert", "update_postimage")
                difference[_text(plain)] += 1 if inserts else -1
            wanted = Counter(map(_text, self.expected(after, new)))
            wanted.subtract(Counter(map(_text, self.expected(before, old))))
            assert _without_zeros(difference) == _without_zeros(wanted), self.said


def _text(row: Row) -> str:
    """A row as text, the same for 1 and 1.0 and for keys in any order."""
    numbers = {k: float(v) if isinstance(v, int | float | Decimal) else v for k, v in row.items()}
    return json.dumps(numbers, sort_keys=True)


def _without_zeros(counts: Counter[str]) -> dict[str, int]:
    return {key: count for key, count in counts.items() if count}


VERBS = (
    History.append,
    History.delete,
    History.update,
    History.upsert,
    History.merge,
    History.overwrite,
    History.stage,
    History.rename,
    History.drop,
    History.add,
    History.widen,
    History.restore,
    History.switch,
    History.narrow,
    History.unmap,
    History.optimize,
    History.cluster,
    History.unshred,
    History.checkpoint,
)


def run(folder: Path, seed: int, steps: int = STEPS) -> History:
    """One history; AssertionError with its steps if the table is not what it must be."""
    history = History.begin(folder, seed)
    try:
        for number in range(steps):
            history.step(number)
        history.check_versions()
        history.check_changes()
    except Exception as error:
        error.add_note(f"seed {seed}: {', '.join(history.said)}")
        raise
    return history


def main(arguments: Sequence[str]) -> None:
    """Run one seed, or seeds for some time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args(arguments)
    until, seed = time.monotonic() + options.seconds, options.seed or options.first
    while options.seed is not None or time.monotonic() < until:
        with tempfile.TemporaryDirectory() as folder:
            run(Path(folder), seed, options.steps)
        seed += 1
        if options.seed is not None:
            return
    sys.stdout.write(f"seeds {options.first} to {seed - 1} passed\n")


if __name__ == "__main__":
    main(sys.argv[1:])
