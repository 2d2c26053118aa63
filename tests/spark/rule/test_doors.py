"""All recorded queries through three doors: `lake.sql`, `spark.sql` and DataFrames."""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

import variantlake as vl
from tests.spark.layouts import PUSHDOWN, changed
from tests.spark.query.plans.recorded_plans import QUERIES, SCHEMA, TABLES
from tests.spark.rule.door import accelerated
from tests.spark.rule.frame_door import frame_of, is_cut
from tests.strategies import MORE
from variantlake.spark.lake import connect
from variantlake.spark.rule.accelerate import planner_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("interpreted")]

FILES, ROWS = 2, 9
SHREDDING = {"event": "kind STRING, a BIGINT, b BIGINT, t BIGINT, k STRING, ok BOOLEAN"}
UNCERTAIN = frozenset({"a rand() is unknown", "a condition above a LIMIT"})
"""Their rows may be others each time."""

FAILING = frozenset({"a cast between strings and numbers"})

TOGETHER = 1 if MORE > 1 else 16
"""Queries that are planned and run as one, which takes a third of the time."""

Door = Callable[[str], "DataFrame"]


def document(table: str, row: int) -> str | None:
    if row % 7 == 6:
        return None
    kind = ("commit", "x", "y")[row % 3] if table == "e" or row < 12 else None
    found: dict[str, Any] = {"kind": kind, "a": row % 5, "b": row % 4, "t": row, "k": f"k{row % 2}"}
    found["ok"] = row % 2 == 0
    if row >= ROWS:
        found |= {"a": row + 0.5, "c": "2024-02-01"}  # its file is read in another way
        del found["b"]
    return json.dumps(found)


def rows_of(table: str) -> list[tuple[Any, ...]]:
    return [
        (document(table, row), row % 3, row % 10, f"name{row % 3}" if row % 5 else None, row % 2)
        for row in range(FILES * ROWS)
    ]


@pytest.fixture(scope="module")
def doors(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Door]]:
    """The judge, which has the rows in memory, and three doors to tables of the same rows."""
    folder = tmp_path_factory.mktemp("doors")
    with changed(spark, {PUSHDOWN: "false"}), accelerated(spark):
        lake = connect(spark)
        vl.spark.register(spark)
        for name in TABLES:
            made = vl.Table.create(folder / name, SCHEMA, shredding=SHREDDING)
            rows = rows_of(name)
            for file in range(FILES):
                own = _frame(spark, rows[file * ROWS : (file + 1) * ROWS])
                lake.append(folder / name, own.coalesce(1))
            assert made.refresh().files().num_rows == FILES
            _frame(spark, rows).createOrReplaceTempView(f"judge_{name}")
        names = {name: str(folder / name) for name in TABLES}
        formats = dict(zip(TABLES, ("delta", "variantlake"), strict=True))
        frames = {
            name: spark.read.format(formats[name]).load(location)
            for name, location in names.items()
        }
        judges = {name: spark.table(f"judge_{name}") for name in TABLES}
        yield {
            # Spark calls what has no name otherwise in DataFrames.
            "judged frames": lambda text: frame_of(spark, _with_tables(text, "{{{}}}"), judges),
            "judge": lambda text: spark.sql(_with_tables(text, "judge_{}")),
            "lake.sql": lambda text: lake.sql(text, tables=names),
            "spark.sql": lambda text: spark.sql(_with_tables(text, f"delta.`{folder}/{{}}`")),
            "frames": lambda text: frame_of(spark, _with_tables(text, "{{{}}}"), frames),
        }


def _frame(spark: SparkSession, rows: list[tuple[Any, ...]]) -> DataFrame:
    columns = "event STRING, day INT, n INT, name STRING, a INT"
    return spark.createDataFrame(rows, columns).selectExpr(
        "parse_json(event) AS event",
        "date_add(DATE'2024-01-31', day) AS day",
        "n",
        "name",
        "named_struct('a', a, 'v', parse_json(event)) AS s",
    )


def _with_tables(text: str, form: str) -> str:
    """The text with its tables called so, under their old names."""

    def named(match: re.Match[str]) -> str:
        table = form.format(match[2])
        return f"{match[1]} {table} {match[3] or match[2]}"

    return re.sub(r"\b(FROM|JOIN) (e|f)\b(?: (?:AS )?(?!WHERE\b)([a-z])\b)?", named, text)


def test_texts_are_cut_into_words() -> None:
    """Else the third door would be the second one."""
    cut = [name for name, text in QUERIES.items() if is_cut(_with_tables(text, "{{{}}}"))]
    assert len(cut) > len(QUERIES) // 3


def test_every_query_gives_the_rows_of_unshredded_data_through_each_door(
    spark: SparkSession, doors: Mapping[str, Door]
) -> None:
    certain = [name for name in QUERIES if name not in UNCERTAIN | FAILING]
    read = 0
    planner = planner_of(spark)
    assert planner is not None
    for start in range(0, len(certain), TOGETHER):
        names = certain[start : start + TOGETHER]
        judged = {
            door: [doors[door](QUERIES[name]) for name in names]
            for door in ("judge", "judged frames")
        }
        right = _rows(judged["judge"])
        for door in ("lake.sql", "spark.sql", "frames"):
            frames = [doors[door](QUERIES[name]) for name in names]
            judges = judged["judged frames" if door == "frames" else "judge"]
            for name, frame, judge in zip(names, frames, judges, strict=True):
                assert frame.schema == judge.schema, (door, name)
            with planner.explaining() as planned:
                found = _rows(frames)
            read += len(planned)
            wrong = {names[at] for at, _ in (found - right) + (right - found)}
            assert not wrong, (door, wrong)
    assert read > len(certain)
    assert not planner.warnings


def test_uncertain_rows_and_errors(doors: Mapping[str, Door]) -> None:
    for name in UNCERTAIN:
        found = {door: open_(QUERIES[name]) for door, open_ in doors.items()}
        assert len({frame.schema.json() for frame in found.values()}) == 1, name
        for frame in found.values():
            assert {row.n for row in frame.collect()} <= set(range(10))
    for name in FAILING:
        for door, open_ in doors.items():
            with pytest.raises(PySparkException) as caught:
                open_(QUERIES[name]).collect()
            assert caught.value.getCondition() == "CAST_INVALID_INPUT", door


def _rows(frames: Sequence[DataFrame]) -> Counter[tuple[int, str]]:
    """The rows of all DataFrames, with the DataFrames' numbers; planned and run as one."""
    options = {"ignoreNullFields": "false"}
    texts = [
        frame.toDF(*(f"c{i}" for i in range(len(frame.columns)))).select(
            F.lit(at), F.to_json(F.struct("*"), options)
        )
        for at, frame in enumerate(frames)
    ]
    union = functools.reduce(lambda one, other: one.unionAll(other), texts)
    return Counter((at, text) for at, text in union.collect())
