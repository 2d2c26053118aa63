"""`accelerate(spark)`: put our rule into a session's optimizer, so that all its reads use it."""

from __future__ import annotations

from pyspark.sql import SparkSession

from variantlake.errors import UnsupportedFeature
from variantlake.spark.rule.accelerate import put_rule, remove_rule
from variantlake.spark.session.arguments import check_session
from variantlake.spark.session.janino import compile_ahead
from variantlake.spark.session.jvm import is_connect
from variantlake.spark.streaming.registration import is_registered, register


def accelerate(spark: SparkSession) -> None:
    """Let every query of this session read Delta tables with Variant columns as `Lake.sql` does.

    This covers SQL text and DataFrames, over tables named in any way, in this session and in all
    sessions made from it, before or after. Paths are read from typed columns if that is exact, and
    files that cannot match are skipped; any other query runs as before. The setting
    `spark.variantlake.enabled` switches this off and on, and `decelerate` removes it. A second call
    changes nothing.

    It also registers `format("variantlake")`, as `register` does.

    On a Spark newer than the versions that we have tested it warns, and queries run as before.

    Raises InvalidValue if `spark` is not a session; UnsupportedFeature for a client of Spark
    Connect, for a Spark before 4.1, and for one whose internals we do not know.

    Example:
        >>> vl.spark.accelerate(spark)
        >>> spark.table("events").groupBy(F.expr("event:kind::string")).count()
    """
    check_session(spark)
    if is_connect(spark):
        raise UnsupportedFeature(
            "a client of Spark Connect has no optimizer: the server has it",
            hint="call vl.spark.accelerate(spark) in the program that starts the server, or use "
            "vl.spark.connect(spark).sql(...)",
            cli_hint="",
        )
    compile_ahead(spark)
    # Spark logs a warning when a registered source replaces another.
    if not is_registered(spark):
        register(spark)
    put_rule(spark)


def decelerate(spark: SparkSession) -> None:
    """Remove the rule, if there is one, from a session and from all that share it.

    `format("variantlake")` stays registered.
    """
    check_session(spark)
    remove_rule(spark)
