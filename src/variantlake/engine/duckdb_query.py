"""Run a query with DuckDB over scans of our tables, if the user requests it.

Scans read the columns and paths that the text names, and evaluate the conditions that we read as
Spark does, which skip files and rows. DuckDB evaluates the rest with its own functions, casts and
comparisons.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from variantlake.delta.log.snapshot import Snapshot
from variantlake.errors import (
    InvalidQuery,
    MissingDependency,
    UnsupportedFeature,
    VariantLakeError,
)
from variantlake.expressions.column_names import name_of
from variantlake.expressions.columns import Columns
from variantlake.expressions.from_sqlglot import Expressions
from variantlake.expressions.tree import And, Expression, Ref
from variantlake.expressions.typing import spark_type, untyped
from variantlake.planning.explain import Explanation
from variantlake.scan.arrow_stream import ArrowStream, marked
from variantlake.scan.table_scan import Scan
from variantlake.shredding.arrays import AnyArray, map_leaves, map_types
from variantlake.shredding.layout import VARIANT_TYPE
from variantlake.sql.select import Item, why_unparsed
from variantlake.sql.tokens import parse_text

_BATCH_ROWS = 1 << 16
_SETTINGS = {
    "TimeZone": "'UTC'",
    "autoinstall_known_extensions": "false",
    "enable_external_access": "false",  # a text reads our tables, and no files
}


@dataclass(frozen=True, repr=False)
class DuckQuery(ArrowStream):
    """DuckDB's result of `text` over `scans`, by the names that `text` uses.

    It reads nothing until rows are requested.
    """

    text: str
    scans: Mapping[str, Scan] = field(repr=False)

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result. Raises as `to_batches`."""
        with _errors_of_duckdb([]) as errors:
            empty: pa.RecordBatchReader = self._run(
                f"SELECT * FROM ({self.text}) LIMIT 0",  # noqa: S608 - the user's own query
                errors,
            )
            return pa.schema([marked(each.with_type(_type(each.type))) for each in empty.schema])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in batches.

        Raises InvalidQuery for a query that DuckDB refuses, and all that a scan raises.
        """
        with _errors_of_duckdb([]) as errors:
            for batch in self._run(self.text, errors):
                pairs = zip(batch.columns, self.schema, strict=True)
                arrays = [_with_whole_variants(array).cast(each.type) for array, each in pairs]
                yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def explain(self) -> tuple[Explanation, ...]:
        """Explain what each scan reads and skips."""
        return tuple(scan.explain() for scan in self.scans.values())

    def _run(self, text: str, errors: list[VariantLakeError]) -> Any:
        connection = _duckdb().connect()
        for name, value in _SETTINGS.items():
            connection.execute(f"SET {name} = {value}")
        for name, scan in self.scans.items():
            connection.register(name, _Watched(scan, errors))
        return connection.sql(text).to_arrow_reader(_BATCH_ROWS)


_THEIRS = pa.struct([VARIANT_TYPE.field(0), VARIANT_TYPE.field(1).with_nullable(True)])
"""The type of a VARIANT from DuckDB: the parts of a NULL are NULL."""


def _type(kind: pa.DataType) -> pa.DataType:
    return map_types(kind, lambda leaf: VARIANT_TYPE if leaf == _THEIRS else leaf, _THEIRS.equals)


def _with_whole_variants(array: AnyArray) -> AnyArray:
    """Convert a column to the type of `_type`."""

    def whole(leaf: Any) -> AnyArray:
        if leaf.type != _THEIRS:
            return cast("AnyArray", leaf)
        parts = [part.fill_null(b"") for part in leaf.flatten()]
        return pa.StructArray.from_arrays(parts, fields=list(VARIANT_TYPE), mask=leaf.is_null())

    return map_leaves(array, whole, _THEIRS.equals)


class _Watched(ArrowStream):
    """A scan that keeps its `errors`, because DuckDB passes on only their messages."""

    def __init__(self, scan: Scan, errors: list[VariantLakeError]) -> None:
        self._scan = scan
        self._errors = errors

    @property
    def schema(self) -> pa.Schema:
        return self._scan.schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._scan.to_batches()
        except VariantLakeError as error:
            self._errors.append(error)
            raise


def duckdb_query(text: str, tables: Mapping[str, Snapshot]) -> DuckQuery:
    """Make the DuckDB query of a text of Spark SQL over `tables`, by names in lower case.

    Raises InvalidQuery for a text that does not parse, or names a table that does not exist,
    UnsupportedFeature for a path that only Spark reads, MissingDependency without DuckDB.
    """
    _duckdb()
    try:
        tree = parse_text(text)
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        raise InvalidQuery(f"the query does not parse: {why_unparsed(error)}") from None
    if not isinstance(tree, exp.Query):
        raise UnsupportedFeature("DuckDB runs queries only", hint="give a SELECT")
    every: dict[int, _Sources] = {}
    for scope in traverse_scope(tree):
        every[id(scope)] = _Sources(scope, tables, every)
    reads = [read for each in every.values() for read in each.reads.values()]
    for each in every.values():
        each.name_outputs()
        each.expand_stars()
        each.push_conditions()
        each.check_order()
        each.replace_columns()
    if path := tree.find(exp.JSONExtract):
        raise UnsupportedFeature(
            f"{path.sql('databricks')} is a path of no table", hint="read it in the inner query"
        )
    for number, read in enumerate(reads):
        read.source.replace(exp.alias_(exp.to_table(f"scan_{number}"), read.alias, table=True))
    return DuckQuery(
        tree.sql(dialect="duckdb"), {f"scan_{n}": read.scan() for n, read in enumerate(reads)}
    )


class _Read:
    """One place in a text that reads a table, under the name `alias`."""

    def __init__(self, source: exp.Table, alias: str, snapshot: Snapshot) -> None:
        self.source, self.alias, self._snapshot = source, alias, snapshot
        self.columns = Columns(snapshot.schema, alias.lower())
        self.names = [item.name for item in snapshot.schema.fields]
        self._items: dict[Ref, str] = {}
        self._conditions: list[Expression] = []

    def has(self, column: exp.Column) -> bool:
        return column.name.lower() in map(str.lower, self.names)

    def column(self, ref: Ref) -> exp.Column:
        """The column of the scan that replaces a column or path in the text."""
        return exp.column(self._items.setdefault(ref, str(ref)), self.alias, quoted=True)

    def takes(self, node: exp.Expression) -> bool:
        """Add a condition to the scan; False if the scan cannot evaluate it as Spark does."""
        try:
            self._conditions.append(Expressions(self.columns, utc=True).condition(node))
        except UnsupportedFeature:
            return False
        return True

    def scan(self) -> Scan:
        if not self._items:  # a count of rows: DuckDB takes no stream without columns
            self.column(self.columns.whole(self.names[0]))
        items = tuple(Item(name, ref) for ref, name in self._items.items())
        where = And(tuple(self._conditions)) if len(self._conditions) > 1 else None
        return Scan(self._snapshot, items, where or next(iter(self._conditions), None))


class _Sources:
    """One SELECT of a text, and its reads of our tables by their aliases."""

    def __init__(
        self, scope: Scope, tables: Mapping[str, Snapshot], every: Mapping[int, _Sources]
    ) -> None:
        self._scope, self._every = scope, every
        self.reads: dict[str, _Read] = {}
        self._aliases = {
            item.alias.lower() for item in self._items() if isinstance(item, exp.Alias)
        }
        for alias, source in scope.sources.items():
            if isinstance(source, exp.Table):
                snapshot = None if source.db else tables.get(source.name.lower())
                if snapshot is None:
                    names = ", ".join(tables)
                    raise InvalidQuery(
                        f"there is no table {source.sql('databricks')}", hint=f"there is {names}"
                    )
                self.reads[alias] = _Read(source, alias, snapshot)

    def of(self, column: exp.Column) -> _Read | None:
        """The read that has a column; None for other sources, and for names of the result."""
        if column.table:
            return self.reads.get(column.table) or self._above(column)
        order = column.find_ancestor(exp.Order, exp.Query)
        is_last = order is not None and order.parent is self._scope.expression
        if is_last and isinstance(order, exp.Order) and column.name.lower() in self._aliases:
            return None
        alike = [read for read in self.reads.values() if read.has(column)]
        return alike[0] if len(alike) == 1 else None if alike else self._above(column)

    def _above(self, column: exp.Column) -> _Read | None:
        """As `of`, in the SELECT around this one."""
        if column.table in self._scope.sources or self._scope.parent is None:
            return None
        return self._every[id(self._scope.parent)].of(column)

    def name_outputs(self) -> None:
        """Name unnamed items of the result: paths as Spark does, all others by their text."""
        for item in self._items():
            if isinstance(item, exp.Alias) or item.is_star:
                continue
            _, ref = self._ref(item)
            if ref is None and isinstance(item, exp.Column):
                continue
            text = item.sql(dialect="databricks") if ref is None else name_of(item, ref)
            alias = exp.Alias(alias=exp.to_identifier(text, quoted=True))
            item.replace(alias)
            alias.set("this", item)

    def expand_stars(self) -> None:
        """Replace `*` by the table's columns: scans also have columns for paths."""
        for item in self._items():
            table = item.table if isinstance(item, exp.Column) else None
            if not item.is_star or any(item.args.get(each) for each in ("except_", "replace")):
                continue
            chosen = self._scope.sources if table is None else [table]
            columns: list[exp.Expression] = []
            for alias in chosen if isinstance(item, exp.Star | exp.Column) else []:
                read = self.reads.get(alias)
                if read is None:
                    columns.append(exp.Column(this=exp.Star(), table=exp.to_identifier(alias)))
                else:
                    columns += [exp.column(name, alias, quoted=True) for name in read.names]
            items = self._scope.expression.expressions
            at = next(number for number, each in enumerate(items) if each is item)
            self._scope.expression.set("expressions", [*items[:at], *columns, *items[at + 1 :]])

    def _items(self) -> list[Any]:
        select = self._scope.expression
        return list(select.expressions) if isinstance(select, exp.Select) else []

    def push_conditions(self) -> None:
        """Move conditions on a single table to its scan, if it can evaluate them."""
        select = self._scope.expression
        where = select.args.get("where")
        joins = select.args.get("joins") or []
        inner = ("", "INNER", "CROSS")
        if where is None or any(each.side or each.kind not in inner for each in joins):
            return
        both = where.this
        parts = list(both.flatten()) if isinstance(both, exp.And) else [both]
        left = [part for part in parts if not self._pushed(part)]
        select.set("where", exp.Where(this=exp.and_(*left, copy=False)) if left else None)

    def _pushed(self, part: Any) -> bool:
        if part.find(exp.Query):
            return False
        reads = {id(read): read for each in part.find_all(exp.Column) if (read := self.of(each))}
        found = list(reads.values())
        return len(found) == 1 and found[0] in self.reads.values() and found[0].takes(part)

    def check_order(self) -> None:
        """Refuse an ORDER BY a result's name or number if that is a path without a type."""
        items = self._items()
        order = self._scope.expression.args.get("order")
        for term in [] if order is None else order.expressions:
            name = term.this
            for place, item in enumerate(items, 1):
                same = isinstance(name, exp.Column) and not name.table and item.alias == name.name
                if same or (isinstance(name, exp.Literal) and name.name == str(place)):
                    _, ref = self._ref(item.unalias())
                    if ref is not None and ref.type == "variant":
                        raise untyped("an order", ref)

    def replace_columns(self) -> None:
        """Replace columns and paths by columns of the scans, the longest first."""
        found: dict[int, tuple[Any, exp.Column]] = {}
        for node in self._scope.walk(prune=lambda each: id(each) in found):
            read, ref = self._ref(node)
            if read is not None and ref is not None:
                _check_type(node, ref)
                found[id(node)] = (node, read.column(ref))
        for node, column in found.values():
            node.replace(column)

    def _ref(self, node: Any) -> tuple[_Read | None, Ref | None]:
        """The read and the Ref of a node that is, as a whole, a column or a path."""
        if not isinstance(node, exp.Column | exp.Cast | exp.JSONExtract | exp.Anonymous):
            return None, None
        column = node.find(exp.Column)
        read = None if column is None or column.is_star else self.of(column)
        try:
            ref = None if read is None else read.columns.find(node)
        except UnsupportedFeature:
            return read, None
        if ref is not None and ref.path is not None and ref.type != "variant":
            return read, ref if spark_type(ref.type) is not None else None
        return read, ref


_ORDERED = (exp.Between, exp.In, exp.Max, exp.Min, exp.Ordered)
_NUMERIC = (exp.Avg, exp.Neg, exp.Sum)


def _check_type(node: exp.Expr, ref: Ref) -> None:
    """Refuse operands without a type: DuckDB would order Variants by the kinds of their values."""
    above = node.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    if ref.type != "variant" or isinstance(above, exp.Is | exp.DPipe | exp.Like | exp.ILike):
        return
    if isinstance(above, exp.JSONExtractScalar):
        raise UnsupportedFeature(
            f"DuckDB reads no path of {ref} by an arrow", hint=f"write {ref}.a or {ref}:a::string"
        )
    if isinstance(above, (exp.Binary, *_ORDERED, *_NUMERIC)):
        number = isinstance(above, _NUMERIC) or not isinstance(above, exp.Predicate)
        raise untyped("an operand", ref, "double" if number else "string")


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise MissingDependency(
            "DuckDB is not installed", hint="pip install 'variantlake[duckdb]'"
        ) from None
    return duckdb


@contextlib.contextmanager
def _errors_of_duckdb(errors: list[VariantLakeError]) -> Iterator[list[VariantLakeError]]:
    """Raise an error of a scan, if the list has one, or else InvalidQuery for one of DuckDB."""
    try:
        yield errors
    except _duckdb().Error as error:
        if not errors:
            reason = str(error).strip().splitlines()[0]
            hint = "the text is run as DuckDB's SQL"
            raise InvalidQuery(f"DuckDB: {reason}", hint=hint) from error
    if errors:  # not in the context of DuckDB's error, which would hold the connection
        raise errors.pop().with_traceback(None)
