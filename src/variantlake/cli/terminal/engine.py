"""Who runs what a command is asked for."""

from __future__ import annotations

import enum


class Engine(enum.StrEnum):
    """Who runs it: this process, a local Spark, or whoever takes it."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"
