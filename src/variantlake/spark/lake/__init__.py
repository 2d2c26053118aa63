"""`connect(spark)`: tables with Variant columns, in the user's own session.

In: a session, classic or Connect; names and locations of tables. Out: `Lake`, one flat
class whose methods are a docstring and a call into a room; `LakeSession` holds what they share.
"""

from __future__ import annotations

from variantlake.spark.lake.lake import Lake, connect

__all__ = ["Lake", "connect"]
