"""Paths and conditions as Python expressions: `path("event", "$.kind").string() == "x"`.

They are SQL text underneath, which DataFrames, `lake.sql` and `Table.scan` take.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import sys
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from variantlake.errors import InvalidValue, UnsupportedFeature
from variantlake.paths import Path
from variantlake.quoting import PLAIN_NAME, quote_identifier, quote_string
from variantlake.shown import Shown

Digits = int
Constant = bool | int | float | Decimal | str | dt.date | dt.datetime | None


class _SparkColumn:
    """What DataFrames take for a Column of their own.

    They ask `isinstance`, which believes `__class__`, and then for attributes of a Column, which
    come from one that Spark makes of the text. PySpark has no public way for other classes.
    """

    __slots__ = ()

    @property  # type: ignore[misc]  # a class on purpose, see above
    def __class__(self) -> Any:
        column = _spark_column(str(self))
        return type(self) if column is None else type(column)

    def __getattr__(self, name: str) -> Any:
        # Copying asks for names of this form, before there is a text.
        column = None if name.startswith("__") else _spark_column(str(self))
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
    """The expression as a Column of the running session; None without PySpark or a session.

    Raises UnsupportedFeature for what the session would read as another text than we write.
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


@dataclass(frozen=True, slots=True, repr=False)
class Condition(_SparkColumn):
    """What is true of some rows; `&`, `|` and `~` join conditions."""

    text: str

    def __and__(self, other: Condition) -> Condition:
        return Condition(f"({self.text} AND {other.text})")

    def __or__(self, other: Condition) -> Condition:
        return Condition(f"({self.text} OR {other.text})")

    def __invert__(self) -> Condition:
        return Condition(f"(NOT {self.text})")

    def __bool__(self) -> bool:
        raise InvalidValue(
            "a condition on rows has no single truth value", hint="join conditions with &, | and ~"
        )

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TypedPath(_SparkColumn):
    """A path read as one type; comparisons with constants make conditions.

    Like a condition it also stands where a DataFrame takes a Column: `frame.select(path)`.
    """

    text: str
    name: str = ""

    def alias(self, name: str) -> TypedPath:
        """The path under a name of its own in a result."""
        return TypedPath(self.text, name)

    def __eq__(self, other: Constant) -> Condition:  # type: ignore[override]  # as in PySpark
        return self._compared("=", other)

    def __ne__(self, other: Constant) -> Condition:  # type: ignore[override]  # as in PySpark
        return self._compared("<>", other)

    def __lt__(self, other: Constant) -> Condition:
        return self._compared("<", other)

    def __le__(self, other: Constant) -> Condition:
        return self._compared("<=", other)

    def __gt__(self, other: Constant) -> Condition:
        return self._compared(">", other)

    def __ge__(self, other: Constant) -> Condition:
        return self._compared(">=", other)

    __hash__ = None  # type: ignore[assignment]  # equality is a condition

    def between(self, low: Constant, high: Constant) -> Condition:
        """`low` and `high` included."""
        return Condition(f"({self.text} BETWEEN {constant(low)} AND {constant(high)})")

    def isin(self, *values: Constant) -> Condition:
        """One of these values."""
        return Condition(f"({self.text} IN ({', '.join(map(constant, values))}))")

    def startswith(self, prefix: str) -> Condition:
        """A string that starts so."""
        return Condition(f"startswith({self.text}, {constant(prefix)})")

    def is_null(self) -> Condition:
        """Missing, or a Variant null."""
        return Condition(f"({self.text} IS NULL)")

    def is_not_null(self) -> Condition:
        """There, and no Variant null."""
        return Condition(f"({self.text} IS NOT NULL)")

    def _compared(self, op: str, other: Constant) -> Condition:
        return Condition(f"({self.text} {op} {constant(other)})")

    def __str__(self) -> str:
        return f"{self.text} AS {quote_identifier(self.name)}" if self.name else self.text


@dataclass(frozen=True, slots=True, repr=False)
class VariantPath(Shown):
    """A path of a VARIANT column, to be read as some type."""

    column: str
    path: Path

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.column} {_spark_path(self.path)}>"

    def as_type(self, type_: str, *, strict: bool = True) -> TypedPath:
        """As a Spark type, `decimal(10,2)`. Not `strict`: NULL if a value does not cast."""
        get = "variant_get" if strict else "try_variant_get"
        where = constant(_spark_path(self.path))
        text = f"{get}({quote_identifier(self.column)}, {where}, {constant(type_)})"
        keys = [step for step in self.path.steps if isinstance(step, str)]
        return TypedPath(text, keys[-1] if keys else self.column)

    def string(self) -> TypedPath:
        """As STRING."""
        return self.as_type("string")

    def int(self) -> TypedPath:
        """As INT."""
        return self.as_type("int")

    def bigint(self) -> TypedPath:
        """As BIGINT."""
        return self.as_type("bigint")

    def double(self) -> TypedPath:
        """As DOUBLE."""
        return self.as_type("double")

    def boolean(self) -> TypedPath:
        """As BOOLEAN."""
        return self.as_type("boolean")

    def date(self) -> TypedPath:
        """As DATE."""
        return self.as_type("date")

    def timestamp(self) -> TypedPath:
        """As TIMESTAMP."""
        return self.as_type("timestamp")

    def decimal(self, precision: Digits, scale: Digits = 0) -> TypedPath:
        """As DECIMAL."""
        return self.as_type(f"decimal({precision},{scale})")


def path(column: str, at: str | Path = "$") -> VariantPath:
    """The path `at` of a VARIANT column.

    Raises InvalidPath for text that is not a path.
    """
    return VariantPath(column, Path.parse(at) if isinstance(at, str) else at)


def constant(value: Constant) -> str:
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
            with contextlib.suppress(OverflowError):  # of the years that Python knows, in UTC
                return f"TIMESTAMP'{value.astimezone(dt.UTC).replace(tzinfo=None)}Z'"
        case dt.date() if not isinstance(value, dt.datetime):
            return f"DATE'{value}'"
    raise InvalidValue(f"{value!r} is not a constant of a condition")


def _spark_path(at: Path) -> str:
    """The path for `variant_get`, without single quotes where that can be."""
    parts = ["$"]
    for step in at.steps:
        if isinstance(step, str) and PLAIN_NAME.fullmatch(step):
            parts.append(f".{step}")
        elif isinstance(step, str) and '"' not in step:
            parts.append(f'["{step}"]')
        else:
            parts.append(Path((step,)).spark()[1:])
    return "".join(parts)
