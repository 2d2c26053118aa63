"""Random expressions and conditions over a random table, and the engines that shall agree on them.

Many cases are one Spark job: a text of many branches joined by UNION ALL, each of which we plan on
its own. The same text over the judge's view is the right answer (EXACTNESS, rule 1); where two
answers differ the branches are run alone, so that the failure names one.

`python -m tests.spark.random_queries --seconds 300` tries one table after the other, `--seed N` the
one of a failure again.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import PySparkException

from tests.arrow.test_scan_against_spark import shown as shown_value
from tests.sessions import delta_session
from tests.spark.layouts import PUSHDOWN, changed
from tests.spark.random_tables import INNER, KEYS, RandomTable, make
from variantlake import Table
from variantlake.errors import UnsupportedFeature
from variantlake.planning import late
from variantlake.spark.lake import Lake, connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SETTINGS: tuple[Mapping[str, str], ...] = (
    {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "UTC"},
    {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "America/St_Johns"},
    {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "Asia/Kathmandu"},
    {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "Pacific/Apia"},
)
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

BRANCHES = 12
"""Queries of one text: of more each takes longer."""

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
    """The path in the colon syntax; the column itself where there are no steps."""
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


def _together(branches: Sequence[Branch]) -> str:
    return " UNION ALL ".join(branch.text(at) for at, branch in enumerate(branches))


class Queries:
    """Makes queries for one table."""

    def __init__(self, table: RandomTable, chance: random.Random) -> None:
        self._table = table
        self._chance = chance
        self.asked = [
            *(Asked(("id",), "bigint", sure=True), Asked(("at",), "timestamp", sure=True)),
            *(Asked(("name",), "string", sure=True), *(self._asked() for _ in range(60))),
        ]
        self._focus = self.asked
        self._variants = True

    def look_elsewhere(self, *, variants: bool | None = None) -> None:
        """Choose the few paths that the next expressions are about.

        One path that a file cannot give as a column makes its whole Variant be read, and so does an
        expression of type VARIANT: few queries ask for one, unless `variants` says.
        """
        self._focus = self._chance.sample(self.asked, self._chance.choice((1, 1, 2, 3)))
        some = self._chance.random() < 0.15
        self._variants = some if variants is None else variants

    def _asked(self) -> Asked:
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
        column, asked = f"{prefix}event", chance.choice(self._focus)
        path = colon_path(column, asked.steps)
        plain = self._get(asked, column)
        match chance.randrange(0 if self._variants else 3, 12):
            case 0:
                return path, "variant"
            case 1:
                return f"is_variant_null({path})", "boolean"
            case 2:
                return f"{path} IS NULL", "boolean"
            case 3:
                guard = self.condition(prefix, 0)
                return f"CASE WHEN {guard} THEN {plain} END", asked.type
            case 4:
                # Spark pushes the cast of a `variant_get` into its scans, before any guard.
                strict = asked.get(column, strict=True, colon=chance.random() < 0.4)
                total = asked.get(column, strict=False, colon=False)
                return f"if({total} IS NOT NULL, {strict}, NULL)", asked.type
            case 5:
                return f"coalesce({plain}, {self._get(asked, column)})", asked.type
            case 6:
                return self.condition(prefix, 0), "boolean"
            case 7 if asked.type == "string":
                return f"upper({plain})", "string"
        return plain, asked.type

    def _get(self, asked: Asked, column: str) -> str:
        chance = self._chance
        strict = asked.sure and chance.random() < 0.7
        return asked.get(column, strict=strict, colon=chance.random() < 0.5)

    def values(self, count: int) -> list[tuple[str, str]]:
        """Values of few paths."""
        self.look_elsewhere()
        return [self.value() for _ in range(count)]

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
        asked = chance.choice(self.asked[:3] if chance.random() < 0.3 else self._focus)
        column = f"{prefix}event"
        if self._variants and chance.random() < 0.2:
            return f"{colon_path(column, asked.steps)} IS {chance.choice(('', 'NOT '))}NULL"
        if chance.random() < 0.08 and not asked.sure:
            total = asked.get(column, strict=False, colon=False)
            strict = asked.get(column, strict=True, colon=chance.random() < 0.4)
            # A CASE, as Spark's optimizer may take an AND apart (`a OR b AND c`).
            return f"CASE WHEN {total} IS NOT NULL THEN {self._compared(strict, asked)} END"
        return self._compared(self._get(asked, column), asked)

    def _compared(self, value: str, asked: Asked) -> str:
        chance = self._chance
        if asked.steps[:1] == ("id",) and asked.type in NUMBERS:
            constants: Sequence[str] = [str(chance.randrange(-5, 160)) for _ in range(3)]
        elif asked.steps[:1] == ("at",) and asked.type == "timestamp":
            day = chance.randrange(9, 21)
            constants = [
                f"TIMESTAMP'2024-03-{day:02} 18:00:00.000{day}Z'",
                f"DATE'2024-03-{day:02}'",
            ]
        elif asked.steps[:1] == ("name",) and asked.type == "string":
            constants = [f"'{chance.randrange(150):04}{'n' * chance.randrange(70)}'"]
        else:
            constants = LITERALS[asked.type]
        one, other = chance.choice(constants), chance.choice(constants)
        match chance.randrange(10):
            case 0:
                return f"{value} IS {chance.choice(('', 'NOT '))}NULL"
            case 1:
                return f"{value} {chance.choice(('', 'NOT '))}BETWEEN {one} AND {other}"
            case 2 | 3:
                third = chance.choice(constants)
                return f"{value} {chance.choice(('', 'NOT '))}IN ({one}, {other}, {third})"
            case 4 if asked.type == "string":
                start = chance.choice(("a", "ab", "é", "x", "004", "01", "2024"))
                return chance.choice(
                    (f"{value} LIKE '{start}%'", f"startswith({value}, '{start}')")
                )
            case 5 if asked.type == "boolean":
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


# --- Answers --------------------------------------------------------------------------------------

Rows = Counter[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Trial:
    """One table and the session that asks it."""

    spark: SparkSession
    lake: Lake
    table: RandomTable

    def agree(self, branches: Sequence[Branch]) -> None:
        """Raises AssertionError where our answer to a branch is not the judge's."""
        text = _together(branches)
        right, ours = self._judged(text), self._ours(text)
        if ours != right or isinstance(right, str):
            for branch in branches:
                self._agree_alone(branch.text(0))
            assert isinstance(right, str) or ours == right, f"only together: {self._about(text)}"

    def _agree_alone(self, text: str) -> None:
        right, ours = self._judged(text), self._ours(text)
        if isinstance(right, str):
            # Rule 1: Spark's own class of error, or what skipping left.
            assert isinstance(ours, Counter) or ours == right, f"{ours}, {right}{self._about(text)}"
            return
        assert isinstance(ours, Counter), f"{ours}{self._about(text)}"
        wrong = f"missing {_few(right - ours)}, wrong {_few(ours - right)}"
        assert ours == right, f"{wrong}{self._about(text)}"

    def _about(self, text: str) -> str:
        layouts = "\n  ".join(self.table.layouts)
        settings = {name: self.spark.conf.get(name) for name in SETTINGS[0]}
        return f"\n{text}\n{settings}, seed {self.table.seed}\n  {layouts}"

    def _judged(self, text: str) -> Rows | str:
        with changed(self.spark, {PUSHDOWN: "false"}):
            return answer(lambda: self.spark.sql(text.format(t=self.table.judge)))

    def _ours(self, text: str) -> Rows | str:
        return answer(lambda: self.lake.sql(text.format(t=f"delta.`{self.table.location}`")))

    def values_agree(self, values: Sequence[tuple[str, str]]) -> None:
        """Values of all rows, their types, and the names that Spark gives them."""
        text = f"SELECT k, {', '.join(value for value, _ in values)} FROM {{t}}"
        with changed(self.spark, {PUSHDOWN: "false"}):
            judged = self.spark.sql(text.format(t=self.table.judge))
            right = answer(lambda: _as_text(judged, values))
        ours = self.lake.sql(text.format(t=f"delta.`{self.table.location}`"))
        assert ours.columns == judged.columns
        assert ours.dtypes == judged.dtypes
        if answer(lambda: _as_text(ours, values)) != right:
            for value in values:
                self._agree_alone(Branch((shown(*value),), "{t}", "true").text(0))
            raise AssertionError(f"only together: {self._about(text)}")

    def saved(self, branches: Sequence[Branch]) -> tuple[int, int]:
        """How many files are skipped for these branches, and how many paths read from columns."""
        text = _together(branches).format(t=f"delta.`{self.table.location}`")
        scans = self.lake.explain(text).to_dict()["tables"]
        skipped = sum(scan["files"]["skipped"] for scan in scans)
        return skipped, sum(path["physical"] for scan in scans for path in scan["paths"])

    def errors_agree(self, queries: Queries, count: int) -> int:
        """Casts that may fail, without a condition; gives how many did."""
        raised = 0
        for asked in [asked for asked in queries.asked if not asked.sure][:count]:
            value = shown(asked.get("event", strict=True, colon=True), asked.type)
            text = Branch((value,), "{t}", "true").text(0)
            right, ours = self._judged(text), self._ours(text)
            assert ours == right, f"{ours}, {right}{self._about(text)}"
            raised += isinstance(right, str)
        return raised

    def local_agree(self, queries: Queries, count: int) -> int:
        """The local engine, on conditions and on values; gives how many it took."""
        opened = Table.open(self.table.location)
        conditions = []
        for _ in range(count):
            queries.look_elsewhere()
            conditions.append(queries.condition())
        taken = 0
        for text, right in zip(conditions, self._judged_columns(conditions), strict=True):
            with contextlib.suppress(UnsupportedFeature):
                found: list[Any] = opened.scan("k", text).to_arrow()["k"].to_pylist()
                taken += 1
                wanted = [k for k, fulfilled in right.items() if fulfilled == "True"]
                wrong = f"missing {set(wanted) - set(found)}, wrong {set(found) - set(wanted)}"
                assert sorted(found) == sorted(wanted), f"locally {wrong}{self._about(text)}"
        values = [asked.get("event", strict=asked.sure, colon=True) for asked in queries.asked]
        judged = [
            _AS_NUMBER.get(asked.type, "{value}").format(value=value)
            for asked, value in zip(queries.asked, values, strict=True)
        ]
        for text, right in zip(values, self._judged_columns(judged), strict=True):
            with contextlib.suppress(UnsupportedFeature):
                table = opened.scan(f"k, {text} AS got").to_arrow()
                taken += 1
                got = dict(zip(table["k"].to_pylist(), _plain(table["got"]), strict=True))
                other = {k: (got.get(k), right[k]) for k in right if got.get(k) != right[k]}
                assert not other, f"locally {other}{self._about(text)}"
        return taken

    def _judged_columns(self, values: Sequence[str]) -> list[dict[int, str]]:
        """For each expression its value in each row, by the row's `k`."""
        found: list[dict[int, str]] = []
        for start in range(0, len(values), 80):
            batch = values[start : start + 80]
            texts = [f"{value} AS c{at}" for at, value in enumerate(batch)]
            with changed(self.spark, {PUSHDOWN: "false"}):
                frame = self.spark.sql(f"SELECT k, {', '.join(texts)} FROM {self.table.judge}")
                rows = frame.collect()
            found += [
                {row[0]: shown_value(row[at]) for row in rows} for at in range(1, len(batch) + 1)
            ]
        return found


_AS_NUMBER = {
    "date": "unix_date({value})",
    "timestamp": "unix_micros({value})",
    "timestamp_ntz": "unix_micros(CAST({value} AS TIMESTAMP))",
}
"""Python has no dates before year 1. Both sides are in UTC."""


def _plain(column: pa.ChunkedArray[Any]) -> list[str]:
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if pa.types.is_date(column.type) else pa.int64())
    return [shown_value(value) for value in column.to_pylist()]


@contextlib.contextmanager
def found_first() -> Iterator[None]:
    """Rows are found first and rebuilt by our kernels in files of any size (rule 14)."""
    usual = late.MIN_BYTES
    late.MIN_BYTES = 0
    try:
        yield
    finally:
        late.MIN_BYTES = usual


def answer(frame: Callable[[], DataFrame]) -> Rows | str:
    """The rows, or the class of the error."""
    try:
        return Counter(
            tuple(tuple(item) if isinstance(item, list) else item for item in row)
            for row in frame().collect()
        )
    except PySparkException as error:
        return error.getCondition() or str(error)


def _as_text(frame: DataFrame, values: Sequence[tuple[str, str]]) -> DataFrame:
    names = [f"c{at}" for at in range(len(values))]
    texts = [shown(name, type_) for name, (_, type_) in zip(names, values, strict=True)]
    return frame.toDF("k", *names).selectExpr("k", *texts)


def _few(rows: Rows) -> str:
    return str(sorted(map(str, rows))[:3])


def try_table(spark: SparkSession, folder: Path, seed: int, settings: Mapping[str, str]) -> int:
    """All that is asked of one table under some settings; gives the number of cases.

    Raises AssertionError, with the query that answers wrong and what makes the table again.
    """
    trial = Trial(spark, connect(spark), make(spark, folder, seed))
    queries = Queries(trial.table, random.Random(seed))
    with changed(spark, settings):
        for _ in range(5):
            trial.values_agree(queries.values(12))
        for _ in range(4):
            trial.agree([queries.branch() for _ in range(BRANCHES)])
        trial.errors_agree(queries, 8)
        with found_first():
            trial.agree([queries.whole() for _ in range(4)])
    with changed(spark, SETTINGS[0]):
        local = trial.local_agree(queries, 100)
    return 60 + 4 * BRANCHES + 8 + 4 + local


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 1 where an answer was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark.random_queries")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None, help="try this one table")
    options = parser.parse_args(arguments)
    end = time.monotonic() + options.seconds
    first = random.randrange(2**32) if options.seed is None else options.seed
    cases, seed = 0, first
    with tempfile.TemporaryDirectory(prefix="variantlake-queries-") as scratch:
        spark = delta_session(Path(scratch))
        while seed == first or (options.seed is None and time.monotonic() < end):
            try:
                cases += try_table(spark, Path(scratch) / str(seed), seed, SETTINGS[seed % 4])
            except Exception:  # noqa: BLE001  # this is what we are looking for
                sys.stderr.write(f"seed {seed}\n{traceback.format_exc()}")
                return 1
            seed += 1
        spark.stop()
    sys.stdout.write(f"{cases} cases in {seed - first} tables: all answered as Spark does\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
