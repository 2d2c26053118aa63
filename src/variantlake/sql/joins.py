"""The sides of joins whose rows conditions may drop: one table for plans and for texts.

A condition may drop rows of a table only if a row that fails it cannot change the answer
(EXACTNESS, rule 18). For a join's side there are two such cases, which `Join` names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LEFT, RIGHT = 0, 1


@dataclass(frozen=True, slots=True)
class Join:
    """The sides of a join whose rows conditions may drop.

    `above` are sides whose rows come out unchanged or not at all, so a condition on the result may
    drop their rows; sides that the join fills with NULLs are not among them. `on` are sides whose
    rows without a match are not in the result, so the join's own condition may drop their rows, and
    so may the values of the other side.
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
    # These do not return columns of the right side, but only look for a match there.
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
    """The join by Catalyst's name; an unknown one drops no row."""
    return JOINS[_IN_PLANS.get(kind, "FULL")]


def join_of_text(side: str, kind: str) -> str | None:
    """The key in JOINS by the words before JOIN, in capitals; None for others."""
    return _IN_TEXTS.get((side, kind))
