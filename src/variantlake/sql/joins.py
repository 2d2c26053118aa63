"""Which rows of a join's sides matter to its result: one table for plans and for texts.

A condition may drop rows of a table only if a row that fails it cannot change the answer
(EXACTNESS, rule 18). Of a join's side that is so in two ways, which `Join` names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LEFT, RIGHT = 0, 1


@dataclass(frozen=True, slots=True)
class Join:
    """What conditions say about the rows of a join's sides.

    `above` are sides whose rows come out unchanged or not at all, so that a condition on the result
    drops rows of them: not those that a join fills up with NULLs. `on` are sides whose rows without
    a match are not in the result, so that the join's own condition drops rows of them, and so do
    the values that the other side has.
    """

    above: tuple[int, ...]
    on: tuple[int, ...]


_BOTH = (LEFT, RIGHT)
JOINS: Mapping[str, Join] = {
    "INNER": Join(above=_BOTH, on=_BOTH),
    "CROSS": Join(above=_BOTH, on=_BOTH),
    "LEFT": Join(above=(LEFT,), on=(RIGHT,)),
    "RIGHT": Join(above=(RIGHT,), on=(LEFT,)),
    "FULL": Join(above=(), on=()),
    # Of these the right side's columns do not come out. It is only asked for a match.
    "SEMI": Join(above=(LEFT,), on=_BOTH),
    "ANTI": Join(above=(LEFT,), on=(RIGHT,)),
}

_IN_PLANS = {
    "Inner": "INNER", "Cross": "CROSS", "LeftOuter": "LEFT", "RightOuter": "RIGHT",
    "FullOuter": "FULL", "LeftSemi": "SEMI", "LeftAnti": "ANTI",
}  # fmt: skip

_IN_TEXTS = {
    ("", ""): "INNER", ("", "INNER"): "INNER", ("", "CROSS"): "CROSS",
    ("LEFT", ""): "LEFT", ("LEFT", "OUTER"): "LEFT",
    ("RIGHT", ""): "RIGHT", ("RIGHT", "OUTER"): "RIGHT",
    ("FULL", ""): "FULL", ("FULL", "OUTER"): "FULL",
    ("", "SEMI"): "SEMI", ("LEFT", "SEMI"): "SEMI",
    ("", "ANTI"): "ANTI", ("LEFT", "ANTI"): "ANTI",
}  # fmt: skip


def join_of_plan(kind: str) -> Join:
    """A join by Catalyst's name; one that is not known drops no row."""
    return JOINS[_IN_PLANS.get(kind, "FULL")]


def join_of_text(side: str, kind: str) -> str | None:
    """The key in JOINS by the words before JOIN, in capitals; None for others."""
    return _IN_TEXTS.get((side, kind))
