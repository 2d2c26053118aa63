"""Words that queries and plans write: the parts of a name, the name of the Variant type."""

from __future__ import annotations

Parts = tuple[str, ...]
"""The parts of a name."""

VARIANT = "variant"
"""The type as Spark writes it."""
