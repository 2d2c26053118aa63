"""The differences between versions of Spark; no other module checks the version.

docs/support.md lists the tested versions and tests (`make test-matrix`). The Java classes next to
this module are the same for all versions, except for the parts that `java_source` changes.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from variantlake.errors import UnsupportedFeature

OLDEST: Final = (4, 1)
NEWEST: Final = (4, 3)
"""The oldest and the newest version of Spark in the test matrix."""

UNTRIED = "this version of Spark is newer than those that were tried"

_warned: set[str] = set()


def check_version(spark: SparkSession) -> None:
    """Raise UnsupportedFeature for a Spark that cannot read our files."""
    if _numbers(str(spark.version)) < OLDEST:
        raise UnsupportedFeature(
            f"Spark {spark.version} cannot open Parquet files with the VARIANT annotation, and "
            "knows no paths such as event:kind",
            hint="use Spark 4.1 or newer: pip install 'variantlake[spark]'",
        )


def is_tried(spark: SparkSession) -> bool:
    """Whether this Spark (for Spark Connect, its server) is not newer than the tested versions.

    Our proofs of exactness rest on the tested versions. With a newer one, queries read whole
    Variants and skip no files. The first session of such a version warns.
    """
    version = str(spark.version)
    if _numbers(version) <= NEWEST:
        return True
    if version not in _warned:
        _warned.add(version)
        newest = ".".join(map(str, NEWEST))
        warnings.warn(
            f"Spark {version} is newer than this version of variantlake, which was tried up to "
            f"Spark {newest}: queries read whole tables, and paths natively, which is slower; "
            f"upgrade variantlake, or use Spark {newest}",
            stacklevel=2,
        )
    return False


def java_source(spark: SparkSession, text: str) -> str:
    """Return a Java class for this Spark: text between `/*4.3` and `4.3*/` is for 4.3 and newer."""
    if _numbers(str(spark.version)) < (4, 3):
        return text
    return text.replace("/*4.3", "").replace("4.3*/", "")


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return Spark's Arrow types of columns: TIMESTAMP in UTC, VARIANT as a marked struct."""
    if _numbers(pyspark.__version__) < (4, 2):
        return to_arrow_schema(schema)  # UTC by default
    return to_arrow_schema(schema, timezone="UTC")


def at_exit(client: Any) -> Callable[[], None]:
    """Return the exit function that a Spark Connect client registers, by its private name."""
    name = "_cleanup_ml_cache" if _numbers(pyspark.__version__) < (4, 2) else "_on_exit"
    found: Callable[[], None] = getattr(client, name, _nothing)
    return found


def _nothing() -> None:
    pass


def _numbers(version: str) -> tuple[int, int]:
    """Parse the major and minor version; any other text is a version newer than all tested ones."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (1 << 30, 0)
