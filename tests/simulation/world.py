"""Whose turn it is, what time it is, and which process is dead: one thread runs at any moment.

Each actor is a thread that waits for its turn at every storage call. Threads that the package
starts run in the actor's own; times and random names come from the seed.
"""

from __future__ import annotations

import contextlib
import functools
import heapq
import importlib
import itertools
import os
import random
import secrets
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Self, TypeVar
from unittest.mock import patch

import pyarrow as pa

import variantlake
from tests.simulation.scenario import HOUR, RETENTION, SLACK, Scenario

R = TypeVar("R")
MAX_STEPS = 2_000_000
STOPPED = "stopped at step"
"""How a run says that it was not to go on."""
_KEPT_LINES = 200_000
_HOLDS_END = 0.05
_TRIES = 8
"""Actors that are looked at before all are, in a run of many."""
_RUNS = itertools.count()
START = 1_790_000_000_000
"""Milliseconds since the epoch at which each run begins."""


class Killed(BaseException):
    """The process of this actor is dead: nothing that it still does has an effect."""


class Violation(Exception):
    """The table, or an answer, is not what the model says."""


@dataclass(eq=False, slots=True)
class Actor:
    """A thread with a script. `process` counts its lives, `skew` is how wrong its clock is.

    Of the calls that failed on purpose while it did its present work `faults` counts all; `writes`
    says whether that work may change anything.
    """

    number: int
    skew: int
    run: int
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    process: int = 0
    faults: int = 0
    wakes: int = 0
    killed: bool = False
    done: bool = False
    parked: bool = False
    writes: bool = True
    holding: int | None = None
    work: str = ""

    @property
    def host(self) -> str:
        """The bucket as this process calls it: what is remembered by location is its own."""
        return f"s3://{self.name}-of-{self.run}"

    @property
    def name(self) -> str:
        """The process."""
        return f"host-{self.number}-{self.process}"


@dataclass(slots=True)
class World:
    """One run. `now` is the true time; `trace` is what happened, one line a step."""

    scenario: Scenario
    until: int = MAX_STEPS
    now: int = START
    step: int = 0
    trace: deque[str] = field(default_factory=lambda: deque(maxlen=_KEPT_LINES))
    violation: str = ""
    calm: bool = False
    actors: list[Actor] = field(default_factory=list)
    _due: list[tuple[int, int, Callable[[], object]]] = field(default_factory=list)
    _back: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _by_thread: dict[int, Actor] = field(default_factory=dict)
    _order: Iterator[int] = field(default_factory=itertools.count)
    _drains: bool = False
    chance: random.Random = field(init=False)
    names: random.Random = field(init=False)
    _run: int = field(default_factory=_RUNS.__next__)

    def __post_init__(self) -> None:
        self.chance = random.Random(f"turns {self.scenario.turns}")
        self.names = random.Random(f"names {self.scenario.seed}")

    # What the package asks for

    @property
    def actor(self) -> Actor | None:
        """Whose thread this is; None for those that Arrow reads in."""
        return self._by_thread.get(threading.get_ident())

    def hits(self, fault: str) -> bool:
        """Whether a fault happens here."""
        rate = self.scenario.faults.get(fault, 0.0)
        return rate > 0 and not self.calm and self.chance.random() < rate

    def request(self, what: str, path: str) -> None:
        """A storage call of the actor begins: others go first, and time passes."""
        actor = self.actor
        if actor is None:
            return
        self.pause(actor)
        self.step += 1
        self.now += self.chance.randrange(1, 60)
        self.say(f"{actor.name} {actor.work}: {what} {path}")
        if self.step >= self.until:
            self.fail(f"{STOPPED} {self.step}")
        while self._due and self._due[0][0] <= self.step:
            heapq.heappop(self._due)[2]()
        if self.hits("stall"):
            self.stall(actor)

    def stall(self, actor: Actor, most: int = 80) -> None:
        """The actor sleeps while others go on, for so many calls at most. Raises Killed."""
        actor.wakes = self.step + self.chance.randrange(5, most)
        self.now += self.chance.randrange(100, 30_000)
        self.pause(actor)

    def later(self, effect: Callable[[], object]) -> None:
        """Do something some calls later."""
        due = self.step + self.chance.choice([1, 2, 5, 20, 60])
        heapq.heappush(self._due, (due, next(self._order), effect))

    def arrive(self) -> None:
        """Do what is due later."""
        while self._due:
            heapq.heappop(self._due)[2]()

    def say(self, text: str) -> None:
        """A line of the trace."""
        text = text.replace(f"-of-{self._run}/", "/")
        self.trace.append(f"{self.step:6} {(self.now - START) / 1000:11.3f} {text}")

    def fail(self, what: str) -> None:
        """Note the first violation, and end the run. Raises Killed."""
        self.violation = self.violation or what
        self.say(f"VIOLATION: {what}")
        raise Killed

    # Turns

    def pause(self, actor: Actor) -> None:
        """Let the scheduler choose who goes on. Raises Killed."""
        if actor.killed or self.violation:
            raise Killed
        self._back.release()
        actor.turn.acquire()
        if actor.killed or self.violation:
            raise Killed

    def rest(self, actor: Actor) -> None:
        """Between two pieces of work: days may pass once all actors rest."""
        actor.parked = True
        self.pause(actor)

    def hold(self, actor: Actor) -> None:
        """Wait, with an open table: hours may pass, less than the retention."""
        actor.holding = self.now
        try:
            self.pause(actor)
        finally:
            actor.holding = None

    def start(self, body: Callable[[Actor], None]) -> None:
        """An actor whose thread runs `body` when it is its turn."""
        number = len(self.actors)
        skew = self.chance.randrange(-120_000, 120_000) if "wrong times" in self.faults else 0
        actor = Actor(number, skew, self._run, parked=True)
        self.actors.append(actor)

        def run() -> None:
            self._by_thread[threading.get_ident()] = actor
            actor.turn.acquire()
            try:
                body(actor)
            except Killed:
                pass
            finally:
                del self._by_thread[threading.get_ident()]
                actor.done = True
                self._back.release()

        threading.Thread(target=run, name=f"variantlake-actor-{number}", daemon=True).start()

    @property
    def faults(self) -> Any:
        """The kinds of faults of this run."""
        return self.scenario.faults

    def run(self) -> None:
        """Give turns until all actors are done."""
        last: Actor | None = None
        living = [actor for actor in self.actors if not actor.done]
        while living:
            last = self._next(living, last)
            last.parked = False
            if self.hits("kill") and not last.killed and last.work:
                last.killed = True
                self.say(f"{last.name} {last.work}: KILLED")
            last.turn.release()
            self._back.acquire()
            if last.done:
                living.remove(last)

    def _next(self, living: list[Actor], last: Actor | None) -> Actor:
        if self.violation:
            return living[0]
        if not self._drains and self.chance.random() < self.scenario.pauses:
            self._drains = True
        if self._drains:
            return self._next_to_drain(living, last)
        sticks = self.chance.random() < self.scenario.stickiness
        if sticks and last is not None and not last.done and self._is_awake(last):
            return last
        for _ in range(_TRIES):
            actor = self.chance.choice(living)
            if self._is_awake(actor):
                return actor
        ready = [actor for actor in living if actor.wakes <= self.step]
        return self.chance.choice(ready) if ready else min(living, key=lambda actor: actor.wakes)

    def _is_awake(self, actor: Actor) -> bool:
        return actor.wakes <= self.step and (
            actor.holding is None or self.chance.random() < _HOLDS_END
        )

    def _next_to_drain(self, living: list[Actor], last: Actor | None) -> Actor:
        """An actor that is amid its work, until all rest: then days may pass."""
        waiting = [actor for actor in living if not actor.parked and actor.holding is None]
        if not waiting:
            self._jump(living)
            return self.chance.choice(living)
        ready = [actor for actor in waiting if actor.wakes <= self.step]
        if not ready:
            return min(waiting, key=lambda actor: actor.wakes)
        if last in ready and self.chance.random() < self.scenario.stickiness:
            return last
        return self.chance.choice(ready)

    def _jump(self, living: list[Actor]) -> None:
        self._drains = False
        began = [actor.holding for actor in living if actor.holding is not None]
        most = min(began, default=self.now + 200 * HOUR) + RETENTION - SLACK - self.now
        wanted = self.chance.choice([HOUR // 2, 2 * HOUR, 5 * HOUR, 30 * HOUR, 100 * HOUR])
        self.now += max(min(wanted, most), 0)
        self.say(f"time passes: {wanted / HOUR:g} h at most")

    @contextlib.contextmanager
    def patched(self) -> Iterator[None]:
        """Within it the package's times, names and threads are those of this world."""
        with contextlib.ExitStack() as stack:
            for owner, name, new in (
                (time, "time_ns", lambda actor: (self.now + actor.skew) * 1_000_000),
                (time, "time", lambda actor: (self.now + actor.skew) / 1000),
                (time, "monotonic", lambda _: self.now / 1000),
                (time, "perf_counter", lambda _: self.now / 1000),
                (time, "sleep", lambda _, seconds: self._sleep(seconds)),
                (uuid, "uuid4", lambda _: uuid.UUID(int=self.names.getrandbits(128), version=4)),
                (secrets, "randbits", lambda _, bits: self.names.getrandbits(bits)),
            ):
                stack.enter_context(patch.object(owner, name, self._of_actor(owner, name, new)))
            stack.enter_context(patch.object(os, "cpu_count", lambda: 2))
            stack.enter_context(patch.object(functools.cached_property, "__get__", _computed))
            lock = threading.Lock
            make = lambda: lock() if self.actor is None else TurnLock(self)
            stack.enter_context(patch.object(threading, "Lock", make))
            for module in package_modules():
                if hasattr(module, "ThreadPoolExecutor"):
                    stack.enter_context(patch.object(module, "ThreadPoolExecutor", InlinePool))
            threads, pool = pa.cpu_count(), pa.default_memory_pool()
            pa.set_cpu_count(1)
            # Arrow's own allocator keeps memory for each thread: gigabytes for a thousand actors.
            pa.set_memory_pool(pa.system_memory_pool())
            try:
                yield
            finally:
                pa.set_cpu_count(threads)
                pa.set_memory_pool(pool)

    def _of_actor(self, owner: Any, name: str, new: Callable[..., Any]) -> Callable[..., Any]:
        """A function that actors get `new` for, and other threads what there was."""
        original = getattr(owner, name)

        def call(*args: Any) -> Any:
            actor = self.actor
            return original(*args) if actor is None else new(actor, *args)

        return call

    def _sleep(self, seconds: float) -> None:
        self.now += int(seconds * 1000)


@functools.cache
def package_modules() -> tuple[ModuleType, ...]:
    """All modules that a table needs without Spark; one imported later would have real threads."""
    root = Path(variantlake.__path__[0])
    names = (file.relative_to(root.parent).with_suffix("").parts for file in root.rglob("*.py"))
    skipped = {"spark", "cli", "compile", "__init__", "__main__", "duckdb", "datafusion", "dbt"}
    found = (_imported(".".join(parts)) for parts in sorted(names) if skipped.isdisjoint(parts))
    return tuple(module for module in found if module is not None)


def _imported(name: str) -> ModuleType | None:
    """A module; None for one of another program's, such as an orchestrator, that is not there."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == variantlake.__name__:
            raise
        return None


class TurnLock:
    """A lock of the package in an actor's thread: who waits for it lets others go on."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._taken = False

    def __enter__(self) -> None:
        while self._taken and (actor := self.world.actor) is not None:
            self.world.pause(actor)
        self._taken = True

    def __exit__(self, *_: object) -> None:
        self._taken = False


def _computed(prop: Any, instance: Any, _owner: Any = None) -> Any:
    """`functools.cached_property` without Python 3.11's lock, which an actor would wait for."""
    if instance is None:
        return prop
    if prop.attrname not in instance.__dict__:
        instance.__dict__[prop.attrname] = prop.func(instance)
    return instance.__dict__[prop.attrname]


class InlinePool:
    """The threads that the package starts: each task is done when it is submitted."""

    def __init__(self, *_args: Any, **_options: Any) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, work: Callable[..., R], *args: Any, **options: Any) -> Future[R]:
        """Do it now."""
        future: Future[R] = Future()
        try:
            future.set_result(work(*args, **options))
        except Killed:
            raise
        except BaseException as error:  # noqa: BLE001 - as an executor does
            future.set_exception(error)
        return future

    def map(self, work: Callable[..., R], *items: Any, **_options: Any) -> Iterator[R]:
        """The results, in order."""
        futures = [self.submit(work, *each) for each in zip(*items, strict=False)]
        return (future.result() for future in futures)

    def shutdown(self, **_options: Any) -> None:
        """Nothing is left to do."""
