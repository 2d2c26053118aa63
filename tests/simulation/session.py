"""One actor at work, and what an operation is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import variantlake as vl
from tests.simulation.bucket import Bucket
from tests.simulation.log_files import TABLE
from tests.simulation.model import Model, Work
from tests.simulation.rows import Rows
from tests.simulation.scenario import Op
from tests.simulation.world import Actor, World

if TYPE_CHECKING:
    from tests.simulation.subscriptions import Checkpoint
    from variantlake.spark.streaming.source import TableStream

MIRROR = "mirror"


@dataclass(slots=True)
class Session:
    """One actor at work: its process, and what a handle that it keeps shows.

    `stream` is the source of a stream in the process, `checkpoint` outlives it. `other` is a handle
    on a table that is made again and again.
    """

    world: World
    bucket: Bucket
    model: Model
    actor: Actor
    kept: vl.Table | None = None
    stream: TableStream | None = None
    checkpoint: Checkpoint | None = None
    other: vl.Table | None = None

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
    `is_single` that it makes one commit, after which it cannot fail, `writes` that it may put or
    delete something.
    """

    perform: Callable[[Session, Op, Work], Any]
    expected: Callable[[Op, Rows, Work], Rows] | None = None
    repeats: bool = False
    conflicts: bool = True
    may_lack: bool = False
    is_single: bool = False
    writes: bool = True
