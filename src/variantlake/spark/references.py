"""The tables of ours that a query names, found in Spark's parse of it.

Spark's parser keeps the exact span of each table name in the text, also inside CTEs and subqueries.
A name becomes the name of a view; what the query calls the table stays the same, so that its
references to columns keep working.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from variantlake.spark.catalyst import Node
from variantlake.spark.text import Splice, quote_identifier


@dataclass(frozen=True, slots=True)
class Reference:
    """One place where a query reads a table of ours.

    `location` is the path or URI as written. `version` and `timestamp` are those of a time travel,
    None without. `start` and `stop` span all that the name of a view replaces. `alias` is to be
    written after it, at `alias_at`; empty where the query gives one itself.
    """

    location: str
    version: int | None
    timestamp: str | None
    start: int
    stop: int
    alias: str
    alias_at: int

    def splices(self, view: str) -> list[Splice]:
        """The changes that make the query read `view` here."""
        if not self.alias:
            return [Splice(self.start, self.stop, view)]
        alias = f" AS {quote_identifier(self.alias)}"
        if self.alias_at == self.stop:
            return [Splice(self.start, self.stop, view + alias)]
        return [
            Splice(self.start, self.stop, view),
            Splice(self.alias_at, self.alias_at, alias),
        ]


Resolve = Callable[[tuple[str, ...]], str | None]
"""The location of the Delta table that a multi-part name means, None for all other names."""

_VERSION_IN_PATH = re.compile(r"(.+)@[vV](\d+)")


def find_references(plan: Node, resolve: Resolve) -> list[Reference]:
    """The tables of ours that a parsed plan reads, in no particular order."""
    return [
        reference
        for relation, above in _relations(plan, ())
        if (reference := _reference(relation, above, resolve)) is not None
    ]


def qualifier_splices(plan: Node, text: str, locations: set[str]) -> list[Splice]:
    """Changes for columns that are qualified by a whole table name: ``delta.`/t`.event``.

    A view's alias has one part, so the part before it has to go.
    """
    changes = []
    for node in plan.walk():
        if node.name not in ("UnresolvedAttribute", "UnresolvedStar") or not node.has_span:
            continue
        match = _QUALIFIED.match(text[node.start : node.stop])
        if match and match[2].replace("``", "`") in locations:
            changes.append(Splice(node.start, node.start + len(match[1]), ""))
    return changes


_QUALIFIED = re.compile(r"(`?delta`?\s*\.\s*)`((?:[^`]|``)+)`\s*\.", re.IGNORECASE)


def is_query(plan: Node) -> bool:
    """Whether the statement only reads: nothing in it is executed when Spark makes a DataFrame."""
    return not plan.name.startswith(_NOT_A_QUERY) and all(map(is_query, plan.children))


_NOT_A_QUERY = (
    "Add", "Alter", "Analyze", "Append", "Cache", "Call", "Clear", "Comment", "Compound", "Create",
    "Delete", "Describe", "Drop", "Execute", "Explain", "Insert", "Load", "Merge", "Msck",
    "Optimize", "Overwrite", "Recover", "Refresh", "Rename", "Repair", "Replace", "Reset", "Set",
    "Show", "Single", "Truncate", "Uncache", "Unset", "Update", "Vacuum",
)  # fmt: skip
"""How the names of operators start that do something, or hold statements that do."""


def _relations(node: Node, above: tuple[Node, ...]) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """Each UnresolvedRelation with the operators above it, nearest first."""
    if node.name == "UnresolvedRelation":
        yield node, above
    for child in node.children:
        yield from _relations(child, (node, *above[:3]))
    for expression in node.expressions:
        yield from _relations(expression, ())
    if node.plan is not None:
        yield from _relations(node.plan, ())


def _reference(relation: Node, above: tuple[Node, ...], resolve: Resolve) -> Reference | None:
    location = resolve(tuple(relation.arguments["multipartIdentifier"]))
    if location is None or not relation.has_span or relation.arguments["isStreaming"] == "true":
        return None
    if relation.arguments["options"]:
        return None  # Spark's business: options have no span, and we know none
    alias, stop = relation.arguments["multipartIdentifier"][-1], relation.stop
    version: int | None = None
    timestamp: str | None = None
    if above and above[0].name == "RelationTimeTravel":
        travel, above = above[0], above[1:]
        if not travel.has_span or travel.stop < stop:
            return None
        stop = travel.stop
        if travel.arguments.get("version") is not None:
            if not travel.arguments["version"].isdigit():
                return None
            version = int(travel.arguments["version"])
        elif travel.expressions and isinstance(travel.expressions[0].folded, str):
            timestamp = travel.expressions[0].folded
        else:
            return None
    elif match := _VERSION_IN_PATH.fullmatch(location):
        location, version = match[1], int(match[2])
    alias_at = stop
    for operator in above:
        if operator.name == "SubqueryAlias" and operator.start == relation.start:
            alias = ""
            break
        if operator.name != "Sample" or not operator.has_span:
            break
        alias_at = max(alias_at, operator.stop)
    return Reference(location, version, timestamp, relation.start, stop, alias, alias_at)
