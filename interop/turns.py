"""Two writers of one table take turns at random; a list of rows has the expected result."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

import variantlake as vl
from interop.kinds import PLAIN_DDL, PLAIN_SCHEMA

Rows = list[dict[str, Any]]
TURNS = 12


class Writer(Protocol):
    """A side that changes a table by actions, of which an engine offers some."""

    def ask(self, action: str, **arguments: Any) -> Any:
        """Do it."""


class Ourselves:
    """Variantlake, with the actions of a worker."""

    def ask(self, action: str, **arguments: Any) -> Any:
        """As `interop.engines.Worker.ask`."""
        return getattr(self, action)(**arguments)

    def create(self, path: str, ddl: str, variants: bool) -> None:  # noqa: ARG002 - as workers
        """An empty table."""
        vl.Table.create(path, ddl)

    def append(self, path: str, rows: Rows) -> None:
        """Append; `event` comes as JSON text."""
        schema = PLAIN_SCHEMA
        if "event" in rows[0]:
            schema = schema.append(pa.field("event", pa.string()))
        vl.Table.open(path).append(pa.Table.from_pylist(rows, schema))

    def delete(self, path: str, condition: str) -> None:
        """Delete rows."""
        vl.Table.open(path).delete(condition)

    def update(self, path: str, assignment: str, condition: str) -> None:
        """Change rows."""
        name, _, text = assignment.partition(" = ")
        vl.Table.open(path).update({name: vl.expr(text)}, condition)


class Game:
    """One table, created by `first` (`ours` or `theirs`), and changed by both in turn."""

    def __init__(self, theirs: Writer, *, first: str, variants: bool, seed: int) -> None:
        self._theirs = theirs
        self._writers: dict[str, Writer] = {"ours": Ourselves(), "theirs": theirs}
        self._first, self._variants, self._seed = first, variants, seed
        self._chance = random.Random(seed)
        self._rows: dict[int, dict[str, Any]] = {}
        self._path = ""

    def __str__(self) -> str:
        return f"seed {self._seed}"

    def play(self, place: Path) -> Rows:
        """Take the turns; the rows that must be there, in the order of `id`.

        Raises what the engine and we raise.
        """
        self._path = str(place)
        ddl = PLAIN_DDL + (", event VARIANT" if self._variants else "")
        maker = self._writers[self._first]
        maker.ask("create", path=self._path, ddl=ddl, variants=self._variants)
        steps = {"append": self._append, "delete": self._delete, "update": self._update}
        offers = {"ours": list(steps), "theirs": self._theirs.ask("offers")}
        for turn in range(TURNS):
            # Both append first, so that there are rows to change.
            who = self._chance.choice(("ours", "theirs")) if turn > 1 else ("theirs", "ours")[turn]
            choices = [name for name in steps if name in offers[who]] if turn > 1 else ["append"]
            steps[self._chance.choice(choices)](self._writers[who], turn)
        return [self._rows[number] for number in sorted(self._rows)]

    def read_ours(self) -> Rows:
        """The rows as we read them, in the form that engines give."""
        table = vl.Table.open(self._path).scan().to_arrow()
        if self._variants:
            place = table.column_names.index("event")
            table = table.set_column(place, "event", vl.to_json(table["event"]))
        rows: Rows = table.sort_by("id").to_pylist()
        if not self._variants:
            return rows
        return [row | {"event": {"variant": row["event"]}} for row in rows]

    def read_theirs(self) -> Rows:
        """The rows as the engine reads them."""
        rows: Rows = self._theirs.ask("read_table", path=self._path)
        return rows

    def _append(self, writer: Writer, turn: int) -> None:
        new: Rows = []
        for number in range(turn * 10, turn * 10 + 5):
            name = f"name {self._chance.randrange(3)}"
            row: dict[str, Any] = {"id": number, "name": name, "price": number / 4}
            self._rows[number] = row
            if self._variants:
                text = f'{{"turn": {turn}, "tags": ["a", {number}]}}'
                self._rows[number] = row | {"event": {"variant": json.loads(text)}}
                row = row | {"event": text}
            new.append(row)
        writer.ask("append", path=self._path, rows=new)

    def _delete(self, writer: Writer, _: int) -> None:
        name, least = f"name {self._chance.randrange(3)}", self._chance.randrange(100)
        writer.ask("delete", path=self._path, condition=f"name = '{name}' AND id >= {least}")
        for number, row in list(self._rows.items()):
            if row["name"] == name and number >= least:
                del self._rows[number]

    def _update(self, writer: Writer, turn: int) -> None:
        name = f"name {self._chance.randrange(3)}"
        condition, assignment = f"name = '{name}'", f"price = {turn}.5"
        writer.ask("update", path=self._path, assignment=assignment, condition=condition)
        for number, row in self._rows.items():
            if row["name"] == name:
                self._rows[number] = row | {"price": turn + 0.5}
