"""Repeated times, their medians, and tables between markers of the pages on performance."""

from __future__ import annotations

import os
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = (_DOCS / "performance.md", _DOCS / "maintainers" / "performance.md")


def timed(action: Callable[[], object]) -> float:
    """Seconds of one call."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def best(work: Callable[[], object], runs: int) -> float:
    """Seconds of the fastest of some calls: the others had company on the machine."""
    return min(timed(work) for _ in range(runs))


def peak_mb() -> float:
    """Greatest resident size of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@dataclass(slots=True)
class Times:
    """Seconds of repeated runs; `failure` says why there are none."""

    seconds: list[float] = field(default_factory=list)
    failure: str = ""

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.seconds)

    def text(self, ours: Times | None = None) -> str:
        """Median, spread, and how many times as long as `ours`."""
        if not self.seconds:
            return self.failure or "–"
        text = f"{self.median:.2f} s ({min(self.seconds):.2f}–{max(self.seconds):.2f})"
        if ours is None or ours is self or not ours.seconds:
            return text
        return f"{text}, {self.median / ours.median:.1f}×"


WARM_UP = 3
"""Unmeasured calls of each way: for so long Spark's JVM compiles what it runs, and takes the cores
from whoever is measured meanwhile."""


def in_turns(rounds: int, ways: dict[str, Callable[[], float]]) -> dict[str, Times]:
    """Run every way in turns, after WARM_UP unmeasured ones; a way returns its own seconds.

    The disk is at rest before each: who waits for it must not wait for what others have left to be
    written. One that raises is out, with its error as the reason.
    """
    times = {name: Times() for name in ways}
    for turn in range(WARM_UP + rounds):
        for name, way in ways.items():
            if times[name].failure:
                continue
            os.sync()
            try:
                seconds = way()
            except Exception as error:  # noqa: BLE001 - other engines fail in ways of their own
                times[name] = Times(failure=_reason(error))
                continue
            if turn >= WARM_UP:
                times[name].seconds.append(seconds)
    return times


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return "no: " + lines[0][:100].replace("|", "/")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def replace_section(name: str, text: str) -> None:
    """Put `text` between the markers of that name, on the page that has them."""
    start, end = f"<!-- benchmark: {name} -->", "<!-- end of benchmark -->"
    for page in PAGES:
        head, found, rest = page.read_text(encoding="utf-8").partition(start)
        if found:
            _, _, tail = rest.partition(end)
            page.write_text(f"{head}{start}\n{text}\n{end}{tail}", encoding="utf-8")
            return
    raise SystemExit(f"no page on performance has {start}")
