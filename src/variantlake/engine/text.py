"""Read the text of a SELECT of one table, resolved and typed as in Spark."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from sqlglot import exp

from variantlake.delta.schema.table_schema import StructType
from variantlake.engine.inlined import WRITTEN, inline, query_in_from
from variantlake.engine.queries import Ordering, Output, Query
from variantlake.engine.subqueries import RunQuery, Subqueries
from variantlake.errors import InvalidQuery, UnsupportedFeature
from variantlake.expressions.column_names import name_of_column, name_of_expression
from variantlake.expressions.columns import Columns
from variantlake.expressions.from_sqlglot import Expressions, has_aggregate, outside
from variantlake.expressions.tree import And, Expression, conjuncts, refs
from variantlake.expressions.typing import condition, refused, type_of, untyped
from variantlake.sql.select import about, only_parts, parse_select, row_limit

_PARTS = (
    *("expressions", "where", "limit", "offset", "from_", "group", "having", "order", "distinct"),
)


def names_of_table(uri: str) -> tuple[str, ...]:
    """The names that a text may use for a table: `t`, and the last part of its location."""
    return tuple(dict.fromkeys(("t", uri.rstrip("/").rpartition("/")[2].lower() or "t")))


def read_query(
    text: str,
    tables: Mapping[str, StructType],
    *,
    utc: bool = True,
    run: RunQuery | None = None,
) -> tuple[str, Query]:
    """Return the name of a query's table, and the query; `utc` as in `QueryText`.

    `tables` has the schemas by the names, in lower case, that the text may use. `run` runs queries
    within expressions; without it they are refused.

    Raises InvalidQuery, and UnsupportedFeature by name for what only Spark can run; with `run` also
    what a query in an expression raises.
    """
    with about(text):
        reader = _QueryReader(text, tables, utc, time.time_ns() // 1000, run)
        return reader.query(parse_select(text))


@dataclass(frozen=True, slots=True)
class _QueryReader:
    """Reads the queries of one text, which all share one `now()`."""

    text: str
    tables: Mapping[str, StructType]
    utc: bool
    now: int
    run: RunQuery | None

    def query(self, select: exp.Select) -> tuple[str, Query]:
        table, columns = self._flat(select)
        return table, _Select(select, columns, self).query()

    @property
    def within(self) -> Subqueries | None:
        """The object that reads and runs queries within expressions."""
        return None if self.run is None else Subqueries(self.query, self.run)

    def _flat(self, select: exp.Select) -> tuple[str, Columns]:
        """Return the table of a query and its columns; inline a query in FROM."""
        inner = query_in_from(select)
        only_parts(select, *_PARTS)
        if inner is None:
            return _table_of(select, self.tables)
        table, columns = self._flat(inner)
        outputs = _Select(inner, columns, self).outputs
        if any(has_aggregate(output.expression) for output in outputs):
            raise refused("groups of a query in FROM")
        fields = [field.name for field in columns.schema.fields]
        inline(select, inner, [output.name for output in outputs], fields)
        return table, columns


def _table_of(select: exp.Select, tables: Mapping[str, StructType]) -> tuple[str, Columns]:
    source = select.args.get("from_")
    if source is None:
        raise InvalidQuery("the query has no FROM", hint=f"the table is {_either(tables)}")
    named = source.this
    if not isinstance(named, exp.Table) or not _is_name(named):
        if isinstance(named, exp.Table) and named.args.get("version"):
            raise UnsupportedFeature(
                "the local engine does not run VERSION AS OF and TIMESTAMP AS OF",
                hint="vl.Table.open(location, version=3).sql(...) reads an older version",
                cli_hint="--version 3 or --timestamp reads an older version",
            )
        raise refused("a query of more than a table")
    table = named.name.lower()
    if table not in tables:
        raise InvalidQuery(
            f"there is no table {named.name!r}", hint=f"the table is {_either(tables)}"
        )
    columns = Columns(tables[table], named.alias.lower() or table, is_only=True)
    return table, columns


def _either(tables: Iterable[str]) -> str:
    return " or ".join(map(repr, tables))


def _is_name(named: exp.Table) -> bool:
    """Whether it is a name without options that leaves the columns' names as they are."""
    plain = {"this", "alias"}
    if any(value for name, value in named.args.items() if name not in plain):
        return False
    alias = named.args.get("alias")
    # An alias may rename columns, and `t@v1` is a version.
    return not (alias and (alias.columns or not isinstance(alias.this, exp.Identifier)))


class _Select:
    def __init__(self, select: exp.Select, columns: Columns, reader: _QueryReader) -> None:
        self._select = select
        self._columns = columns
        self._reader = reader
        self._read = self._expressions()
        self.outputs = tuple(self._items())
        self._names = self._names_of(self.outputs)

    def _expressions(self, names: Mapping[str, Expression | None] | None = None) -> Expressions:
        of = self._reader
        return Expressions(self._columns, utc=of.utc, names=names, now=of.now, queries=of.within)

    def query(self) -> Query:
        where, having = map(self._select.args.get, ("where", "having"))
        above = self._expressions(self._names)
        keys = self._keys(grouped=having is not None)
        groups = None if having is None else self._having(having.this, keys or ())
        order = tuple(self._order(above))
        if groups is not None and keys is None:
            raise refused("a HAVING without groups")
        if self._select.args.get("distinct"):
            keys = self._distinct(keys, order)
        if keys is not None:
            self._check(keys, groups, order)
        rows = [] if where is None else [self._read.condition(where.this)]
        # Spark filters rows by what keys alone decide: it computes nothing for other groups.
        rows += [part for part in conjuncts(groups) if any(refs(part)) and not has_aggregate(part)]
        return Query(
            self.outputs,
            And(tuple(rows)) if len(rows) > 1 else next(iter(rows), None),
            keys,
            groups,
            order,
            *self._limits(),
        )

    def _limits(self) -> tuple[int | None, int]:
        """The number of rows to compute, and how many of these to skip."""
        limit, offset = map(self._select.args.get, ("limit", "offset"))
        skipped = 0 if offset is None else row_limit(offset)
        return None if limit is None else row_limit(limit) + skipped, skipped

    def _items(self) -> Iterator[Output]:
        for part in self._select.expressions:
            if isinstance(part, exp.Star) and not any(part.args.values()):
                for item in self._columns.schema.fields:
                    yield Output(item.name, self._columns.whole(item.name))
                continue
            inner = part.this if isinstance(part, exp.Alias) else part
            self._check_names(inner)
            found = self._read.expression(inner)
            name = part.alias if isinstance(part, exp.Alias) else self._name(part, found)
            yield Output(name, found)

    def _name(self, node: exp.Expression, found: Expression) -> str:
        """The name that Spark gives to an unnamed item. Raises UnsupportedFeature if not known."""
        written = node.meta.get(WRITTEN)
        if written is None:
            shown = partial(name_of_column, columns=self._columns)
            return name_of_expression(node, found, shown, self._reader.text)
        inner = written.this if isinstance(written, exp.Cast) else written
        if isinstance(inner, exp.Column):
            return inner.name
        return name_of_expression(written, found, lambda column: column.name, self._reader.text)

    def _check_names(self, item: exp.Expression) -> None:
        """Refuse what only Spark resolves: `t.*`, and names of other items of the list."""
        known = {field.name.lower() for field in self._columns.schema.fields}
        named = {each.alias.lower() for each in self._select.expressions if each.alias}
        for node in item.find_all(exp.Column):
            if isinstance(node.this, exp.Star):
                raise refused("the columns of a table by its name")
            if not node.table and node.name.lower() in named - known:
                raise refused(f"{node.name!r}, a name of the same SELECT")

    @staticmethod
    def _names_of(outputs: tuple[Output, ...]) -> dict[str, Expression | None]:
        """The expressions of the result's names; None for a name of different expressions."""
        found: dict[str, Expression | None] = {}
        for output in outputs:
            name = output.name.lower()
            same = name not in found or found[name] == output.expression
            found[name] = output.expression if same else None
        return found

    def _keys(self, *, grouped: bool) -> tuple[Expression, ...] | None:
        group = self._select.args.get("group")
        if group is None:
            grouped = grouped or any(has_aggregate(each.expression) for each in self.outputs)
            return () if grouped else None
        if any(value for name, value in group.args.items() if name not in ("expressions", "all")):
            raise refused("this GROUP BY")
        if group.args.get("all"):
            found = dict.fromkeys(output.expression for output in self.outputs)
            return tuple(self._grouping(each) for each in found if not has_aggregate(each))
        return tuple(dict.fromkeys(self._key(node) for node in group.expressions))

    def _key(self, node: exp.Expression) -> Expression:
        place = _ordinal(node)
        found = self._named_key(node) if place is None else self._output(place, "GROUP BY")
        if has_aggregate(found):
            raise InvalidQuery("an aggregate in GROUP BY")
        return self._grouping(found)

    @staticmethod
    def _grouping(found: Expression) -> Expression:
        if type_of(found) is None:
            raise untyped("a group", found)
        return found

    def _having(self, node: exp.Expression, keys: tuple[Expression, ...]) -> Expression:
        """Read the condition on groups; a column that is a key takes precedence over other names.

        Spark casts the operand that another name is compared with to the type of the table's column
        of that name, before it finds that the name is the result's.
        """
        names = dict(self._names)
        for field in self._columns.schema.fields:
            name, own = field.name.lower(), self._columns.whole(field.name)
            if own in keys:
                names.pop(name, None)
            elif (named := names.get(name)) is not None and type_of(named) != type_of(own):
                names[name] = None
        return condition(self._expressions(names).expression(node))

    def _named_key(self, node: exp.Expression) -> Expression:
        """Read a grouping key; columns take precedence over names of the result."""
        known = [field.name.lower() for field in self._columns.schema.fields]
        if isinstance(node, exp.Column) and not node.table and node.name.lower() not in known:
            named = self._names.get(node.name.lower())
            if named is None:
                raise InvalidQuery(f"the table has no column {node.name!r}")
            return named
        return self._read.expression(node)

    def _order(self, above: Expressions) -> Iterator[Ordering]:
        order = self._select.args.get("order")
        for term in [] if order is None else order.expressions:
            if any(v for n, v in term.args.items() if n not in ("this", "desc", "nulls_first")):
                raise refused("this ORDER BY")
            place = _ordinal(term.this)
            found = (
                above.expression(term.this) if place is None else self._output(place, "ORDER BY")
            )
            if type_of(found) is None:
                raise untyped("an order", found)
            yield Ordering(found, bool(term.args.get("desc")), bool(term.args.get("nulls_first")))

    def _output(self, place: int, clause: str) -> Expression:
        if not 1 <= place <= len(self.outputs):
            raise InvalidQuery(f"{clause} {place}: the result has {len(self.outputs)} columns")
        return self.outputs[place - 1].expression

    def _distinct(
        self, keys: tuple[Expression, ...] | None, order: tuple[Ordering, ...]
    ) -> tuple[Expression, ...]:
        distinct = self._select.args["distinct"]
        if keys is not None or distinct.args.get("on"):
            raise refused("DISTINCT beside groups")
        found = tuple(dict.fromkeys(output.expression for output in self.outputs))
        for expression in found:
            if type_of(expression) is None:
                raise untyped("DISTINCT", expression)
        if any(term.expression not in found for term in order):
            raise refused("DISTINCT in an order by other than its columns")
        return found

    def _check(
        self,
        keys: tuple[Expression, ...],
        having: Expression | None,
        order: tuple[Ordering, ...],
    ) -> None:
        parts = [output.expression for output in self.outputs]
        parts += [] if having is None else [having]
        for part in (*parts, *(term.expression for term in order)):
            outside(part, keys)


def _ordinal(node: exp.Expression) -> int | None:
    whole = isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit()
    return int(node.this) if whole else None
