"""The one tree of expressions over the columns of a table and paths inside Variant columns.

Readers build it from SQL text, Spark's plans and Python. `rows` evaluates it over rows, `bounds`
over what files may hold. A condition is an expression of type BOOLEAN, with SQL's three values. A
condition that a reader does not understand becomes an `Unknown`, which never skips a file. A
comparison of an operand with a constant stays as it was written; `typing` determines its type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from typing import Literal as OneOf

from variantlake.paths import Path
from variantlake.quoting import identifier, quote_string
from variantlake.types import ShreddedType

Scalar = bool | int | float | str | bytes | Decimal
"""A literal's raw value: dates in days, timestamps in microseconds since the epoch (UTC)."""

PRESENCE = "presence"
"""The type of a Ref if only `IS NULL` and `IS NOT NULL` use the Variant."""

CompareOp = OneOf["=", "<>", "<", "<=", ">", ">=", "<=>"]
FLIPPED: dict[CompareOp, CompareOp] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The operator that means the same with exchanged sides; the others are symmetric."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A column, or a path inside a Variant column, read as one Spark type.

    `column` is the column's path through structs, by the names in the files. `path` is None for
    an ordinary column. `type` is the requested Spark type, as Spark prints it (`decimal(18,2)`);
    `variant` reads the Variant itself, PRESENCE tests whether there is one. If `strict`, a value
    that cannot be cast is an error, as in `variant_get` and casts; otherwise it becomes NULL, as in
    `try_variant_get`. `shown` is the column's name for users where files have another one (column
    mapping). `char_length` is the length to which Spark pads a CHAR column's strings before it
    compares them; 0 for other columns.
    """

    column: tuple[str, ...]
    path: Path | None
    type: str
    strict: bool = True
    shown: tuple[str, ...] = field(default=(), compare=False)
    char_length: int = 0

    def __str__(self) -> str:
        name = ".".join(map(identifier, self.shown or self.column))
        if self.path is None:
            return name
        if self.type == PRESENCE:
            return f"{name} IS NOT NULL"
        if not self.strict:
            return f"try_variant_get({name}, {quote_string(path_text(self.path))}, '{self.type}')"
        steps = path_text(self.path)[1:].removeprefix(".")
        cast = "" if self.type == "variant" else f"::{self.type}"
        return f"{name}:{steps}{cast}" if steps else f"{name}{cast}"


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant of one Spark type; `value` None is NULL."""

    value: Scalar | None
    type: str

    def __str__(self) -> str:
        if self.value is None:
            return "NULL"
        writer = _LITERALS.get(self.type)
        if writer is not None:
            return writer(self.value)
        if isinstance(self.value, bytes):
            return f"X'{self.value.hex().upper()}'"
        return quote_string(self.value) if isinstance(self.value, str) else str(self.value)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function of `registry.FUNCTIONS`, with arguments of the types that it takes."""

    function: str
    arguments: tuple[Expression, ...]
    type: ShreddedType

    @property
    def constants(self) -> list[Any]:
        """The values of the constants after the first argument."""
        return [each.value for each in self.arguments[1:] if isinstance(each, Literal)]

    def __str__(self) -> str:
        shown = [str(argument) for argument in self.arguments]
        if self.function in ("cast", "try_cast"):
            return f"{self.function.upper()}({shown[0]} AS {self.type.ddl})"
        if self.function in _OPERATORS:
            return f"({f' {_OPERATORS[self.function]} '.join(shown)})"
        return f"{self.function}({', '.join(shown)})"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate of all rows of a group; `count` without an argument counts rows."""

    function: OneOf["count", "min", "max", "sum", "avg"]
    argument: Expression | None
    distinct: bool
    type: ShreddedType

    def __str__(self) -> str:
        shown = "1" if self.argument is None else str(self.argument)
        return f"{self.function}({'DISTINCT ' if self.distinct else ''}{shown})"


@dataclass(frozen=True, slots=True)
class Compare:
    """`left op right`."""

    op: CompareOp
    left: Expression
    right: Expression

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


@dataclass(frozen=True, slots=True)
class In:
    """`operand IN (options)`; NOT IN is Not(In)."""

    operand: Expression
    options: tuple[Literal, ...]

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.options[:_SHOWN_OPTIONS]))
        more = len(self.options) - _SHOWN_OPTIONS
        return f"{self.operand} IN ({shown}{f', … {more} more' if more > 0 else ''})"


@dataclass(frozen=True, slots=True)
class StartsWith:
    """`startswith(operand, prefix)`, also for `operand LIKE 'prefix%'`."""

    operand: Expression
    prefix: str

    def __str__(self) -> str:
        return f"startswith({self.operand}, {quote_string(self.prefix)})"


@dataclass(frozen=True, slots=True)
class IsNull:
    """`operand IS NULL`: never null itself."""

    operand: Expression

    def __str__(self) -> str:
        return f"{self.operand} IS NULL"


@dataclass(frozen=True, slots=True)
class And:
    """All `terms` hold; BETWEEN is the And of two comparisons. No terms: true."""

    terms: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " AND ".join(_nested(term, (Or,)) for term in self.terms) or "TRUE"


@dataclass(frozen=True, slots=True)
class Or:
    """At least one of `terms` holds. No terms: false."""

    terms: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " OR ".join(_nested(term, (And,)) for term in self.terms) or "FALSE"


@dataclass(frozen=True, slots=True)
class Not:
    """`term` is false; IS NOT NULL is Not(IsNull)."""

    term: Predicate

    def __str__(self) -> str:
        if isinstance(self.term, IsNull):
            return f"{self.term.operand} IS NOT NULL"
        return f"NOT ({self.term})"


@dataclass(frozen=True, slots=True)
class Unknown:
    """A condition that planning does not understand; `text` is how the query writes it."""

    text: str

    def __str__(self) -> str:
        return self.text


Expression = (
    Ref | Literal | Call | Aggregate | Compare | In | StartsWith | IsNull | And | Or | Not | Unknown
)
Predicate = Expression
"""An expression of type BOOLEAN."""


def conjuncts(predicate: Predicate | None) -> tuple[Predicate, ...]:
    """The conditions that must all hold, with nested ANDs flattened; none for None."""
    if predicate is None:
        return ()
    if isinstance(predicate, And):
        return tuple(part for term in predicate.terms for part in conjuncts(term))
    return (predicate,)


def children(expression: Expression) -> tuple[Expression, ...]:
    """The direct children of an expression, without the constants of IN."""
    match expression:
        case Compare(_, left, right):
            return left, right
        case In(operand) | StartsWith(operand) | IsNull(operand):
            return (operand,)
        case And(parts) | Or(parts) | Call(_, parts):
            return parts
        case Not(part) | Aggregate(_, part) if part is not None:
            return (part,)
    return ()


def below(expression: Expression | None) -> Iterator[Expression]:
    """The expression and its descendants, parents first; nothing for None."""
    if expression is not None:
        yield expression
        for child in children(expression):
            yield from below(child)


def is_by_bounds(condition: Expression) -> bool:
    """Whether bounds can decide it: it only compares columns and paths with constants."""
    match condition:
        case And(terms) | Or(terms):
            return all(map(is_by_bounds, terms))
        case Not(term):
            return is_by_bounds(term)
        case Compare(_, Ref(), Literal()) | Compare(_, Literal(), Ref()):
            return True
        case In(Ref()) | StartsWith(Ref()) | IsNull(Ref()):
            return True
    return False


def refs(expression: Expression | None) -> Iterator[Ref]:
    """Every Ref in the expression, in order, repeated ones too."""
    return (part for part in below(expression) if isinstance(part, Ref))


def map_refs(expression: Expression, change: Callable[[Ref], Ref]) -> Expression:
    """Replace every Ref in the expression by what `change` returns for it."""
    match expression:
        case Ref():
            return change(expression)
        case Compare(op, left, right):
            return Compare(op, map_refs(left, change), map_refs(right, change))
        case In(operand) | StartsWith(operand) | IsNull(operand):
            return replace(expression, operand=map_refs(operand, change))
        case And(terms) | Or(terms):
            return replace(expression, terms=tuple(map_refs(term, change) for term in terms))
        case Not(term):
            return Not(map_refs(term, change))
        case Call(_, arguments):
            return replace(expression, arguments=tuple(map_refs(e, change) for e in arguments))
        case Aggregate(_, argument) if argument is not None:
            return replace(expression, argument=map_refs(argument, change))
    return expression


def path_text(path: Path) -> str:
    """The path as people write it: `$.commit.record['odd key'][0]`."""
    return path.plain()


_SHOWN_OPTIONS = 5
_OPERATORS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "remainder": "%"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _nested(term: Predicate, loose: tuple[type, ...]) -> str:
    return f"({term})" if isinstance(term, loose) else str(term)


def _date(value: Scalar) -> str:
    try:
        return f"DATE'{date(1970, 1, 1) + timedelta(days=int(value))}'"
    except OverflowError:  # Spark's years go beyond Python's
        return f"date_from_unix_date({int(value)})"


def _timestamp(prefix: str, zone: str) -> Callable[[Scalar], str]:
    def write(value: Scalar) -> str:
        try:
            moment = _EPOCH + timedelta(microseconds=int(value))
        except OverflowError:
            return f"timestamp_micros({int(value)})"
        return f"{prefix}'{moment.replace(tzinfo=None)}{zone}'"

    return write


_LITERALS: dict[str, Callable[[Scalar], str]] = {
    "boolean": lambda value: "TRUE" if value else "FALSE",
    "date": _date,
    "timestamp": _timestamp("TIMESTAMP", "Z"),
    "timestamp_ntz": _timestamp("TIMESTAMP_NTZ", ""),
}
