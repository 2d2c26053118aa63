"""Make a failing scenario smaller: fewer actors, fewer things that they do, fewer faults."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from tests.simulation.run import Outcome, run
from tests.simulation.scenario import Scenario

_TURNS = 4
"""Seeds of whose turn it is that are tried for each smaller scenario."""


def kind(violation: str) -> str:
    """A violation without its numbers and names: a smaller scenario has to show the same."""
    first = violation.strip().splitlines()[-1] if violation.startswith("Traceback") else violation
    return re.sub(r"part-\S+|deletion_vector\S+|[0-9a-f-]{20,}|\d+|\[.*?\]", "#", first)[:60]


def shrink(failing: Outcome, *, runs: int = 300) -> Outcome:
    """The smallest failing run that at most so many runs lead to."""
    best, left = failing, runs
    while left > 0:
        for smaller in _smaller(best.scenario):
            outcome, used = _fails(smaller, kind(failing.violation))
            left -= used
            if outcome is not None:
                best = outcome
                break
            if left <= 0:
                break
        else:
            break
    return best


def _fails(scenario: Scenario, wanted: str) -> tuple[Outcome | None, int]:
    for at in range(_TURNS):
        outcome = run(replace(scenario, turns=scenario.turns + at))
        if outcome.violation and kind(outcome.violation) == wanted:
            return outcome, at + 1
    return None, _TURNS


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    """The scenario with less of everything, large pieces first."""
    for number in range(len(scenario.actors)):
        if len(scenario.actors) > 1:
            yield scenario.without_actor(number)
    for name in scenario.faults:
        yield scenario.without_fault(name)
    for number, ops in enumerate(scenario.actors):
        size = len(ops) // 2
        while size:
            for first in range(0, len(ops), size):
                yield scenario.without_ops(number, first, size)
            size //= 2
    for name in scenario.properties:
        if "Retention" not in name:
            kept = {n: value for n, value in scenario.properties.items() if n != name}
            yield replace(scenario, properties=kept)
