"""The tables of ours that a query names, found in Spark's parse of it.

Spark's parser keeps the exact span of each table name in the text, also inside CTEs and subqueries.
A name becomes the name of a view; what the query calls the table stays the same, so that its
references to columns keep working.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from variantlake.quoting import Parts, quote_identifier
from variantlake.spark.query.plans.catalyst import Node
from variantlake.spark.scan.source_options import VERSION_IN_PATH
from variantlake.sql.splice import Splice


@dataclass(frozen=True, slots=True)
class Target:
    """What a name means: the table at `location` (a path or URI), and the whole of its name.

    `in_spark` tells whether Spark itself knows the name.
    """

    location: str
    name: Parts
    in_spark: bool


Resolve = Callable[[Parts], Target | None]
"""The Delta table that a multi-part name means, None for all other names."""


@dataclass(frozen=True, slots=True)
class Reference:
    """One place where a query reads a table of ours.

    `target` is the table without its version. `version` is that of a time travel and `timestamp`
    its expression, as written; None without. `start` and `stop` span all that the name of a view
    replaces. `alias` is to be written after it, at `alias_at`; empty if the query gives one
    itself.
    """

    target: Target
    version: int | None
    timestamp: str | None
    start: int
    stop: int
    alias: str
    alias_at: int

    def splices(self, view: str) -> list[Splice]:
        """The changes that make the query read `view` here."""
        return with_alias(Splice(self.start, self.stop, view), self.alias, self.alias_at)

    @property
    def as_delta(self) -> str:
        """The table and its version in words of Delta's own."""
        words = delta_name(self.target.location)
        if self.version is not None:
            words += f" VERSION AS OF {self.version}"
        if self.timestamp is not None:
            words += f" TIMESTAMP AS OF {self.timestamp}"
        return words


def delta_name(location: str) -> str:
    """How a query's FROM names the table at a location."""
    return f"delta.{quote_identifier(location)}"


_TABLE = re.compile(r"\bTABLE\s*$", re.IGNORECASE)


def qualifier_splices(plan: Node, text: str, names: Iterable[Parts]) -> list[Splice]:
    """Changes for columns that are qualified by the `names` of tables without aliases.

    A view's alias has one part, the table's last: the parts before it have to go, as in
    ``delta.`/t`.event`` and `catalog.db.t.event`.
    """
    whole = map(_folded, names)
    qualifiers = {name[at:] for name in whole for at in range(len(name) - 1)}
    changes = []
    for node in plan.walk():
        if node.name not in ("UnresolvedAttribute", "UnresolvedStar") or not node.has_span:
            continue
        parts = list(_PART.finditer(text, node.start, node.stop))
        written = _folded(part[1] or part[0] for part in parts)
        for length in range(len(parts) - 1, 1, -1):
            if written[:length] in qualifiers and _joined(text, parts[: length + 1], node.start):
                changes.append(Splice(node.start, parts[length - 1].start(), ""))
                break
    return changes


_PART = re.compile(r"`((?:[^`]|``)+)`|[\w*]+")
_DOT = re.compile(r"\s*\.\s*")


def _joined(text: str, parts: Sequence[re.Match[str]], start: int) -> bool:
    """Whether the parts follow each other from `start` on with nothing but dots between them."""
    return parts[0].start() == start and all(
        _DOT.fullmatch(text, before.end(), after.start()) for before, after in pairwise(parts)
    )


def _folded(parts: Iterable[str]) -> tuple[str, ...]:
    return tuple(part.replace("``", "`").lower() for part in parts)


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


def relations(
    plan: Node, *, case_sensitive: bool = False
) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """Each UnresolvedRelation that names no common table expression of the query.

    With the operators above it, nearest first.
    """
    scope = _Scope(frozenset(), case_sensitive=case_sensitive)
    return _relations(plan, (), scope)


@dataclass(frozen=True, slots=True)
class _Scope:
    """The common table expressions that a part of a query sees."""

    names: frozenset[str]
    case_sensitive: bool

    def holds(self, relation: Node) -> bool:
        """Whether the relation is one of them."""
        parts = relation.arguments["multipartIdentifier"]
        return len(parts) == 1 and self._fold(parts[0]) in self.names

    def with_name(self, identifier: str) -> _Scope:
        """The scope with one more, named as a SubqueryAlias prints it."""
        name = identifier
        if name.startswith("`") and name.endswith("`"):
            name = name[1:-1].replace("``", "`")
        return replace(self, names=self.names | {self._fold(name)})

    def _fold(self, name: str) -> str:
        return name if self.case_sensitive else name.lower()


def _relations(
    node: Node, above: tuple[Node, ...], scope: _Scope
) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    if node.name == "UnresolvedRelation" and not scope.holds(node):
        yield node, above
    children = node.children
    if node.name == "UnresolvedWith":
        query, *definitions = children
        for definition in definitions:
            wider = scope.with_name(definition.arguments["identifier"])
            # One sees those before it; with RECURSIVE itself too.
            recursive = node.arguments.get("allowRecursion") == "true"
            yield from _relations(definition, (), wider if recursive else scope)
            scope = wider
        children = (query,)
    for child in children:
        yield from _relations(child, (node, *above[:3]), scope)
    for expression in node.expressions:
        yield from _relations(expression, (), scope)
    if node.plan is not None:
        yield from _relations(node.plan, (), scope)


def find_references(
    plan: Node, text: str, resolve: Resolve, *, case_sensitive: bool = False
) -> list[Reference]:
    """The tables of ours that the parsed plan of a text reads, in no particular order.

    `case_sensitive` is the session's setting for names.
    """
    return [
        reference
        for relation, above in relations(plan, case_sensitive=case_sensitive)
        if (reference := _reference(relation, above, text, resolve)) is not None
    ]


def _reference(
    relation: Node, above: tuple[Node, ...], text: str, resolve: Resolve
) -> Reference | None:
    name = tuple(relation.arguments["multipartIdentifier"])
    target = resolve(name)
    if target is None or not relation.has_span or relation.arguments["isStreaming"] == "true":
        return None
    if relation.arguments["options"]:
        return None  # Spark's business: options have no span, and we know none
    stop = relation.stop
    timestamp: str | None = None
    location, version = versioned(target.location, name)
    if above and above[0].name == "RelationTimeTravel":
        travel, above = above[0], above[1:]
        if not travel.has_span or travel.stop < stop:
            return None
        stop, location, version = travel.stop, target.location, None
        if travel.arguments.get("version") is not None:
            if not travel.arguments["version"].isdecimal():
                return None
            version = int(travel.arguments["version"])
        elif travel.expressions and travel.expressions[0].has_span:
            moment = travel.expressions[0]
            timestamp = text[moment.start : moment.stop]
        else:
            return None
    target = replace(target, location=location)
    alias, alias_at = alias_place(relation, above, text, stop)
    return Reference(target, version, timestamp, relation.start, stop, alias, alias_at)


def versioned(location: str, name: Parts) -> tuple[str, int | None]:
    """A location, and the version that it names where it is what the query wrote."""
    match = VERSION_IN_PATH.fullmatch(location) if location == name[-1] else None
    return (location, None) if match is None else (match[1], int(match[2]))


def with_alias(change: Splice, alias: str, alias_at: int) -> list[Splice]:
    """A change of a relation with its alias, if there is one: see `alias_place`."""
    text = f" AS {quote_identifier(alias)}" if alias else ""
    if alias_at == change.stop:
        return [replace(change, new=change.new + text)]
    return [change, Splice(alias_at, alias_at, text)] if alias else [change]


def takes_a_name(relation: Node, text: str) -> bool:
    """Whether a relation stands after TABLE, which takes a name alone: no alias, no subquery."""
    return _TABLE.search(text, 0, relation.start) is not None


def alias_place(relation: Node, above: Sequence[Node], text: str, stop: int) -> tuple[str, int]:
    """The alias that keeps a relation's name once it is replaced up to `stop`, and its place.

    The alias is empty if the query gives one, and in TABLE, which takes none. `above` are the
    operators above the relation.
    """
    if takes_a_name(relation, text):
        return "", stop
    alias: str = relation.arguments["multipartIdentifier"][-1]
    alias_at = stop
    for operator in above:
        if operator.name == "SubqueryAlias" and operator.start == relation.start:
            alias = ""
            break
        if operator.name == "UnresolvedSubqueryColumnAliases":
            continue  # of an alias with names of columns, which stands above
        if operator.name != "Sample" or not operator.has_span:
            break
        alias_at = max(alias_at, operator.stop)
    return alias, alias_at
