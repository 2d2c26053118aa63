"""Inline a query in FROM or WITH into the query that reads it: names become expressions.

The inner query may only select and filter rows. Its other clauses are refused by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from variantlake.errors import InvalidQuery
from variantlake.expressions.typing import refused
from variantlake.sql.select import other_part

Named = dict[str, exp.Expression]
"""The expressions of the columns of a query in FROM, by their names in lower case."""

WRITTEN = "written"
"""The key under which an item keeps the user's expression, which determines its name."""


def query_in_from(select: exp.Select) -> exp.Select | None:
    """Return the query in FROM, or the query in WITH that FROM names; None for a table.

    Removes WITH. Raises UnsupportedFeature.
    """
    source, ctes = select.args.get("from_"), select.args.get("with_")
    named: Any = None if source is None else source.this
    if ctes is not None:
        first, *more = ctes.expressions
        is_it = isinstance(named, exp.Table) and named.name.lower() == first.alias.lower()
        if more or not is_it or named.db or first.args["alias"].columns:
            raise refused("WITH but for the one query that FROM names")
        if more := other_part(ctes, ("expressions",)) or other_part(first, ("this", "alias")):
            raise refused(f"WITH {more}")
        if more := other_part(named, ("this", "alias")):
            raise refused(f"{more} of a query")
        alias = named.args.get("alias") or exp.TableAlias(this=exp.to_identifier(first.alias))
        select.set("with_", None)
        if [each.name.lower() for each in select.find_all(exp.Table)].count(
            first.alias.lower()
        ) > 1:
            raise refused("a query of WITH that is read more than once")
        named = exp.Subquery(this=first.this, alias=alias)
        select.set("from_", exp.From(this=named))
    if not isinstance(named, exp.Subquery):
        return None
    inner, alias = named.this, named.args.get("alias")
    is_plain = isinstance(inner, exp.Select) and not other_part(named, ("this", "alias"))
    if not is_plain or (alias is not None and alias.columns):
        raise refused("this query in FROM")
    if other := other_part(inner, ("expressions", "where", "from_", "with_")):
        raise refused(f"{other} of a query in FROM")
    found: exp.Select = inner
    return found


def inline(
    select: exp.Select, inner: exp.Select, names: Sequence[str], columns: Sequence[str]
) -> None:
    """Make a query read the table of `inner`, the query in its FROM.

    `names` are those of the inner result, `columns` those of the table. Raises InvalidQuery for a
    name that the inner query does not have, UnsupportedFeature.
    """
    alias = select.args["from_"].this.alias.lower()
    named = _columns_of(inner, names, columns)
    items = _items(select, names)
    results = {item.alias_or_name.lower(): item for item in items}
    aliases = {item.alias.lower() for item in items if isinstance(item, exp.Alias)}
    if others := {*map(str.lower, columns)} & aliases - {*named}:
        raise refused(f"{min(others)!r}, a column of the table, as a name of the result")
    is_named = any(map(select.args.get, ("group", "having", "order", "distinct")))
    others = {name for name, item in results.items() if name in named and not _is_it(item, name)}
    if is_named and others:  # there the result's names take precedence over the inner query's
        raise refused("a name of the query in FROM for another column of the result")
    if select.args.get("group") and len({each.sql() for each in named.values()}) < len(named):
        raise refused("two names of one column in a query in FROM beside GROUP BY")
    written = [item.copy() for item in items]
    for node in [*select.find_all(exp.Column)]:
        if node.find_ancestor(exp.Select) is not select:
            continue
        name = node.name.lower()
        if (
            isinstance(node.this, exp.Star)
            or node.args.get("db")
            or (node.table and node.table.lower() != alias)
        ):
            raise refused(f"{node.sql()} of a query in FROM")
        if name in named:
            node.replace(named[name].copy())
        elif node.table or name not in aliases:
            raise InvalidQuery(
                f"the query in FROM has no column {node.name!r}", hint=f"it has {', '.join(named)}"
            )
    for item, own in zip(select.expressions, written, strict=True):
        item.meta[WRITTEN] = own
    conditions = [part.args.get("where") for part in (inner, select)]
    both = [exp.Paren(this=each.this) for each in conditions if each is not None]
    if both:
        select.set("where", exp.Where(this=exp.and_(*both, copy=False)))
    select.set("from_", inner.args["from_"])


def _items(select: exp.Select, names: Sequence[str]) -> list[exp.Expression]:
    """Expand `*` in the items of the result, and return the items."""
    items: list[exp.Expression] = []
    for item in select.expressions:
        if isinstance(item, exp.Star) and not any(item.args.values()):
            items += [exp.column(exp.to_identifier(name, quoted=True)) for name in names]
        else:
            items.append(item)
    select.set("expressions", items)
    return items


def _is_it(item: exp.Expression, name: str) -> bool:
    inner = item.this if isinstance(item, exp.Alias) else item
    return isinstance(inner, exp.Column) and inner.name.lower() == name


def _columns_of(inner: exp.Select, names: Sequence[str], columns: Sequence[str]) -> Named:
    """The expressions of the columns of a query in FROM, by `names`; `columns` are its table's.

    Raises InvalidQuery for a name that comes twice.
    """
    found: list[exp.Expression] = []
    for item in inner.expressions:
        if isinstance(item, exp.Star):
            found += [exp.column(exp.to_identifier(name, quoted=True)) for name in columns]
            continue
        own = item.this if isinstance(item, exp.Alias) else item
        plain = isinstance(own, exp.Column | exp.JSONExtract | exp.Paren)
        found.append(own if plain else exp.Paren(this=own))
    lower = [name.lower() for name in names]
    if len({*lower}) < len(lower):
        raise InvalidQuery("two columns of the query in FROM have one name", hint="AS gives others")
    return dict(zip(lower, found, strict=True))
