"""Installs the rule in a session, and removes it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from variantlake.spark.rule.callbacks import serve_callbacks
from variantlake.spark.rule.planner import RulePlanner
from variantlake.spark.rule.relations import TableRelation
from variantlake.spark.session.char_columns import with_declarations, without_declarations
from variantlake.spark.session.janino import java_instance, new_instance
from variantlake.spark.session.jvm import Java, gateway_of, is_connect, session_of
from variantlake.spark.session.stores import follow_spark
from variantlake.spark.session.versions import is_tried

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_rules: list[_Rule] = []


@dataclass(frozen=True, slots=True)
class _Rule:
    """An installed rule: the extensions that its sessions share, its JVM side and its planner."""

    extensions: Java
    java: Java
    planner: RulePlanner


def put_rule(spark: SparkSession) -> None:
    """Install the rule for all Delta tables of a session; warn on an untested version of Spark."""
    rule = _rule_in(spark)
    if rule is not None:
        rule.java.readAll()


def remove_rule(spark: SparkSession) -> None:
    """Remove the rule, if any, from a session and from all sessions that share it."""
    rule = _rule_of(spark)
    if rule is not None:
        rule.java.remove(session_of(spark))
        _rules.remove(rule)


def planner_of(spark: SparkSession) -> RulePlanner | None:
    """Return the planner behind a session's rule; None for a session without the rule."""
    rule = _rule_of(spark)
    return None if rule is None else rule.planner


def table_frame(spark: SparkSession, relation: TableRelation) -> DataFrame | None:
    """Return a table as a DataFrame that the rule plans; without the rule it gives all rows.

    Installs the rule in the session, which then leaves all other tables to Spark. None on a
    version of Spark that was not tested.
    """
    if _rule_in(spark) is None:
        return None
    table = relation.table
    frame = java_instance(spark, "LakeRelation").frame(
        session_of(spark),
        relation,
        without_declarations(table.declared).json(),
        table.files.bytes_expected,
        relation.number,
        relation.shown,
    )
    return with_declarations(DataFrame(frame, spark), table.snapshot.schema)


def _rule_of(spark: SparkSession) -> _Rule | None:
    if is_connect(spark):
        return None
    extensions = session_of(spark).extensions()
    return next((rule for rule in _rules if rule.extensions.equals(extensions)), None)


def _rule_in(spark: SparkSession) -> _Rule | None:
    """Return the rule of a session, installed if need be; None on an untested version of Spark."""
    if not is_tried(spark):
        return None
    rule = _rule_of(spark)
    if rule is not None:
        return rule
    follow_spark(spark)
    serve_callbacks(gateway_of(spark))
    session = session_of(spark)
    rule = _Rule(session.extensions(), new_instance(spark, "AcceleratedReads"), RulePlanner(spark))
    parts = ("PlanDump", "PathSubstitution", "PartialAggregates")
    strategies = java_instance(spark, "StaticFileIndex").strategies()
    try:
        rule.java.install(
            session, rule.planner, *(java_instance(spark, part) for part in parts), strategies
        )
    except BaseException:  # Ctrl-C too: nobody could remove a rule that is not in _rules
        with contextlib.suppress(Exception):
            rule.java.remove(session)
        raise
    _rules[:] = [*(each for each in _rules if not each.planner.is_stopped), rule]
    return rule
