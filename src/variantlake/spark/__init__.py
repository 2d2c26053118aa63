"""The distributed engine: Spark runs what the planner and the kernels decide."""

from __future__ import annotations

from variantlake.spark.data_source import register
from variantlake.spark.lake import Lake, connect
from variantlake.spark.local import local_session
from variantlake.spark.rows import json_rows, text_rows

__all__ = ["Lake", "connect", "json_rows", "local_session", "register", "text_rows"]
