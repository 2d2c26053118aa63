"""Every moment around a storage call at which a write may be interrupted, enumerated by counting.

A dry run of an operation counts the moments; then the operation is repeated once for each of them,
and interrupted there: by a store that fails (in this process), or by SIGKILL (in a forked child).
`python -m tests.delta.crashes` does the latter for all moments and prints the counts.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import deltalake
import orjson
import pyarrow as pa

import variantlake as vl
from variantlake.cli.terminal.rows import json_lines
from variantlake.delta.checkpoint.checkpoint_writer import write_checkpoint
from variantlake.delta.checkpoint.log_cleanup import clean_log
from variantlake.errors import CommitConflict, NotADeltaTable, StoreFailed, VariantLakeError
from variantlake.parquet.write import file_writer as parquet_write
from variantlake.parquet.write.file_writer import FileWriter
from variantlake.storage import store as stores
from variantlake.storage.opening import open_store
from variantlake.storage.store import LocalStore

State = tuple[int, tuple[str, ...]] | None
"""A table as a reader sees it: its version and its rows, sorted. None if there is no table."""


@dataclass(slots=True)
class Moments:
    """Counts moments; `act` happens at the one of number `at`, or from there on if `lasting`."""

    act: Callable[[], None] = lambda: None
    at: int = -1
    lasting: bool = False
    names: list[str] = field(default_factory=list)

    def pass_by(self, name: str) -> None:
        number = len(self.names)
        self.names.append(name)
        if number == self.at or (self.lasting and 0 <= self.at < number):
            self.act()


def fail() -> None:
    raise StoreFailed("the store failed, as the test wants it to")


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@contextlib.contextmanager
def watched(moments: Moments) -> Iterator[None]:
    """Within it every storage call passes two moments, and writing a file one in its middle."""

    def call(owner: Any, name: str, *, half: Any = None) -> None:
        original = getattr(owner, name)

        @functools.wraps(original)
        def around(*args: Any, **kwargs: Any) -> Any:
            moments.pass_by(f"before {name}")
            if half is not None:
                half(*args)
            done = original(*args, **kwargs)
            moments.pass_by(f"after {name}")
            return done

        stack.enter_context(patch.object(owner, name, around))

    def iterator(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        @functools.wraps(original)
        def around(*args: Any, **kwargs: Any) -> Any:
            moments.pass_by(f"before {name}")
            yield from original(*args, **kwargs)
            moments.pass_by(f"after {name}")

        stack.enter_context(patch.object(owner, name, around))

    def torn(temporary: Path, data: bytes) -> None:
        temporary.write_bytes(data[: len(data) // 2])
        moments.pass_by("in the middle of _write")
        temporary.unlink()

    with contextlib.ExitStack() as stack:
        for name in ("read", "read_range", "open", "entry"):
            call(LocalStore, name)
        for name in ("put_if_absent", "put", "upload", "flush", "delete", "delete_all"):
            call(LocalStore, name)
        iterator(LocalStore, "stream")
        iterator(LocalStore, "list_from")
        call(stores, "_write", half=torn)
        call(stores, "_flush_folder")
        call(os, "link")
        call(os, "replace")
        for name in ("__init__", "_write_row_group", "close"):
            call(FileWriter, name)
        call(parquet_write, "annotate")
        yield


def rows(*numbers: int) -> pa.Table:
    """Rows whose Variant says the same as their ordinary columns."""
    return pa.table(
        {
            "event": [f'{{"a": {n}, "s": "x{n}"}}' for n in numbers],
            "n": pa.array(numbers, pa.int32()),
            "day": [str(n % 2) for n in numbers],
        }
    )


def append(root: Path, *numbers: int) -> None:
    vl.Table.open(root).append(rows(*numbers), json_columns=["event"])


@dataclass(frozen=True, slots=True)
class Operation:
    """What is interrupted: `operate` on what `prepare` makes.

    `in_steps` says that it commits more than once: versions in between are whole as well, a repeat
    changes no row, and `check_done` looks at a table when it is done.
    """

    prepare: Callable[[Path], None]
    operate: Callable[[Path], object]
    in_steps: bool = False
    check_done: Callable[[Path], object] = lambda _: None


def create(root: Path) -> None:
    properties = {"delta.checkpointInterval": "3"}
    ddl = "event VARIANT, n INT, day STRING"
    vl.Table.create(root, ddl, partition_by=["day"], properties=properties)


def filled(root: Path, *, commits: int = 1) -> None:
    create(root)
    for number in range(commits):
        append(root, 10 * number, 10 * number + 1)


def checkpoint(root: Path) -> None:
    write_checkpoint(open_store(root))


def overwrite(root: Path, **how: Any) -> None:
    vl.Table.open(root).overwrite(rows(200, 202), json_columns=["event"], **how)


def alter(root: Path) -> None:
    table = vl.Table.open(root)
    if table.schema.get("note") is None:
        table.add_column("note STRING")


def compact(root: Path) -> None:
    # One group of files: with several the order of the moments would differ from run to run.
    vl.Table.open(root).optimize("day = '0'")


def marked(root: Path) -> None:
    """A table with deletion vectors, and rows enough for one in a file of its own."""
    filled(root)
    vl.Table.open(root).set_properties({"delta.enableDeletionVectors": "true"})
    append(root, *range(1000, 1400))


def delete(root: Path) -> None:
    numbers = random.Random(1).sample(range(1000, 1400), 200)
    vl.Table.open(root).delete(f"event:a::int IN ({', '.join(map(str, numbers))})")
    assert list(root.glob("deletion_vector_*.bin"))


def update(root: Path) -> None:
    vl.Table.open(root).update({"n": vl.expr("event:a::int"), "event": None}, "event:a::int = 1")


def expired(root: Path) -> None:
    """A log of which the first versions are older than the retention, with two checkpoints."""
    filled(root, commits=5)
    checkpoint(root)
    append(root, 300)
    long_ago = time.time() - 90 * 86_400
    for path in (root / "_delta_log").iterdir():
        if path.name[:20] <= f"{5:020d}":
            os.utime(path, (long_ago, long_ago))
    (root / "_delta_log" / ".left.tmp").write_bytes(b"cut")
    os.utime(root / "_delta_log" / ".left.tmp", (long_ago, long_ago))


def clean(root: Path) -> None:
    clean_log(open_store(root), {})


OPERATIONS = {
    "create": Operation(lambda _: None, create),
    "append": Operation(filled, lambda root: append(root, 100, 101)),
    "append with its checkpoint": Operation(
        lambda root: filled(root, commits=2), lambda root: append(root, 100, 101)
    ),
    "overwrite": Operation(filled, overwrite),
    "overwrite of a partition": Operation(filled, lambda root: overwrite(root, where={"day": "0"})),
    "optimize": Operation(lambda root: filled(root, commits=3), compact),
    "delete with vectors": Operation(marked, delete),
    "update by rewriting": Operation(filled, update),
    "a new column": Operation(filled, alter),
    "checkpoint": Operation(filled, checkpoint),
    "cleanup of the log": Operation(expired, clean),
}


def state(root: Path) -> State:
    """What we read."""
    try:
        table = vl.Table.open(root)
    except NotADeltaTable:
        return None
    found = (line for batch in table.scan("*").to_batches() for line in json_lines(batch))
    return table.version, tuple(sorted(found))


def check_with_deltalake(root: Path, expected: State) -> None:
    """The version, that every file is there, and the count of rows, as delta-rs sees them."""
    if expected is None:
        assert not deltalake.DeltaTable.is_deltatable(str(root))
        return
    table = deltalake.DeltaTable(str(root))
    assert table.version() == expected[0]
    assert all(Path(uri).is_file() for uri in table.file_uris())
    counts: list[Any] = pa.table(table.get_add_actions())["num_records"].to_pylist()
    vectors = [add.deletion_vector for add in vl.Table.open(root).snapshot.add_files()]
    deleted = sum(0 if vector is None else vector.cardinality for vector in vectors)
    assert sum(counts) - deleted == len(expected[1])


def check_log(root: Path) -> None:
    """Versions without holes, no commit cut."""
    log = root / "_delta_log"
    versions = sorted(int(path.stem) for path in log.glob("[0-9]*.json") if path.stem.isdecimal())
    assert versions == list(range(versions[0], versions[-1] + 1)) if versions else True
    for version in versions:
        for line in (log / f"{version:020d}.json").read_bytes().splitlines():
            orjson.loads(line)


def is_whole(operation: Operation, found: State, before: State, after: State) -> bool:
    """Whether an interruption may leave this."""
    if found in (before, after):
        return True
    if not operation.in_steps or found is None or before is None or after is None:
        return False
    return before[0] <= found[0] <= after[0] and found[1] in (before[1], after[1])


def check_interrupted(root: Path, operation: Operation, before: State, after: State) -> State:
    """The table is the old or the new one, for us and for delta-rs, and a repeat works.

    Gives the state in which the interruption left it.
    """
    found = state(root)
    assert is_whole(operation, found, before, after), f"{found}: neither {before} nor {after}"
    check_log(root)
    check_with_deltalake(root, found)
    try:
        operation.operate(root)
    except CommitConflict:
        assert found == after, "a repeat is only refused where the first attempt was done"
    again = state(root)
    if operation.in_steps:
        assert (again and again[1]) == (after and after[1])
        operation.check_done(root)
    elif found == before:
        assert again == after
    check_log(root)
    check_with_deltalake(root, again)
    return found


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """An operation's template, its moments, and what it does when nothing interrupts it."""

    operation: Operation
    template: Path
    names: tuple[str, ...]
    before: State
    after: State

    @classmethod
    def of(cls, operation: Operation, scratch: Path) -> Rehearsal:
        template, root = scratch / "template", scratch / "rehearsal"
        template.mkdir()
        operation.prepare(template)
        before = state(template)
        shutil.copytree(template, root)
        moments = Moments()
        with watched(moments):
            operation.operate(root)
        after = state(root)
        operation.check_done(root)
        shutil.rmtree(root)
        return cls(operation, template, tuple(moments.names), before, after)

    def copy(self, root: Path) -> Path:
        return Path(shutil.copytree(self.template, root))

    def fail_at(self, number: int, root: Path, *, lasting: bool) -> State:
        """Interrupt a copy in this process by a store that fails, and check what is left."""
        self.copy(root)
        moments = Moments(fail, number, lasting)
        with watched(moments), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there is no checkpoint
            with contextlib.suppress(VariantLakeError):
                self.operation.operate(root)
        assert len(moments.names) > number, "the moment was not reached"
        found = check_interrupted(root, self.operation, self.before, self.after)
        shutil.rmtree(root)
        return found

    def left_at(self, number: int, root: Path) -> State:
        """What a store that fails from a moment on leaves at `root`."""
        self.copy(root)
        with watched(Moments(fail, number, lasting=True)), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.suppress(VariantLakeError):
                self.operation.operate(root)
        return state(root)

    def kill_at(self, number: int, root: Path) -> State:
        """Interrupt a copy in a child process by SIGKILL, and check what is left."""
        self.copy(root)
        child = os.fork()
        if child == 0:
            try:
                with watched(Moments(kill, number)):
                    self.operation.operate(root)
            except BaseException:  # noqa: BLE001 - a child must not go on as its parent would
                traceback.print_exc()
            os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), f"{self.names[number]}: the child was not killed: {status}"
        found = check_interrupted(root, self.operation, self.before, self.after)
        shutil.rmtree(root)
        return found


def main(operations: Mapping[str, Operation] = OPERATIONS) -> None:
    """Kill every operation at every moment, or at each `--every`th."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--every", type=int, default=1, help="each how manieth moment (1: all)")
    parser.add_argument("names", nargs="*", help="only these operations")
    given = parser.parse_args()
    every = given.every
    total = 0
    for name, operation in operations.items():
        if given.names and name not in given.names:
            continue
        started = time.perf_counter()
        with tempfile.TemporaryDirectory() as scratch:
            rehearsal = Rehearsal.of(operation, Path(scratch))
            first = min(every // 2, len(rehearsal.names) - 1)
            found = [
                rehearsal.kill_at(number, Path(scratch) / f"table-{number}")
                for number in range(first, len(rehearsal.names), every)
            ]
        left = {
            "the old version": found.count(rehearsal.before),
            "the new one": found.count(rehearsal.after),
        }
        if rehearsal.before == rehearsal.after:
            left = {"the same": len(found)}
        elif between := len(found) - sum(left.values()):
            left["one in between"] = between
        sys.stdout.write(
            f"{name}: killed at {len(found)} of {len(rehearsal.names)} moments; left "
            + ", ".join(f"{which} {count} times" for which, count in left.items())
            + f"; {time.perf_counter() - started:.1f} s\n"
        )
        sys.stdout.flush()
        total += len(found)
    sys.stdout.write(f"killed {total} times, every table whole, every repeat fine\n")


if __name__ == "__main__":
    main()
