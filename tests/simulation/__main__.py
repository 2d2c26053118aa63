"""Run seeds of the simulation: `python -m tests.simulation --seconds 600`, or one, `--seed 17`.

A seed that fails prints its trace and a smaller scenario that fails as it does; `--scenario FILE`
runs that one again, `--until STEP` stops there. The processes share the seeds from `--first` on.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.simulation.run import Outcome, run
from tests.simulation.scenario import Scenario
from tests.simulation.shrink import shrink
from tests.simulation.world import MAX_STEPS

_TAIL = 80
"""Lines of a trace that are printed unless all are asked for."""
_TOLD_SECONDS = 20
"""So often a process says how far it is."""


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this one, and print its trace")
    parser.add_argument("--scenario", type=Path, help="run the scenario in this file")
    parser.add_argument("--until", type=int, default=MAX_STEPS, help="stop at this step")
    parser.add_argument("--seconds", type=float, help="CPU seconds of each process")
    parser.add_argument("--seeds", type=int, help="so many seeds, all processes together")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--every", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--processes", type=int, default=1, help="how many processes (1)")
    parser.add_argument("--actors", type=int, default=0, help="so many actors, not the seed's")
    parser.add_argument("--ops", type=int, default=0, help="so much work of each actor")
    parser.add_argument("--no-shrink", action="store_true", help="leave a failing seed as it is")
    parser.add_argument("--all", action="store_true", help="print the whole trace")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """The exit code: 1 if a run violated the model."""
    options = parsed(arguments)
    if os.environ.get("PYTHONHASHSEED") != "0":
        command = [sys.executable, "-m", "tests.simulation", *arguments]
        return subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": "0"}, check=False
        ).returncode
    if options.processes > 1:
        return in_processes(arguments, options.processes, options.first)
    if options.scenario is not None:
        return show(
            run(Scenario.of_json(options.scenario.read_text()), until=options.until), options
        )
    if options.seed is not None:
        scenario = Scenario.of_seed(options.seed, actors=options.actors, ops=options.ops)
        return show(run(scenario, until=options.until), options)
    return run_many(options)


def in_processes(arguments: Sequence[str], count: int, first: int) -> int:
    """Each of several processes takes every so manieth seed; the worst of their exit codes."""
    command = [sys.executable, "-m", "tests.simulation", *arguments, "--processes", "1"]
    running = [
        subprocess.Popen([*command, "--first", str(first + at), "--every", str(count)])
        for at in range(count)
    ]
    return max([process.wait() for process in running])


def seeds(options: argparse.Namespace) -> Iterator[int]:
    """The seeds of this process, until its time is over."""
    started, seed = time.process_time(), options.first
    last = None if options.seeds is None else options.first - options.first % options.every
    while options.seconds is None or time.process_time() - started < options.seconds:
        if last is not None and seed >= last + options.seeds:
            return
        yield seed
        seed += options.every


def run_many(options: argparse.Namespace) -> int:
    """Run seeds until one fails."""
    runs = steps = versions = 0
    told = time.monotonic()
    for seed in seeds(options):
        if time.monotonic() - told >= _TOLD_SECONDS:
            told = time.monotonic()
            say(f"{runs:,} runs so far, the next seed is {seed}")
        outcome = run(Scenario.of_seed(seed, actors=options.actors, ops=options.ops))
        runs, steps, versions = runs + 1, steps + outcome.steps, versions + outcome.versions
        if outcome.violation and not outcome.is_stopped:
            return show(outcome, options)
    say(f"{runs:,} runs, {steps:,} steps, {versions:,} versions: each as the model says")
    return 0


def show(outcome: Outcome, options: argparse.Namespace) -> int:
    """Print a run; one that failed also as the smallest that fails so."""
    say("\n".join(outcome.trace if options.all else outcome.trace[-_TAIL:]))
    seed = outcome.scenario.seed
    if outcome.is_stopped:
        said = f"{outcome.violation}, {outcome.versions} versions"
        say(f"seed {seed}: {said}, as the model says so far")
        return 0
    if not outcome.violation:
        say(f"seed {seed}: {outcome.steps} steps, {outcome.versions} versions, as the model says")
        return 0
    say(f"\nseed {seed} FAILS at step {outcome.steps}: {outcome.violation}")
    if not options.no_shrink and options.until == MAX_STEPS:
        smaller = shrink(outcome)
        file = Path(f"simulation-{seed}.json")
        file.write_text(smaller.scenario.to_json())
        say(f"\nsmaller, {smaller.steps} steps: python -m tests.simulation --scenario {file}\n")
        say("\n".join(smaller.trace[-_TAIL:]))
    return 1


def say(text: str) -> None:
    """A line on the terminal."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
