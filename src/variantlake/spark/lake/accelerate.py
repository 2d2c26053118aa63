"""`accelerate(spark)`: all that a session reads, by the rule in its optimizer."""

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

    SQL text and DataFrames alike, over tables named in any way, in this session and in those that
    were or will be made from it. Paths come from typed columns if that is exact, and files that
    cannot match are skipped; whatever is not understood runs as before. The setting
    `spark.variantlake.enabled` switches it off and on, `decelerate` takes it out. A second call
    changes nothing.

    This session knows `format("variantlake")` then, as after `register`.

    On a Spark that is newer than the versions that were tried it warns, and queries run as before.

    Raises InvalidValue for what is not a session; UnsupportedFeature for a client of Spark Connect,
    for a Spark before 4.1, and for one of unknown inner parts.

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
    # Spark logs a warning for each source that takes the place of another.
    if not is_registered(spark):
        register(spark)
    put_rule(spark)


def decelerate(spark: SparkSession) -> None:
    """Take the rule out of a session, and of all that share it; nothing if there is none.

    `format("variantlake")` stays: Spark reads it as it did after `register`.
    """
    check_session(spark)
    remove_rule(spark)
