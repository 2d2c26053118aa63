"""Rows as files of other forms, and as text: Parquet, CSV, JSON lines.

Values are written as Spark writes them. Nothing here knows tables.
"""

from __future__ import annotations

from variantlake.familiar_names import say_what_to_call

say_what_to_call(__name__)
