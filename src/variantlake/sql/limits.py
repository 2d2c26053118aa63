"""The LIMIT of a SELECT over one table, where Spark shows no plan.

Names in ORDER BY mean columns of the result first. Where the text does not tell whether they do,
as for an item without a name of its own, nothing is known of the order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from sqlglot import exp

from variantlake.planning.stats.first_rows import FirstRows, Order
from variantlake.sql.columns import Columns
from variantlake.sql.select import row_limit

PARTS = frozenset({"expressions", "from_", "limit", "offset", "order", "where", "with_"})
"""Parts of a SELECT that leave its LIMIT one on the rows of its FROM that fulfil its WHERE."""


def limit_of(
    select: exp.Select, columns: Columns, means: Callable[[exp.Column], bool]
) -> FirstRows | None:
    """What a SELECT that has no more than PARTS, and computes row by row, asks for of its table.

    `means` tells whether a name can only be a column of it. None without a LIMIT, and where it is
    not known by what it chooses. Raises VariantLakeError for other names.
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
    key = _meant(select, term.this)
    if key is None or not all(map(means, key.find_all(exp.Column))):
        return None
    ref = columns.find(key)
    if ref is None:
        return None
    down, nulls_first = (bool(term.args.get(name)) for name in ("desc", "nulls_first"))
    return FirstRows(rows, Order(ref, down, nulls_first, sole=len(order.expressions) == 1))


def _meant(select: exp.Select, key: exp.Expression) -> exp.Expression | None:
    """A key of ORDER BY over the columns of the FROM; None where that is not sure."""
    for column in key.find_all(exp.Column):
        named = [item for item in select.expressions if column.name.lower() in _names(item)]
        plain = all(isinstance(item, exp.Column) for item in named)
        if plain and _WORD.fullmatch(column.name):
            continue
        if column is key and len(named) == 1 and isinstance(named[0], exp.Alias):
            found: exp.Expression = named[0].this
            return found
        return None
    return key


_WORD = re.compile(r"(?!all$)\w+", re.IGNORECASE)
"""A name that no expression gets from its own text, and not `ORDER BY ALL`."""


def _names(item: exp.Expression) -> Iterator[str]:
    """The names that an item of a SELECT list may have, in lower case; a star has none of its own.

    Without an alias that is the last key of a path, or the text of the expression.
    """
    if isinstance(item, exp.Alias):
        yield item.alias.lower()
        return
    for column in item.find_all(exp.Column):
        yield column.name.lower()
    for key in item.find_all(exp.JSONPathKey):
        yield str(key.this).lower()
