"""Spark as the judge: its `parse_json` and `to_json` against ours, both ways."""

from __future__ import annotations

import gzip
import random
import re
import struct
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests import corpora
from tests.encoding.spark_json import LENIENT, OBJECTS, PARSED, REFUSED
from tests.strategies import doubles, floats32, json_texts, layouts, spark_trees
from variantlake.encoding.java_numbers import double_text, float_text
from variantlake.encoding.json import parse_json
from variantlake.encoding.tree import encode
from variantlake.encoding.variant import Variant

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

T = TypeVar("T")


def drawn(strategy: st.SearchStrategy[T], count: int) -> list[T]:
    """Examples of a strategy, to be judged in one Spark job; so nothing shrinks."""
    found: list[T] = []

    @settings(max_examples=count, database=None, deadline=None, phases=[Phase.generate])
    @given(strategy)
    def collect(example: T) -> None:
        found.append(example)

    collect()
    return found


def parsed_by_spark(
    spark: SparkSession, documents: Iterable[str]
) -> list[tuple[Variant, str] | None]:
    """What `parse_json` makes of each text and how `to_json` prints it; None if it refuses."""
    frame = spark.createDataFrame(list(enumerate(documents)), "i int, text string")
    frame = frame.selectExpr("i", "try_parse_json(text) AS v").selectExpr("i", "v", "to_json(v) j")
    return [
        None if row.v is None else (Variant(bytes(row.v.metadata), bytes(row.v.value)), row.j)
        for row in frame.orderBy("i").collect()
    ]


def printed_by_spark(
    spark: SparkSession, values: Sequence[tuple[bytes, bytes]], folder: Path
) -> list[str]:
    """How Spark's `to_json` prints our own bytes, which it reads from a Parquet file."""
    group = pa.StructArray.from_arrays(
        [
            pa.array([m for m, _ in values], pa.binary()),
            pa.array([v for _, v in values], pa.binary()),
        ],
        fields=[
            pa.field("metadata", pa.binary(), nullable=False),
            pa.field("value", pa.binary(), nullable=False),
        ],
    )
    table = pa.table({"i": pa.array(range(len(values)), pa.int32()), "v": group})
    pq.write_table(table, folder / "values.parquet")
    frame = spark.read.schema("i int, v variant").parquet(str(folder / "values.parquet"))
    return [row.j for row in frame.selectExpr("i", "to_json(v) j").orderBy("i").collect()]


@pytest.fixture(scope="module")
def same_text(spark: SparkSession) -> Callable[[str, str], bool]:
    """Compares our text with Spark's, but for the digits that Java 17 prints too many."""
    version = str(spark._jvm.System.getProperty("java.version"))  # type: ignore[union-attr] # classic Spark has it
    judge_is_shortest = int(re.match(r"\d+", version)[0]) >= 19  # type: ignore[index] # it starts with a number
    return str.__eq__ if judge_is_shortest else same_but_for_digits


NUMBER = re.compile(r"-?\d+\.\d+(?:E-?\d+)?")


def same_but_for_digits(ours: str, sparks: str) -> bool:
    """Whether two texts are the same but for numbers, and these denote the same double or float."""
    numbers = zip(NUMBER.findall(ours), NUMBER.findall(sparks), strict=False)
    return NUMBER.sub("#", ours) == NUMBER.sub("#", sparks) and all(
        one == other
        or float(one) == float(other)
        or (digits(other) <= 9 and np.float32(one) == np.float32(other))
        for one, other in numbers
    )


def digits(number: str) -> int:
    """Significant digits: a float has nine at most."""
    return len(re.sub(r"E.*|\D", "", number).lstrip("0"))


def test_the_table_of_texts_still_holds(
    spark: SparkSession, same_text: Callable[[str, str], bool]
) -> None:
    scalars, objects = [text for text, _, _ in PARSED], [text for text, _ in OBJECTS]
    found = iter(parsed_by_spark(spark, [*scalars, *objects, *REFUSED, *LENIENT]))
    for text, value, as_json in PARSED:
        judge = next(found)
        assert judge is not None, text
        assert judge[0].value.hex() == value, text
        assert same_text(as_json, judge[1]), text
    for text, as_json in OBJECTS:
        judge = next(found)
        assert judge is not None, text
        assert judge[1] == as_json
    assert [text for text in REFUSED if next(found) is not None] == []
    assert [text for text in LENIENT if next(found) is None] == []


@pytest.mark.parametrize(
    "path", [corpora.EARTHQUAKES, corpora.WEBHOOKS], ids=lambda path: path.name
)
def test_real_data_both_ways(
    spark: SparkSession, path: Path, tmp_path: Path, same_text: Callable[[str, str], bool]
) -> None:
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    ours = [parse_json(line) for line in lines]
    sparks = parsed_by_spark(spark, lines)
    printed = printed_by_spark(spark, [(v.metadata, v.value) for v in ours], tmp_path)
    for mine, judge, text in zip(ours, sparks, printed, strict=True):
        assert judge is not None
        assert mine == judge[0]
        for found, expected in ((mine.to_json(), text), (judge[0].to_json(), judge[1])):
            assert same_text(found, expected)


def test_generated_documents(spark: SparkSession, same_text: Callable[[str, str], bool]) -> None:
    documents = drawn(json_texts, 300)
    for text, judge in zip(documents, parsed_by_spark(spark, documents), strict=True):
        assert judge is not None, text
        assert parse_json(text) == judge[0], text
        assert same_text(judge[0].to_json(), judge[1]), text


def test_generated_values_of_every_type_and_layout(
    spark: SparkSession, tmp_path: Path, same_text: Callable[[str, str], bool]
) -> None:
    values = drawn(st.tuples(spark_trees, layouts), 200)
    encoded = [encode(tree) for tree, _ in values]
    encoded += [layout.encode(tree) for tree, layout in values]
    printed = printed_by_spark(spark, encoded, tmp_path)
    for (metadata, value), text in zip(encoded, printed, strict=True):
        found = Variant(metadata, value).to_json()
        assert same_text(found, text), (metadata, value)


def test_numbers_have_the_digits_of_java(
    spark: SparkSession, same_text: Callable[[str, str], bool]
) -> None:
    bits = random.Random(drawn(st.integers(), 2)[-1])
    numbers = [*drawn(doubles, 100), *(from_bits("<d", bits.getrandbits(64)) for _ in range(3000))]
    numbers += [float(bits.getrandbits(bits.randint(50, 90))) for _ in range(3000)]
    singles = [*drawn(floats32, 100), *(from_bits("<f", bits.getrandbits(32)) for _ in range(6000))]
    rows = list(zip(range(6100), numbers[:6100], singles[:6100], strict=False))
    frame = spark.createDataFrame(rows, "i int, d double, f float")
    frame = frame.selectExpr("i", "d", "f", "cast(d AS string) dt", "cast(f AS string) ft")
    for row in frame.orderBy("i").collect():
        assert same_text(double_text(row.d), row.dt)
        assert same_text(float_text(row.f), row.ft)


def from_bits(form: str, bits: int) -> float:
    number: float = struct.unpack(form, bits.to_bytes(struct.calcsize(form), "little"))[0]
    return number


def test_depth_of_nesting(spark: SparkSession) -> None:
    documents = ["[" * depth + "]" * depth for depth in (999, 1000, 1001)]
    found = parsed_by_spark(spark, documents)
    assert [v is not None for v in found] == [True, True, False]
    for text, judge in zip(documents[:2], found[:2], strict=True):
        assert judge is not None
        assert judge[0].to_json() == judge[1] == text
        assert parse_json(text) == judge[0]
