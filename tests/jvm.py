"""How tests start Java."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from pathlib import Path

PLAIN = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m -XX:+UseSerialGC -XX:MetaspaceSize=256m"
)
"""Tests plan thousands of queries and run each once: a third of the time went into compiling what
is not run again, and into threads of the collector. With that compiler alone the JVM keeps 48 MB of
code, which queries fill: a quarter of the time then went into looking for code to drop. Classes
fill 200 MB, and the collector ran over all of the heap whenever they had grown."""

LAUNCHER = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For the JVM in which Spark's scripts put a command together: half of its time."""

ROOM = "-Xms1g -Xmn512m"
"""Of the heap, for a driver of 2 GB from its start: a growing one costs a fifteenth of the time."""


def kept_classes(java: Path, spark: Path, place: Path) -> Path:
    """The archive of Spark's parsed classes in `place`; another one for another Java or other jars.

    Raises OSError where `java` is no Java, or `spark` no folder of PySpark.
    """
    jars = ((each.name, each.stat()) for each in (spark / "jars").iterdir())
    known = sorted((name, stat.st_size, stat.st_mtime_ns) for name, stat in jars)
    text = f"{(java / 'release').read_text()}{spark}{known}{PLAIN}"
    return place / f"spark-{hashlib.sha256(text.encode()).hexdigest()[:16]}.jsa"


def _kept_here() -> Path | None:
    """That of this environment; None without Java or PySpark, or outside of an environment."""
    spark = importlib.util.find_spec("pyspark")
    if spark is None or spark.origin is None or sys.prefix == sys.base_prefix:
        return None
    try:
        java = Path(os.environ["JAVA_HOME"])
        return kept_classes(java, Path(spark.origin).parent, Path(sys.prefix))
    except (KeyError, OSError):
        return None


def with_classes(kept: Path | None) -> str:
    """Options of a JVM that takes classes from `kept`, and reads them itself where that fails.

    It says nothing of a file that is missing, or that other jars are in its class path.
    """
    taken = f" -XX:SharedArchiveFile={kept} -Xlog:cds=off -Xlog:cds+dynamic=off" if kept else ""
    return PLAIN + taken


KEPT = _kept_here()
"""`python -m tests.classes` makes it. Without it a start of Spark takes a third more."""

SHORT_LIVED = with_classes(KEPT)
