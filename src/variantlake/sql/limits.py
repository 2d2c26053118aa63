"""Find the LIMIT of a SELECT over one table by its text, if Spark shows no plan.

Names in ORDER BY mean columns of the result first. If the text does not tell whether they do,
as for an unnamed item, nothing is known about the order.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from variantlake.expressions.columns import Columns
from variantlake.planning.stats.first_rows import FirstRows, Order
from variantlake.sql.select import row_limit

PARTS = frozenset({"expressions", "from_", "limit", "offset", "order", "where", "with_"})
"""Parts of a SELECT whose LIMIT applies to the rows of its FROM that fulfil its WHERE."""


@dataclass(frozen=True, slots=True)
class SelectNames:
    """What names of a SELECT over one table mean to Spark.

    `means` tells whether a name can only be a column of the table (a star: all of them), `same`
    whether the session takes two names for the same.
    """

    means: Callable[[exp.Column], bool]
    same: Callable[[str, str], bool]


def limit_of(select: exp.Select, columns: Columns, names: SelectNames) -> FirstRows | None:
    """The LIMIT of a SELECT on its table's rows; it has only PARTS, and computes row by row.

    None without a LIMIT, or if its order is not known. Raises VariantLakeError for names that the
    table does not have.
    """
    limit, offset, order = (select.args.get(name) for name in ("limit", "offset", "order"))
    if not isinstance(limit, exp.Limit) or isinstance(select.parent, exp.SetOperation):
        return None
    rows = row_limit(limit) + (0 if offset is None else row_limit(offset))
    if order is None:
        return FirstRows(rows)
    term = order.expressions[0]
    if any(v for n, v in term.args.items() if n not in ("this", "desc", "nulls_first")):
        return None
    key = _meant(select, term.this, columns, names)
    if key is None or not all(map(names.means, key.find_all(exp.Column))):
        return None
    ref = columns.find(key)
    if ref is None:
        return None
    down, nulls_first = (bool(term.args.get(name)) for name in ("desc", "nulls_first"))
    return FirstRows(rows, Order(ref, down, nulls_first, sole=len(order.expressions) == 1))


def _meant(
    select: exp.Select, key: exp.Expression, columns: Columns, names: SelectNames
) -> exp.Expression | None:
    """Resolve a key of ORDER BY to the columns of the FROM; None if that is not sure."""
    stars = [item for item in select.expressions if item.is_star]
    if not all(_is_of_table(item, names) for item in stars):
        return None  # the fields of a struct, whose names the text does not have
    for column in key.find_all(exp.Column):
        if column.table and _may_be_struct(column.table.lower(), select, columns):
            return None
        named = [item for item in select.expressions if column.name.lower() in _names(item)]
        plain = all(_is_of_table(item, names) for item in named)
        if plain and _WORD.fullmatch(column.name):
            continue
        # If two columns of the result have the name, Spark takes the one of the FROM.
        sole = len(named) == 1 and not (stars and _has(columns, column.name.lower()))
        if column is key and not column.table and sole and isinstance(named[0], exp.Alias):
            found: exp.Expression = named[0].this
            return found if names.same(named[0].alias, column.name) else None
        return None
    return key


def _is_of_table(item: exp.Expression, names: SelectNames) -> bool:
    """Whether an item is a column of the table, or all of them, but no field of a struct."""
    return isinstance(item, exp.Star) or (isinstance(item, exp.Column) and names.means(item))


def _may_be_struct(qualifier: str, select: exp.Select, columns: Columns) -> bool:
    """Whether the name before a dot may be a struct in the result, whose field is meant.

    A column of the table counts too: a star makes it one of the result.
    """
    return _has(columns, qualifier) or any(qualifier in _names(item) for item in select.expressions)


def _has(columns: Columns, name: str) -> bool:
    """Whether the table has a column of this lower-case name, ignoring case."""
    return any(field.name.lower() == name for field in columns.schema.fields)


_WORD = re.compile(r"(?!all$)\w+", re.IGNORECASE)
"""A name that no expression gets from its own text, and not `ORDER BY ALL`."""


def _names(item: exp.Expression) -> frozenset[str]:
    """The names that an item of a SELECT list may have, in lower case; a star has none of its own.

    Without an alias, the name is a field, the last key of a path, or the text of the expression,
    which for a constant is also a word. So any word in the item may be the name.
    """
    if isinstance(item, exp.Alias):
        return frozenset({item.alias.lower()})
    if isinstance(item, exp.Column):
        return frozenset({item.name.lower()})
    words = (node.sql() if isinstance(node, _CONSTANTS) else node.name for node in item.walk())
    return frozenset(word.lower() for word in words)


_CONSTANTS = (exp.Boolean, exp.Null)
