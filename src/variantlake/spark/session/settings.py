"""Settings of a user's session, read as Spark reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from variantlake.errors import InvalidValue

ENABLED = "spark.variantlake.enabled"
"""Ours: whether the rule of `vl.spark.accelerate` changes queries of a session."""
TIME_ZONE = "spark.sql.session.timeZone"
ANSI = "spark.sql.ansi.enabled"
ESCAPED = "spark.sql.parser.escapedStringLiterals"
AUTO_MERGE = "spark.databricks.delta.schema.autoMerge.enabled"
RETENTION_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"
DELTA_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
DOUBLE_QUOTED_NAMES = "spark.sql.ansi.doubleQuotedIdentifiers"
JOINED_TEXTS = "spark.sql.legacy.consecutiveStringLiterals.enabled"
"""If on, two quotes in a row end one string literal and begin another, as in Spark 3."""

_UTC = ("UTC", "Etc/UTC", "GMT", "Z", "+00:00")


def is_on(spark: Any, name: str) -> bool:
    """Whether a boolean setting of Spark's, which may be in any case, is true."""
    return str(spark.conf.get(name)).lower() == "true"


def is_case_sensitive(spark: Any) -> bool:
    """Whether names in the session are case-sensitive."""
    return is_on(spark, "spark.sql.caseSensitive")


def evolves_merges(spark: Any) -> bool:
    """Whether every MERGE of the session evolves the schema, by a setting of Delta Spark."""
    return str(spark.conf.get(AUTO_MERGE, "false")).lower() == "true"


def vacuums_young_files(spark: Any) -> bool:
    """Whether VACUUM takes any retention, by a setting of Delta Spark."""
    return str(spark.conf.get(RETENTION_CHECK, "true")).lower() == "false"


def is_utc(zone: str | None) -> bool:
    """Whether a session's time zone is UTC."""
    return zone in _UTC


def bytes_in(settings: Mapping[str, str], name: str) -> int | None:
    """Parse a setting in bytes, possibly negative; None if not set. Raises InvalidValue."""
    text = settings.get(name, "")
    try:
        return int(text) if text else None
    except ValueError:
        raise InvalidValue(
            f"the setting {name} is {text!r}", hint="a number of bytes, as 67108864", cli_hint=""
        ) from None
