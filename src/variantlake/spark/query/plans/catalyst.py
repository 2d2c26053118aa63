"""Spark's plans, seen from Python: trees of `Node`.

PlanDump.java writes a plan as JSON inside the JVM, so that it crosses in one call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

VARIANT = "variant"
"""The type as Spark writes it."""


class _Absent:
    """The type of ABSENT."""


ABSENT: Final = _Absent()
"""`Node.folded` of an expression that is not a constant."""


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A plan's operator or an expression, by Catalyst's own class names.

    `start` and `stop` span the SQL text in code points (stop excluded), -1 if the node is not in
    that text. `arguments` are constructor arguments that the analysis needs, as text.
    Operators have `output` (expression ids and names), `expressions` and `children`; the children
    of a WITH are its definitions too. Expressions have `type` (as SQL, lower case, empty if none),
    `expr_id` (-1 if they have none), `folded` (a constant's value as Spark prints it; None is
    NULL), `plan` (of a subquery) and `number` (its place among the expressions of the plan, if the
    JVM is to find it again; else -1).
    """

    name: str
    start: int
    stop: int
    arguments: dict[str, Any]
    children: tuple[Node, ...]
    output: tuple[tuple[int, str], ...] = ()
    expressions: tuple[Node, ...] = ()
    expr_id: int = -1
    type: str = ""
    folded: str | _Absent | None = field(default=ABSENT)
    deterministic: bool = True
    plan: Node | None = None
    number: int = -1

    @property
    def span(self) -> tuple[int, int]:
        """`start` and `stop`."""
        return self.start, self.stop

    @property
    def has_span(self) -> bool:
        """Whether the node has a place in the SQL text."""
        return self.start >= 0

    def walk(self) -> Iterator[Node]:
        """Yield this node and all below: expressions and the plans inside them, then children."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))
            if node.plan is not None:
                stack.append(node.plan)
            stack.extend(reversed(node.expressions))

    def walk_expression(self) -> Iterator[Node]:
        """Yield this expression and those below, without the plans inside them."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))


def node_of(document: dict[str, Any]) -> Node:
    """Return the plan or expression that PlanDump.java wrote."""
    inner = document.get("plan")
    return Node(
        name=document["name"],
        start=document.get("start", -1),
        stop=document.get("stop", -1),
        arguments=document["arguments"],
        children=tuple(map(node_of, document["children"])),
        output=tuple((expr_id, name) for expr_id, name in document.get("output", ())),
        expressions=tuple(map(node_of, document.get("expressions", ()))),
        expr_id=document.get("expr_id", -1),
        type=document.get("type", "").lower(),
        folded=document.get("folded", ABSENT),
        deterministic=document.get("deterministic", True),
        plan=None if inner is None else node_of(inner),
        number=document.get("number", -1),
    )
