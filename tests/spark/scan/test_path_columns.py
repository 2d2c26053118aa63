"""`vl.path(...)` where a DataFrame takes a Column of its own."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any

import pytest

import variantlake as vl
from variantlake.expressions.from_python import Expr

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

# What is no Column to a type checker.
KIND: Any = vl.path("event", "$.kind").string()
N: Any = vl.path("event", "$.n").int()


def test_any_dataframe_takes_a_path_for_a_column(spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    text = "concat('{\"kind\": \"k', id % 2, '\", \"n\": ', id, '}')"
    frame = spark.range(5).selectExpr(f"parse_json({text}) AS event", "id")
    assert frame.select(KIND, N.alias("number")).columns == ["kind", "number"]
    rows = frame.where(((KIND == "k1") & (N > 1)) | (N == 4)).orderBy(N).select("id").collect()
    assert [row[0] for row in rows] == [3, 4]
    assert {tuple(row) for row in frame.groupBy(KIND).count().collect()} == {("k0", 3), ("k1", 2)}
    assert frame.withColumn("n", N).orderBy(F.desc("n")).collect()[0]["n"] == 4
    upper = frame.where(frame.id == 1).select(F.upper(KIND)).collect()
    assert upper[0][0] == "K1"


def test_a_path_stays_what_it_is_beside_a_session(spark: SparkSession) -> None:
    assert spark
    assert isinstance(KIND, Expr)
    assert isinstance(KIND == "x", Expr)
    for each in (KIND, KIND.alias("k"), KIND == "x"):
        for same in (copy.deepcopy(each), pickle.loads(pickle.dumps(each))):  # noqa: S301 - ours
            assert type(same) is type(each)
            assert str(same) == str(each)
    assert repr(KIND == "x") == "<Expr (variant_get(`event`, '$.kind', 'string') = 'x')>"
