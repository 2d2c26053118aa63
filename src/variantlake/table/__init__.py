"""The façade of a Delta table in this process: open, look, append, change, keep in shape.

In: a location. Out: `Table`, whose methods check what is given and call the room that does it.
"""

from __future__ import annotations

from variantlake.familiar_names import say_what_to_call
from variantlake.table.table import Table

__all__ = ["Table"]

say_what_to_call(__name__)
