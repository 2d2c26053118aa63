"""One table with two writers: every version is the same for all readers, whatever was done."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.histories import try_history
from tests.strategies import MORE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]


@pytest.mark.parametrize("seed", range(MORE))
def test_a_random_history_of_two_writers(
    delta_spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    """Every version reads the same for Delta Spark, through the rule, and without Spark."""
    try_history(delta_spark, tmp_path / "table", seed)
