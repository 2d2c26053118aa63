"""The façade of a Delta table in this process: open, look, append, change, keep in shape.

In: a location. Out: `Table`, whose methods are grouped by what they do, one module a group.
"""

from __future__ import annotations

from variantlake.table.table import Table

__all__ = ["Table"]
