"""Which process of `pytest -n` runs what: Spark's tests in two of them, with one JVM each."""

from __future__ import annotations

import contextlib
import importlib
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadGroupScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

JVMS = 2
"""A third would cost more to start than it does: CI has two cores."""

_SPARK = "spark: "


def group(items: list[pytest.Item]) -> None:
    """The tests of a file that need Spark are a group, those that take long before all others.

    A test in a group of its own starts clusters or processes, and needs no session of ours.
    """
    for item in items:
        own = item.get_closest_marker("xdist_group")
        if item.get_closest_marker("spark") is not None and own is None:
            item.add_marker(pytest.mark.xdist_group(_SPARK + item.nodeid.split("::")[0]))
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def load(config: pytest.Config) -> None:
    """Import the test modules, those first that no other process of `-n` imports at the moment.

    Each process imports all. When pytest has never seen a module it rewrites the asserts, which
    takes two thirds of the time: all processes did so with the same module at the same time.
    """
    worker = getattr(config, "workerinput", None)
    if worker is None:
        return
    root = config.rootpath
    given = [(root / each.split("::")[0]).resolve() for each in config.args]
    files = sorted(file for each in given for file in each.rglob("test_*.py"))
    first = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for file in files[first:] + files[:first]:
        # What fails here the collection meets again, and tells.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts))


class Turns(LoadGroupScheduling):  # type: ignore[misc]  # xdist ships no types
    """A process that is done takes the next group, in the order in which tests are collected."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        spark = self.nodes.index(node) < JVMS
        own = (scope for scope in self.workqueue if scope.startswith(_SPARK) == spark)
        first = next(own, None)
        if first is not None:
            self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        late = self.nodes.index(node) >= JVMS
        if late and all(scope.startswith(_SPARK) for scope in self.workqueue):
            node.shutdown()  # rather than start a JVM for what is left
        else:
            super()._reschedule(node)
