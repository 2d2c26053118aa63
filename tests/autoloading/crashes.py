"""An autoload killed at every moment around a storage call: each document is in the table once.

`python -m tests.autoloading.crashes` kills at all moments, in every mode; prints the counts.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import os
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import variantlake as vl
from tests.autoloading.sources import ids, put
from tests.delta.crashes import Moments, check_log, check_with_deltalake, fail, kill, state, watched
from variantlake.autoloading.listing import LocalFolder, ObjectFolder
from variantlake.errors import VariantLakeError
from variantlake.storage.objects import ObjectStore

MODES: dict[str, dict[str, Any]] = {
    "keep": {},
    "move": {"after": "move:../done"},
    "delete": {"after": "delete"},
    "quarantine": {"mode": "quarantine"},
    "a new table": {},
}
EXPECTED = list(range(1, 8))


def prepare(root: Path, mode: str) -> None:
    """A source of which a part is loaded, and a table that checkpoints with the next commit."""
    put(root / "in" / "a.json", 1, 2)
    put(root / "in" / "b.json", 3)
    if mode != "a new table":
        load(root, mode, properties={"delta.checkpointInterval": "3"})
    put(root / "in" / "c.json", 4)
    put(root / "in" / "d.json", 5, 6)
    put(root / "in" / "sub" / "e.json", data=b'{"id": 7}\n')
    put(root / "in" / "f.json", data=b"")
    put(root / "in" / "g.json.gz", data=gzip.compress(b'{"id": 99}\n')[:-5])
    put(root / "in" / "h.json", data=b"nonsense\n")


def load(root: Path, mode: str, **options: Any) -> None:
    given = MODES[mode] | {"max_files": 2} | options
    if given.get("after", "").startswith("move:"):
        given["after"] = f"move:{root / 'done'}"
    vl.autoload(root / "table", root / "in", name="events", **given)


@contextlib.contextmanager
def source_watched(moments: Moments) -> Iterator[None]:
    """Moments around what is done to the files of the source as well."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(watched(moments))
        for name in ("delete", "move", "stat_files"):
            original = getattr(LocalFolder, name)

            def around(*args: Any, _name: str = name, _original: Any = original) -> Any:
                moments.pass_by(f"before {_name} of a source")
                done = _original(*args)
                moments.pass_by(f"after {_name} of a source")
                return done

            stack.enter_context(patch.object(LocalFolder, name, around))
        yield


@contextlib.contextmanager
def objects_watched(moments: Moments) -> Iterator[None]:
    """Moments around every request to an object store, whose answers may get lost as well."""
    calls = (
        "read", "read_range", "read_ranges", "read_tail", "put_if_absent", "put", "upload",
        "delete", "entry",
    )  # fmt: skip
    with contextlib.ExitStack() as stack:
        for name in calls:
            original = getattr(ObjectStore, name)

            def around(
                *args: Any, _name: str = name, _original: Any = original, **given: Any
            ) -> Any:
                moments.pass_by(f"before {_name}")
                done = _original(*args, **given)
                moments.pass_by(f"after {_name}")
                return done

            stack.enter_context(patch.object(ObjectStore, name, around))
        for owner, name in ((ObjectStore, "list_from"), (ObjectFolder, "pages")):
            listing = getattr(owner, name)

            def each(*args: Any, _name: str = name, _original: Any = listing) -> Any:
                moments.pass_by(f"before {_name}")
                yield from _original(*args)
                moments.pass_by(f"after {_name}")

            stack.enter_context(patch.object(owner, name, each))
        yield


def check(root: Path, mode: str) -> None:
    """Go on after an interruption: documents are there once, and files where they belong."""
    table = root / "table"
    if (table / "_delta_log").exists():
        check_log(table)
    before = ids(table)
    assert len(set(before)) == len(before), f"twice: {before}"
    load(root, mode)
    assert ids(table) == EXPECTED, f"{ids(table)} after {before}"
    check_with_deltalake(table, state(table))
    left = {path.name for path in (root / "in").rglob("*.json")}
    stays = {"f.json", "h.json"} - ({"h.json"} if mode == "quarantine" else set())
    if mode in ("move", "delete"):
        assert left == stays
    if mode == "move":
        assert len(list((root / "done").rglob("*.json"))) == 5
    found = {row["file"]: row["state"] for row in vl.Table.open(table).loads().to_pylist()}
    assert found == {
        "a.json": "loaded", "b.json": "loaded", "c.json": "loaded", "d.json": "loaded",
        "sub/e.json": "loaded", "f.json": "empty", "g.json.gz": "failed",
        "h.json": "loaded" if mode == "quarantine" else "failed",
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A source and table before the interruption, and the moments of an undisturbed load."""

    mode: str
    template: Path
    names: tuple[str, ...]

    @classmethod
    def of(cls, mode: str, scratch: Path) -> Rehearsal:
        # The state tells one source from another by its place: every run is at the same one.
        root, template = scratch / "run", scratch / "template"
        prepare(root, mode)
        shutil.copytree(root, template)
        moments = Moments()
        with source_watched(moments):
            load(root, mode)
        check(root, mode)
        shutil.rmtree(root)
        return cls(mode, template, tuple(moments.names))

    def _begin(self) -> Path:
        return Path(shutil.copytree(self.template, self.template.with_name("run")))

    def fail_at(self, number: int, *, lasting: bool) -> None:
        """A store that fails, in this process."""
        root = self._begin()
        with source_watched(Moments(fail, number, lasting)), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there is no checkpoint
            with contextlib.suppress(VariantLakeError):
                load(root, self.mode)
        check(root, self.mode)
        shutil.rmtree(root)

    def kill_at(self, number: int) -> None:
        """SIGKILL, in a child process."""
        root = self._begin()
        child = os.fork()
        if child == 0:
            try:
                with source_watched(Moments(kill, number)):
                    load(root, self.mode)
            except BaseException:  # noqa: BLE001 - a child must not go on as its parent would
                traceback.print_exc()
            os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), f"{self.names[number]}: the child was not killed: {status}"
        check(root, self.mode)
        shutil.rmtree(root)


def main() -> None:
    """Kill an autoload in every mode at every moment, or at each `--every`th."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--every", type=int, default=1, help="each how manieth moment (1: all)")
    every = parser.parse_args().every
    total = 0
    for mode in MODES:
        started = time.perf_counter()
        with tempfile.TemporaryDirectory() as scratch:
            rehearsal = Rehearsal.of(mode, Path(os.path.realpath(scratch)))
            for number in range(0, len(rehearsal.names), every):
                rehearsal.kill_at(number)
                total += 1
        count = len(range(0, len(rehearsal.names), every))
        sys.stdout.write(
            f"autoload, {mode}: killed at {count} of {len(rehearsal.names)} moments; "
            f"{time.perf_counter() - started:.1f} s\n"
        )
        sys.stdout.flush()
    sys.stdout.write(f"killed {total} times, each document in the table once\n")


if __name__ == "__main__":
    main()
