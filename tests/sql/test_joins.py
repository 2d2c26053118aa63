"""Which rows of a join's sides matter: the table against small joins, and against Spark."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

from variantlake.spark.lake import connect
from variantlake.sql.joins import JOINS, LEFT, RIGHT, join_of_plan, join_of_text
from variantlake.sql.scopes import Scopes, TableReference
from variantlake.sql.token_tables import table_names
from variantlake.sql.tokens import ParsedText
from variantlake.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = tuple[int, ...]
Rows = tuple[Row, ...]
NULLS = (-1, -1)

WORDS = {
    "INNER": "JOIN",
    "CROSS": "CROSS JOIN",
    "LEFT": "LEFT JOIN",
    "RIGHT": "RIGHT OUTER JOIN",
    "FULL": "FULL JOIN",
    "SEMI": "LEFT SEMI JOIN",
    "ANTI": "LEFT ANTI JOIN",
}
SIDES = (LEFT, RIGHT)


def joined(kind: str, left: Rows, right: Rows, on: Callable[[Row, Row], bool]) -> list[Row]:
    """The join as SQL defines it, of rows of two columns; NULLS stand for a missing match."""
    pairs = [(a, b) for a in left for b in right if on(a, b)]
    with_match = {a for a, _ in pairs}, {b for _, b in pairs}
    if kind in ("SEMI", "ANTI"):
        return [(*a, *NULLS) for a in left if (a in with_match[LEFT]) == (kind == "SEMI")]
    found = [(*a, *b) for a, b in pairs]
    if kind in ("LEFT", "FULL"):
        found += [(*a, *NULLS) for a in left if a not in with_match[LEFT]]
    if kind in ("RIGHT", "FULL"):
        found += [(*NULLS, *b) for b in right if b not in with_match[RIGHT]]
    return found


def drops_safely(kind: str, side: int, place: str) -> bool:
    """Whether rows of a side that fail `x = 1 OR x IS NULL` may be left out, in all small tables.

    The condition stands in WHERE or ON. Rows are (key, x).
    """
    every = list(itertools.product((0, 1), (1, 2)))
    tables = [rows for size in range(3) for rows in itertools.combinations(every, size)]

    def holds(row: Row) -> bool:
        return row[1] in (1, *NULLS)

    def on(a: Row, b: Row) -> bool:
        return a[0] == b[0] and (place == "WHERE" or holds((a, b)[side]))

    def answer(left: Rows, right: Rows) -> Counter[Row]:
        whole = joined(kind, left, right, on)
        return Counter(row for row in whole if place == "ON" or holds(row[2 * side :]))

    for given in itertools.product(tables, tables):
        less = list(given)
        less[side] = tuple(row for row in given[side] if holds(row))
        if answer(*given) != answer(*less):
            return False
    return True


@pytest.mark.rule(34)
@pytest.mark.parametrize("kind", JOINS)
@pytest.mark.parametrize("side", SIDES)
def test_the_table_says_neither_too_much_nor_too_little(kind: str, side: int) -> None:
    # WHERE cannot name the right side of these two.
    if side == LEFT or kind not in ("SEMI", "ANTI"):
        assert (side in JOINS[kind].above) == drops_safely(kind, side, "WHERE")
    assert (side in JOINS[kind].on) == drops_safely(kind, side, "ON")


def test_joins_have_names_in_plans_and_texts() -> None:
    assert {join_of_text(*words) for words in (("", ""), ("LEFT", "OUTER"), ("", "ANTI"))} == {
        "INNER", "LEFT", "ANTI",
    }  # fmt: skip
    assert join_of_text("", "ASOF") is None
    assert join_of_plan("RightOuter") == JOINS["RIGHT"]
    for unknown in ("FullOuter", "ExistenceJoin", "LeftSingle"):
        assert join_of_plan(unknown).above == join_of_plan(unknown).on == ()


@pytest.mark.rule(34)
@pytest.mark.spark
def test_plans_and_texts_skip_alike(delta_spark: SparkSession, tmp_path: Path) -> None:
    """Each join, each side, ON and WHERE: Spark's answer, and the files that the table tells."""
    lake = connect(delta_spark)
    name = f"delta.`{tmp_path / 't'}`"
    made = Table.create(tmp_path / "t", "k INT, x INT")
    rows = [(k, x) for x in (1, 2, 3) for k in (x % 2, 7, None)]
    for x in (1, 2, 3):
        made.append(pa.table({"k": [x % 2, 7, None], "x": [x] * 3}))
    delta_spark.createDataFrame(rows, "k INT, x INT").coalesce(1).createOrReplaceTempView("joined")
    schema = made.schema
    ours, theirs = [], []
    for (kind, words), side, place in itertools.product(WORDS.items(), SIDES, ("ON", "WHERE")):
        if place == "WHERE" and side == RIGHT and kind in ("SEMI", "ANTI"):
            continue
        own = f"{'ab'[side]}.x = {side + 1}"
        condition = f" AND {own}" if place == "ON" else f" WHERE {own}"
        # Two columns that are not equal: no values of the other side skip files.
        query = f"SELECT * FROM {name} a {words} {name} b ON a.k <= b.k{condition}"
        ours.append(lake.sql(query))
        theirs.append(delta_spark.sql(query.replace(name, "joined")))
        scans = [table.scan for table in lake.explain(query).tables]
        files = scans[0].total_files
        reached = JOINS[kind].on if place == "ON" else JOINS[kind].above
        # Spark makes an inner join of an outer one whose rows without a match fail WHERE.
        skips = place == "WHERE" or side in reached
        wanted = [files, files // 3] if skips else [files, files]
        assert sorted(scan.read_files for scan in scans) == sorted(wanted), query
        scopes = Scopes(ParsedText.of(query), case_sensitive=False, quoted_names=False)
        places = [each.start for each in table_names(ParsedText.of(query))]
        held = [scopes.pushed_filter(TableReference(start, schema)).predicate for start in places]
        assert (f"x = {side + 1}" in str(held[side])) == (side in reached), query
    assert answers(ours) == answers(theirs)


def answers(frames: list[DataFrame]) -> Counter[tuple[int | None, ...]]:
    """The rows of them all, with the number of their frame, in one job."""
    numbered = [
        frame.toDF(*"abcd"[: len(frame.columns)]).withColumn("frame", sf.lit(number))
        for number, frame in enumerate(frames)
    ]
    wide = functools.reduce(
        lambda left, right: left.unionByName(right, allowMissingColumns=True), numbered
    )
    return Counter(map(tuple, wide.collect()))
