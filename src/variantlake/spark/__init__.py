"""The distributed engine: Spark runs what the planner and the kernels decide.

In: a user's session, classic or Connect. Out: DataFrames, loads that are committed once.
`lake.py` is the face; nothing outside of this folder imports PySpark.
"""

from __future__ import annotations

from variantlake.errors import MissingDependency

_OPTIONAL = ("pyspark", "py4j", "pandas")

try:
    from variantlake.spark.lake import Lake, connect
    from variantlake.spark.local import local_session
    from variantlake.spark.rows import json_rows, text_rows
    from variantlake.spark.session.variant_functions import register_functions
    from variantlake.spark.streaming.data_source import register
except ModuleNotFoundError as error:
    _missing = (error.name or "").partition(".")[0]
    if _missing not in _OPTIONAL:
        raise
    raise MissingDependency(
        f"variantlake.spark needs {_missing}, which is not installed",
        hint="pip install 'variantlake[spark]'",
    ) from error

__all__ = [
    "Lake",
    "connect",
    "json_rows",
    "local_session",
    "register",
    "register_functions",
    "text_rows",
]
