"""Loaders, a compaction and a reader side by side, killed at random, for as long as asked.

`python -m tests.autoloading.soak --seconds 60 --seed 1`: files of all kinds appear in a folder,
some with times of other clocks, while two loaders load it; loaders and compaction are killed with
SIGKILL and started again. The reader checks again and again that no document is there twice. At the
end every document is counted.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

import variantlake as vl
from tests.autoloading.sources import ids

LOADER = """
import sys, variantlake as vl
vl.autoload(sys.argv[2], sys.argv[1], name="events", every=0.05, settle=0.05, max_files=7,
            properties={"delta.checkpointInterval": "10"})
"""
COMPACTION = """
import sys, time, variantlake as vl
from variantlake.errors import CommitConflict, NotADeltaTable

while True:
    time.sleep(0.5)
    try:
        vl.Table.open(sys.argv[2]).optimize()
    except (CommitConflict, NotADeltaTable):
        pass
"""


PACKED: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": lambda text: bytes(pa.compress(text, "zstd", asbytes=True)),
}
CLOCKS = (-86_400, -1, 3600)
"""Seconds by which the clock of who wrote a file may be wrong."""


@dataclass(slots=True)
class Worker:
    """A process that is started again whenever it was killed."""

    code: str
    folder: Path
    table: Path
    process: subprocess.Popen[bytes] = field(init=False)
    kills: int = 0

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-c", self.code, str(self.folder), str(self.table)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.kills += 1

    def check(self) -> None:
        assert self.process.poll() is None, f"a worker ended by itself: {self.process.returncode}"


def write(folder: Path, random_: random.Random, first: int) -> int:
    """A file that appears whole, or is renamed into place; the next free id."""
    count = random_.randrange(0, 40)
    lines = (json.dumps({"id": first + at}) for at in range(count))
    end = random_.choice(["\n", "\r\n"])
    text = "".join(f"{line}{end}" for line in lines).encode()
    if random_.random() < 0.2 and text:
        text = b"\xef\xbb\xbf" + text.removesuffix(end.encode())
    suffix = random_.choice(["", "", "", *PACKED])
    if suffix and text:
        text = PACKED[suffix](text)
    name = f"{random_.randrange(1 << 32):08x}-{first}.json{suffix}"
    place = folder / random_.choice(["", "a", "b/c"])
    place.mkdir(parents=True, exist_ok=True)
    hidden = place / f".{name}"
    hidden.write_bytes(text)
    if random_.random() < 0.2:
        moment = time.time() + random_.choice(CLOCKS)
        os.utime(hidden, (moment, moment))
    hidden.rename(place / name)
    return first + count


def check_once(table: Path) -> int:
    """Read the newest version: no document twice; how many there are."""
    found = ids(table)
    assert len(found) == len(set(found)), "a document is in the table twice"
    return len(found)


def soak(seconds: float, seed: int, scratch: Path) -> str:
    """Run for so long; what was done, in a sentence."""
    random_ = random.Random(seed)
    folder, table = scratch / "in", scratch / "table"
    folder.mkdir()
    loaders = [Worker(LOADER, folder, table) for _ in range(2)]
    workers = [*loaders, Worker(COMPACTION, folder, table)]
    documents = reads = 0
    until = time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            for _ in range(random_.randrange(1, 6)):
                documents = write(folder, random_, documents)
            time.sleep(random_.random() * 0.3)
            for worker in workers:
                worker.check()
            if random_.random() < 0.2:
                worker = random_.choice(workers)
                worker.kill()
                worker.start()
            check_once(table)
            reads += 1
    finally:
        for worker in workers:
            worker.kill()
    done = vl.autoload(table, folder, name="events", settle=0)
    assert done.files_failed == 0
    assert ids(table) == list(range(documents))
    assert not vl.Table.open(table).loads(state="failed").num_rows
    kills = sum(worker.kills for worker in workers)
    return (
        f"{documents:,} documents, each in the table once at version "
        f"{vl.Table.open(table).version}; {kills} kills, {reads} reads (seed {seed})"
    )


def main() -> None:
    """Soak for `--seconds`."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    given = parser.parse_args()
    sys.stdout.write(f"seed {given.seed}\n")
    sys.stdout.flush()
    with tempfile.TemporaryDirectory() as scratch:
        sys.stdout.write(f"{soak(given.seconds, given.seed, Path(os.path.realpath(scratch)))}\n")


if __name__ == "__main__":
    main()
