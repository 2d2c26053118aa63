"""Find what a commit made slower: run HEAD and its parent in turns, and compare CPU times.

    python -m benchmarks.check [--base REVISION] [--rounds 15] [--case NAME ...]

Each side is a process with the sources of its commit, and both have the cases of this checkout. In
each round both run each case, now the one first and now the other. The table shows the median of
the rounds' ratios and between which ratios that median lies, 19 times in 20. A case is slower, or
faster, if all of these are on one side of 1, and the median is beyond `--least`. The exit code is 1
if a case became slower.
"""

from __future__ import annotations

import argparse
import io
import math
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.cases import CASES
from benchmarks.report import table

REPOSITORY = Path(__file__).resolve().parents[1]
KERNELS = Path("src") / "variantlake" / "kernels"
_LIBRARY = KERNELS / "native" / "libkernels.so"

FEWEST = 6
"""The fewest rounds whose least and greatest ratio enclose the median with 95 % confidence."""


def median_bounds(ratios: Sequence[float]) -> tuple[float, float]:
    """Between which of these the median of all that could be lies, 19 times in 20.

    By the ranks of a binomial distribution, whatever the ratios are distributed as; of few ratios
    the least and the greatest.
    """
    ordered, count = sorted(ratios), len(ratios)
    rank, missed = 0, 0.5**count
    while rank < (count - 1) // 2 and missed <= 0.025:
        rank += 1
        missed += math.comb(count, rank) * 0.5**count
    rank = max(rank - 1, 0) if missed > 0.025 else rank
    return ordered[rank], ordered[count - 1 - rank]


def verdict(ratios: Sequence[float], least: float) -> str:
    """The verdict on the ratios of the change's times to its parent's."""
    if len(ratios) < FEWEST:
        return f"too few rounds to say, of {FEWEST}"
    low, high = median_bounds(ratios)
    middle = statistics.median(ratios)
    if low > 1 and middle >= 1 + least:
        return "slower"
    if high < 1 and middle <= 1 / (1 + least):
        return "faster"
    return "no difference beyond the noise"


def git(*arguments: str) -> str:
    """The output of a git command in this checkout."""
    done = subprocess.run(
        ["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def checkout(revision: str, folder: Path) -> Path:
    """The sources of a commit, with their kernels compiled."""
    packed = subprocess.run(
        ["git", "archive", revision, "src"], cwd=REPOSITORY, capture_output=True, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    changed = subprocess.run(
        ["git", "diff", "--quiet", revision, "--", str(KERNELS)], cwd=REPOSITORY, check=False
    )
    if changed.returncode == 0 and (REPOSITORY / _LIBRARY).exists():
        shutil.copy2(REPOSITORY / _LIBRARY, folder / _LIBRARY)
    else:
        environment = _environment(folder)
        command = [sys.executable, "-m", "variantlake.kernels.compile"]
        subprocess.run(command, env=environment, cwd=folder, check=True, stdout=sys.stderr)
    return folder


def _environment(sources: Path) -> dict[str, str]:
    paths = os.pathsep.join((str(sources / "src"), str(REPOSITORY)))
    return {**os.environ, "PYTHONPATH": paths}


class Side:
    """A process that runs cases with the sources of one commit."""

    def __init__(self, sources: Path, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.check", "--serve", str(folder)],
            cwd=folder,
            env=_environment(sources),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, case: str) -> float:
        """One run of a case. Raises RuntimeError if the process ended."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the process has no pipes")
        self._process.stdin.write(f"{case}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process ended in {case}")
        return float(line)

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def serve(folder: Path) -> None:
    """Run the cases named on standard input, and write their seconds to standard output."""
    # No fsync: we measure the processor, not the disk.
    os.fsync = lambda fd: None  # noqa: ARG005 - its own name
    works = {}
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        name = line.strip()
        if name not in works:
            place = folder / name.replace(" ", "-")
            place.mkdir()
            works[name] = CASES[name](place)
            works[name]()  # what is loaded once
        started = processor_seconds()
        works[name]()
        answers.write(f"{processor_seconds() - started}\n")
        answers.flush()


def processor_seconds() -> float:
    """CPU seconds of this process and of its ended children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def measured(sides: Sequence[Side], cases: Sequence[str], rounds: int) -> dict[str, list[Any]]:
    """The seconds of each side, by case."""
    times: dict[str, list[Any]] = {case: [[], []] for case in cases}
    for turn in range(rounds):
        for case in cases:
            for at in (0, 1) if turn % 2 else (1, 0):
                times[case][at].append(sides[at].seconds(case))
    return times


def rows_of(times: dict[str, list[Any]], least: float) -> list[list[str]]:
    """The rows of the table, with the verdicts in the last column."""
    rows = []
    for case, (own, base) in times.items():
        ratios = [mine / other for mine, other in zip(own, base, strict=True)]
        low, high = median_bounds(ratios)
        rows.append(
            [
                case,
                f"{1000 * statistics.median(base):.0f} ms",
                f"{1000 * statistics.median(own):.0f} ms",
                f"{statistics.median(ratios):.3f} ({low:.3f}–{high:.3f})",
                verdict(ratios, least),
            ]
        )
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 1 if a case became slower."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--base", default="HEAD^", help="what HEAD is compared with (its parent)")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--least", type=float, default=0.02, help="what matters (0.02: 2%%)")
    parser.add_argument("--case", action="append", choices=list(CASES), help="only these")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    requested = parser.parse_args(arguments)
    if requested.serve is not None:
        serve(requested.serve)
        return 0
    with tempfile.TemporaryDirectory(prefix="variantlake-check-") as scratch:
        folders = [Path(scratch) / name for name in ("own", "base", "own-data", "base-data")]
        for folder in folders:
            folder.mkdir()
        sources = checkout("HEAD", folders[0]), checkout(requested.base, folders[1])
        sides = [Side(*pair) for pair in zip(sources, folders[2:], strict=True)]
        times = measured(sides, requested.case or list(CASES), requested.rounds)
        for side in sides:
            side.close()
    rows = rows_of(times, requested.least)
    head = ["case", git("rev-parse", "--short", requested.base), "HEAD", "ratio", ""]
    print(table(head, rows))
    return 1 if any(row[-1] == "slower" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
