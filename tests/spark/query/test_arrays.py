"""Rule 12: elements of arrays read from their columns are what Spark finds in the Variants.

Files of our own writer, whose tags say what is clean, and files of Spark, whose footers do.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.spark.layouts import PLAINLY, File, Shape, changed, make, rows
from tests.strategies import MORE
from variantlake import Table
from variantlake.spark.lake import Lake, connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

Files = list[tuple[str, list[Any]]]
"""The layout and the documents of each file."""

LAYOUTS = [
    (
        "l ARRAY<STRING>, n ARRAY<BIGINT>, o ARRAY<STRUCT<x: BIGINT, y: ARRAY<STRING>>>, "
        "a ARRAY<ARRAY<BIGINT>>"
    ),
    "l ARRAY<BIGINT>, n ARRAY<DECIMAL(18,2)>, o ARRAY<STRUCT<y: ARRAY<STRING>>>, a ARRAY<VARIANT>",
    "o STRUCT<x: BIGINT>, n ARRAY<DOUBLE>",
]
PATHS = (
    "event:l[0]::string",
    "event:l[2]::string",
    "try_variant_get(event, '$.l[1]', 'bigint')",
    "try_variant_get(event, '$.n[0]', 'bigint')",
    "try_variant_get(event, '$.n[1]', 'double')",
    "try_variant_get(event, '$.n[1]', 'int')",
    "try_variant_get(event, '$.o[0].x', 'bigint')",
    "event:o[1].y[0]::string",
    "event:o[0].z::string",
    "event:O[0].x::string",
    "event:o.x::string",
    "try_variant_get(event, '$.a[0][1]', 'bigint')",
    "event:a[1][0]::string",
    "event:a[99][0]::string",
)
CONDITIONS = (
    "event:l[0]::string = 'a'",
    "event:l[1]::string IS NULL AND try_variant_get(event, '$.n[0]', 'bigint') >= 1",
    "NOT (try_variant_get(event, '$.n[1]', 'double') > 1) OR event:o[0].y[0]::string <=> NULL",
)

WORDS = st.sampled_from(["a", "b", "7", ""])
NUMBERS = st.sampled_from([0, 1, -5, 300, 2**40])
ODD = st.sampled_from([None, True, 1.5, 2.25, "a", 1e300, [], [1, "x"], {}, {"x": 1}, {"z": "q"}])


TIDY, MIXED, WILD = range(3)
"""Arrays of the usual types; also other elements in them; also other values in their place."""


@st.composite
def documents(draw: st.DrawFn, disorder: int) -> Any:
    if draw(st.integers(0, 9)) == 0:
        return draw(ODD) if disorder == WILD else None

    def often(usual: st.SearchStrategy[Any], *, disorderly: int) -> st.SearchStrategy[Any]:
        return usual | usual | ODD if disorder >= disorderly else usual

    def lists(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        elements = often(usual, disorderly=MIXED) | st.none()
        return often(st.lists(elements, max_size=3), disorderly=WILD)

    numbers = often(NUMBERS, disorderly=MIXED)
    objects = st.fixed_dictionaries({}, optional={"x": numbers, "y": lists(WORDS), "w": NUMBERS})
    fields = {
        "l": lists(WORDS),
        "n": lists(NUMBERS),
        "o": lists(objects),
        "a": lists(lists(NUMBERS)),
    }
    return {key: draw(value) for key, value in fields.items() if draw(st.integers(0, 5))}


FILES = st.lists(
    st.tuples(
        st.sampled_from(LAYOUTS),
        st.sampled_from([TIDY, MIXED, MIXED, WILD]).flatmap(
            lambda disorder: st.lists(documents(disorder), min_size=8, max_size=20)
        ),
    ),
    min_size=2,
    max_size=3,
)
ORDERLY = [{"l": ["a", None], "o": [{"x": 1}, {"x": 2, "w": 1}]}, {"l": [], "n": [1, 2]}, {}, None]
DISORDERLY = [
    {"l": [1, "a", 2.50], "n": [1.5, "7", {}], "o": [{"x": "7"}, {"y": [1]}], "a": [[1, "7"], 7]},
    {"l": [None, {"x": 1}], "o": [[], "x"], "a": [{}, ["7"]]},
]
NO_ARRAYS = [{"l": "a", "n": 7, "o": {"x": 1}, "a": True}, {"l": ["a"], "n": [7], "a": [[1, 2]]}]
ALL: Files = [(LAYOUTS[0], ORDERLY), (LAYOUTS[0], DISORDERLY), (LAYOUTS[0], NO_ARRAYS)]


@pytest.fixture(scope="module")
def lake(spark: SparkSession) -> Lake:
    return connect(spark)


def table_of(files: Files, folder: Path) -> str:
    """A table of ours with one file for each."""
    table = Table.create(folder / "ours", "event VARIANT, k INT")
    for layout, found in files:
        table.set_properties({"variantlake.shredding.event": layout})
        texts = [json.dumps(document) for document in found]
        keys = pa.array(range(len(texts)), pa.int32())
        table.append(pa.table({"event": texts, "k": keys}), json_columns=["event"])
    return str(folder / "ours")


def table_of_spark(spark: SparkSession, files: Files, folder: Path) -> str:
    made = tuple(
        File(str(number), found, layout.replace("VARIANT", "variant"))
        for number, (layout, found) in enumerate(files)
    )
    return make(spark, folder / "spark", Shape(made))


def judged(spark: SparkSession, files: Files) -> DataFrame:
    texts = [
        (json.dumps(document), number)
        for _, found in files
        for number, document in enumerate(found)
    ]
    frame = spark.createDataFrame(texts, "j STRING, k INT").coalesce(1)
    return frame.selectExpr("parse_json(j) AS event", "k")


@pytest.mark.rule(12)
@settings(max_examples=4 * MORE, deadline=None)
@given(
    files=FILES,
    # A Variant is read one way: a path that is not clean takes the others along.
    paths=st.lists(st.sampled_from(PATHS), min_size=1, max_size=2, unique=True),
    condition=st.sampled_from(["k >= 0", "k >= 0", *CONDITIONS]),
)
@example(files=ALL, paths=["event:l[0]::string"], condition="k >= 0")
@example(files=ALL, paths=["event:o[1].y[0]::string"], condition="k >= 0")
@example(files=ALL[::2], paths=["event:l[0]::string"], condition=CONDITIONS[0])
def test_rule_12_elements_are_what_spark_finds_in_the_variants(
    spark: SparkSession, lake: Lake, files: Files, paths: list[str], condition: str
) -> None:
    columns = ", ".join(f"{path} AS c{number}" for number, path in enumerate(paths))
    query = f"SELECT k, {columns} FROM {{t}} WHERE {condition}"
    judged(spark, files).createOrReplaceTempView("judge_arrays")
    with changed(spark, PLAINLY):
        expected = rows(spark.sql(query.format(t="judge_arrays")))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for table in (table_of(files, folder), table_of_spark(spark, files, folder)):
            assert rows(lake.sql(query.format(t=f"delta.`{table}`"))) == expected
        locally = Table.open(folder / "ours").scan(f"k, {columns}", condition).to_arrow()
        assert Counter(repr(tuple(row.values())) for row in locally.to_pylist()) == expected
    spark.catalog.dropTempView("judge_arrays")


@pytest.mark.rule(12)
def test_rule_12_explain_tells_files_whose_elements_are_clean(lake: Lake, tmp_path: Path) -> None:
    table = table_of(ALL[:2], tmp_path)
    for path in ("event:l[0]::string", "event:o[1].x::bigint"):
        query = f"SELECT {path} FROM delta.`{table}`"
        (found,) = lake.explain(query).to_dict()["tables"]
        (use,) = found["paths"]
        assert (use["physical"], use["whole"]) == (1, 1), path
        (local,) = Table.open(table).scan(path).explain().to_dict()["paths"]
        assert (local["physical"], local["whole"]) == (1, 1), path
