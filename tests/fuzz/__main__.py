"""Fuzz all targets: `python -m tests.fuzz --seconds 600`, or some, `python -m tests.fuzz json ddl`.

Each runs in a process of its own. With atheris (--python, an environment that has it) the branches
that an input takes decide which inputs are changed next, and the corpus stays in --corpus for the
next run; without it chance alone decides. Inputs of all runs are counted in --record, which
`--page` shows as docs/maintainers/fuzzing.md. The exit code is 1 if an input was found on which
the package fails.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.corpora import REPOSITORY
from tests.fuzz.page import page
from tests.fuzz.targets import BULK, TARGETS

RECORD = REPOSITORY / "docs" / "assets" / "fuzzing.json"
PAGE = REPOSITORY / "docs" / "maintainers" / "fuzzing.md"
CORPUS = REPOSITORY / ".work" / "fuzz"
_LENGTH = 512
"""Bytes of chance that libFuzzer chooses; what follows depends on them."""


@dataclass(frozen=True, slots=True)
class Round:
    """What came of one target: its inputs, the branches that they took, seconds of CPU time."""

    inputs: int
    seconds: float
    branches: int
    failed: bool


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", help=f"{', '.join(TARGETS)}; all if none")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each target (60)")
    parser.add_argument("--python", type=Path, help="the Python that has atheris")
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="the folder of inputs")
    parser.add_argument("--record", type=Path, help=f"add what was done here, as {RECORD.name}")
    parser.add_argument("--page", action="store_true", help="write the page of the record alone")
    options = parser.parse_args(arguments)
    if options.page:
        PAGE.write_text(page(json.loads(RECORD.read_text())))
        return 0
    failed = False
    if unknown := set(options.targets) - set(TARGETS):
        parser.error(f"no target is called {min(unknown)}: there are {', '.join(TARGETS)}")
    for name in options.targets or TARGETS:
        done = fuzzed(name, options)
        failed |= done.failed
        sys.stdout.write(
            f"{name}: {done.inputs:,} inputs in {done.seconds:.0f} s of CPU time"
            f"{f', {done.branches:,} branches' if done.branches else ''}"
            f"{': FAILED' if done.failed else ''}\n"
        )
        sys.stdout.flush()
        if options.record and not done.failed:
            add(options.record, name, done)
    return int(failed)


def fuzzed(name: str, options: argparse.Namespace) -> Round:
    """Fuzz one target for a while."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    if options.python is None or name in BULK:
        command = [sys.executable, "-m", "tests.fuzz.runner", name]
        command += ["--seconds", str(options.seconds)]
    else:
        corpus = options.corpus / name
        corpus.mkdir(parents=True, exist_ok=True)
        command = [str(options.python), "-m", "tests.fuzz.guided", name, str(corpus)]
        command += [
            f"-max_total_time={options.seconds:.0f}",
            f"-max_len={_LENGTH}",
            "-len_control=0",
        ]
        command += ["-print_final_stats=1", f"-artifact_prefix={options.corpus}/{name}-"]
        # Seconds; what a case may take is judged by its CPU time.
        command += ["-timeout=300", "-rss_limit_mb=4096"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY / "src"), *sys.path])}
    done = subprocess.run(
        command, cwd=REPOSITORY, env=env, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.stderr.write(f"{done.stdout[-2000:]}\n{done.stderr[-6000:]}\n")
    said = done.stdout + done.stderr
    inputs = _number(r"(?:number_of_executed_units: |^)(\d+)(?: inputs:|$)", said)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    inputs *= BULK.get(name, 1)
    return Round(inputs, seconds, _number(r" cov: (\d+)", said), bool(done.returncode))


def _number(pattern: str, text: str) -> int:
    found = re.findall(pattern, text, re.MULTILINE)
    return int(found[-1]) if found else 0


def add(file: Path, name: str, done: Round) -> None:
    """Add a round to the record."""
    record: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    known = record.get(name, {"inputs": 0, "seconds": 0, "branches": 0})
    record[name] = {
        "inputs": known["inputs"] + done.inputs,
        "seconds": round(known["seconds"] + done.seconds),
        "branches": max(known["branches"], done.branches),
        "until": dt.datetime.now(dt.UTC).date().isoformat(),
    }
    file.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
