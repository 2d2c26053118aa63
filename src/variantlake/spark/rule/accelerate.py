"""Putting the rule into a session, and taking it out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pyspark import java_gateway

from variantlake.errors import UnsupportedFeature
from variantlake.spark.rule.planner import RulePlanner
from variantlake.spark.session.arguments import check_session
from variantlake.spark.session.janino import java_instance, new_instance
from variantlake.spark.session.jvm import Java, gateway_of, is_connect, session_of
from variantlake.spark.session.stores import follow_spark
from variantlake.spark.session.versions import check_version, is_tried

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_rules: list[tuple[Java, Java, RulePlanner]] = []
"""What sessions share (their extensions) if they have the rule, the rule, and what answers it."""


def accelerate(spark: SparkSession) -> None:
    """Let every query of this session read Delta tables with Variant columns as `Lake.sql` does.

    SQL text and DataFrames alike, over tables named in any way, in this session and in those that
    were or will be made from it. Paths come from typed columns where that is exact, and files that
    cannot match are skipped; whatever is not understood runs as before. The setting
    `spark.variantlake.enabled` switches it off and on, `decelerate` takes it out. A second call
    changes nothing.

    On a Spark that is newer than the versions that were tried it warns, and changes nothing.

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
    check_version(spark)
    if _rule_of(spark) is not None or not is_tried(spark):
        return
    follow_spark(spark)
    gateway = gateway_of(spark)
    cast("Any", java_gateway).ensure_callback_server_started(
        gateway
    )  # for threads that do not come from Python
    planner = RulePlanner(spark)
    rule, session = new_instance(spark, "AcceleratedReads"), session_of(spark)
    parts = ("PlanDump", "PathSubstitution", "PartialAggregates")
    rule.install(session, planner, *(java_instance(spark, part) for part in parts))
    _rules.append((session.extensions(), rule, planner))


def decelerate(spark: SparkSession) -> None:
    """Take the rule out of a session, and of all that share it; nothing if there is none."""
    check_session(spark)
    found = None if is_connect(spark) else _rule_of(spark)
    if found is not None:
        found[1].remove(session_of(spark))
        _rules.remove(found)


def planner_of(spark: SparkSession) -> RulePlanner | None:
    """What answers the rule of a session; None for one without it."""
    found = None if is_connect(spark) else _rule_of(spark)
    return None if found is None else found[2]


def _rule_of(spark: SparkSession) -> tuple[Java, Java, RulePlanner] | None:
    extensions = session_of(spark).extensions()
    return next((found for found in _rules if found[0].equals(extensions)), None)
