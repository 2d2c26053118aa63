"""One run of a scenario, from the table's first version to the last look at it."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import variantlake as vl
from tests.simulation import operations
from tests.simulation.bucket import Bucket
from tests.simulation.log_files import TABLE
from tests.simulation.model import Model, Work
from tests.simulation.operations import OPERATIONS
from tests.simulation.readers import compare, compare_changes, read_past_hole
from tests.simulation.rows import Rows
from tests.simulation.scenario import HOUR, LOG_RETENTION_DAYS, RETENTION, Op, Scenario
from tests.simulation.session import Operation, Session
from tests.simulation.subscriptions import follow_all
from tests.simulation.world import MAX_STEPS, STOPPED, Actor, Killed, Violation, World
from variantlake.delta.checkpoint import checkpoint_writer, log_compaction
from variantlake.delta.log import checkpoint_reader, snapshot_state
from variantlake.delta.transaction import post_commit
from variantlake.dml.files import deletion_vectors
from variantlake.errors import (
    CommitConflict,
    CommitUnknown,
    InvalidValue,
    LostCheckpoint,
    MissingSource,
    StoreFailed,
    UnsupportedFeature,
    VariantLakeError,
)
from variantlake.maintenance.vacuuming import deletion
from variantlake.mirroring import mirror as refreshes

_MOST_TRIES = 12
_MANY = 50
"""Of so many actors the listings have pages of S3's size, else their pages would be all calls."""
_ROUNDS = 4
_FIRST_FILES = 4
_LOOKED_AT = 200
"""So many of the last versions are read at the end."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: `violation` is empty if all was well. `steps` are calls of the store."""

    scenario: Scenario
    violation: str
    trace: tuple[str, ...]
    steps: int
    versions: int

    @property
    def is_stopped(self) -> bool:
        """Whether it ended at the last step that was asked for: all was well until then."""
        return self.violation.startswith(STOPPED)

    @property
    def fingerprint(self) -> str:
        """Of all that happened: two runs of one scenario have the same."""
        return hashlib.sha256("\n".join(self.trace).encode()).hexdigest()[:16]


def run(scenario: Scenario, *, until: int = MAX_STEPS) -> Outcome:
    """Run it; what came of it. `until` is the step at which it stops."""
    # What a hash of texts orders must be the same in each run.
    if os.environ.get("PYTHONHASHSEED") != "0":
        raise RuntimeError("run this with PYTHONHASHSEED=0, as `python -m tests.simulation` does")
    world = World(scenario, until)
    bucket = Bucket(world, page=7 if len(scenario.actors) < _MANY else 1000)
    model = Model(world, bucket)
    bucket.watcher = model
    works: dict[int, Work] = {}
    bucket.work = lambda actor: works.get(actor.number)
    play = partial(_Play, world, bucket, model, works)
    logging.disable(logging.WARNING)
    try:
        with world.patched(), bucket.installed(), _limits(scenario), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            world.calm = True
            _alone(world, lambda actor: play(actor).create())
            world.calm = False
            for script in scenario.actors:
                world.start(partial(_live, play, script))
            world.run()
            world.calm = True
            if not world.violation:
                world.arrive()
                _alone(world, lambda actor: play(actor).settle())
    finally:
        logging.disable(logging.NOTSET)
    lines = tuple(world.trace)
    return Outcome(scenario, world.violation, lines, world.step, len(model.versions))


@contextlib.contextmanager
def _limits(scenario: Scenario) -> Iterator[None]:
    """Within it the package's limits are those of the scenario: few files are as many ones are."""
    limits: list[tuple[Any, str, int]] = [
        (deletion_vectors, "MAX_INLINE_BYTES", scenario.inline_bytes),
        (checkpoint_writer, "SIDECAR_FILES", scenario.sidecar_files),
        (deletion, "FILES_AT_ONCE", scenario.deleted_at_once),
        (log_compaction, "INTERVAL", scenario.compaction),
        (post_commit, "INTERVAL", scenario.compaction),
    ]
    if scenario.in_parts:
        limits += [(checkpoint_reader, "PARTED_BYTES", 0), (checkpoint_reader, "PARTED_FILES", 1)]
        limits += [(checkpoint_reader, "PART_FILES", 2)]
    if scenario.by_columns:
        limits += [(snapshot_state, "LARGE_COMMIT", 0)]
    with contextlib.ExitStack() as stack:
        for module, name, value in limits:
            stack.enter_context(patch.object(module, name, value))
        # What a process remembers of mirrors is not the next scenario's, which a seed repeats.
        stack.enter_context(patch.dict(refreshes._mirrors, clear=True))
        yield


def _alone(world: World, body: Any) -> None:
    world.start(body)
    world.run()


def _live(play: Any, script: tuple[Op, ...], actor: Actor) -> None:
    _Play.live(play(actor), script)


class _Play:
    """One actor's life."""

    def __init__(
        self, world: World, bucket: Bucket, model: Model, works: dict[int, Work], actor: Actor
    ) -> None:
        self.world = world
        self.works = works
        self.actor = actor
        self.session = Session(world, bucket, model, actor)

    def create(self) -> None:
        """The table, with some rows or nothing in it."""
        layout = self.world.scenario.layout
        self.works[self.actor.number] = Work("create")
        vl.Table.create(
            f"{self.actor.host}/{TABLE}",
            "event VARIANT, val BIGINT, part STRING",
            partition_by=["part"] if layout == "partitioned" else None,
            cluster_by="event:id::bigint" if layout == "clustered" else None,
            properties=dict(self.world.scenario.properties),
        )
        keys = operations.first_rows(self.world)
        if not self.world.scenario.is_empty and keys:
            # Some files, so that a change can take one as a whole.
            size = -(-len(keys) // _FIRST_FILES)
            for start in range(0, len(keys), size):
                self._add_first(keys[start : start + size])

    def _add_first(self, keys: list[int]) -> None:
        rows = dict.fromkeys(keys, (0, 0))
        self.works[self.actor.number] = Work("append", lambda before, _work: {**before, **rows})
        self.session.table().append(operations.arrow(keys, 0), json_columns=["event"])

    def live(self, script: tuple[Op, ...]) -> None:
        """Do all of the script, in as many processes as it takes."""
        for op in script:
            operation = OPERATIONS[op.kind]
            for _ in range(_MOST_TRIES):
                if self.do(op, operation) or not operation.repeats:
                    break

    def do(self, op: Op, operation: Operation) -> bool:
        """Do one thing; whether it is done. Raises Killed if the run is over."""
        actor, world = self.actor, self.world
        world.rest(actor)
        work = self._work(op, operation)
        actor.work, actor.faults, actor.writes = f"{op.kind} {op.serial}", 0, operation.writes
        began = len(work.commits)
        try:
            result = operation.perform(self.session, op, work)
            self._check_done(operation, work, result)
        except Killed:
            if world.violation:
                raise
            actor.killed = False
            actor.process += 1
            return False
        except VariantLakeError as error:
            world.say(f"{actor.work} raises {type(error).__name__}: {error}"[:300])
            self._check_error(error, operation, work, began)
            return False
        except Violation as error:
            world.fail(str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a fault
            world.say("".join(traceback.format_exception(error)))
            world.fail(f"{actor.work} raises {error!r}")
        finally:
            actor.work = ""
        world.say(f"{op.kind} {op.serial} is done")
        return True

    def _work(self, op: Op, operation: Operation) -> Work:
        known = self.works.get(self.actor.number)
        name = f"{op.kind} {op.serial}"
        # A delete that is done again is another one, which finds what has come since.
        if known is None or known.name != name or op.kind == "delete":
            expected = operation.expected
            if op.kind == "overwrite":
                expected = partial(_overwritten, self.world)
            if op.kind == "publish":
                expected = lambda _op, rows, work: operations.published(self.session, rows, work)
            if op.kind == "restore":
                expected = lambda _op, _rows, work: self.session.model.rows.at(work.chosen)
            known = Work(name, None if expected is None else partial(expected, op))
            self.works[self.actor.number] = known
        return known

    def _check_done(self, operation: Operation, work: Work, result: Any) -> None:
        adds = operation.expected is operations._added
        if adds and len(work.data_commits) != 1:
            raise Violation(f"{work.name} is done, its rows are in versions {work.data_commits}")
        version = getattr(result, "version", None)
        if adds and version not in work.commits:
            raise Violation(f"{work.name} says version {version}, it is in {work.commits}")
        if len(work.data_commits) == 1 and version in work.data_commits:
            self._check_counts(work, version, result)

    def _check_counts(self, work: Work, version: int, result: Any) -> None:
        rows = self.session.model.rows
        before, after = rows.at(version - 1).keys(), rows.at(version).keys()
        for name, expected in (
            ("rows_deleted", len(before - after)),
            ("rows_inserted", len(after - before)),
        ):
            said = getattr(result, name, expected)
            if said != expected:
                raise Violation(f"{work.name} says {name} {said}, {expected} are")

    def _check_error(
        self, error: VariantLakeError, operation: Operation, work: Work, began: int
    ) -> None:
        failed = isinstance(error, StoreFailed | CommitUnknown)
        if failed and self.actor.faults:
            is_late = not {"arrive late", "commit late"}.isdisjoint(self.world.scenario.faults)
            is_plain = isinstance(error, StoreFailed) and operation.is_single and not is_late
            # What may be done all the same is said to be unknown.
            if is_plain and len(work.commits) > began:
                self.world.fail(f"{work.name} failed, and is in versions {work.commits}")
            return
        if isinstance(error, CommitConflict) and operation.conflicts:
            if len(work.commits) > began and not work.autoloads and work.data_commits:
                self.world.fail(f"{work.name} was refused, and is in versions {work.commits}")
            return
        if isinstance(error, UnsupportedFeature) and "row ids" in str(error):
            return  # the table tracks its rows
        if isinstance(error, InvalidValue) and "lite" in str(error):
            return  # the log is not long enough for that
        if self.world.scenario.in_parts and "open the table again" in str(error):
            return  # another one wrote it again, and its files had not been read
        if operation.may_lack and isinstance(error, MissingSource | InvalidValue | LostCheckpoint):
            return  # another one was first
        chose_old = work.chosen >= 0 and not self.session.model.is_readable(work.chosen)
        if isinstance(error, MissingSource) and chose_old:
            return
        self.world.say("".join(traceback.format_exception(error)))
        self.world.fail(f"{work.name} raises {type(error).__name__}: {error}")

    def settle(self) -> None:
        """After all others: what is new is loaded, and every version is looked at."""
        session, model = self.session, self.session.model
        self.world.now += 2 * HOUR  # after an hour all of the sources is listed
        if model.landed:
            self.do(Op("autoload", 1_000_000, 1, 0), OPERATIONS["autoload"])
            self._load_late_names()
        steps: list[Op] = []
        steps += [Op("vacuum", 1_000_001, 1, 0), Op("checkpoint", 1_000_002, 0, 0)]
        steps += [Op("read", 1_000_003, 0, 0)]
        for at, version in enumerate(model.in_log()[-_LOOKED_AT:]):
            steps.append(Op("read old", 1_000_100 + at, version, 0))
        for op in steps:
            if op.kind == "read old":
                self._look_back(op.a)
            else:
                self.do(op, OPERATIONS[op.kind])
        if self.world.scenario.keeps_changes:
            self.do(Op("changes", 1_000_005, 0, 0), Operation(lambda s, _op, _w: _all_changes(s)))
        for checkpoint in model.checkpoints:
            rest = Operation(partial(follow_all, checkpoint), writes=False)
            self.do(Op("subscribe", 1_000_006, 0, 0), rest)
        self.do(Op("hole", 1_000_007, 0, 0), Operation(lambda s, _op, _w: read_past_hole(s)))
        self.world.now += RETENTION + 2 * HOUR
        self.do(Op("vacuum", 1_000_004, 1, 0), OPERATIONS["vacuum"])
        if (needless := model.needless()) and not self.world.violation:
            self.world.fail(f"a vacuum leaves {needless[0]}, which nobody needs")
        self._load_again_late()
        lacking = [path for path, rows in model.landed.items() if rows and path not in model.loaded]
        if lacking and not self.world.violation:
            self.world.say(str(session.table().loads().to_pylist()))
            self.world.fail(f"{lacking[0]} was never loaded")

    def _load_again_late(self) -> None:
        """Days later, when the log knows of loads by its checkpoint alone, they come once more."""
        self.world.now += (LOG_RETENTION_DAYS + 2) * 24 * HOUR
        kinds = ("checkpoint", "clean the log", "load again", "load again", "read")
        for number, kind in enumerate(kinds):
            self.do(Op(kind, 1_000_020 + number, 0, number), OPERATIONS[kind])

    def _load_late_names(self) -> None:
        """A name before all others is found within an hour, whatever comes behind it meanwhile."""
        session, model = self.session, self.session.model
        early = ""
        for number in range(_ROUNDS):
            operations.land_one(session, f"9-{number}.json", 90_000_002 + 2 * number)
            op = Op("autoload", 1_000_010 + number, 1, 0)  # the names rise, it is told
            self.do(op, OPERATIONS["autoload"])
            early = early or operations.land_one(session, "0-0.json", 90_000_000)
            self.world.now += HOUR // 2
        if early not in model.loaded and not self.world.violation:
            self.world.fail(f"{early} waits for longer than everything is to be listed in")

    def _look_back(self, version: int) -> None:
        op = Op("read old", 1_000_100, 0, 0)
        old = Operation(lambda s, _op, _w: _read_version(s, version))
        self.do(op, old)


def _read_version(session: Session, version: int) -> None:
    readable = session.model.is_readable(version)
    try:
        compare(session, session.table(version))
    except MissingSource:
        if readable:
            raise


def _all_changes(session: Session) -> None:
    """The changes of all versions whose files are still there."""
    table, model = session.table(), session.model
    first = table.version
    while first > 1 and model.is_young(first - 2) and table.version - first < _LOOKED_AT:
        first -= 1
    if first:
        compare_changes(session, table, first)


def _overwritten(world: World, op: Op, rows: Rows, _work: Work) -> Rows:
    partitioned = world.scenario.layout == "partitioned"
    kept = {key: row for key, row in rows.items() if partitioned and key % 2 != op.a % 2}
    return {**kept, **operations.rows_of(op, operations._own_part(world, op))}
