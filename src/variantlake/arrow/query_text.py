"""SELECT items and conditions as text, for the local engine: columns, paths and comparisons.

sqlglot reads the text (dialect databricks, which knows the colon paths), and nothing is printed
again. What the local engine does not know is refused with the expression named: Spark runs it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import sqlglot
from sqlglot import exp

from variantlake.delta.schema import PrimitiveType, StructType, VariantType
from variantlake.errors import InvalidPath, InvalidQuery, UnsupportedFeature, VariantLakeError
from variantlake.paths import Path
from variantlake.planning.casts import INT_LIMITS, spark_type
from variantlake.planning.domains import partition_value
from variantlake.planning.literals import comparison_type
from variantlake.planning.predicates import (
    And,
    Compare,
    CompareOp,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    Ref,
    StartsWith,
)
from variantlake.types import MAX_PRECISION, Kind, ShreddedType

_SPARK_NAMES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
_COMPARISONS: dict[type[exp.Expression], CompareOp] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_TYPES = {
    exp.DType.TEXT: "string",
    exp.DType.TINYINT: "tinyint",
    exp.DType.SMALLINT: "smallint",
    exp.DType.INT: "int",
    exp.DType.BIGINT: "bigint",
    exp.DType.FLOAT: "float",
    exp.DType.DOUBLE: "double",
    exp.DType.BOOLEAN: "boolean",
    exp.DType.DATE: "date",
    exp.DType.TIMESTAMPTZ: "timestamp",
    exp.DType.TIMESTAMPNTZ: "timestamp_ntz",
    exp.DType.BINARY: "binary",
    exp.DType.VARIANT: "variant",
}
_NUMBER = re.compile(r"\d+|\d*\.\d+|\d+\.\d*")
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_ISO_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?")


_ABOVE_WHERE = frozenset(
    {"expressions", "from_", "where", "group", "having", "order", "limit", "offset", "distinct"}
)
"""Parts of a SELECT that do not change which rows its WHERE sees."""


@dataclass(frozen=True, slots=True)
class Item:
    """One column of a result: `ref` of the table, by its own names, under a name."""

    name: str
    ref: Ref


@dataclass(frozen=True, slots=True)
class SimpleSelect:
    """`SELECT items FROM one table WHERE … LIMIT …`; `counts` for `SELECT count(*)` as `name`."""

    items: tuple[Item, ...]
    where: Predicate | None
    limit: int | None
    counts: str = ""


class QueryText:
    """Reads texts about the columns of one table, which they may also call by `table`.

    `utc` tells that timestamps without a zone are in UTC; else they are refused.
    """

    def __init__(self, schema: StructType, table: str = "", *, utc: bool = True) -> None:
        self._schema = schema
        self._utc = utc
        self._table = table.lower()
        self._text = ""

    def items(self, texts: Iterable[str]) -> tuple[Item, ...]:
        """The items of SELECT lists. Raises InvalidQuery and UnsupportedFeature."""
        found: list[Item] = []
        for text in texts:
            select = self._parse(f"SELECT {text}")
            self._only(select, "expressions")
            found += (item for part in select.expressions for item in self._item(part))
        return tuple(found)

    def condition(self, text: str) -> Predicate:
        """A condition as it stands after WHERE. Raises InvalidQuery and UnsupportedFeature."""
        select = self._parse(f"SELECT 1 WHERE {text}")
        self._only(select, "expressions", "where")
        return self._predicate(select.args["where"].this)

    def select(self, text: str) -> SimpleSelect:
        """A whole simple query of the table. Raises InvalidQuery and UnsupportedFeature."""
        select = self._parse(text)
        self._only(select, "expressions", "where", "limit", "from_")
        source = select.args.get("from_")
        named = source.this if source is not None else None
        if not isinstance(named, exp.Table) or not self._is_table(named):
            raise self._refused("a query of more than the table")
        if named.alias:
            self._table = named.alias.lower()
        where = select.args.get("where")
        limit = select.args.get("limit")
        predicate = None if where is None else self._predicate(where.this)
        rows = None if limit is None else self._limit(limit)
        counted = self._counted(select)
        if counted and limit is None:
            return SimpleSelect((), predicate, None, counted)
        items = tuple(item for part in select.expressions for item in self._item(part))
        return SimpleSelect(items, predicate, rows)

    def skipping(self, text: str) -> Predicate | None:
        """What a whole query asks of each row of the table it reads: conditions that may skip.

        Only of a query that is one SELECT of one table; conditions that are not understood are
        left out. `text` may be any SQL.
        """
        if '"' in text:
            return None  # a string, or an identifier: the session decides
        try:
            select = self._parse(text)
        except VariantLakeError:
            return None
        source, where = select.args.get("from_"), select.args.get("where")
        named = None if source is None else source.this
        more = [name for name, value in select.args.items() if value and name not in _ABOVE_WHERE]
        if more or where is None or not isinstance(named, exp.Table):
            return None
        if any(named.args.get(name) for name in ("sample", "joins", "laterals", "pivots")):
            return None
        # A subquery has rows of its own, of this table too; `AS t(a, b)` gives columns new names.
        if len(list(select.find_all(exp.Table))) > 1 or named.alias_column_names:
            return None
        self._table = (named.alias or named.name).lower()
        found = []
        for part in _conjuncts(where.this):
            try:
                found.append(self._predicate(part))
            except VariantLakeError:
                continue
        return And(tuple(found)) if found else None

    def _parse(self, text: str) -> exp.Select:
        self._text = text
        if "\\" in text:
            raise UnsupportedFeature(
                "the local engine takes no backslashes in its texts", hint=SPARK_RUNS_IT
            )
        if "|>" in text:
            # sqlglot makes one SELECT of the pipe and forgets whether LIMIT stood before WHERE.
            raise UnsupportedFeature("the local engine takes no pipes", hint=SPARK_RUNS_IT)
        try:
            parsed = sqlglot.parse_one(text, read="databricks")
        except (sqlglot.errors.SqlglotError, RecursionError) as error:
            reason = str(error).splitlines()[0] if str(error) else "too deep"
            raise InvalidQuery(f"{text!r} does not parse: {reason}") from None
        if not isinstance(parsed, exp.Select):
            raise self._refused("a statement that is not a SELECT")
        return parsed

    def _only(self, select: exp.Select, *parts: str) -> None:
        more = [name for name, value in select.args.items() if value and name not in parts]
        if more:
            raise self._refused(more[0].strip("_").upper().replace("_", " "))

    def _is_table(self, named: exp.Table) -> bool:
        plain = {"this", "alias"}
        if any(value for name, value in named.args.items() if name not in plain):
            return False
        alias = named.args.get("alias")
        # Columns may have other names behind an alias, and `t@v1` is a version.
        if alias and (alias.columns or not isinstance(alias.this, exp.Identifier)):
            return False
        return named.name.lower() == self._table

    def _limit(self, limit: exp.Expression) -> int:
        rows = limit.expression
        if not isinstance(rows, exp.Literal) or rows.is_string or not rows.this.isdigit():
            raise self._refused("a LIMIT that is not a number")
        return int(rows.this)

    def _counted(self, select: exp.Select) -> str:
        """The name of the result of `SELECT count(*)`; empty for anything else."""
        if len(select.expressions) != 1:
            return ""
        (item,) = select.expressions
        inner = item.this if isinstance(item, exp.Alias) else item
        if not isinstance(inner, exp.Count) or inner.expressions:
            return ""
        one = isinstance(inner.this, exp.Literal) and not inner.this.is_string
        if not one and not isinstance(inner.this, exp.Star):
            return ""
        # Spark's own name for the column.
        return item.alias or f"count({inner.this.this if one else 1})"

    # --- Items and operands ---

    def _item(self, part: exp.Expression) -> Iterator[Item]:
        if isinstance(part, exp.Star) and not any(part.args.values()):
            for column in self._schema.fields:
                yield Item(column.name, self._whole_column(column.name))
            return
        inner = part.this if isinstance(part, exp.Alias) else part
        ref = self._ref(inner)
        if ref is None:
            raise self._refused("an expression that is neither a column nor a path")
        yield Item(part.alias if isinstance(part, exp.Alias) else _name_of(inner, ref), ref)

    def _ref(self, node: exp.Expression) -> Ref | None:
        """A column, or a path and its type; None for anything else."""
        if isinstance(node, exp.Paren):
            return self._ref(node.this)
        if isinstance(node, exp.Column):
            return self._whole_column(self._column(node))
        if isinstance(node, exp.JSONExtract) and node.args.get("variant_extract"):
            return self._path(node, "variant", strict=True)
        if isinstance(node, exp.Cast | exp.TryCast) and not node.args.get("format"):
            strict = not isinstance(node, exp.TryCast)
            type_ = self._type(node.to)
            inner = node.this.this if isinstance(node.this, exp.Paren) else node.this
            if isinstance(inner, exp.JSONExtract):
                return self._path(inner, type_, strict=strict)
            if isinstance(inner, exp.Column):
                return self._cast_column(inner, type_, strict=strict)
        if isinstance(node, exp.Anonymous):
            name = str(node.this).lower()
            if name in ("variant_get", "try_variant_get"):
                return self._variant_get(node, strict=name == "variant_get")
        return None

    def _whole_column(self, name: str) -> Ref:
        column = self._schema.get(name)
        type_ = "" if column is None else str(column.type)
        if column is not None and isinstance(column.type, PrimitiveType):
            type_ = _SPARK_NAMES.get(type_, type_)
        elif column is not None and not isinstance(column.type, VariantType):
            type_ = "nested"
        return Ref((name,), None, type_)

    def _cast_column(self, node: exp.Column, type_: str, *, strict: bool) -> Ref:
        ref = self._whole_column(self._column(node))
        if ref.type == "variant":
            return Ref(ref.column, Path(()), type_, strict)
        if ref.type == type_:
            return ref
        raise self._refused(f"a cast of the column {ref}, which is {ref.type}")

    def _path(self, node: exp.JSONExtract, type_: str, *, strict: bool) -> Ref:
        steps: list[str | int] = []
        inner: exp.Expression = node
        while isinstance(inner, exp.JSONExtract):
            steps[:0] = self._steps(inner.expression)
            inner = inner.this
        if not isinstance(inner, exp.Column):
            raise self._refused("a path of an expression")
        return self._variant_ref(inner, Path(tuple(steps)), type_, strict=strict)

    def _steps(self, path: exp.Expression) -> Iterator[str | int]:
        for part in path.expressions:
            if isinstance(part, exp.JSONPathRoot):
                continue
            if isinstance(part, exp.JSONPathKey) and isinstance(part.this, str):
                yield part.this
            elif isinstance(part, exp.JSONPathSubscript) and isinstance(part.this, int):
                if part.this < 0:
                    raise self._refused("a negative index")
                yield part.this
            else:
                raise self._refused("a path with wildcards")

    def _variant_get(self, node: exp.Anonymous, *, strict: bool) -> Ref:
        column, *rest = node.expressions
        texts = [part.this for part in rest if isinstance(part, exp.Literal) and part.is_string]
        if (
            not isinstance(column, exp.Column)
            or len(texts) != len(rest)
            or len(texts) not in (1, 2)
        ):
            raise self._refused("variant_get of more than a column, a path and a type as text")
        try:
            path = Path.parse_spark(texts[0])
        except InvalidPath as error:
            raise InvalidQuery(f"{texts[0]!r} is no path of variant_get: {error.message}") from None
        type_ = self._type(exp.DataType.build(texts[1], "databricks")) if rest[1:] else "variant"
        return self._variant_ref(column, path, type_, strict=strict)

    def _variant_ref(self, node: exp.Column, path: Path, type_: str, *, strict: bool) -> Ref:
        ref = self._whole_column(self._column(node))
        if ref.type != "variant":
            raise InvalidQuery(f"the column {ref} is {ref.type}: only a VARIANT has paths")
        return Ref(ref.column, path, type_, strict)

    def _column(self, node: exp.Column) -> str:
        """A column's name as the table has it: by its letters, else whatever their case."""
        if node.args.get("db") or (node.table and node.table.lower() != self._table):
            raise self._refused("a name with several parts")
        known = [field.name for field in self._schema.fields]
        if node.name in known:
            return node.name
        alike = [name for name in known if name.lower() == node.name.lower()]
        if len(alike) != 1:
            raise InvalidQuery(
                f"the table has no column {node.name!r}",
                hint=f"it has {', '.join(map(repr, known))}",
            )
        return alike[0]

    def _type(self, type_: exp.DataType) -> str:
        name = _TYPES.get(type_.this, "")
        if type_.this is exp.DType.DECIMAL:
            digits = [str(part.this.this) for part in type_.expressions]
            precision, scale = (*digits, *("10", "0")[len(digits) :])
            name = f"decimal({precision},{scale})"
        if name != "variant" and spark_type(name) is None:
            raise self._refused("that type")
        return name

    # --- Conditions ---

    def _predicate(self, node: exp.Expression) -> Predicate:
        match node:
            case exp.Paren():
                return self._predicate(node.this)
            case exp.And() | exp.Or():
                terms = (self._predicate(node.this), self._predicate(node.expression))
                return And(terms) if isinstance(node, exp.And) else Or(terms)
            case exp.Not():
                return Not(self._predicate(node.this))
            case exp.Between() if not node.args.get("symmetric"):
                operand = self._operand(node.this)
                low, high = (self._literal(node.args[side]) for side in ("low", "high"))
                return And((self._compare(">=", operand, low), self._compare("<=", operand, high)))
            case exp.In() if not any(
                node.args.get(name) for name in ("query", "unnest", "field", "is_global")
            ):
                return self._in(node)
            case exp.Is() if isinstance(node.expression, exp.Null):
                return IsNull(self._operand(node.this))
            case exp.StartsWith():
                return self._starts_with(node, node.expression)
            case exp.Like():
                return self._like(node)
        if type(node) in _COMPARISONS:
            return self._comparison(_COMPARISONS[type(node)], node)
        ref = self._ref(node)
        if ref is None or ref.type != "boolean":
            raise self._refused("the condition")
        return Compare("=", ref, Literal(value=True, type="boolean"))

    def _comparison(self, op: CompareOp, node: exp.Expression) -> Predicate:
        left, right = self._ref(node.this), self._ref(node.expression)
        if left is not None and right is None:
            return self._compare(op, left, self._literal(node.expression))
        if right is not None and left is None:
            return self._compare(op, self._literal(node.this), right)
        raise self._refused("a comparison that is not of a column or path with a constant")

    def _compare(self, op: CompareOp, left: Ref | Literal, right: Ref | Literal) -> Compare:
        match left, right:
            case Ref(), Literal():
                return Compare(op, left, self._coerced(left, right))
            case Literal(), Ref():
                return Compare(op, self._coerced(right, left), right)
            case _:
                raise UnsupportedFeature(f"the comparison of {left} with {right}")

    def _in(self, node: exp.In) -> Predicate:
        operand = self._operand(node.this)
        options = tuple(self._coerced(operand, self._literal(part)) for part in node.expressions)
        if comparison_type(operand.type, options) is None:
            raise self._refused("an IN of several types")
        return In(operand, options)

    def _starts_with(self, node: exp.Expression, prefix: exp.Expression) -> Predicate:
        operand = self._operand(node.this)
        if operand.type != "string" or not isinstance(prefix, exp.Literal) or not prefix.is_string:
            raise self._refused("a prefix of what is not a string")
        return StartsWith(operand, prefix.this)

    def _like(self, node: exp.Like) -> Predicate:
        operand = self._operand(node.this)
        pattern = node.expression
        if (
            operand.type != "string"
            or not isinstance(pattern, exp.Literal)
            or not pattern.is_string
        ):
            raise self._refused("a LIKE of what is not a string")
        prefix, wildcard, rest = pattern.this.partition("%")
        if rest.strip("%") or "_" in prefix:
            raise self._refused("a LIKE that is not of a prefix")
        found: Predicate = StartsWith(operand, prefix)
        if not wildcard:
            found = Compare("=", operand, Literal(prefix, "string"))
        return Not(found) if node.args.get("negate") else found

    def _operand(self, node: exp.Expression) -> Ref:
        ref = self._ref(node)
        if ref is None:
            raise self._refused("an operand that is neither a column nor a path")
        return ref

    def _coerced(self, ref: Ref, literal: Literal) -> Literal:
        """The literal as Spark compares it with `ref`: text becomes a date or a timestamp."""
        target = spark_type(ref.type)
        if target is None:
            raise self._refused(f"the comparison of {ref}, which is {ref.type}")
        if literal.value is None:
            return Literal(None, ref.type)
        if isinstance(literal.value, str) and target.kind in (
            Kind.DATE,
            Kind.TIMESTAMP,
            Kind.TIMESTAMP_NTZ,
        ):
            return self._moment(literal.value, target)
        if comparison_type(ref.type, (literal,)) is None:
            raise self._refused(f"the comparison of {ref}, which is {ref.type}, with {literal}")
        return literal

    def _moment(self, text: str, target: ShreddedType) -> Literal:
        """A date or timestamp in ISO form; timestamps without a zone are in UTC."""
        written = text.strip()
        value = None
        if target.kind is Kind.DATE and _ISO_DATE.fullmatch(written):
            value = partition_value(written, target)
        elif target.kind is not Kind.DATE:
            whole = f"{written} 00:00:00" if _ISO_DATE.fullmatch(written) else written
            zone = target.kind is Kind.TIMESTAMP
            if _ISO_MOMENT.fullmatch(whole) and (self._utc or not zone):
                value = partition_value(whole + ("+00:00" if zone else ""), target)
            elif zone and whole.endswith("Z") and _ISO_MOMENT.fullmatch(whole[:-1]):
                value = partition_value(whole[:-1] + "+00:00", target)
        if value is None:
            raise self._refused(f"{text!r} as a {target.ddl.lower()}")
        return Literal(value, target.ddl.lower())

    def _literal(self, node: exp.Expression) -> Literal:
        """A constant, typed as Spark types it."""
        match node:
            case exp.Paren():
                return self._literal(node.this)
            case exp.Null():
                return Literal(None, "void")
            case exp.Boolean():
                return Literal(bool(node.this), "boolean")
            case exp.Literal() if node.is_string:
                return Literal(node.this, "string")
            case exp.Literal():
                return self._number(node.this)
            case exp.Neg():
                number = self._literal(node.this)
                if isinstance(number.value, int | float | Decimal):
                    return self._number_of(-number.value, number.type)
            case exp.Cast() if isinstance(node.this, exp.Literal):
                return self._typed_literal(node)
        raise self._refused("a constant of this kind")

    def _number(self, text: str) -> Literal:
        if text.isdigit():
            return self._number_of(int(text), "")
        if _NUMBER.fullmatch(text):
            value = Decimal(text)
            digits, exponent = len(value.as_tuple().digits), -int(value.as_tuple().exponent)
            if max(digits, exponent) <= MAX_PRECISION:
                return Literal(value, f"decimal({max(digits, exponent)},{exponent})")
        if re.fullmatch(r"[\d.]+[eE][+-]?\d+", text) and math.isfinite(float(text)):
            return Literal(float(text), "double")
        raise self._refused("a number of this form")

    def _number_of(self, value: float | Decimal, type_: str) -> Literal:
        if not isinstance(value, int) or type_ == "bigint":
            return Literal(value, type_)
        for kind in (Kind.INT32, Kind.INT64):
            if -INT_LIMITS[kind] <= value < INT_LIMITS[kind]:
                return Literal(value, "int" if kind is Kind.INT32 else "bigint")
        digits = len(str(abs(value)))
        if digits > MAX_PRECISION:
            raise self._refused(f"the number {value}")
        return Literal(Decimal(value), f"decimal({digits},0)")

    def _typed_literal(self, node: exp.Cast) -> Literal:
        type_ = self._type(node.to)
        target = spark_type(type_)
        text = node.this.this
        if target is not None and node.this.is_string:
            if target.kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ):
                return self._moment(text, target)
            if target.kind is Kind.STRING:
                return Literal(text, type_)
        elif target is not None and target.kind is Kind.DOUBLE:
            return Literal(float(text), type_)
        elif target is not None and target.kind in INT_LIMITS and text.isdigit():
            limit = INT_LIMITS[target.kind]
            if int(text) < limit:
                return Literal(int(text), type_)
        raise self._refused("a constant of this kind")

    def _refused(self, what: str) -> UnsupportedFeature:
        return UnsupportedFeature(
            f"the local engine does not take {what}, in {self._text!r}", hint=SPARK_RUNS_IT
        )


SPARK_RUNS_IT = "Spark runs it: `variantlake.spark.connect(spark).sql(...)`"


def _conjuncts(node: Any) -> Iterator[Any]:
    if isinstance(node, exp.And):
        yield from _conjuncts(node.this)
        yield from _conjuncts(node.expression)
    else:
        yield node


def _name_of(node: exp.Expression, ref: Ref) -> str:
    """The name that Spark gives to an item without one."""
    inner: exp.Expr = node
    while isinstance(inner, exp.Cast | exp.TryCast | exp.Paren):
        inner = inner.this
    if isinstance(inner, exp.Column):
        return inner.name  # as the query writes it
    if isinstance(inner, exp.Anonymous):
        column, path, *_ = inner.expressions
        return f"{str(inner.this).lower()}({column.name}, {path.this})"
    keys = [] if ref.path is None else [step for step in ref.path.steps if isinstance(step, str)]
    return keys[-1] if keys else ref.column[0]
