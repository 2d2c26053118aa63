"""`connect(spark)`: tables with Variant columns, in the user's own session.

In: a session, classic or Connect; names and locations of tables. Out: `Lake`, one flat class whose
methods call functions of other packages; `LakeSession` holds the state that they share.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from variantlake.loading import load
from variantlake.spark.lake.connection import connect

if TYPE_CHECKING:
    from variantlake.spark.lake.lake import Lake

__all__ = ["Lake", "connect"]


def __getattr__(name: str) -> Any:
    """Load the class at its first use (PEP 562); see `connection`."""
    if name != "Lake":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return load("variantlake.spark.lake.lake").Lake
