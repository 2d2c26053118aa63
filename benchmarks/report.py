"""Repeated measurements, and what a benchmark reports: a section of benchmarks/results.json.

Each benchmark makes one `Section` and gives it to `finish`, which prints its table and, if `--json`
names a file, writes it there. `python -m benchmarks` collects these files.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def timed(action: Callable[[], object]) -> float:
    """Seconds of one call."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def best(work: Callable[[], object], runs: int) -> float:
    """Seconds of the fastest of some calls: other processes disturb the slower ones."""
    return min(timed(work) for _ in range(runs))


def peak_mb() -> float:
    """Peak resident size of this process, without that of the process that forked it."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


@dataclass(slots=True)
class Runs:
    """Measurements of repeated runs, in `s`, `MB` or `MB/s`; `failure` says why there are none."""

    values: list[float] = field(default_factory=list)
    unit: str = "s"
    failure: str = ""

    @property
    def median(self) -> float:
        """The median."""
        return statistics.median(self.values)

    def text(self, ours: Runs | None = None) -> str:
        """The median, the spread, and the ratio to `ours`."""
        if not self.values:
            return self.failure or "–"
        low, high = min(self.values), max(self.values)
        scale, unit, digits = _scaled(self.median, self.unit)
        text = f"{self.median * scale:,.{digits}f} {unit}"
        if len(self.values) > 1:
            text += f" ({low * scale:,.{digits}f}–{high * scale:,.{digits}f})"
        if ours is None or ours is self or not ours.values or not ours.median:
            return text
        ratio = self.median / ours.median
        return f"{text}, {ratio:.{2 if ratio < 2 else 1}f}×"

    def to_dict(self) -> dict[str, Any]:
        """As the JSON has it."""
        if self.failure:
            return {"failure": self.failure}
        return {"unit": self.unit, "runs": [float(f"{value:.4g}") for value in self.values]}

    @classmethod
    def from_dict(cls, cell: Mapping[str, Any]) -> Runs:
        """Out of the JSON."""
        return cls(list(cell.get("runs", ())), cell.get("unit", "s"), cell.get("failure", ""))


def _scaled(value: float, unit: str) -> tuple[float, str, int]:
    """The factor and unit for display, and the number of decimal places."""
    if unit != "s":
        return 1, unit, 1 if value < 100 else 0
    if value < 0.1:
        return 1000, "ms", 1 if value < 0.01 else 0
    return 1, "s", 2


@dataclass(slots=True)
class Section:
    """The figures of one benchmark: a row for each workload, a cell for each column.

    If `compares` is "engines", the first column is ours and the others are those of other engines.
    `inputs` says what was worked on.
    """

    columns: Sequence[str]
    compares: str = "engines"
    inputs: list[str] = field(default_factory=list)
    rows: dict[str, dict[str, Runs]] = field(default_factory=dict)
    rounds: int = 0

    def add(self, name: str, cells: Mapping[str, Runs]) -> None:
        """Add a row and print it at once: a run takes long."""
        self.rows[name] = dict(cells)
        print(name, *self._texts(cells), sep=" | ", flush=True)

    def table(self) -> str:
        """All rows in Markdown."""
        rows = [[name, *self._texts(cells)] for name, cells in self.rows.items()]
        return table(["", *self.columns], rows)

    def _texts(self, cells: Mapping[str, Runs]) -> list[str]:
        ours = cells.get(self.columns[0])
        reference = ours if self.compares == "engines" else None
        return [cells.get(column, Runs()).text(reference) for column in self.columns]

    def to_dict(self) -> dict[str, Any]:
        """As the JSON has it."""
        rows = {
            name: {column: runs.to_dict() for column, runs in cells.items()}
            for name, cells in self.rows.items()
        }
        return {
            "rounds": self.rounds,
            "inputs": self.inputs,
            "compares": self.compares,
            "columns": list(self.columns),
            "rows": rows,
        }

    @classmethod
    def from_dict(cls, section: Mapping[str, Any]) -> Section:
        """Out of the JSON."""
        rows = {
            name: {column: Runs.from_dict(cell) for column, cell in cells.items()}
            for name, cells in section["rows"].items()
        }
        return cls(
            section["columns"], section["compares"], section["inputs"], rows, section["rounds"]
        )


def parser(about: str | None, *, events: int, rounds: int) -> argparse.ArgumentParser:
    """The options that benchmarks share: `--events`, `--rounds`, `--json`."""
    made = argparse.ArgumentParser(description=about.splitlines()[0] if about else None)
    made.add_argument("--events", type=int, default=events, help="sizes the work")
    made.add_argument("--rounds", type=int, default=rounds)
    made.add_argument("--json", type=Path, help="a file for the figures")
    return made


def finish(section: Section, options: argparse.Namespace) -> None:
    """Print the table, and write the figures to the file that `--json` names."""
    section.rounds = options.rounds
    print(f"\n{section.table()}")
    if options.json is not None:
        options.json.write_text(json.dumps(section.to_dict()), encoding="utf-8")


WARM_UP = 3
"""Unmeasured calls of each way: for so long Spark's JVM compiles what it runs, and takes the cores
from whoever is measured meanwhile."""


def in_turns(rounds: int, ways: Mapping[str, Callable[[], float]]) -> dict[str, Runs]:
    """Run every way in turns, after WARM_UP unmeasured ones, or `rounds` if these are fewer.

    A way returns its own seconds. The disk is at rest before each: who waits for it must not wait
    for what others have left to be written. One that raises is out, with its error as the reason.
    """
    results = {name: Runs() for name in ways}
    warm_up = min(WARM_UP, rounds)
    for turn in range(warm_up + rounds):
        for name, way in ways.items():
            if results[name].failure:
                continue
            os.sync()
            try:
                seconds = way()
            except Exception as error:  # noqa: BLE001 - other engines fail in ways of their own
                results[name] = Runs(failure=_reason(error))
                continue
            if turn >= warm_up:
                results[name].values.append(seconds)
    return results


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return "no: " + lines[0][:100].replace("|", "/")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
