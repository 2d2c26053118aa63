"""Random aggregates and orders over random tables, here and on Spark, query by query."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import PySparkException

from tests.scan.test_scan_against_spark import shown
from tests.spark.layouts import PLAINLY, changed
from tests.spark.random_expressions import Queries
from variantlake import Table
from variantlake.errors import InvalidQuery, InvalidValue, UnsupportedFeature

if TYPE_CHECKING:
    from tests.spark.random_queries import Trial

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_OF_INTEGERS = (
    *("{x}", "{x}", "{x}", "{x} + 1", "{x} - k", "{x} * 3", "{x} % 7", "{x} div 3", "-({x})"),
    *("abs({x})", "{x} / 4", "if({x} > 0, {x}, 0)", "coalesce({x}, k)", "nullif({x}, 5)"),
    "timestamp_seconds({x} % 100000)",
)
_OF_STRINGS = (
    *("{x}", "{x}", "{x}", "length({x})", "substring({x}, 2, 3)", "left({x}, 1)", "{x} || '!'"),
    *("coalesce({x}, 'none')", "CASE WHEN {x} < 'b' THEN 'low' WHEN {x} IS NULL THEN NULL END"),
)
_OF_TIMES = (
    "{x}",
    "hour({x})",
    "minute({x})",
    "second({x})",
    "year({x})",
    "month({x})",
    "day({x})",
)
_OF_OTHERS = ("{x}", "{x}", "coalesce({x}, {x})", "CASE WHEN {x} IS NOT NULL THEN {x} END")


class Aggregates:
    """Makes queries of groups and of orders."""

    def __init__(self, queries: Queries, chance: random.Random, *, plain: float = 0) -> None:
        """`plain` is the share of terms that are just a path; then more are of `k` as well.

        Tasks begin groups, and limits leave files out, where all terms are columns of all files.
        """
        self._queries = queries
        self._chance = chance
        self._plain = plain

    def term(self) -> tuple[str, tuple[str, ...]]:
        """An expression, and functions that add it up to the same in whatever order.

        Spark adds up doubles for an average, which hold no large integers.
        """
        chance = self._chance
        if chance.random() < (0.5 if self._plain else 0.15):
            return chance.choice(("k", "k % 5", "k * 2")), ("sum", "avg")
        asked = chance.choice(self._queries.requested)
        value = asked.get("event", strict=False, colon=False)
        if chance.random() < self._plain:
            return value, _sums(asked.type)
        if asked.type in _INTEGERS:
            form = chance.choice(_OF_INTEGERS)
            is_double = asked.type == "bigint" and "/" in form
            return form.format(x=value), () if is_double else _sums(asked.type)
        if asked.type.startswith("decimal"):
            return chance.choice((*_OF_OTHERS, "{x} + {x}")).format(x=value), _sums(asked.type)
        forms: tuple[str, ...] = _OF_STRINGS if asked.type == "string" else _OF_OTHERS
        if asked.type in ("timestamp", "timestamp_ntz"):
            forms = _OF_TIMES
        return chance.choice(forms).format(x=value), ()

    def groups(self) -> str:
        """A query of groups."""
        chance = self._chance
        self._queries.look_elsewhere()
        keys = [self.term()[0] for _ in range(chance.choice((0, 1, 1, 1, 2)))]
        if keys and chance.random() < 0.15:
            items = [f"{key} AS g{at}" for at, key in enumerate(keys)]
            return f"SELECT DISTINCT {', '.join(items)} FROM {{t}}{self._where()}"
        items = [*(f"{key} AS g{at}" for at, key in enumerate(keys)), "count(*) AS n"]
        for at in range(chance.randrange(1, 4)):
            value, sums = self.term()
            names = ["count({x})", "min({x})", "max({x})", "count(DISTINCT {x})"]
            names += [f"{name}({{x}})" for name in sums]
            items.append(f"{chance.choice(names).format(x=value)} AS a{at}")
        text = f"SELECT {', '.join(items)} FROM {{t}}{self._where()}"
        text += f" GROUP BY {', '.join(str(at + 1) for at in range(len(keys)))}" if keys else ""
        text += " HAVING n > 1" if chance.random() < 0.2 else ""
        if keys and chance.random() < 0.3:
            text += f" ORDER BY {', '.join(f'g{at}' for at in range(len(keys)))}"
        return text

    def orders(self) -> str:
        """A query of rows in an order without ties."""
        chance = self._chance
        self._queries.look_elsewhere()
        terms = [self.term()[0] for _ in range(chance.choice((1, 1, 2)))]
        by = ", ".join(
            f"o{at}{chance.choice(('', ' DESC', ' NULLS LAST', ' DESC NULLS FIRST'))}"
            for at in range(len(terms))
        )
        items = ", ".join(f"{term} AS o{at}" for at, term in enumerate(terms))
        limit = chance.choice(("", " LIMIT 3", " LIMIT 20"))
        return f"SELECT k, {items} FROM {{t}}{self._where()} ORDER BY {by}, k{limit}"

    def _where(self) -> str:
        chance = self._chance
        if chance.random() < 0.5:
            return ""
        if chance.random() < 0.5:
            return f" WHERE k {chance.choice(('<', '>=', '<>'))} {chance.randrange(200)}"
        return f" WHERE {self._queries.condition()}"


def _sums(type_: str) -> tuple[str, ...]:
    if type_ == "bigint":
        return ("sum",)
    return ("sum", "avg") if type_ in _INTEGERS or type_.startswith("decimal") else ()


def aggregates_agree(trial: Trial, queries: Queries, count: int, seed: object) -> int:
    """So many queries that the local engine takes; gives how many it answered.

    Raises AssertionError if its answer is not Spark's, in ANSI mode and UTC.
    """
    made = Aggregates(queries, random.Random(f"aggregates {seed}"))
    opened = Table.open(trial.table.location)
    answered = tried = 0
    while answered < count and tried < 10 * count:
        tried += 1
        text = made.orders() if tried % 4 == 0 else made.groups()
        try:
            ours: Any = opened.sql(text.format(t="t")).to_arrow()
        except (UnsupportedFeature, InvalidQuery):
            continue
        except InvalidValue as error:
            ours = error
        answered += 1
        _agree(trial, text, ours)
    return answered


def pushed_agree(trial: Trial, queries: Queries, count: int, seed: object) -> int:
    """So many queries of groups on Spark; gives how many of them tasks of ours began.

    Raises AssertionError if the answer is not the judge's.
    """
    made = Aggregates(queries, random.Random(f"pushed {seed}"), plain=0.8)
    scans = [_alone(trial, made.groups()) for _ in range(count)]
    return sum(scan.get("aggregated", False) for scan in scans)


def first_rows_agree(trial: Trial, queries: Queries, count: int, seed: object) -> int:
    """So many queries of orders on Spark; gives how many of them a LIMIT left something out of.

    Raises AssertionError if the answer is not the judge's.
    """
    made = Aggregates(queries, random.Random(f"first rows {seed}"), plain=0.8)
    scans = [_alone(trial, made.orders()) for _ in range(count)]
    return sum(scan.get("limit") is not None for scan in scans)


def _alone(trial: Trial, query: str) -> dict[str, Any]:
    """Ask both sides; how our scan is explained, nothing if Spark reads the table by itself."""
    # As text, in which NaN is itself, and without the sign of zeros.
    text = f"SELECT replace(to_json(struct(*)), '-0.0', '0.0') AS r FROM ({query})"
    trial.agree_alone(text)
    tables = trial.lake.explain(text.format(t=f"delta.`{trial.table.location}`")).to_dict()
    scans: list[dict[str, Any]] = tables["tables"]
    assert len(scans) <= 1
    return scans[0] if scans else {}


def _agree(trial: Trial, text: str, ours: Any) -> None:
    about = f"\n{text}\nseed {trial.table.seed}"
    right = _judged(trial, text)
    if right is None:
        # Rule 1: an error as well, or what skipping left.
        return
    assert isinstance(ours, pa.Table), f"{ours}{about}"
    names = [(item.name, _kind(item.type)) for item in right.schema]
    assert [(item.name, _kind(item.type)) for item in ours.schema] == names, about
    mine, theirs = _rows(ours), _rows(right)
    if " ORDER BY " in text:
        assert mine == theirs, about
    missing, wrong = Counter(theirs) - Counter(mine), Counter(mine) - Counter(theirs)
    assert missing == wrong, f"missing {missing}, wrong {wrong}{about}"


def _judged(trial: Trial, text: str) -> pa.Table | None:
    """Spark's answer; None if it raises an error."""
    with changed(trial.spark, PLAINLY):
        try:
            return trial.spark.sql(text.format(t=trial.table.judge)).toArrow()
        except PySparkException:
            return None


def _kind(type_: pa.DataType) -> str:
    return "timestamp" if pa.types.is_timestamp(type_) else str(type_)


def _rows(table: pa.Table) -> list[tuple[str, ...]]:
    columns = []
    for column in table.columns:
        plain: Any = column
        if pa.types.is_temporal(column.type):
            plain = column.cast(pa.int32() if pa.types.is_date(column.type) else pa.int64())
        columns.append([_text(value) for value in plain.to_pylist()])
    return list(zip(*columns, strict=True))


def _text(value: Any) -> str:
    return str(shown(value + 0.0 if isinstance(value, float) else value))
