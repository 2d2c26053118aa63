"""Where the time of a load goes: each stage's share, its speed, and what bounds it.

    python -m benchmarks.stages [--events 100000] [--rounds 3] [--only SET]

One task loads a set on one core, in this process; its stages are timed where they are called.
Times are those of the clock, so that waiting for the disk shows; a stage's time leaves out the
stages that it calls. The limits are measured beside it: copying as many bytes as the stage takes in
or gives out, and pyarrow's encoder with compression switched off.
"""

from __future__ import annotations

import argparse
import io
import os
import pkgutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import documents
from benchmarks.report import table, timed
from variantlake.ingest.encode.document_options import DocumentOptions
from variantlake.ingest.load import run_load
from variantlake.jobs.tasks import Tasks
from variantlake.parquet.write.encodings import choose_encodings

SAMPLE = "sample, shredding schema"
READ = "read the file, find the lines"
TAPE = "JSON text → tape"
COLUMNS = "tape → Arrow columns"
COUNTS = "counts, bounds, choice of encodings"
ENCODE = "Parquet encoding by pyarrow"
FOOTER = "footer: annotation, facts for the log"
FLUSH = "wait for the disk"
COMMIT = "commit"
REST = "all else"

PLACES = {
    "variantlake.ingest.load:_decide_shredding": SAMPLE,
    "variantlake.ingest.sources.blocks:fill": READ,
    "variantlake.ingest.encode.documents:split_lines": READ,
    "variantlake.kernels.json.json_reader:JsonReader.read": TAPE,
    "variantlake.kernels.shredded.shredder:Shredder.shred": COLUMNS,
    "variantlake.parquet.stats.statistics_collector:StatisticsCollector.add": COUNTS,
    "variantlake.parquet.write.file_writer:choose_encodings": COUNTS,
    "pyarrow.parquet:ParquetWriter.write_table": ENCODE,
    "pyarrow.parquet:ParquetWriter.close": ENCODE,
    "variantlake.parquet.write.file_writer:FileWriter._finish": FOOTER,
    "variantlake.storage.store:LocalStore.flush": FLUSH,
    "variantlake.ingest.commit_load:commit_files": COMMIT,
}
"""The functions that are timed, and the stage that each is."""

STAGES = (*dict.fromkeys(PLACES.values()), REST)


class Clock:
    """Seconds of each stage, without those of the stages that it calls."""

    def __init__(self) -> None:
        self.spent = dict.fromkeys(STAGES, 0.0)
        self._stage = REST
        self._since = time.perf_counter()

    def enter(self, stage: str) -> str:
        """From now on time is this stage's; the stage before."""
        now = time.perf_counter()
        self.spent[self._stage] += now - self._since
        before, self._stage, self._since = self._stage, stage, now
        return before

    def watched(self, function: Callable[..., Any], stage: str) -> Callable[..., Any]:
        """The function with its time counted; what the sample calls is the sample's."""

        def run(*args: Any, **kwargs: Any) -> Any:
            before = self.enter(SAMPLE if self._stage == SAMPLE else stage)
            try:
                return function(*args, **kwargs)
            finally:
                self.enter(before)

        return run


@contextmanager
def watching() -> Iterator[Clock]:
    """Time all PLACES."""
    clock = Clock()
    with ExitStack() as stack:
        for place, stage in PLACES.items():
            owner, _, name = place.replace(":", ".").rpartition(".")
            module = place.partition(":")[0]
            holder = pkgutil.resolve_name(f"{module}:{owner[len(module) + 1 :]}")
            stack.enter_context(
                patch.object(holder, name, clock.watched(getattr(holder, name), stage))
            )
        clock.enter(REST)
        clock.spent = dict.fromkeys(STAGES, 0.0)
        yield clock
        clock.enter(REST)


def load(source: Path, folder: Path) -> None:
    """One task after the other, all in this thread."""

    def run(task: Tasks, _: Callable[[int], None]) -> list[bytes]:
        return [payload for number in range(len(task.groups)) for payload in task(number)]

    run_load(
        [str(source)],
        str(folder),
        run,
        DocumentOptions.of(),
        progress=None,
        parallelism=1,
    )


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds that no stage can go below: copies of the text and of its Arrow form, and pyarrow."""

    text: float
    arrow: float
    uncompressed: float

    def of(self, stage: str) -> tuple[str, float | None]:
        """What bounds a stage, and for how long."""
        if stage in (READ, TAPE):
            return "copying the text", self.text
        if stage in (COLUMNS, COUNTS):
            return "copying the Arrow columns", self.arrow
        return ("pyarrow without zstd", self.uncompressed) if stage == ENCODE else ("", None)


def limits(source: Path, folder: Path) -> Limits:
    """Measured on the same bytes and on the rows of the table's files."""
    text = np.fromfile(source, np.uint8)
    tables = [pq.read_table(file) for file in sorted(folder.glob("*.parquet"))]
    buffers = [
        np.frombuffer(memoryview(buffer), np.uint8)
        for rows in tables
        for column in rows.columns
        for chunk in column.chunks
        for buffer in chunk.buffers()
        if buffer is not None
    ]
    spare = np.empty(max(len(text), *map(len, buffers)), np.uint8)

    def copy_all() -> None:
        for buffer in buffers:
            spare[: len(buffer)] = buffer

    def write_all() -> None:
        for rows in tables:
            encodings = choose_encodings(rows)
            pq.write_table(
                rows,
                io.BytesIO(),
                compression="none",
                use_dictionary=encodings.dictionary or False,  # type: ignore[arg-type]
                column_encoding=encodings.others or None,
                store_schema=False,
            )

    def copy_text() -> None:
        spare[: len(text)] = text

    return Limits(
        *(min(timed(work) for _ in range(3)) for work in (copy_text, copy_all, write_all))
    )


def measure(name: str, count: int, rounds: int, folder: Path) -> list[list[str]]:
    """The table's rows for one set."""
    source = folder / f"{name}.ndjson"
    _, size = documents.write(name, source, count)
    load(source, folder / "first")
    runs: list[dict[str, float]] = []
    for turn in range(rounds):
        with watching() as clock:
            load(source, folder / str(turn))
        runs.append(clock.spent)
    bounds = limits(source, folder / "first")
    spent = {stage: median(run[stage] for run in runs) for stage in STAGES}
    whole = sum(spent.values())
    lines = [
        [
            f"all of {size / 1e6:.0f} MB",
            f"{whole * 1000:.0f} ms",
            "",
            f"{size / 1e6 / whole:,.0f}",
            "",
        ]
    ]
    for stage, seconds in spent.items():
        what, bound = bounds.of(stage)
        limit = "" if bound is None else f"{size / 1e6 / bound:,.0f} ({what})"
        speed = f"{size / 1e6 / seconds:,.0f}" if stage in PLACES.values() else ""
        lines.append([stage, f"{seconds * 1000:.0f} ms", f"{seconds / whole:.0%}", speed, limit])
    return lines


HEAD = ["stage", "time", "share", "MB/s of JSON text", "limit, MB/s"]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=list(documents.SETS), help="one set")
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory(prefix="variantlake-bench-") as folder:
        lines = measure(options.only or "events", options.events, options.rounds, Path(folder))
    print(table(HEAD, lines))


if __name__ == "__main__":
    main()
