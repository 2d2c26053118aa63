"""Find the conditions that hold for each table's rows by the text, if Spark shows no plan.

Each SELECT is read by itself: its WHERE, and the ON of its joins, go down to an item of its FROM
if a row that fails them cannot change the answer (EXACTNESS, rule 18). From a derived table, or a
common table that is read once, they go on into its own SELECT, if that only computes columns row by
row. Names are not resolved; their meaning follows from Spark's acceptance of the text: it refuses a
name that two items of a FROM have, so one that our table has is our table's. Names that USING and
NATURAL joins merge are left alone, and so is all that is not understood.

`joins` tells which side of which join a condition reaches, as for Spark's plans. A text still tells
less than a plan if a comma separates an item from the join, in pipes and nested joins, and if only
types tell what is compared; values of small sides are not read for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from variantlake.delta.schema.table_schema import StructType
from variantlake.errors import VariantLakeError
from variantlake.expressions.columns import Columns
from variantlake.expressions.from_sqlglot import Expressions
from variantlake.expressions.tree import And, Not, Or, Predicate, Unknown, is_by_bounds
from variantlake.planning.stats.first_rows import FirstRows
from variantlake.sql.joins import JOINS, LEFT, RIGHT, join_of_text
from variantlake.sql.limits import PARTS, SelectNames, limit_of
from variantlake.sql.select import other_part
from variantlake.sql.token_paths import count_stars
from variantlake.sql.tokens import TEXTS, ParsedText, kind_at

UNREAD = "its conditions are ignored: {}"
KEEPS_ROWS = "no condition skips its files: the query needs rows that fail those of this SELECT"


@dataclass(frozen=True, slots=True)
class TableReference:
    """A place where a text reads one of our tables: the start of its name, and its columns."""

    start: int
    schema: StructType


@dataclass(frozen=True, slots=True)
class PushedFilter:
    """The condition that all rows of a table fulfil that matter at its place; None: all may.

    `note` tells why conditions of the text are left out. `first` is a LIMIT on the rows that fulfil
    it.
    """

    predicate: Predicate | None
    note: str = ""
    first: FirstRows | None = None


def _tree(
    parsed: ParsedText, *, quoted_names: bool, joined_texts: bool
) -> tuple[exp.Expr | None, str]:
    """The tree of a query, or the reason why it is not used."""
    text, tokens = parsed.text, parsed.tokens
    if "\\" in text:
        return None, "the text has backslashes"
    if '"' in text and (quoted_names or '""' in text):
        return None, "the text has double quotes"
    if joined_texts and "''" in text:
        return None, "the text has two quotes in a row"
    if any(token.token_type is TokenType.PIPE_GT for token in tokens):
        # sqlglot makes one SELECT of the pipe and forgets whether LIMIT stood before WHERE.
        return None, "the text has pipes"
    if any(token.text.upper() in _HIDING for token in tokens if token.token_type not in TEXTS):
        return None, "the text may name tables in other ways"
    tree = parsed.tree
    return tree, "" if tree else "the text has syntax of Spark's own"


_HIDING = ("IDENTIFIER", "TABLE")


def _start(table: exp.Table) -> int:
    parts = [part for part in table.parts if "start" in part.meta]
    return min((part.meta["start"] for part in parts), default=-1)


_AROUND_WHERE = frozenset(
    {
        "cluster", "distinct", "distribute", "expressions", "from_", "group", "having", "hint",
        "joins", "limit", "offset", "order", "qualify", "sort", "where", "windows", "with_",
    }
)  # fmt: skip
"""Parts of a SELECT that allow dropping the rows which its WHERE excludes."""

_ROW_BY_ROW = frozenset({"expressions", "from_", "hint", "joins", "order", "where", "with_"})
"""Parts of a SELECT that makes each row of its result from one row of its FROM and no other."""

_COMPUTED = (
    exp.Alias, exp.Binary, exp.Boolean, exp.Case, exp.Cast, exp.Coalesce, exp.Column, exp.DataType,
    exp.DataTypeParam, exp.Identifier, exp.If, exp.JSONPath, exp.JSONPathPart, exp.Literal,
    exp.Lower, exp.Null, exp.Star, exp.Unary, exp.Upper,
)  # fmt: skip
"""Deterministic expressions of one row: no windows, aggregates, rand()."""

_PLAIN_TABLE = frozenset({"alias", "catalog", "db", "this", "version"})
_PLAIN_JOIN = frozenset({"kind", "method", "on", "side", "this", "using"})


@dataclass(frozen=True, slots=True)
class _Item:
    """One item of a FROM: its name, and the names that may mean another item's column.

    `shared` are unqualified names that a join merges from both sides' columns; None: all may be.
    """

    node: exp.Expr
    name: str
    shared: frozenset[str] | None = field(default_factory=frozenset)


class Scopes:
    """The SELECTs of a text that Spark accepts, and what they tell about the tables they read."""

    def __init__(
        self,
        parsed: ParsedText,
        *,
        case_sensitive: bool,
        quoted_names: bool,
        joined_texts: bool = False,
    ) -> None:
        """`case_sensitive`, `quoted_names` and `joined_texts` are the session's settings.

        They say whether names differ by case, and whether double quotes hold names or strings.
        """
        self._tokens = parsed.tokens
        self._tree, self._unread = _tree(
            parsed, quoted_names=quoted_names, joined_texts=joined_texts
        )
        self._tables = list(self._tree.find_all(exp.Table)) if self._tree else []
        self._case_sensitive = case_sensitive
        self._words = Counter(
            token.text.lower()
            for at, token in enumerate(self._tokens)
            if kind_at(self._tokens, at + 1) is not TokenType.DOT
        )

    def pushed_filter(self, place: TableReference) -> PushedFilter:
        """The condition on the rows of one of our tables."""
        table = next((table for table in self._tables if _start(table) == place.start), None)
        if table is None:
            why = self._unread or "the table is not read by a SELECT"
            return PushedFilter(None, UNREAD.format(why))
        try:
            return self._pushed_filter(table, place.schema)
        except RecursionError:  # a condition of thousands of terms
            return PushedFilter(None, UNREAD.format("they are too many"))

    def starred(self) -> frozenset[int] | None:
        """The starts of the tables whose columns some star stands for; None if not certain.

        A star over a subquery stands for the columns that it names, or for those of a star in it.
        """
        if self._tree is None:
            return None
        found: set[int] = set()
        every = self._tree.find_all(exp.Star)
        stars = [star for star in every if not isinstance(star.parent, exp.Count)]
        if len(stars) != count_stars(self._tokens):
            return None
        for star in stars:
            item = star.parent if isinstance(star.parent, exp.Column) else star
            select = item.parent
            if not isinstance(select, exp.Select) or item.arg_key != "expressions":
                return None
            tables = [table for table in self._tables if table.find_ancestor(exp.Select) is select]
            name = item.table.lower() if isinstance(item, exp.Column) else ""
            named = [table for table in tables if table.alias_or_name.lower() == name]
            found.update(map(_start, named or tables))
        return frozenset(found)

    def renames(self) -> bool:
        """Whether columns of tables or queries may get other names by their place."""
        if self._tree is None:
            return True
        aliases = (alias for alias in self._tree.find_all(exp.TableAlias) if alias.columns)
        return not all(isinstance(alias.parent, exp.Values) for alias in aliases)

    def _pushed_filter(self, table: exp.Table, schema: StructType) -> PushedFilter:
        select = _select_of(table)
        if select is None or not _has_only(table, _PLAIN_TABLE) or table.alias_column_names:
            return PushedFilter(None, UNREAD.format("the table is not a plain item of FROM"))
        if more := other_part(select, _AROUND_WHERE):
            return PushedFilter(None, UNREAD.format(f"the SELECT has {more}"))
        item = self._item(select, table)
        if item is None:
            return PushedFilter(None, UNREAD.format("a join of another kind"))
        columns = Columns(schema, item.name.lower())
        terms = [
            self._predicate(condition, columns, item) for condition in self._on_item(select, table)
        ]
        first = self._first(select, table, columns, item)
        if terms or first:
            return PushedFilter(And(tuple(terms)) if terms else None, first=first)
        return PushedFilter(None, KEEPS_ROWS if _has_conditions(select) else "")

    def _first(
        self, select: exp.Select, table: exp.Table, columns: Columns, item: _Item
    ) -> FirstRows | None:
        """The LIMIT of a SELECT on the rows of its only table."""
        order = select.args.get("order")
        terms = [term.this for term in order.expressions] if order else []
        if not _has_only(select, PARTS) or table.args.get("sample"):
            return None
        if not _are_computed([*select.expressions, *terms]):
            return None
        try:
            names = SelectNames(lambda name: self._means(name, columns, item), self._same)
            return limit_of(select, columns, names)
        except VariantLakeError:
            return None

    # --- Which conditions go down to an item ------------------------------------------------------

    def _on_item(self, select: exp.Select, node: exp.Expr) -> list[exp.Expr]:
        """Conditions, over the names of this FROM, that the item's rows fulfil if they matter."""
        where = select.args.get("where")
        active = [*_conjuncts(where and where.this), *self._from_above(select)]
        joins: list[exp.Join] = select.args.get("joins") or []
        # The tree leans to the left, which tells less than the true one if commas come between.
        for join in reversed(joins):
            kind = _kind(join)
            if kind is None:
                return []
            side = RIGHT if join.this is node else LEFT
            sees = side is RIGHT or _sees(joins, join, node)
            own = list(_conjuncts(join.args.get("on"))) if side in JOINS[kind].on and sees else []
            active = [*(active if side in JOINS[kind].above else []), *own]
            if side is RIGHT:
                return active
        return active

    def _from_above(self, select: exp.Select) -> list[exp.Expr]:
        """Conditions on the result of a SELECT that is itself an item, as ones on its own FROM."""
        if other_part(select, _ROW_BY_ROW) or not _are_computed(select.expressions):
            return []
        node = self._reader(select)
        above = None if node is None else _select_of(node)
        if node is None or above is None or other_part(above, _AROUND_WHERE):
            return []
        item = self._item(above, node)
        if item is None:
            return []
        return [self._inside(condition, item, select) for condition in self._on_item(above, node)]

    def _reader(self, select: exp.Select) -> exp.Expr | None:
        """The only item of a FROM that reads the rows of a SELECT; None if that is not certain."""
        parent = select.parent
        if isinstance(parent, exp.Subquery):
            plain = _has_only(parent, frozenset({"this", "alias"}))
            return parent if plain and not parent.alias_column_names else None
        if not isinstance(parent, exp.CTE) or parent.args["alias"].columns:
            return None
        name = parent.alias.lower()
        read = [table for table in self._tables if table.name.lower() == name]
        # Its name is in the text twice: where it is defined, and where it is read.
        if self._words[name] != 2 or len(read) != 1 or len(read[0].parts) != 1:
            return None
        plain = _has_only(read[0], _PLAIN_TABLE) and not read[0].alias_column_names
        return read[0] if plain else None

    def _item(self, select: exp.Select, node: exp.Expr) -> _Item | None:
        """The item of a FROM; None if the FROM has joins or items of an unknown kind."""
        shared: frozenset[str] | None = frozenset()
        first = select.args["from_"].this
        if not _is_plain(first):
            return None
        after = first is node
        for join in select.args.get("joins") or []:
            kind = _kind(join)
            if kind is None or not _is_plain(join.this):
                return None
            # A merged name means the left side's column, but not with RIGHT and FULL.
            is_right = join.this is node
            if is_right or (after and kind in ("RIGHT", "FULL")):
                names = _using(join)
                shared = None if names is None or shared is None else shared | names
            after = after or is_right
        return _Item(node, node.alias_or_name, shared)

    # --- What names mean --------------------------------------------------------------------------

    def _predicate(self, node: Any, columns: Columns, item: _Item) -> Predicate:
        """Read the condition on one table's columns; parts that are not on it alone are Unknown."""
        match node:
            case exp.Paren():
                return self._predicate(node.this, columns, item)
            case exp.And() | exp.Or():
                terms = tuple(
                    self._predicate(side, columns, item) for side in (node.this, node.expression)
                )
                return And(terms) if isinstance(node, exp.And) else Or(terms)
            case exp.Not():
                return Not(self._predicate(node.this, columns, item))
        try:
            if all(self._means(column, columns, item) for column in node.find_all(exp.Column)):
                found = Expressions(columns, utc=False).condition(node)
                return found if is_by_bounds(found) else Unknown(_shown(node))
        except VariantLakeError:
            pass
        return Unknown(_shown(node))

    def _means(self, column: exp.Column, columns: Columns, item: _Item) -> bool:
        """Whether a name can only be a column of the item, as far as the name itself tells."""
        if self._case_sensitive and columns.schema.get(column.name) is None:
            return False
        return self._is_of(column, item)

    def _is_of(self, column: exp.Column, item: _Item) -> bool:
        if column.table:
            return self._same(column.table, item.name) and not column.args.get("db")
        return item.shared is not None and column.name.lower() not in item.shared

    def _same(self, one: str, other: str) -> bool:
        return one == other or (not self._case_sensitive and one.lower() == other.lower())

    def _inside(self, condition: exp.Expr, item: _Item, select: exp.Select) -> exp.Expr:
        """Replace the item's columns in a condition by what its SELECT computes for them."""

        def computed(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column):
                return node
            found = self._output(node.name, select) if self._is_of(node, item) else None
            # A condition on a bare word is never understood; the word shows as the name.
            return exp.Var(this=node.name) if found is None else found.copy()

        return condition.copy().transform(computed)

    def _output(self, name: str, select: exp.Select) -> exp.Expr | None:
        """What a SELECT computes under a name; None if its text does not tell."""
        stars = []
        for part in select.expressions:
            star = part.this if isinstance(part, exp.Column) else part
            if isinstance(star, exp.Star):
                stars.append((part, star))
            elif isinstance(part, exp.Alias | exp.Column) and self._same(part.alias_or_name, name):
                return part.unalias()
        if len(stars) != 1 or any(stars[0][1].args.values()):
            return None
        part = stars[0][0]
        return exp.column(name, (isinstance(part, exp.Column) and part.table) or None)


def _select_of(node: exp.Expr) -> exp.Select | None:
    """The SELECT that has this item in its FROM; None if there is none."""
    holder = node.parent
    select = holder.parent if isinstance(holder, exp.From | exp.Join) else None
    return select if isinstance(select, exp.Select) and holder is not None else None


def _sees(joins: Sequence[exp.Join], join: exp.Join, node: exp.Expr) -> bool:
    """Whether an ON may name an item before its join: not if a comma separates them."""
    between = False
    for other in joins:
        if other is join:
            break
        between = (between and other.this is not node) or _may_be_comma(other)
        if other.this is node:
            between = False
    return not between


def _may_be_comma(join: exp.Join) -> bool:
    return join.args.get("kind") == "CROSS" and not join.args.get("on")


def _kind(join: exp.Join) -> str | None:
    """The key of a join in JOINS; None for one of another kind."""
    if not _has_only(join, _PLAIN_JOIN) or join.args.get("method") not in (None, "", "NATURAL"):
        return None
    side, kind = (str(join.args.get(name) or "").upper() for name in ("side", "kind"))
    return join_of_text(side, kind)


def _is_plain(node: exp.Expr) -> bool:
    """Whether an item of a FROM has its own rows and names, and changes no other item's."""
    if isinstance(node, exp.Table):
        return _has_only(node, _PLAIN_TABLE | {"sample"})
    if isinstance(node, exp.Subquery):
        return _has_only(node, frozenset({"alias", "sample", "this", "with_"}))
    return isinstance(node, exp.Values)


def _using(join: exp.Join) -> frozenset[str] | None:
    """The names of columns that a join merges from both sides; None: any may be."""
    if join.args.get("method"):
        return None
    return frozenset(column.name.lower() for column in join.args.get("using") or ())


def _are_computed(items: Iterable[exp.Expr]) -> bool:
    return all(
        (isinstance(node, _COMPUTED) or _is_variant_get(node))
        and not isinstance(node, exp.AggFunc | exp.Query | exp.SubqueryPredicate)
        for item in items
        for node in item.walk()
    )


def _is_variant_get(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower() in (
        "variant_get",
        "try_variant_get",
    )


def _has_only(node: exp.Expr, parts: frozenset[str]) -> bool:
    return not other_part(node, parts)


def _has_conditions(select: exp.Select) -> bool:
    joins = select.args.get("joins") or []
    return bool(select.args.get("where")) or any(join.args.get("on") for join in joins)


def _conjuncts(node: exp.Expr | None) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Paren):
        yield from _conjuncts(node.this)
    elif isinstance(node, exp.And):
        yield from _conjuncts(node.this)
        yield from _conjuncts(node.expression)
    elif node is not None and not (isinstance(node, exp.Boolean) and node.this):
        yield node


def _shown(node: exp.Expr) -> str:
    """The condition as text for users, which is never run."""
    try:
        text = node.sql("databricks", unsupported_level=sqlglot.ErrorLevel.IGNORE)
    except (sqlglot.errors.SqlglotError, ValueError):  # X'', which sqlglot cannot print
        return f"a condition ({node.key})"
    return " ".join(text.split())
