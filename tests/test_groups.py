"""Processes of `pytest -n` share the tests and what they load."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import turns


@pytest.mark.xdist_group("groups")
def test_processes_know_the_groups(request: pytest.FixtureRequest) -> None:
    """pytest-xdist 3.8 passes them on in the tests' names, and pytest 9.2 keeps names as they are.

    Else module fixtures, a cluster among them, are made in all processes.
    """
    grouped = request.config.getoption("loadgroup", default=False)  # in the processes of `-n`
    named = request.node.nodeid.endswith("@groups")
    assert named or not grouped, "run `make setup` for the pinned versions"


def test_processes_begin_to_import_at_other_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "several"
    folder.mkdir()
    names = [f"several.test_{letter}" for letter in "abcd"]
    for name in names:
        (folder / f"{name.split('.')[1]}.py").write_text("")
    (folder / "test_b.py").write_text("1 / 0")  # the collection tells
    monkeypatch.syspath_prepend(str(tmp_path))
    for number, right in enumerate(("acd", "cda")):
        worker = {"workerid": f"gw{number}", "workercount": 2}
        given = SimpleNamespace(workerinput=worker, rootpath=tmp_path, args=["several"])
        turns.load(given)  # type: ignore[arg-type]
        assert [name for name in sys.modules if name in names] == [
            f"several.test_{letter}" for letter in right
        ]
        for letter in right:
            del sys.modules[f"several.test_{letter}"]
