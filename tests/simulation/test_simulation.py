"""Many actors on one simulated store: a minute of seeds, and faults that they must find."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpora import REPOSITORY
from tests.places import replace_code
from tests.simulation.planted import CHEAP, FAULTS, find
from tests.simulation.scenario import CLEANERS, REMAKERS, REVIVERS, RIVALS, ROLES, Scenario
from tests.simulation.scenario import FAULTS as KINDS_OF_FAULTS
from tests.simulation.shrink import _smaller, kind
from tests.strategies import MORE

SECONDS = 15
"""CPU seconds of the seeds that `make test` runs."""


def simulated(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`python -m tests.simulation`, in a process whose times and hashes nobody else sees."""
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_seeds_do_as_the_model_says() -> None:
    """Takes longer than other tests: the more seeds, the more it sees."""
    done = simulated("--seconds", str(SECONDS * MORE), "--no-shrink")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr


def test_a_seed_does_the_same_each_time() -> None:
    first, second = (simulated("--seed", "23", "--all") for _ in range(2))
    assert first.returncode == 0
    assert first.stdout == second.stdout
    cut = simulated("--seed", "23", "--until", "50")
    assert cut.returncode == 0
    assert first.stdout.splitlines()[:49] == cut.stdout.splitlines()[:49]


@pytest.mark.parametrize("name", CHEAP)
def test_a_planted_fault_is_found(name: str, tmp_path: Path) -> None:
    """Takes longer than other tests: it runs a copy of the package."""
    fault = next(fault for fault in FAULTS if fault.name == name)
    assert find(fault, tmp_path, seeds=40) is not None


def test_each_planted_fault_has_its_place() -> None:
    package = REPOSITORY / "src" / "variantlake"
    for fault in FAULTS:
        replace_code(package, fault.place, fault.old, fault.new)
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_a_scenario_is_kept_as_text_and_becomes_smaller() -> None:
    scenario = Scenario.of_seed(12)
    again = Scenario.of_json(scenario.to_json())
    assert again == scenario
    smaller = list(_smaller(again))
    assert all(each.size <= again.size and each != again for each in smaller)
    assert any(len(each.actors) < len(again.actors) for each in smaller)


def test_seeds_choose_everything_that_there_is() -> None:
    scenarios = [Scenario.of_seed(seed) for seed in range(300)]
    kinds = {op.kind for each in scenarios for ops in each.actors for op in ops}
    assert kinds == {
        kind for kinds in (*ROLES.values(), RIVALS, REVIVERS, CLEANERS, REMAKERS) for kind in kinds
    }
    assert {name for each in scenarios for name in each.faults} == set(KINDS_OF_FAULTS)
    assert any(not each.faults for each in scenarios)


def test_violations_are_alike_whatever_their_numbers() -> None:
    assert kind("version 9 holds row 1800 twice") == kind("version 12 holds row 7 twice")
    assert kind("version 9 holds row 1800 twice") != kind("in/1-2.json was never loaded")
