"""What a seed decides before a run: the table, what each actor does, which faults may happen."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Self

HOUR = 3_600_000
RETENTION_HOURS = 4
RETENTION = RETENTION_HOURS * HOUR
LOG_RETENTION_DAYS = 2
SLACK = HOUR
"""Milliseconds that clocks, stores and slow calls together may be wrong by."""

ROLES: Mapping[str, Mapping[str, int]] = {
    "writer": {
        "append": 6, "load": 3, "load again": 2, "load together": 3, "repeat": 2, "stream": 4,
        "stream together": 3, "stage": 3, "publish": 4, "overwrite": 1, "set properties": 1,
    },
    "editor": {
        "delete": 3, "update": 3, "upsert": 3, "merge": 2, "add": 2, "append": 2, "erase": 1,
    },
    "racer": {
        "stream together": 5, "load together": 3, "stage": 2, "publish": 4, "add": 3, "upsert": 2,
        "merge": 3, "tag": 3, "untag": 1, "count": 4,
    },
    "subscriber": {"subscribe": 6, "append": 2, "load": 1, "update": 1, "optimize": 1, "find": 2},
    "autoloader": {"land": 3, "autoload": 3},
    "upkeep": {
        "optimize": 4, "cluster": 2, "reshred": 1, "checkpoint": 2, "clean the log": 1,
        "vacuum": 3, "restore": 3, "analyze": 1, "tag": 2, "untag": 1, "stamp": 1,
        "checkpoint in parts": 2,
    },
    "reader": {
        "read": 2, "read old": 2, "read at": 2, "find": 3, "rehearse": 1, "hold": 2, "follow": 2,
        "changes": 2, "subscribe": 4, "mirror": 2, "clone": 2, "remake": 1, "glance": 2,
    },
}  # fmt: skip
"""What actors of a role do, and how often. One of no role does anything."""

RIVALS: Mapping[str, int] = {
    "delete": 5, "update": 3, "upsert": 3, "merge": 4, "add": 4, "append": 1, "erase": 1,
    "optimize": 3, "cluster": 1, "restore": 5, "alter": 1, "checkpoint": 1, "tag": 1,
    "clean the log": 1, "vacuum": 1, "read": 1, "read old": 1, "mirror": 3, "clone": 1,
    "changes": 2, "find": 3, "subscribe": 4, "read at": 2,
}  # fmt: skip
"""What actors of a crowded run do: they want the same few rows, whatever their roles."""

REVIVERS: Mapping[str, int] = {
    "restore": 5, "vacuum": 5, "tag": 4, "untag": 1, "delete": 3, "merge": 1, "append": 2,
    "autoload": 2, "land": 2, "checkpoint": 3, "clean the log": 3, "read old": 1, "count": 2,
    "follow": 2,
}  # fmt: skip
"""What actors do where files come back that a vacuum may take: hours pass again and again."""

UNDOERS: Mapping[str, int] = {"delete": 2, "vacuum": 3, "restore": 4, "tag": 1}
"""What revivers do in some runs: one takes back what others are about to remove for good."""

REMAKERS: Mapping[str, int] = {"remake": 4, "glance": 6, "append": 1, "read": 1}
"""What actors do with a table that is made again at its place."""

CLEANERS: Mapping[str, int] = {
    "checkpoint": 4, "clean the log": 6, "append": 3, "load": 3, "load again": 3, "delete": 1,
    "tag": 1, "untag": 1, "checkpoint in parts": 1, "follow": 2, "read at": 1, "count": 2,
}  # fmt: skip
"""What actors do where logs are cleaned up while others write checkpoints: days pass."""

_CROWDED = 0.5
"""So many seeds of all give crowded runs."""
_SHARES = (0.5, 0.22, 0.18, 0.1)
"""So many of these are of rivals, revivers, cleaners and of those who make a table again."""
_NARROW, _FEW = 0.4, 3
"""So many runs of rivals are of so few kinds of work, each of which meets each, and so many of
revivers are of undoers."""
_REVIVAL = 1
"""The turn of revivers: whatever else goes wrong in it, vacuums take their time."""
_PAUSES = (0.004, 0.02, 0.02, 0.004)
"""How often time passes in each."""
_FAULTY = (0.3, 0.3, 0.8, 0.3)
"""How many of each have calls that fail."""

FAULTS: Mapping[str, float] = {
    "refuse": 0.02,  # a call fails and did nothing: a throttle, a lost connection
    "lose the answer": 0.03,  # a write is done, its answer is lost
    "answer twice": 0.1,  # a conditional put is done, and the client's repeat says "exists"
    "arrive late": 0.02,  # a write fails, and is done some calls later
    "commit late": 0.1,  # the same of a conditional put, which may meet the repeat of what it does
    "refuse checksums": 0.5,  # a version gets no checksum, as of writers that write none
    "half": 0.02,  # a listing, a stream or a bulk delete stops in its middle
    "slow upload": 0.3,  # others go on between the begin of an upload and its end
    "slow delete": 0.3,  # the same of a delete, by which much is deleted
    "stall": 0.01,  # an actor sleeps while the others go on
    "kill": 0.006,  # a process dies
    "kill after a commit": 0.08,  # a process dies when it has committed, before it knows
    "list late": 0.2,  # a new object is not in listings yet; sources alone, not tables
    "wrong times": 0.3,  # modification times are wrong by some minutes
}
"""How likely each fault is, by call or by object, where a scenario has it."""


@dataclass(frozen=True, slots=True)
class Op:
    """One thing that an actor does. `serial` is its own; `a` and `b` are random numbers."""

    kind: str
    serial: int
    a: int
    b: int


@dataclass(frozen=True, slots=True)
class Scenario:
    """A run: `turns` is the seed of whose turn it is and of when faults happen.

    `stickiness` is how likely an actor goes on after a call. `layout` is "plain", "partitioned" or
    "clustered"; with `is_empty` the table has no rows at first. Deletion vectors of more than
    `inline_bytes` are in files of their own, and a sidecar holds `sidecar_files`. A log compaction
    says what `compaction` commits do, and a vacuum asks of `deleted_at_once` files whether they may
    go. With `in_parts` checkpoints are read as very large ones are, and with `by_columns` commits.
    `pauses` is how likely after a call all actors end what they do, and time passes.
    """

    seed: int
    turns: int
    layout: str
    properties: Mapping[str, str]
    stickiness: float
    faults: Mapping[str, float]
    actors: tuple[tuple[Op, ...], ...]
    inline_bytes: int = 128
    is_empty: bool = True
    sidecar_files: int = 1000
    compaction: int = 10
    in_parts: bool = False
    by_columns: bool = False
    pauses: float = 0.004
    deleted_at_once: int = 1000

    @property
    def size(self) -> int:
        """What shrinking makes smaller."""
        return sum(map(len, self.actors)) + len(self.faults) + len(self.actors)

    @property
    def keeps_changes(self) -> bool:
        """Whether the table has a change data feed."""
        return self.properties.get("delta.enableChangeDataFeed") == "true"

    @property
    def weak(self) -> bool:
        """Whether changes of rows need not see appends that came meanwhile."""
        return self.properties.get("delta.isolationLevel") == "WriteSerializable"

    def to_json(self) -> str:
        """The scenario as text."""
        return json.dumps(asdict(self))

    @classmethod
    def of_json(cls, text: str) -> Self:
        """The scenario that `to_json` wrote."""
        data = json.loads(text)
        data["actors"] = tuple(tuple(Op(**op) for op in ops) for ops in data["actors"])
        return cls(**data)

    @classmethod
    def of_seed(cls, seed: int, *, actors: int = 0, ops: int = 0) -> Self:
        """The scenario of a seed; its number of actors, and what each does, unless told."""
        crowd = random.Random(f"crowd {seed}")
        if not actors and not ops and crowd.random() < _CROWDED:
            found = cls._crowded(seed, crowd)
        else:
            found = cls._wide(seed, actors, ops)
        return found._with_log(random.Random(f"log {seed}"))

    @classmethod
    def _wide(cls, seed: int, actors: int, ops: int) -> Self:
        """Actors of several roles, each with its own rows."""
        chance = random.Random(f"scenario {seed}")
        count = actors or chance.choice([2, 3, 3, 4, 5, 6, 8])
        each = ops or chance.choice([3, 4, 6, 8])
        layout = chance.choice(["plain", "plain", "partitioned", "clustered"])
        serials = iter(range(1, 1 + count * each))
        roles = [chance.choice([*ROLES, "any"]) for _ in range(count)]
        if chance.random() < 0.25:  # all want the same
            roles = roles[-1:] * count
        roles[0] = chance.choice(["writer", "editor", "any"])
        scripts = tuple(
            tuple(
                _op(chance, _kinds(chance, role), next(serials), count * each) for _ in range(each)
            )
            for role in roles
        )
        faults = {} if chance.random() < 0.15 else _faults(chance)
        return cls(
            seed, seed, layout, _properties(chance, layout),
            chance.choice([0.0, 0.5, 0.9, 0.97]), faults, scripts, chance.choice([128, 16]),
            chance.random() < 0.4,
            chance.choice([2, 1000]),
        )  # fmt: skip

    @classmethod
    def _crowded(cls, seed: int, chance: random.Random) -> Self:
        """A few actors that change the same few rows, mostly by calls that do not fail."""
        count, each = chance.choice([2, 2, 3, 4]), chance.choice([3, 5, 8])
        (turn,) = chance.choices(range(len(_SHARES)), _SHARES)
        kinds = (RIVALS, REVIVERS, CLEANERS, REMAKERS)[turn]
        if kinds is REVIVERS and chance.random() < _NARROW:
            kinds, count, each = UNDOERS, 3, 8
        elif kinds is RIVALS and chance.random() < _NARROW:
            some = chance.choices(list(kinds), list(kinds.values()), k=_FEW)
            kinds = {kind: kinds[kind] for kind in sorted(set(some))}
        serials = iter(range(1, 1 + count * each))
        scripts = tuple(
            tuple(_op(chance, kinds, next(serials), 2) for _ in range(each)) for _ in range(count)
        )
        layout = chance.choice(["plain", "plain", "partitioned", "clustered"])
        properties = _properties(chance, layout)
        faults = _faults(chance) if chance.random() < _FAULTY[turn] else {}
        if turn == _REVIVAL:
            faults["slow delete"] = 0.8 if kinds is UNDOERS else FAULTS["slow delete"]
        if kinds is CLEANERS and chance.random() < 0.85:
            properties["delta.checkpointPolicy"] = "v2"
        return cls(
            seed, seed, layout, properties, chance.choice([0.0, 0.3, 0.8]),
            faults, scripts, chance.choice([128, 16]),
            is_empty=False, sidecar_files=2, pauses=_PAUSES[turn],
            deleted_at_once=1 if kinds is UNDOERS else 1000,
        )  # fmt: skip

    def _with_log(self, chance: random.Random) -> Self:
        """With what decides how the log is written and read."""
        properties = dict(self.properties)
        if chance.random() < 0.2:
            properties["delta.checkpointInterval"] = "100"
        if chance.random() < 0.4:
            properties["variantlake.rowGroupRows"] = "6"
        sidecars = {2: chance.choice([2, 6])}
        return replace(
            self,
            properties=properties,
            sidecar_files=sidecars.get(self.sidecar_files, self.sidecar_files),
            compaction=chance.choice([3, 4, 10]),
            in_parts=chance.random() < 0.2,
            by_columns=chance.random() < 0.3,
            deleted_at_once=min(chance.choice([1, 2, 1000]), self.deleted_at_once),
        )

    def without_actor(self, number: int) -> Scenario:
        """Without all that one actor does."""
        return replace(self, actors=self.actors[:number] + self.actors[number + 1 :])

    def without_ops(self, number: int, first: int, count: int) -> Scenario:
        """Without some of what one actor does."""
        ops = self.actors[number]
        fewer = (*ops[:first], *ops[first + count :])
        return replace(self, actors=(*self.actors[:number], fewer, *self.actors[number + 1 :]))

    def without_fault(self, name: str) -> Scenario:
        """Without one kind of fault."""
        return replace(self, faults={n: rate for n, rate in self.faults.items() if n != name})


def _kinds(chance: random.Random, role: str) -> Mapping[str, int]:
    return ROLES[chance.choice(list(ROLES)) if role == "any" else role]


def _op(chance: random.Random, kinds: Mapping[str, int], serial: int, count: int) -> Op:
    (kind,) = chance.choices(list(kinds), list(kinds.values()))
    return Op(kind, serial, chance.randrange(1, count + 1), chance.randrange(1 << 16))


def _faults(chance: random.Random) -> dict[str, float]:
    scale = chance.choice([0.3, 1.0, 2.0])
    return {name: min(rate * scale, 0.5) for name, rate in FAULTS.items() if chance.random() < 0.5}


def _properties(chance: random.Random, layout: str) -> dict[str, str]:
    properties = {
        "delta.deletedFileRetentionDuration": f"interval {RETENTION_HOURS} hours",
        "delta.logRetentionDuration": f"interval {LOG_RETENTION_DAYS} days",
        "delta.checkpointInterval": chance.choice(["2", "3", "5", "10", "100"]),
    }
    choices = {
        "delta.enableDeletionVectors": ("true", 0.7),
        "delta.enableChangeDataFeed": ("true", 0.4),
        "delta.isolationLevel": ("WriteSerializable", 0.3),
        "delta.enableInCommitTimestamps": ("true", 0.5),
        "delta.checkpointPolicy": ("v2", 0.3),
    }
    for name, (value, share) in choices.items():
        if chance.random() < share:
            properties[name] = value
    if layout == "plain" and chance.random() < 0.4:
        properties["delta.enableRowTracking"] = "true"
    return properties
