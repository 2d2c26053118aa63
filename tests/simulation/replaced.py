"""A table that is made again at its place, and processes that keep handles on it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import variantlake as vl
from tests.simulation.model import OTHER, Work
from tests.simulation.scenario import Op
from tests.simulation.session import Session
from tests.simulation.world import Violation
from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint
from variantlake.errors import VariantLakeError
from variantlake.storage.objects import ObjectStore


def remake(session: Session, op: Op, _work: Work) -> None:
    """The table goes at once, and another one comes in its place, in which nothing fails.

    A writer that looked before it went would write into the other one: there is one at a time.
    """
    model, world = session.model, session.world
    if any(other.work.startswith("remake") for other in world.actors if other is not session.actor):
        return
    world.calm = True
    try:
        session.bucket.remove_below(OTHER)
        model.remakes += 1
        location = f"{session.actor.host}/{OTHER}"
        vl.Table.create(location, "id BIGINT")
        for number in range(op.b % 4):
            ids = range(op.serial * 100 + number, op.serial * 100 + number + 1)
            vl.Table.open(location).append(pa.table({"id": pa.array(ids, pa.int64())}))
    finally:
        world.calm = False


def glance(session: Session, _op: Op, _work: Work) -> None:
    """Its newest version, by a handle that is kept, is one that it has had since it was made."""
    model = session.model
    location, before = f"{session.actor.host}/{OTHER}", model.remakes
    if not before:
        return
    try:
        if session.other is None or session.other.uri != location:
            session.other = vl.Table.open(location)
        table = session.other = session.other.refresh()
        ids: list[Any] = sorted(table.scan("id").to_arrow()["id"].to_pylist())
    except VariantLakeError:
        session.other = None
        if model.remakes == before and not session.actor.faults and not _is_being_made(session):
            raise
        return
    key = table.snapshot.metadata.id, table.version
    if ids != model.others.get(key):
        raise Violation(f"version {table.version} of a table that was made again has {ids}")


def _is_being_made(session: Session) -> bool:
    return any(actor.work.startswith("remake") for actor in session.world.actors)


def checkpoint_in_parts(session: Session, _op: Op, _work: Work) -> None:
    """A checkpoint in several files, as other engines write it; whoever dies leaves some of them.

    No two have as many parts: their files would be mixed.
    """
    write_checkpoint(_Parts(session.location, session))


class _Parts(ObjectStore):
    """A store into which checkpoints go in parts."""

    __slots__ = ("session",)

    def __init__(self, uri: str, session: Session) -> None:
        super().__init__(uri)
        self.session = session

    def upload(self, path: str, file: Path) -> None:
        """See Store."""
        start = path.removesuffix(".parquet")
        if not start.endswith(".checkpoint") or "/_sidecars/" in path:
            super().upload(path, file)
            return
        table = pq.read_table(file)
        sets = self.session.model.part_sets
        count = sets[path] = sets.get(path, 1) + 1
        for part in range(count):
            first, last = (table.num_rows * at // count for at in (part, part + 1))
            buffer = io.BytesIO()
            pq.write_table(table.slice(first, last - first), buffer)
            self.put(f"{start}.{part + 1:010d}.{count:010d}.parquet", buffer.getvalue())
