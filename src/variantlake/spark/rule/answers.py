"""What the rule is told, and which of it the next query of the same request is told again."""

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
    """What the rule is told, or what makes it `again` each time; `lasts` if for each such request.

    `zone` is the time zone that the session of `helper` has to have while it is read.
    """

    java_list: JavaObject | None
    again: Callable[[], JavaObject | None] | None = None
    lasts: bool = False
    helper: HelperSession | None = None
    zone: str = ""


class Answers:
    """Answers by requests, those that were asked for last.

    A request names the version of each table, the session and its settings, and has all constants.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: OrderedDict[str, Answer] = OrderedDict()

    def get(self, request: str) -> Answer | None:
        """The answer to a request; None for one that nobody asked for lately."""
        with self._lock:
            if request not in self._answers:
                return None
            self._answers.move_to_end(request)
            return self._answers[request]

    def put(self, request: str, answer: Answer) -> None:
        """Remember an answer, and forget the oldest of many."""
        with self._lock:
            self._answers[request] = answer
            while len(self._answers) > _MOST_ANSWERS:
                self._answers.popitem(last=False)


def is_lasting(
    query: RuleQuery, relations: Sequence[Mapping[str, Any]], planned: Sequence[PlannedTable]
) -> bool:
    """Whether a query of the same request is to be read in the same way.

    The data source names no version, values of a joined side may be of another table, and how CHAR
    columns are read depends on settings that no request has.
    """
    return not (
        any("options" in relation for relation in relations)
        or any(node.name == "Join" for node in query.plan.walk())
        or any(char_columns(each.table.snapshot.schema) for each in planned)
    )
