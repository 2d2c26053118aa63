"""Export rows to Parquet, CSV and JSON lines files, and format rows as text.

Values are written as Spark writes them. Nothing here depends on tables.
"""

from __future__ import annotations

from variantlake.familiar_names import say_what_to_call

say_what_to_call(__name__)
