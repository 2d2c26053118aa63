"""Answers to the rule, and a cache of those that the next equal request may reuse."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from variantlake.spark.query.plans.planned import PlannedTable
from variantlake.spark.rule.rule_query import RuleQuery
from variantlake.spark.session.char_columns import char_columns
from variantlake.spark.session.classic_files import HelperSession
from variantlake.spark.session.jvm import Java as JavaObject

_MOST_ANSWERS = 32


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request as a list of the JVM, or a function `again` that makes it each time.

    `lasts` says whether equal requests may reuse it. `zone` is the time zone that the session of
    `helper` must have while Spark reads the answer.
    """

    java_list: JavaObject | None
    again: Callable[[], JavaObject | None] | None = None
    lasts: bool = False
    helper: HelperSession | None = None
    zone: str = ""


class Answers:
    """A cache of the most recently used answers, by request.

    A request holds the version of each table, the session with its settings, and all constants.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: OrderedDict[str, Answer] = OrderedDict()

    def get(self, request: str) -> Answer | None:
        """Return the cached answer to a request, or None."""
        with self._lock:
            if request not in self._answers:
                return None
            self._answers.move_to_end(request)
            return self._answers[request]

    def put(self, request: str, answer: Answer) -> None:
        """Cache an answer, and evict the least recently used ones."""
        with self._lock:
            self._answers[request] = answer
            while len(self._answers) > _MOST_ANSWERS:
                self._answers.popitem(last=False)


def is_lasting(
    query: RuleQuery, relations: Sequence[Mapping[str, Any]], planned: Sequence[PlannedTable]
) -> bool:
    """Whether an equal request may get the same answer.

    False in three cases: the request goes through the data source, which names no version; the plan
    has a join, whose values may come from another table; or a table has CHAR columns, whose reading
    depends on settings outside the request.
    """
    return not (
        any("options" in relation for relation in relations)
        or any(node.name == "Join" for node in query.plan.walk())
        or any(char_columns(each.table.snapshot.schema) for each in planned)
    )
