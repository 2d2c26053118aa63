"""`connect(spark)`: tables with Variant columns, in the user's own session.

In: a session, classic or Connect; names and locations of tables. Out: `Lake`, whose methods are
grouped by what they do: queries, loads, upkeep, changes of rows. One module is one group.
"""

from __future__ import annotations

from variantlake.spark.lake.lake import Lake, connect

__all__ = ["Lake", "connect"]
