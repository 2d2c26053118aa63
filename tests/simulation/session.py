"""One actor at work, and what an operation is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import variantlake as vl
from tests.simulation.bucket import Bucket
from tests.simulation.log_files import TABLE
from tests.simulation.model import Model, Work
from tests.simulation.rows import Rows
from tests.simulation.scenario import Op
from tests.simulation.world import Actor, World

MIRROR = "mirror"


@dataclass(slots=True)
class Session:
    """One actor at work: its process, and what a handle that it keeps shows."""

    world: World
    bucket: Bucket
    model: Model
    actor: Actor
    kept: vl.Table | None = None
    batches: int = 0

    @property
    def location(self) -> str:
        """The table, as this process calls it."""
        return f"{self.actor.host}/{TABLE}"

    @property
    def mirror(self) -> str:
        """The mirror, as this process calls it."""
        return f"{self.actor.host}/{MIRROR}"

    def table(self, version: int | None = None) -> vl.Table:
        """The table, opened now."""
        return vl.Table.open(self.location, version)


@dataclass(frozen=True, slots=True)
class Operation:
    """`perform` does it; `expected` gives the rows that its commit leaves, None for the same ones.

    `repeats` says that the actor does it again after its process died or the store failed.
    `conflicts` says that it may give way to others, `may_lack` that what it wants may be gone,
    `is_single` that it makes one commit, after which it cannot fail.
    """

    perform: Callable[[Session, Op, Work], Any]
    expected: Callable[[Op, Rows, Work], Rows] | None = None
    repeats: bool = False
    conflicts: bool = True
    may_lack: bool = False
    is_single: bool = False
