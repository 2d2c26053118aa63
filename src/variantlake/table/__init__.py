"""The façade of a Delta table without Spark: open, read, append, change and maintain it.

In: a location. Out: `Table`, whose methods check their arguments and call other packages.
"""

from __future__ import annotations

from variantlake.familiar_names import say_what_to_call
from variantlake.table.table import Table

__all__ = ["Table"]

say_what_to_call(__name__)
