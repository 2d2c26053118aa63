"""Random histories of a table, read by a stream that starts again and again: each row once."""

from __future__ import annotations

import collections
import json
import random
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import variantlake as vl
from tests.spark.streaming.test_source import rows, stream
from tests.strategies import MORE

Changes = collections.Counter[tuple[str, int]]
"""How often a row of an id was inserted or deleted."""


@dataclass(slots=True)
class History:
    """A table whose rows come and go, and what a stream of it must have given by now."""

    path: Path
    random_: random.Random
    feed: bool
    next_id: int = 0
    live: set[int] = field(default_factory=set)
    expected: Changes = field(default_factory=collections.Counter)

    def create(self) -> None:
        properties = {"delta.enableChangeDataFeed": "true"}
        properties["delta.checkpointInterval"] = self.random_.choice(["2", "10"])
        properties["delta.enableDeletionVectors"] = self.random_.choice(["true", "false"])
        ddl, partitions = "event VARIANT, day STRING", self.random_.choice([[], ["day"]])
        vl.Table.create(self.path, ddl, partition_by=partitions, properties=properties)

    def append(self) -> None:
        ids = range(self.next_id, self.next_id + self.random_.choice([1, 2, 7]))
        self.next_id = ids.stop
        texts = [json.dumps({"id": each}) for each in ids]
        data = pa.table({"event": texts, "day": [f"d{each % 2}" for each in ids]})
        most = self.random_.choice([1, 3, 100])
        vl.Table.open(self.path).append(data, json_columns=["event"], max_rows_per_file=most)
        self.live.update(ids)
        self.expected.update(("insert", each) for each in ids)

    def delete(self) -> None:
        if self.live:
            gone = self.random_.choice(sorted(self.live))
            vl.Table.open(self.path).delete(f"event:id::int = {gone}")
            self.live.remove(gone)
            self.expected["delete", gone] += self.feed

    def optimize(self) -> None:
        vl.Table.open(self.path).optimize()

    def step(self) -> None:
        """One more version, mostly."""
        self.random_.choice([self.append, self.append, self.delete, self.optimize])()


def options(random_: random.Random, *, feed: bool) -> dict[str, str]:
    """What the stream is asked for."""
    found = {"readChangeFeed": "true"} if feed else {"skipChangeCommits": "true"}
    if not feed and random_.random() < 0.7:
        found["select"] = "event:id::int AS id"
    limits = [
        {},
        {"maxFilesPerTrigger": "1"},
        {"maxFilesPerTrigger": "3"},
        {"maxBytesPerTrigger": "4k"},
    ]
    return found | random_.choice(limits)


def change(row: dict[str, Any]) -> tuple[str, int]:
    """What became of which id."""
    if "id" in row:
        return "insert", row["id"]
    value = vl.Variant(row["event"]["metadata"], row["event"]["value"]).to_python()
    return row.get("_change_type", "insert"), value["id"]


@settings(max_examples=8 * MORE)
@given(st.randoms(use_true_random=False), st.booleans())
def test_each_change_comes_once(random_: random.Random, feed: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        history = History(Path(folder, "t"), random_, feed)
        history.create()
        for _ in range(random_.randrange(4)):
            history.append()
        chosen = options(random_, feed=feed)
        source = stream(history.path, **chosen)
        start = source.initialOffset()
        found: Changes = collections.Counter()

        def restart(chance: float) -> None:
            """As Spark after an end: another process, which knows the offset alone."""
            nonlocal source
            if random_.random() < chance:
                source = stream(history.path, **chosen)

        for step in range(8):
            if step < 7:
                history.step()
            for _ in range(random_.randrange(3) if step < 7 else 1000):
                restart(0.3)
                end = source.next_offset(json.loads(json.dumps(start)), limited=True)
                if end == start:
                    break
                restart(0.2)
                if random_.random() < 0.2:
                    rows(source, start, end)  # a batch that is repeated
                found.update(map(change, rows(source, start, end)))
                start = end
        assert found == +history.expected
