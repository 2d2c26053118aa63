"""Tests of one group run in one process of `pytest -n`: the versions of pytest and xdist agree."""

from __future__ import annotations

import pytest


@pytest.mark.xdist_group("groups")
def test_processes_know_the_groups(request: pytest.FixtureRequest) -> None:
    """pytest-xdist 3.8 passes them on in the tests' names, and pytest 9.2 keeps names as they are.

    Else module fixtures, a cluster among them, are made in all processes.
    """
    grouped = request.config.getoption("loadgroup", default=False)  # in the processes of `-n`
    named = request.node.nodeid.endswith("@groups")
    assert named or not grouped, "run `make setup` for the pinned versions"
