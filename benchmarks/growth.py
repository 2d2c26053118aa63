"""How cost and memory grow: load, query, optimize, checkpoint, vacuum at 1, 2, 4 and 8 times.

    python -m benchmarks.growth [--events 250000] [--rounds 3]

Each run is a process of its own, without Spark, on two cores and on one, after a small run of the
same kind that loads the kernels. At 1× a load, a query and a compaction (of 16 files) have
`--events` events, a checkpoint a log of a fifth as many files, and a vacuum removes a hundredth.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks import documents
from benchmarks.report import Runs, Section, finish, parser, peak_mb, timed

FACTORS = (1, 2, 4, 8)
SMALL = 400
COLUMNS = ("two cores", "one core", "peak memory, two cores")
QUERY = (
    "SELECT event:commit.collection::string AS c, count(*) AS n, "
    "count(DISTINCT event:did::string) AS users FROM t GROUP BY 1"
)


def prepare_load(place: Path, count: int) -> None:
    """Events as NDJSON."""
    documents.write("events", place / "events.ndjson", count)


def prepare_query(place: Path, count: int) -> None:
    """A table of events."""
    import variantlake as vl

    prepare_load(place, count)
    vl.Table.create(place / "t", "event VARIANT").append(vl.ndjson(place / "events.ndjson"))


def prepare_optimize(place: Path, count: int) -> None:
    """The same in small files: 16 at 1×, and more of this size."""
    import variantlake as vl

    prepare_load(place, count)
    rows = max(1, _at_one(place, count) // 16)
    table = vl.Table.create(place / "t", "event VARIANT")
    table.append(vl.ndjson(place / "events.ndjson"), max_rows_per_file=rows)


def _at_one(place: Path, count: int) -> int:
    factor = place.name.rpartition("-")[2]
    return count // int(factor) if factor.isdigit() else count


def prepare_checkpoint(place: Path, count: int) -> None:
    """A log of adds with bounds of two paths."""
    from benchmarks.planning import NARROW, write_table

    write_table(place / "t", max(count // 5, 100), NARROW)


def prepare_vacuum(place: Path, count: int) -> None:
    """A table, and files that no version needs."""
    import variantlake as vl

    vl.Table.create(place / "t", "n INT")
    old = time.time() - 30 * 86_400
    for number in range(max(count // 100, 10)):
        file = place / "t" / f"part-{number:05d}.zstd.parquet"
        file.write_bytes(b"PAR1")
        os.utime(file, (old, old))


def load(place: Path) -> Callable[[], object]:
    """NDJSON into a new table."""
    from variantlake.ingest.local_run import ingest_here

    return lambda: ingest_here(str(place / "events.ndjson"), place / "loaded")


def query(place: Path) -> Callable[[], object]:
    """Counts and distinct users by collection."""
    import variantlake as vl

    table = vl.Table.open(place / "t")
    return lambda: table.sql(QUERY).to_arrow()


def optimize(place: Path) -> Callable[[], object]:
    """Compaction of all files."""
    import variantlake as vl

    return lambda: vl.Table.open(place / "t").optimize()


def checkpoint(place: Path) -> Callable[[], object]:
    """A checkpoint, log read included."""
    import variantlake as vl

    return lambda: vl.Table.open(place / "t").checkpoint()


def vacuum(place: Path) -> Callable[[], object]:
    """Removal of the unneeded files."""
    import variantlake as vl

    return lambda: vl.Table.open(place / "t").vacuum()


WORKS: Mapping[str, tuple[Callable[[Path, int], None], Callable[[Path], Callable[[], object]]]] = {
    "load": (prepare_load, load),
    "query": (prepare_query, query),
    "optimize": (prepare_optimize, optimize),
    "checkpoint": (prepare_checkpoint, checkpoint),
    "vacuum": (prepare_vacuum, vacuum),
}


def one(name: str, small: Path, place: Path, cores: int) -> None:
    """What the process does: print the seconds of the work and the process's peak memory in MB."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    make = WORKS[name][1]  # imported after that: pyarrow counts cores once
    make(small)()
    print(json.dumps({"seconds": timed(make(place)), "peak": peak_mb()}))


def measured(name: str, folder: Path, factor: int, cores: int) -> dict[str, float]:
    """One run on copies of what was prepared."""
    with tempfile.TemporaryDirectory(dir=folder) as copies:
        places = []
        for prepared in (folder / f"{name}-small", folder / f"{name}-{factor}"):
            places.append(Path(copies) / prepared.name)
            shutil.copytree(prepared, places[-1])
        os.sync()
        command = [sys.executable, "-m", "benchmarks.growth", "--one", name]
        command += [*map(str, places), str(cores)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def run(count: int, rounds: int, folder: Path) -> Section:
    """All works at all sizes."""
    section = Section(COLUMNS, "ways")
    for name, (prepare, _) in WORKS.items():
        for label, events in [("small", SMALL), *((str(f), f * count) for f in FACTORS)]:
            place = folder / f"{name}-{label}"
            place.mkdir()
            prepare(place, events)
        for factor in FACTORS:
            runs = {
                cores: [measured(name, folder, factor, cores) for _ in range(rounds)]
                for cores in (2, 1)
            }
            two, one_ = (Runs([each["seconds"] for each in runs[cores]]) for cores in (2, 1))
            peaks = Runs([each["peak"] for each in runs[2]], "MB")
            section.add(f"{name}, {factor}×", dict(zip(COLUMNS, (two, one_, peaks), strict=True)))
        for place in folder.iterdir():
            shutil.rmtree(place)
    return section


def main() -> None:
    """Run and print."""
    options = parser(__doc__, events=250_000, rounds=3)
    options.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.one:
        name, small, place, cores = asked.one
        one(name, Path(small), Path(place), int(cores))
        return
    with tempfile.TemporaryDirectory(prefix="variantlake-bench-") as folder:
        section = run(asked.events, asked.rounds, Path(folder))
    section.inputs = [
        f"at 1×: load, query, optimize: {asked.events:,} events",
        f"checkpoint: a log of {max(asked.events // 5, 100):,} files",
        f"vacuum: {max(asked.events // 100, 10):,} files",
    ]
    finish(section, asked)


if __name__ == "__main__":
    main()
