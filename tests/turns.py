"""Which process of `pytest -n` runs what: Spark's tests in two of them, with one JVM each."""

from __future__ import annotations

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
