"""The distributed engine: Spark runs what the planner and the kernels decide.

In: a user's session, classic or Connect. Out: DataFrames, and loads that are committed once. `lake`
is the entry point; nothing outside this folder imports PySpark. The names below load on first use,
because Spark's Python processes, of which a stream has two on the driver, need few modules.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from variantlake.errors import MissingDependency

if TYPE_CHECKING:
    from variantlake.spark.lake import Lake, connect
    from variantlake.spark.lake.accelerate import accelerate, decelerate
    from variantlake.spark.local import local_session
    from variantlake.spark.rows import json_rows, text_rows
    from variantlake.spark.serving import Server, serve
    from variantlake.spark.session.variant_functions import register_functions
    from variantlake.spark.streaming.registration import register

__all__ = [
    "Lake",
    "Server",
    "accelerate",
    "connect",
    "decelerate",
    "json_rows",
    "local_session",
    "register",
    "register_functions",
    "serve",
    "text_rows",
]

_HOMES = {
    "Lake": "variantlake.spark.lake",
    "Server": "variantlake.spark.serving",
    "accelerate": "variantlake.spark.lake.accelerate",
    "connect": "variantlake.spark.lake",
    "decelerate": "variantlake.spark.lake.accelerate",
    "json_rows": "variantlake.spark.rows",
    "local_session": "variantlake.spark.local",
    "register": "variantlake.spark.streaming.registration",
    "register_functions": "variantlake.spark.session.variant_functions",
    "serve": "variantlake.spark.serving",
    "text_rows": "variantlake.spark.rows",
}


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # from a finder that hides modules
        return False


for _needed in ("pyspark", "py4j", "pandas"):
    if not _is_there(_needed):
        raise MissingDependency(
            f"variantlake.spark needs {_needed}, which is not installed",
            hint="pip install 'variantlake[spark]'",
        ) from ModuleNotFoundError(f"No module named {_needed!r}", name=_needed)


def __getattr__(name: str) -> Any:
    """Load a public name from its home (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'variantlake.spark' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
