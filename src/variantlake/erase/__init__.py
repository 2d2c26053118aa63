"""Erasing rows for good: out of the table, then out of its folder and its log.

In: the newest version and a condition. Out: a commit after which no file of the table holds the
rows, and when, or at once, nothing below the table's folder does.
"""

from __future__ import annotations

from variantlake.familiar_names import say_what_to_call

say_what_to_call(__name__)
