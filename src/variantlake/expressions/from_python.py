"""Expressions in Python: `path("event", "$.kind").string() == "x"`, `col("n") + 1`, `expr("SQL")`.

Underneath they are SQL text, which DataFrames, `lake.sql` and `Table.scan` accept. `from_sqlglot`
parses the text into the one tree of expressions.
"""

# mypy: disable-error-code="override"
# To a type checker an Expr is a Column of PySpark, whose operators also take other Columns.

from __future__ import annotations

import contextlib
import datetime as dt
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn

from variantlake.errors import InvalidPath, InvalidValue, UnsupportedFeature
from variantlake.paths import ColumnPath, Path
from variantlake.quoting import PLAIN_NAME, quote_identifier, quote_string
from variantlake.shown import Shown

Digits = int
Constant = bool | int | float | Decimal | str | bytes | dt.date | dt.datetime | None


if TYPE_CHECKING:
    # To a type checker an expression is a Column, so DataFrames accept it.
    from pyspark.sql import Column as _Column
else:
    _Column = object


class _SparkColumn(_Column):
    """Base of the classes that DataFrames accept as a Column.

    DataFrames call `isinstance`, which trusts `__class__`, and then use a Column's attributes.
    Those come from the Column that Spark makes of the text. PySpark has no public way to do this.
    """

    __slots__ = ()

    def _column(self) -> Any:
        return _spark_column(str(self))

    @property  # type: ignore[misc]  # a class on purpose, see above
    def __class__(self) -> Any:
        column = self._column()
        return type(self) if column is None else type(column)

    def __getattr__(self, name: str) -> Any:
        # `copy` looks up names of this form before the object has a text.
        column = None if name.startswith("__") else self._column()
        if column is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(column, name)

    def __reduce__(self) -> Any:
        fields: tuple[str, ...] = self.__slots__
        return type(self), tuple(getattr(self, field) for field in fields)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    def __dir__(self) -> list[str]:
        return [name for name in dir(type(self)) if not name.startswith("_")]


_ESCAPED = "spark.sql.parser.escapedStringLiterals"


def _spark_column(text: str) -> Any:
    """The expression as a Column of the active session; None without PySpark or a session.

    Raises UnsupportedFeature if the session would parse a string in the text differently.
    """
    sql = sys.modules.get("pyspark.sql")
    session = None if sql is None else sql.SparkSession.getActiveSession()
    if session is None:
        return None
    if "\\" in text and str(session.conf.get(_ESCAPED)).lower() == "true":
        raise UnsupportedFeature(
            f"{text} has a quote or a backslash, and the session's {_ESCAPED} leaves no way to "
            "write one",
            hint=f"spark.conf.set('{_ESCAPED}', 'false')",
            cli_hint="",
        )
    return sys.modules["pyspark.sql.functions"].expr(text)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Expr(_SparkColumn):
    """A column, a path read as one type, a condition or another SQL expression.

    `vl.col`, `vl.path` and `vl.expr` make them. Comparisons, arithmetic and methods combine them
    with other expressions or Python constants; `&`, `|` and `~` join conditions. A DataFrame
    accepts one wherever it takes a Column: `frame.select(path)`. `str` gives its SQL.
    """

    text: str
    name: str = ""  # type: ignore[assignment]  # a method of a Column

    def alias(self, name: str) -> Expr:
        """Name the expression in a result."""
        return Expr(self.text, name)

    def __eq__(self, other: object) -> Expr:
        return self._joined("=", other)

    def __ne__(self, other: object) -> Expr:
        return self._joined("<>", other)

    def __lt__(self, other: Operand) -> Expr:
        return self._joined("<", other)

    def __le__(self, other: Operand) -> Expr:
        return self._joined("<=", other)

    def __gt__(self, other: Operand) -> Expr:
        return self._joined(">", other)

    def __ge__(self, other: Operand) -> Expr:
        return self._joined(">=", other)

    __hash__ = None  # type: ignore[assignment]  # equality is a condition

    def __add__(self, other: Operand) -> Expr:
        return self._joined("+", other)

    def __radd__(self, other: Operand) -> Expr:
        return Expr(operand(other))._joined("+", self)

    def __sub__(self, other: Operand) -> Expr:
        return self._joined("-", other)

    def __rsub__(self, other: Operand) -> Expr:
        return Expr(operand(other))._joined("-", self)

    def __mul__(self, other: Operand) -> Expr:
        return self._joined("*", other)

    def __rmul__(self, other: Operand) -> Expr:
        return Expr(operand(other))._joined("*", self)

    def __truediv__(self, other: Operand) -> Expr:
        return self._joined("/", other)

    def __rtruediv__(self, other: Operand) -> Expr:
        return Expr(operand(other))._joined("/", self)

    def __mod__(self, other: Operand) -> Expr:
        return self._joined("%", other)

    def __rmod__(self, other: Operand) -> Expr:
        return Expr(operand(other))._joined("%", self)

    def __neg__(self) -> Expr:
        return Expr(f"(-{self.text})", self.name)

    def __and__(self, other: Expr) -> Expr:
        return self._joined("AND", other)

    def __or__(self, other: Expr) -> Expr:
        return self._joined("OR", other)

    def __invert__(self) -> Expr:
        return Expr(f"(NOT {self.text})")

    def __bool__(self) -> bool:
        raise InvalidValue(
            "a condition on rows has no single truth value",
            hint="join conditions with &, | and ~",
            cli_hint="",
        )

    def between(self, low: Operand, high: Operand) -> Expr:
        """Test for a value from `low` to `high`, both included."""
        return Expr(f"({self.text} BETWEEN {operand(low)} AND {operand(high)})")

    def isin(self, *values: Operand | Iterable[Operand]) -> Expr:
        """Test for one of these values, or of those in one list. Raises InvalidValue for none."""
        only = values[0] if len(values) == 1 else None
        if isinstance(only, list | tuple | set | frozenset):
            values = tuple(only)
        if not values:
            raise InvalidValue("isin needs a value", hint="path.isin('a', 'b')", cli_hint="")
        return Expr(f"({self.text} IN ({', '.join(map(operand, values))}))")

    def like(self, pattern: str) -> Expr:
        """Match a string with a pattern: `%` is any text, `_` any one character."""
        return self._joined("LIKE", pattern)

    def startswith(self, prefix: str) -> Expr:
        """Test for a string that starts with `prefix`."""
        return Expr(f"startswith({self.text}, {operand(prefix)})")

    def is_null(self) -> Expr:
        """Test for a missing value or a Variant null."""
        return Expr(f"({self.text} IS NULL)")

    def is_not_null(self) -> Expr:
        """Test for a value that is neither missing nor a Variant null."""
        return Expr(f"({self.text} IS NOT NULL)")

    def cast(self, type_: str) -> Expr:
        """Cast to a Spark type, `decimal(10,2)`; a value that does not cast is an error."""
        return Expr(f"CAST({self.text} AS {_type_name(type_)})", self.name)

    def try_cast(self, type_: str) -> Expr:
        """Cast to a Spark type; NULL for a value that does not cast."""
        return Expr(f"TRY_CAST({self.text} AS {_type_name(type_)})", self.name)

    def asc(self) -> SortOrder:
        """Sort by it in an ORDER BY, NULL first, then the smallest values."""
        return SortOrder(self.text)

    def desc(self) -> SortOrder:
        """Sort by it in an ORDER BY, the greatest values first, NULL last."""
        return SortOrder(self.text, is_descending=True)

    def _joined(self, op: str, other: object) -> Expr:
        return Expr(f"({self.text} {op} {operand(other)})")

    def __str__(self) -> str:
        return f"{self.text} AS {quote_identifier(self.name)}" if self.name else self.text


Operand = Constant | Expr


@dataclass(frozen=True, slots=True, repr=False)
class SortOrder(_SparkColumn):
    """A sort key of an ORDER BY: `frame.orderBy(vl.col("n").desc())`, or text in `Table.sql`."""

    text: str
    is_descending: bool = False

    def _column(self) -> Any:
        column = _spark_column(self.text)
        if column is None:
            return None
        return column.desc() if self.is_descending else column.asc()

    def __str__(self) -> str:
        return f"{self.text} {'DESC' if self.is_descending else 'ASC'}"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class VariantPath(Shown):
    """A path in a VARIANT column, without a type; its methods give it one."""

    column: str
    path: Path

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.column} {_spark_path(self.path)}>"

    def _refuse(self, _other: object) -> NoReturn:
        """Refuse operators: by default `path == 1` would be False in Python."""
        raise InvalidValue(
            f"{_spark_path(self.path)} of {self.column} is used as a value, but has no type yet",
            hint='read it as one: vl.path("event:n::int"), or vl.path("event", "$.n").int()',
            cli_hint="",
        )

    def __hash__(self) -> Digits:
        return hash((self.column, self.path))

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __sub__ = __mul__ = __truediv__ = __mod__ = _refuse
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rmod__ = _refuse

    def cast(self, type_: str) -> Expr:
        """Read as a Spark type, `decimal(10,2)`; a value that does not cast is an error."""
        return self.as_type(type_)

    def try_cast(self, type_: str) -> Expr:
        """Read as a Spark type; NULL for a value that does not cast."""
        return self.as_type(type_, strict=False)

    def is_null(self) -> Expr:
        """Test for a missing value or a Variant null."""
        return self.string().is_null()  # read as a VARIANT, a Variant null is not NULL

    def is_not_null(self) -> Expr:
        """Test for a value that is neither missing nor a Variant null."""
        return self.string().is_not_null()

    def as_type(self, type_: str, *, strict: bool = True) -> Expr:
        """Read as a Spark type, `decimal(10,2)`. Not `strict`: NULL if a value does not cast."""
        get = "variant_get" if strict else "try_variant_get"
        where = constant(_spark_path(self.path))
        text = f"{get}({quote_identifier(self.column)}, {where}, {constant(type_)})"
        keys = [step for step in self.path.steps if isinstance(step, str)]
        return Expr(text, keys[-1] if keys else self.column)

    def string(self) -> Expr:
        """Read as STRING."""
        return self.as_type("string")

    def int(self) -> Expr:
        """Read as INT."""
        return self.as_type("int")

    def bigint(self) -> Expr:
        """Read as BIGINT."""
        return self.as_type("bigint")

    def double(self) -> Expr:
        """Read as DOUBLE."""
        return self.as_type("double")

    def boolean(self) -> Expr:
        """Read as BOOLEAN."""
        return self.as_type("boolean")

    def date(self) -> Expr:
        """Read as DATE."""
        return self.as_type("date")

    def timestamp(self) -> Expr:
        """Read as TIMESTAMP."""
        return self.as_type("timestamp")

    def float(self) -> Expr:
        """Read as FLOAT."""
        return self.as_type("float")

    def timestamp_ntz(self) -> Expr:
        """Read as TIMESTAMP_NTZ."""
        return self.as_type("timestamp_ntz")

    def variant(self) -> Expr:
        """Read as VARIANT."""
        return self.as_type("variant")

    def decimal(self, precision: Digits, scale: Digits = 0) -> Expr:
        """Read as DECIMAL."""
        return self.as_type(f"decimal({precision},{scale})")


def path(column: str, at: str | Path | None = None) -> VariantPath:
    """A path in a VARIANT column: `vl.path("event:user.name")`, or `vl.path("event", "$.user")`.

    >>> str(path("event:user.name").string() == "Ada")
    "(variant_get(`event`, '$.user.name', 'string') = 'Ada')"

    Raises InvalidPath for text that is not a path, InvalidValue for a value that is not text.
    """
    given: object = at if isinstance(column, str) else column
    if not isinstance(given, str | Path | None) or given is column:
        raise InvalidValue(
            f"a path is text, not {given!r:.60}", hint='vl.path("event:user.name")', cli_hint=""
        )
    if at is None and ":" in column:
        parsed = ColumnPath.parse(column)
        if parsed.type:
            raise InvalidPath(
                f"{column!r} has a type",
                hint=f'.as_type("{parsed.type}") after the path gives it',
                cli_hint="",
            )
        return VariantPath(parsed.column, parsed.path)
    return VariantPath(column, Path.parse(at) if isinstance(at, str) else at or Path())


def col(name: str) -> Expr:
    """A column of the table: `vl.col("n") + 1`. A field of a struct is `vl.col("address.city")`.

    >>> str((col("n") + 1) > 7)
    '((`n` + 1) > 7)'

    Raises InvalidValue for a value that is not a name.
    """
    if not isinstance(name, str) or not name:
        raise InvalidValue(
            f"a column's name is text, not {name!r:.60}", hint='vl.col("id")', cli_hint=""
        )
    if ":" in name:
        raise InvalidValue(
            f"{name!r} is a path", hint=f"vl.path({name!r}).string() reads it", cli_hint=""
        )
    return Expr(".".join(map(quote_identifier, name.split("."))))


def expr(sql: str) -> Expr:
    """An expression of Spark SQL: `vl.expr("upper(kind)")`.

    >>> str(expr("n + 1") * 2)
    '((n + 1) * 2)'

    Raises InvalidValue for a value that is not text, or is blank.
    """
    if not isinstance(sql, str) or not sql.strip():
        raise InvalidValue(
            f"an expression is SQL text, not {sql!r:.60}", hint='vl.expr("n + 1")', cli_hint=""
        )
    plain = _ONE_OPERAND.fullmatch(sql.strip()) is not None
    return Expr(sql if plain else f"({sql})")


def condition_text(where: object) -> str | None:
    """Return a user's condition as text, None for None. Raises InvalidValue for other types."""
    if where is None or isinstance(where, str):
        return where
    if isinstance(where, Expr):
        return where.text
    raise InvalidValue(
        f"a condition is text or an expression, not {where!r:.60}",
        hint='"event:n::int > 7", or vl.path("event:n").int() > 7',
        cli_hint="",
    )


def operand(value: object) -> str:
    """Return the SQL text of an operand, which is an expression or a constant."""
    if isinstance(value, Expr):
        return value.text
    if isinstance(value, VariantPath):
        raise InvalidValue(
            "a path needs a type here", hint="path.int(), path.string() give it one", cli_hint=""
        )
    return constant(value)


_ONE_OPERAND = re.compile(r"[A-Za-z_]\w*|`[^`]*`|[\w`]+:[\w.]+(::\w+)?|\w+\([^()]*\)")
"""Operands that need no parentheses: a name, a path, a call."""
_TYPE_NAME = re.compile(r"[\w(), <>:]+")


def _type_name(given: str) -> str:
    if not isinstance(given, str) or not _TYPE_NAME.fullmatch(given):
        raise InvalidValue(
            f"a type is {given!r:.60}", hint="a type of Spark SQL, 'decimal(10,2)'", cli_hint=""
        )
    return given


def constant(value: object) -> str:
    """A Python value as a SQL constant. Raises InvalidValue for one that has no such form."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case Decimal() if value.is_finite():
            return f"{value:f}"
        case float() if value - value == 0:
            return f"{value!r}D" if "e" not in repr(value) else repr(value)
        case str():
            return quote_string(value)
        case dt.datetime() if value.tzinfo is not None:
            with contextlib.suppress(OverflowError):  # in UTC the year may be beyond Python's
                return f"TIMESTAMP'{value.astimezone(dt.UTC).replace(tzinfo=None)}Z'"
        case dt.datetime():
            return f"TIMESTAMP_NTZ'{value}'"
        case bytes():
            return f"X'{value.hex().upper()}'"
        case dt.date() if not isinstance(value, dt.datetime):
            return f"DATE'{value}'"
    raise InvalidValue(
        f"{value!r:.60} is not a constant of SQL",
        hint="numbers, texts, booleans, dates, times with a time zone, None; vl.expr() takes SQL",
        cli_hint="",
    )


def _spark_path(at: Path) -> str:
    """The path for `variant_get`, without single quotes where possible."""
    parts = ["$"]
    for step in at.steps:
        if isinstance(step, str) and PLAIN_NAME.fullmatch(step):
            parts.append(f".{step}")
        elif isinstance(step, str) and '"' not in step:
            parts.append(f'["{step}"]')
        else:
            parts.append(Path((step,)).spark()[1:])
    return "".join(parts)
