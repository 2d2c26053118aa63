"""Random expressions, conditions and queries for a random table, as Spark SQL."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tests.spark.random_tables import INNER, KEYS, RandomTable

NUMBERS = (
    *("tinyint", "smallint", "int", "bigint", "float", "double"),
    *("decimal(5,0)", "decimal(10,2)", "decimal(38,10)"),
)
TYPES = (*NUMBERS, "string", "boolean", "date", "timestamp", "timestamp_ntz", "binary")
OWN = {
    "digit": "bigint",
    "int": "bigint",
    "decimal": "decimal(38,10)",
    "number": "decimal(10,2)",
    "plain double": "double",
    "word": "string",
}
"""The type of a kind of values; other kinds are called as their type."""

_NUMBERS = (
    *("0", "5", "7L", "127", "128", "-129", "2147483648", "9007199254740993", "-1", "300", "60"),
    *("1.5", "2.0", "0.05", "127.99", "99999.5", "1.50", "12345678901234567890.123", "NULL"),
    *("1.5D", "2e0", "0.0D", "-0.0D", "9007199254740992.0D", "1e300D", "double('NaN')"),
    *("double('-Infinity')", "float('1.5')", "float('0.1')"),
)
_STRINGS = (
    "",
    "a",
    "ab",
    "abd",
    "b",
    "5",
    "1.5",
    "true",
    "2024-01-31",
    "é",
    "A",
    "\uffff",
    "x" * 70,
)
LITERALS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(NUMBERS, _NUMBERS),
    "string": (*(f"'{text}'" for text in _STRINGS), "'it''s'", "CAST(NULL AS STRING)"),
    "boolean": ("true", "false"),
    "date": ("DATE'1970-01-01'", "DATE'2024-01-01'", "DATE'2024-02-29'", "DATE'1582-10-15'"),
    "timestamp": (
        *("TIMESTAMP'1970-01-01 00:00:00Z'", "TIMESTAMP'2024-03-10 02:30:00.123456Z'"),
        *("TIMESTAMP'2024-03-10 06:30:00Z'", "DATE'2024-03-10'", "TIMESTAMP'2024-03-13 12:00:00'"),
    ),
    "timestamp_ntz": (
        *("TIMESTAMP_NTZ'1970-01-01 00:00:00'", "TIMESTAMP_NTZ'2024-03-10 02:30:00.123456'"),
        "TIMESTAMP_NTZ'2024-11-03 04:00:00'",
    ),
    "binary": ("X''", "X'616263'", "X'35'"),
}
"""Constants that are compared with a type, and hit the values of the tables."""

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")


@dataclass(frozen=True, slots=True)
class Asked:
    """A path and the type it is asked as; `sure` where no value of the table fails that cast."""

    steps: tuple[str | int, ...]
    type: str
    sure: bool = False

    def get(self, column: str, *, strict: bool, colon: bool) -> str:
        """The value; where a cast fails `strict` raises, else it is NULL."""
        if colon and self.steps:
            path = colon_path(column, self.steps)
            return f"{path}::{self.type}" if strict else f"try_cast({path} AS {self.type})"
        name = "variant_get" if strict else "try_variant_get"
        path = "$" + "".join(map(_step, self.steps))
        return f"{name}({column}, \"{path}\", '{self.type}')"


def colon_path(column: str, steps: Sequence[str | int]) -> str:
    """The path in the colon syntax; the column itself if there are no steps."""
    text = "".join(map(_step, steps))
    return f"{column}:{text.removeprefix('.')}" if steps else column


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if step.isidentifier() and step.isascii() else f"['{step}']"


def shown(value: str, type_: str) -> str:
    """Any value as text that tells what it is."""
    match type_:
        case "variant":
            return f"to_json({value})"
        case "binary":
            return f"hex({value})"
    return f"string({value})"


@dataclass(frozen=True, slots=True)
class Branch:
    """One query: values of the rows of a source that fulfil a condition."""

    values: tuple[str, ...]
    source: str
    where: str
    key: str = "k"

    def text(self, number: int) -> str:
        """The query, with `{t}` for the table."""
        return (
            f"SELECT {number} AS b, {self.key} AS k, array({', '.join(self.values)}) AS got "
            f"FROM {self.source} WHERE {self.where}"
        )


class Queries:
    """Makes queries for one table."""

    def __init__(self, table: RandomTable, chance: random.Random) -> None:
        self._table = table
        self._chance = chance
        self.requested = [
            *(Asked(("id",), "bigint", sure=True), Asked(("at",), "timestamp", sure=True)),
            *(Asked(("name",), "string", sure=True), *(self._requested() for _ in range(60))),
        ]
        self._focus = self.requested
        self._variants = True

    def look_elsewhere(self, *, variants: bool | None = None) -> None:
        """Choose the few paths that the next expressions are about.

        One path that a file cannot give as a column makes its whole Variant be read, and so does an
        expression of type VARIANT: few queries ask for one, unless `variants` says.
        """
        self._focus = self._chance.sample(self.requested, self._chance.choice((1, 1, 2, 3)))
        some = self._chance.random() < 0.15
        self._variants = some if variants is None else variants

    def _requested(self) -> Asked:
        chance = self._chance
        if chance.random() < 0.15:
            path: tuple[str | int, ...] = (chance.choice(("id", "at", "name")),)
            kind = {"id": "bigint", "at": "timestamp", "name": "string"}[str(path[0])]
        else:
            key = chance.choice(KEYS)
            form, kind = self._table.forms[key]
            path = (key, *self._below(form))
        own = OWN.get(kind, kind)
        near = NUMBERS if own in NUMBERS else ("string", "date", "timestamp")
        type_ = chance.choice((own, own, own, chance.choice(near), chance.choice(TYPES)))
        return Asked(path if chance.random() < 0.97 else ("nobody", *path[1:]), type_)

    def _below(self, form: str) -> tuple[str | int, ...]:
        chance = self._chance
        if chance.random() < 0.06:
            return ()
        index = chance.choice((0, 0, 1, 7))
        match form:
            case "object":
                return (chance.choice(INNER),)
            case "list":
                return (index,)
            case "objects":
                return (index, chance.choice("xy"))
            case "lists":
                return (index, chance.randrange(2))
        return ()

    # --- Values -----------------------------------------------------------------------------------

    def value(self, prefix: str = "") -> tuple[str, str]:
        """An expression that never raises, and its type."""
        chance = self._chance
        column, requested = f"{prefix}event", chance.choice(self._focus)
        path = colon_path(column, requested.steps)
        plain = self._get(requested, column)
        match chance.randrange(0 if self._variants else 3, 12):
            case 0:
                return path, "variant"
            case 1:
                return f"is_variant_null({path})", "boolean"
            case 2:
                return f"{path} IS NULL", "boolean"
            case 3:
                guard = self.condition(prefix, 0)
                return f"CASE WHEN {guard} THEN {plain} END", requested.type
            case 4:
                # Spark pushes the cast of a `variant_get` into its scans, before any guard.
                strict = requested.get(column, strict=True, colon=chance.random() < 0.4)
                total = requested.get(column, strict=False, colon=False)
                return f"if({total} IS NOT NULL, {strict}, NULL)", requested.type
            case 5:
                return f"coalesce({plain}, {self._get(requested, column)})", requested.type
            case 6:
                return self.condition(prefix, 0), "boolean"
            case 7 if requested.type == "string":
                return f"upper({plain})", "string"
        return plain, requested.type

    def _get(self, requested: Asked, column: str) -> str:
        chance = self._chance
        strict = requested.sure and chance.random() < 0.7
        return requested.get(column, strict=strict, colon=chance.random() < 0.5)

    def values(self, count: int, conditions: int = 0) -> list[tuple[str, str]]:
        """Different values of few paths, and conditions on them as values, each with its type."""
        self.look_elsewhere()
        values = [self.value() for _ in range(count)]
        values += [(self.condition(), "boolean") for _ in range(conditions)]
        return list(dict.fromkeys(values))

    # --- Conditions -------------------------------------------------------------------------------

    def condition(self, prefix: str = "", depth: int = 2) -> str:
        """A condition that never raises."""
        chance = self._chance
        kind = chance.random()
        if depth and kind < 0.5:
            inner = self.condition(prefix, depth - 1), self.condition(prefix, depth - 1)
            return chance.choice(
                (
                    f"({inner[0]} AND {inner[1]})",
                    f"({inner[0]} AND {inner[1]})",
                    f"({inner[0]} OR {inner[1]})",
                    f"NOT ({inner[0]})",
                    f"NOT ({inner[0]} AND {inner[1]})",
                )
            )
        if kind > 0.9:
            return self._ordinary(prefix)
        requested = chance.choice(self.requested[:3] if chance.random() < 0.3 else self._focus)
        column = f"{prefix}event"
        if self._variants and chance.random() < 0.2:
            return f"{colon_path(column, requested.steps)} IS {chance.choice(('', 'NOT '))}NULL"
        if chance.random() < 0.08 and not requested.sure:
            total = requested.get(column, strict=False, colon=False)
            strict = requested.get(column, strict=True, colon=chance.random() < 0.4)
            # A CASE, as Spark's optimizer may take an AND apart (`a OR b AND c`).
            return f"CASE WHEN {total} IS NOT NULL THEN {self._compared(strict, requested)} END"
        return self._compared(self._get(requested, column), requested)

    def _compared(self, value: str, requested: Asked) -> str:
        chance = self._chance
        if requested.steps[:1] == ("id",) and requested.type in NUMBERS:
            constants: Sequence[str] = [str(chance.randrange(-5, 160)) for _ in range(3)]
        elif requested.steps[:1] == ("at",) and requested.type == "timestamp":
            day = chance.randrange(9, 21)
            constants = [
                f"TIMESTAMP'2024-03-{day:02} 18:00:00.000{day}Z'",
                f"DATE'2024-03-{day:02}'",
            ]
        elif requested.steps[:1] == ("name",) and requested.type == "string":
            constants = [f"'{chance.randrange(150):04}{'n' * chance.randrange(70)}'"]
        else:
            constants = LITERALS[requested.type]
        one, other = chance.choice(constants), chance.choice(constants)
        match chance.randrange(10):
            case 0:
                return f"{value} IS {chance.choice(('', 'NOT '))}NULL"
            case 1:
                return f"{value} {chance.choice(('', 'NOT '))}BETWEEN {one} AND {other}"
            case 2 | 3:
                third = chance.choice(constants)
                return f"{value} {chance.choice(('', 'NOT '))}IN ({one}, {other}, {third})"
            case 4 if requested.type == "string":
                start = chance.choice(("a", "ab", "é", "x", "004", "01", "2024"))
                return chance.choice(
                    (f"{value} LIKE '{start}%'", f"startswith({value}, '{start}')")
                )
            case 5 if requested.type == "boolean":
                return value
            case 6:
                return f"{one} {chance.choice(COMPARISONS)} {value}"
        return f"{value} {chance.choice(COMPARISONS)} {one}"

    def _ordinary(self, prefix: str) -> str:
        chance = self._chance
        low = chance.randrange(150)
        return prefix + chance.choice(
            (
                f"k BETWEEN {low} AND {low + 30}",
                f"k % 2 = {low % 2}",
                f"c {chance.choice(COMPARISONS)} {low % 9}",
                "c IS NULL",
                f"f {chance.choice(COMPARISONS)} {chance.choice(_NUMBERS)}",
                f"ts {chance.choice(COMPARISONS)} TIMESTAMP'2023-11-1{4 + low % 6} 22:13:20Z'",
                "p = 'a'",
                "p IS NULL",
                "p > 'a'",
            )
        )

    # --- Queries ----------------------------------------------------------------------------------

    def branch(self) -> Branch:
        """One query."""
        self.look_elsewhere()
        chance = self._chance
        where = self.condition()
        match chance.randrange(16):
            case 0:
                return Branch(
                    self.shown(), f"(SELECT * FROM {{t}} WHERE {self.condition()})", where
                )
            case 1:
                inner = f"(SELECT event, k, c, f, ts, p FROM {{t}} WHERE {self.condition()} "
                return Branch(self.shown(), f"{inner} ORDER BY k LIMIT 40)", where)
            case 2:
                join = chance.choice(("LEFT JOIN", "JOIN", "FULL JOIN"))
                on = f"a.k = b.k + 1 AND {self.condition('b.', 1)}"
                where = self.condition(chance.choice(("a.", "b.")), 1)
                values = (*self.shown("a."), *self.shown("b."))
                return Branch(values, f"{{t}} a {join} {{t}} b ON {on}", where, "a.k")
            case 3:
                value, type_ = self.value()
                if type_ == "variant":
                    value, type_ = "event:id::bigint", "bigint"
                values = (shown(f"max({value})", type_), f"string(count({value}))")
                return Branch(values, "{t}", where, "CAST(count(*) AS INT)")
            case 4 if self._variants:
                values = (*self.shown(), "to_json(event)")
                return Branch(values, "{t}", where)
            case 5:
                inner = f"SELECT 1 FROM {{t}} b WHERE b.k = a.k + 1 AND {self.condition('b.', 1)}"
                where = f"EXISTS ({inner}) AND {self.condition('a.', 1)}"
                return Branch(self.shown("a."), "{t} a", where, "a.k")
        return Branch(self.shown(), "{t}", where)

    def whole(self) -> Branch:
        """A query for whole Variants of few rows."""
        self.look_elsewhere()
        return Branch(("to_json(event)", *self.shown()), "{t}", self.condition())

    def shown(self, prefix: str = "") -> tuple[str, ...]:
        values = [self.value(prefix) for _ in range(self._chance.randint(2, 5))]
        return tuple(shown(value, type_) for value, type_ in values)
