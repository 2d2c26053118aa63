"""Predict the time zone of a Spark that the command would start."""

from __future__ import annotations

import os
import time
from pathlib import Path

_UTC = frozenset({"UTC", "Etc/UTC", "Etc/UCT", "UCT", "Zulu", "Etc/Zulu", "Universal"})
_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "SPARK_CONF_DIR", "SPARK_SUBMIT_OPTS")


def zone_is_utc() -> bool:
    """Whether the time zone is certainly UTC, since no setting may change it."""
    if any(os.environ.get(name) for name in _OPTIONS):
        return False
    named = os.environ.get("TZ")
    if named is not None:
        return named.removeprefix(":") in _UTC
    file = Path("/etc/timezone")
    if file.is_file() and file.read_text(encoding="utf-8", errors="replace").strip() not in _UTC:
        return False
    return time.tzname == ("UTC", "UTC")
